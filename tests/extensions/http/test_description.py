"""The OpenAPI description of the server is valid and readable, and a client generated from it works."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator

from teams_cli import commands
from teams_cli.extensions.http import openapi, refusals
from tests.support.serving import Server

FOUND = openapi.document()
OPERATIONS = [operation for path in FOUND["paths"].values() for operation in path.values()]
SCRIPT = """
import sys
from client import AuthenticatedClient
from client.api.tasks import claim_task, create_task, get_tasks
from client.models import ClaimTaskBody, CreateTaskBody, Error

with AuthenticatedClient(base_url=sys.argv[1], token=sys.argv[2]) as client:
    made = create_task.sync(client=client, body=CreateTaskBody.from_dict({"title": "Write the parser"}))
    assert (made.id, made.status) == ("task-1", "pending"), made
    taken = claim_task.sync(client=client, as_="bob", body=ClaimTaskBody(task="1"))
    assert taken.owner == "bob", taken
    refused = claim_task.sync(client=client, as_="mia", body=ClaimTaskBody(task="1"))
    assert isinstance(refused, Error) and refused.error.code == "task_claimed", refused
    print([task.title for task in get_tasks.sync(client=client)])
"""


def test_it_is_valid() -> None:
    assert [str(problem) for problem in OpenAPIV31SpecValidator(FOUND).iter_errors()] == []


def test_refusals_are_listed_once_and_read_as_http() -> None:
    """Operations share one description of refusals, and list their own refusals by HTTP status and code."""
    assert all(set(operation["responses"]) == {"200", "default"} for operation in OPERATIONS)
    assert list(FOUND["components"]["responses"]) == ["Refused"]
    claim = FOUND["paths"]["/api/claim-task"]["post"]
    assert "* 409 `task_claimed`: Another agent owns the task" in claim["description"]
    told = [operation["summary"] + operation.get("description", "") for operation in OPERATIONS]
    assert not any(word in text for text in told for word in ("Raises", " --", "`--", "teams get-tasks"))


def test_the_page_names_the_commands_without_a_request() -> None:
    page = (Path(__file__).parents[3] / "docs/http.md").read_text()
    named = set(re.findall("`([a-z-]+)`", page.partition("can't be called over HTTP")[2].partition("A message")[0]))
    assert {command.name for command in commands.every().values() if command.at_shell} <= named
    assert not {f"/api/{name}" for name in named} & FOUND["paths"].keys()


def test_hints_speak_of_requests() -> None:
    for said, meant in [
        ("Use --team NAME or TEAMS_TEAM.", "Use ?team=NAME."),
        ("See `teams get-tasks`", "See `GET /api/get-tasks`"),
        ("take another: teams claim-task --next", 'take another: POST /api/claim-task {"next": true}'),
        ("teams update-task 1 --blocked-by 2", 'POST /api/update-task {"task": "1", "blockedBy": ["2"]}'),
        ("Join: teams join-team two --as ann", 'Join: POST /api/join-team?as=ann {"teamName": "two"}'),
        ("teams wait --task 7,8", 'POST /api/wait {"task": "7,8"}'),
        ("teams get-plans --open", "GET /api/get-plans?open=true"),
        ('teams search "WORDS"', "GET /api/search?words=WORDS"),
        ("See: teams list-agents --json", "See: GET /api/list-agents"),
        ("teams set x 'make --all'", 'POST /api/set {"key": "x", "value": "make --all"}'),
        ("teams set x 1 --as human", 'POST /api/set?as=human {"key": "x", "value": "1"}'),
        ("there is no teams leader", "there is no teams leader"),
    ]:
        assert refusals.in_requests(said) == meant


def test_commands_that_cannot_be_requested_stay_as_they_are() -> None:
    for said in (
        "Resume it: teams run --resume --team two",
        "See: teams worktree list --kept",
        "Write: teams get-evidence 7 NAME --out FILE",
    ):
        assert refusals.in_requests(said) == said


def test_a_refusal_tells_what_to_request(server: Server) -> None:
    hint = server.ask("GET", "/api/show-task?task=99").json["error"]["hint"]
    assert "/api/get-tasks" in hint and "teams " not in hint
    for_people = server.ask("GET", "/api/show-task?task=99", Prefer="hints=shell").json["error"]["hint"]
    assert "teams get-tasks" in for_people and "/api/" not in for_people


@pytest.mark.slow
def test_a_client_made_from_it_works(server: Server, tmp_path: Path) -> None:
    generator = Path(sys.executable).with_name("openapi-python-client")
    (tmp_path / "openapi.json").write_bytes(server.ask("GET", "/openapi.json").body)
    (tmp_path / "quick.yml").write_text("post_hooks: []\n")
    words = [generator, "generate", "--path", "openapi.json", "--config", "quick.yml", "--meta", "none"]
    words += ["--output-path", "client", "--fail-on-warning"]
    made = subprocess.run(words, cwd=tmp_path, capture_output=True, timeout=300)
    assert made.returncode == 0, made.stdout.decode() + made.stderr.decode()
    (tmp_path / "use.py").write_text(SCRIPT)
    environ = {**os.environ, "PYTHONPATH": str(tmp_path)}
    words = [sys.executable, "use.py", server.url, server.token]
    used = subprocess.run(words, cwd=tmp_path, env=environ, capture_output=True, text=True, timeout=120)
    assert used.stdout == "['Write the parser']\n", used.stderr
