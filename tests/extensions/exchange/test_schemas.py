"""JSON Schemas of the files that people write accept what the program reads, and reject what it refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from teams_cli.extensions.exchange import schemas
from teams_cli.workflows import files
from tests.docs.pages import blocks, text_of
from tests.support.cli import Cli

TOP = Path(__file__).resolve().parents[3]
GOOD = {
    "teams.yaml": "{name: app, rules: [a, b], members: [{name: ann}], tasks: [{title: t, each: [1, a]}]}",
    "tasks": "[Just a title, {id: 1, title: t, blockedBy: [2], for: bob}]",
    "workflow": "{name: w, description: d, agents: 3, variables: {a: 1, b: null, c: {default: yes}}, "
    "settings: {inject: false}, tasks: [{id: a, title: t}], synthesize: {verdict: x}}",
    "config.json": "{$schema: ./s.json, permission: {tool: {bob: {create-task: deny}}}, settings: {retentionDays: 3}}",
}
BAD = {
    "teams.yaml": "{name: app, member: []}",
    "tasks": "[{description: no title}]",
    "workflow": "{name: w, description: d, tasks: [{title: no id}]}",
    "config.json": "{agent: {scout: {skill: [a]}}}",
}


def fits(name: str, document: Any) -> bool:
    schema = schemas.of(name)
    jsonschema.Draft202012Validator.check_schema(schema)
    return bool(jsonschema.Draft202012Validator(schema).is_valid(document))


@pytest.mark.parametrize("name", schemas.NAMES)
def test_a_schema_tells_good_from_bad(name: str) -> None:
    assert fits(name, yaml.safe_load(GOOD[name]))
    assert not fits(name, yaml.safe_load(BAD[name]))


def test_workflows_in_the_repository_and_in_the_docs_fit() -> None:
    shipped = [path.read_text() for path in (TOP / "workflows").glob("*.md")]
    for text in [*shipped, *blocks(text_of("docs/workflow-files.md"), "yaml")]:
        assert fits("workflow", yaml.safe_load(files.front_matter(text) or "")), text


def test_the_command_shows_it(tmp_path: Path) -> None:
    answer = Cli(tmp_path / "root")("schema", "tasks")
    assert json.loads(answer.stdout) == schemas.of("tasks")
    assert (TOP / "docs/schemas/tasks.schema.json").read_text() == answer.stdout
