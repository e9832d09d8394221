"""A client is one file: with it alone, all that `teams` does with clients works for one client more."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import teams_cli
from tests.support.cli import TIMEOUT, make_team

PARROT = '''
"""Parrot, which says what it hears."""

from teams_cli.clients.contract import Client, Home, SettingsPlace
from teams_cli.clients.contract import Dialect
from teams_cli.clients.settings_files import Settings

_TURN = ["parrot", "{hooks}", "{mcp}"]
_PROFILE = {"name": "parrot", "start": _TURN, "resume": _TURN, "hooks": "parrot", "mcp": "parrot"}


class Parrot(Client):
    """Says its words, then what it hears."""

    profile = _PROFILE
    dialect = Dialect("Hatch", "Hear", ("Perch",), "Sleep", block="wake")
    events = ("Hear", "Perch")
    place = SettingsPlace(".parrot.json", "seeds.json", Settings(hooks=True, servers="cages"))
    home = Home("PARROT_HOME", ".parrot", place)

    def hook_words(self, python, level=None):
        return ["--hook"]

    def server_words(self, python, variables):
        return ["--server"]


CLIENT = Parrot()
'''


@pytest.fixture
def teams(tmp_path: Path) -> Callable[..., Any]:
    """`teams`, with that file added to its package and nothing else, as the leader of a team."""
    package = tmp_path / "site/teams_cli"
    shutil.copytree(Path(teams_cli.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    (package / "clients/known/parrot.py").write_text(PARROT)
    binary = tmp_path / "bin/parrot"
    binary.parent.mkdir()
    binary.write_text('#!/bin/sh\necho "$*:"; cat\n')
    binary.chmod(0o755)
    cli = make_team(tmp_path / "root", "bob")
    more = {
        "HOME": str(tmp_path),
        "PATH": f"{binary.parent}:{os.environ['PATH']}",
        "PYTHONPATH": str(tmp_path / "site"),
    }

    def run(*words: str, given: str = "", status: int = 0, agent: str = "lea") -> Any:
        done = subprocess.run(
            [sys.executable, "-m", "teams_cli", *words],
            env=cli.environ(agent, **more),
            cwd=tmp_path,
            input=given,
            capture_output=True,
            text=True,
            timeout=TIMEOUT,
        )
        assert done.returncode == status, done
        return json.loads(done.stdout) if done.stdout else done.stderr

    return run


def test_its_agents_are_started(teams: Callable[..., Any], tmp_path: Path) -> None:
    """Also by a profile of the user's own, which may use its words."""
    assert teams("run-agent", "hello", "--harness", "parrot", "--json")["output"] == "--hook --server:\nhello"
    own = {"start": ["parrot", "mine", "{hooks}"], "resume": ["parrot"], "hooks": "parrot"}
    (tmp_path / "root/config.json").write_text(json.dumps({"harness": {"own": own}}))
    assert teams("run-agent", "hello", "--harness", "own", "--json")["output"] == "mine --hook:\nhello"


@pytest.mark.slow
def test_it_is_installed_in_hooked_and_left(teams: Callable[..., Any], tmp_path: Path) -> None:
    asked, settings = json.dumps({"hook_event_name": "Perch"}), tmp_path / ".parrot/seeds.json"
    assert teams("hook", "parrot", given=asked, agent="bob") == ""
    teams("send-message", "bob", "seeds!", "--json")
    answer = teams("hook", "parrot", given=asked, agent="bob")
    assert "| seeds!" in answer["hookSpecificOutput"]["additionalContext"]
    teams("send-message", "bob", "more seeds!", "--json")
    assert teams("hook", "parrot", given=json.dumps({"hook_event_name": "Sleep"}), agent="bob")["decision"] == "wake"
    teams("install", "parrot", "--json")
    document = json.loads(settings.read_text())
    assert set(document["hooks"]) == {"Hear", "Perch"} and set(document["cages"]) == {"team"}
    findings = teams("doctor", "--client", "parrot", "--json")["findings"]
    assert [finding["level"] for finding in findings] == ["good", "good"], findings
    teams("uninstall", "parrot", "--json")
    assert not settings.exists()
    assert "parrot" in teams("install", "shell", status=2)
