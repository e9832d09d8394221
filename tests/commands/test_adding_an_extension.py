"""An extension is one folder whose table says what it brings; no other file of the program changes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.commands.conftest import changed_program
from tests.support.cli import ALPHA, add_tasks, complete

TABLE = '''"""A log: a line in a file for each completed task, and stamps of members."""

from teams_cli.extensions import Extension

EXTENSION = Extension(
    commands={"stamp": "commands"},
    rights={"stamp": "workers"},
    kinds=("stamps:STAMP",),
    settings={"logFile": "stamps:LOG_FILE"},
    checks=("stamps:examine",),
    after={"task completed": "write", "task failed": "fail"},
)
'''
RECORDS = '''"""Stamps."""

from teams_cli.records.records import Record
from teams_cli.records.types import Name, Text
from teams_cli.store.contract import Kind
from teams_cli.teams.settings import Setting


class Stamp(Record):
    agent: Name
    text: Text


STAMP = Kind("stamp", Stamp, key="agent")
LOG_FILE = Setting("", "the file that gets a line for each completed task", prose=True)


def examine(store, team, fix):
    for stamp, _ in store.scan(team.name, STAMP, []):
        if not team.member(stamp.agent):
            yield "warning", f"{stamp.agent} left a stamp", "Join."
'''
COMMANDS = '''"""The command that stamps."""

from teams_cli.commands.declaration import Command, argument, in_group
from teams_cli.extensions.log.stamps import STAMP, Stamp
from teams_cli.store.contract import upsert
from teams_cli.teams.permission import require


def _stamp(call, text):
    """Leave a stamp."""
    name = require(call.store, call.team, call.caller, "stamp").name
    fresh = Stamp(agent=name, text=text)
    return upsert(call.store, call.team, STAMP, name, fresh, lambda found: found.having(text=text))[1].to_json()


TEXT = argument("TEXT", "What it says.", name="text")
COMMANDS = in_group("Tasks", Command("stamp", _stamp, TEXT, doc=_stamp, example="stamp hello"))
'''
AFTER = '''"""Writes the log."""

from teams_cli.teams import settings, teams


def write(store, team, entry):
    with open(settings.value(teams.get(store, team), "logFile"), "a") as log:
        log.write(f"{entry['actor']} {entry['task']}\\n")


def fail(store, team, entry):
    raise RuntimeError("no log for this")
'''
ADDED = {"__init__.py": TABLE, "stamps.py": RECORDS, "commands.py": COMMANDS, "after.py": AFTER}


@pytest.mark.slow
def test_an_extension_brings_all_that_its_table_says(tmp_path: Path) -> None:
    cli = changed_program(tmp_path, {f"extensions/log/{name}": text for name, text in ADDED.items()}, {})
    log = tmp_path / "log"
    assert cli.ok("stamp", "here", agent="bob") == {"agent": "bob", "text": "here"}
    assert cli("stamp", "here").status == 13
    assert "stamp" in cli("help", "--all").stdout
    assert cli.ok("set", "logFile", str(log))["value"] == str(log)
    assert "logFile" in cli("settings").stdout
    add_tasks(cli, "one", "two")
    complete(cli, "bob", "1")
    assert log.read_text() == "bob task-1\n"
    cli.ok("claim-task", "2", agent="bob")
    cli.ok("update-task", "2", "--status", "failed", "--reason", "why not", agent="bob")
    failure = [entry for entry in cli.ok("history") if entry["what"] == "extension failed"]
    assert [(entry["extension"], entry["error"]) for entry in failure] == [("log", "RuntimeError: no log for this")]
    assert not [found for found in json.loads(cli("doctor", "--json").stdout)["findings"] if "stamp" in found["what"]]
    cli.ok("leave-team", agent="bob")
    assert "bob left a stamp" in cli("doctor", "--team", ALPHA).stdout
    assert cli.ok("copy-team", "--to", str(tmp_path / "there"))["copied"]["stamp"] == 1
