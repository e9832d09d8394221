"""The tables of commands and rights agree with what the modules of commands declare."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from teams_cli import commands, extensions
from teams_cli.teams import roles


def test_the_table_names_every_declared_command() -> None:
    declared = {}
    for path in sorted(Path(commands.__path__[0]).glob("*.py")):
        module = import_module(f"teams_cli.commands.{path.stem}") if path.stem != "__init__" else commands
        declared |= dict.fromkeys(getattr(module, "COMMANDS", {}), path.stem)
    assert declared == commands.MODULES
    places = [commands.GROUPS.index(command.group) for command in commands.every().values()]
    assert places == sorted(places), "the table is not in the order of the help"


def test_the_table_of_rights_names_commands() -> None:
    every = commands.every()
    missing = extensions.BROUGHT_BY.keys() - every.keys()
    assert set(roles.operations()) <= every.keys() | missing
    looking = {command.name for command in every.values() if command.reads and command.in_team}
    assert looking == {name for name in roles.operations() if not roles.is_change(name)} - missing
