"""Adding a kind of record takes its file, the list of kinds and a command; all else is derived."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.commands.conftest import changed_program
from tests.support.cli import ALPHA, Cli

NOUN = '''"""Reservations: a thing that one has for oneself."""

from teams_cli.records.records import Record
from teams_cli.records.types import Name, Text
from teams_cli.store.contract import Kind, upsert
from teams_cli.teams.permission import require


class Reservation(Record):
    thing: Name
    owner: Name
    why: Text | None = None


RESERVATION = Kind("reservation", Reservation, key="thing")


def reserve(store, team_name, caller, thing):
    """Have a thing for oneself."""
    name = require(store, team_name, caller, "reserve", thing).caller.name
    fresh = Reservation(thing=thing, owner=name)
    return upsert(store, team_name, RESERVATION, thing, fresh, lambda found: found.having(owner=name))[1]
'''
COMMAND = '''"""The command that reserves."""

from teams_cli.commands.declaration import Command, argument, in_group
from teams_cli.teams import reservations


def _reserve(call, thing):
    return reservations.reserve(call.store, call.team, call.caller, thing).to_json()


THING = argument("THING", "A thing.", name="thing")
COMMANDS = in_group(
    "Tasks",
    Command("reserve", _reserve, THING, doc=reservations.reserve, example="reserve printer"),
)
'''
ADDED = {"teams/reservations.py": NOUN, "commands/reserving.py": COMMAND}
CHANGED = {
    "commands/__init__.py": [('    ("updates",', '    ("reserving", "reserve"),\n    ("updates",')],
    "teams/roles.py": [('    "reply":', '    "reserve": EVERYBODY,\n    "reply":')],
    "kinds.py": [
        ("from teams_cli.teams import pages,", "from teams_cli.teams import reservations, pages,"),
        ("    pages.PAGE,\n", "    pages.PAGE,\n    reservations.RESERVATION,\n"),
    ],
}


@pytest.mark.slow
def test_records_of_a_new_kind_are_made_examined_and_copied(tmp_path: Path) -> None:
    cli = changed_program(tmp_path, ADDED, CHANGED)
    assert cli.ok("reserve", "printer", agent="bob") == {"thing": "printer", "owner": "bob"}
    assert cli.ok("reserve", "printer")["owner"] == "lea"
    assert cli.ok("copy-team", "--to", str(tmp_path / "there"))["copied"]["reservation"] == 1
    (file,) = (tmp_path / "there").rglob("printer.json")
    file.write_text(file.read_text().replace('"lea"', "7"))
    there = Cli(tmp_path / "there", "bob", ALPHA, **cli.more)
    assert f"{file}: " in there("doctor").stdout
    assert there("reserve", "printer").status == 15
