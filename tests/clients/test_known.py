"""A client is one file: with one file more, all that `teams` does with clients works for one client more."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.commands.conftest import changed_program
from tests.support.cli import Cli, program

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
def cli(tmp_path: Path) -> Cli:
    """A team, and a copy of `teams` with the client Parrot added."""
    made = changed_program(tmp_path, {"clients/known/parrot.py": PARROT}, {})
    program(tmp_path / "bin/parrot", 'echo "$*:"; cat\n')
    made.more |= {"HOME": str(tmp_path), "PATH": f"{tmp_path}/bin:{os.environ['PATH']}"}
    return made


def test_agents_of_a_new_client_are_started(cli: Cli) -> None:
    """A profile of the user's may also use what the client adds to a command."""
    assert cli("run-agent", "hello", "--harness", "parrot", "--json").json["output"] == "--hook --server:\nhello"
    own = {"start": ["parrot", "mine", "{hooks}"], "resume": ["parrot"], "hooks": "parrot"}
    (cli.root / "config.json").write_text(json.dumps({"harness": {"own": own}}))
    assert cli("run-agent", "hello", "--harness", "own", "--json").json["output"] == "mine --hook:\nhello"


@pytest.mark.slow
def test_a_new_client_is_hooked_installed_and_uninstalled(cli: Cli, tmp_path: Path) -> None:
    def hook(event: str) -> Any:
        said = cli("hook", "parrot", agent="bob", stdin=json.dumps({"hook_event_name": event}).encode()).stdout
        return json.loads(said) if said else None

    settings = tmp_path / ".parrot/seeds.json"
    assert hook("Perch") is None
    cli.ok("send-message", "bob", "seeds!")
    assert "| seeds!" in hook("Perch")["hookSpecificOutput"]["additionalContext"]
    cli.ok("send-message", "bob", "more seeds!")
    assert hook("Sleep")["decision"] == "wake"
    assert cli("install", "parrot", "--json").status == 0
    document = json.loads(settings.read_text())
    assert set(document["hooks"]) == {"Hear", "Perch"} and set(document["cages"]) == {"team"}
    findings = cli("doctor", "--client", "parrot", "--json").json["findings"]
    assert [finding["level"] for finding in findings] == ["good", "good"], findings
    cli.ok("uninstall", "parrot")
    assert not settings.exists()
    refused = cli("install", "shell")
    assert refused.status == 2 and "parrot" in refused.stderr
