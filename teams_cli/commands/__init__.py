"""The commands, each declared once: its words, what it runs, and what it answers; every face derives from this.

A command is declared in one of the modules beside this one, in its table `COMMANDS`; nowhere is a list of them all.
"""

from __future__ import annotations

import os
import sys

from teams_cli.teams import operations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from teams_cli.commands.declaration import Command

GROUPS = (
    "Teams",
    "Tasks",
    "Messages",
    "Questions",
    "Agents",
    "Plans and shutdown",
    "Workflows",
    "Connect",
    "Inspect",
)
"""The parts of the help, in this order."""

_LOOKING = ("get", "list", "show")
"""The first words of commands that look: agents say any of them, so each means what another is declared with."""
_LARGEST = 1 << 16
"""The bytes of a module that are looked at for the name of a command; all of each of ours."""
_INSIDE = f"{__name__}."
_every: dict[str, Command] = {}


def find(name: str) -> Command | None:
    """The command of that name, or of one that begins with another word for looking, as `list-tasks` for `get-tasks`;
    None if there is none.

    To import all the modules takes as long as a command does. So that only that one is imported which has the command,
    they are looked through for its name first, those with a word of it in theirs before the others; where they can't be
    read, all are imported. Where one with the command is imported already, or all are, as in servers, nothing is
    looked through.
    """
    names = meaning_the_same(name)
    if _every:
        return next(filter(None, map(_every.get, names)), None)
    for module in [*sys.modules]:
        if module.startswith(_INSIDE) and (command := _table(module.removeprefix(_INSIDE)).get(name)):
            return command
    words = name.split("-")
    modules = sorted(_modules(), key=lambda module: -sum(word in module for word in words))
    for likely in (True, False):
        for meant in names:  # all modules for the name as it was said first: mostly one has it
            for module in modules:
                if (not likely or _mentions(module, meant)) and (command := _table(module).get(meant)):
                    return command
    return None


def meaning_the_same(name: str) -> list[str]:
    """The name, and the same with each other word for looking."""
    verb, dash, rest = name.partition("-")
    return [name, *(f"{other}-{rest}" for other in _LOOKING if dash and verb in _LOOKING and other != verb)]


def get(name: str) -> Command:
    """The command of that name.

    Raises:
        KeyError: There is none.
    """
    command = find(name)
    if command is None:
        raise KeyError(name)
    return command


def every() -> dict[str, Command]:
    """All commands by name, in the order of the help."""
    if not _every:
        found = [command for module in _modules() for command in _table(module).values()]
        found.sort(key=lambda command: GROUPS.index(command.group))
        _every.update({command.name: command for command in found})  # in one go, for other threads find in it
    return _every


def names() -> list[str]:
    """The names of all commands, as the modules declare them, without importing these: Tab waits for it."""
    parts = [part.lstrip() for source in map(_source, _modules()) for part in source.split(b"Command(")[1:]]
    found = [part.split(b'"')[1].decode() for part in parts if part.startswith(b'"')]
    return found or list(every())


def groups() -> dict[str, list[Command]]:
    """The parts of the help with their commands."""
    return {group: [command for command in every().values() if command.group == group] for group in GROUPS}


def _modules() -> Iterator[str]:
    """The names of the modules beside this one."""
    for file in sorted(os.listdir(__path__[0])):
        if file.endswith(".py") and file != "__init__.py":
            yield file.removesuffix(".py")


def _mentions(module: str, name: str) -> bool:
    return f'"{name}"'.encode() in _source(module)


def _source(module: str) -> bytes:
    """What the module is written as; nothing where that can't be read."""
    try:
        descriptor = os.open(f"{__path__[0]}/{module}.py", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        return os.read(descriptor, _LARGEST)
    except OSError:
        return b""
    finally:
        os.close(descriptor)


def _table(module: str) -> dict[str, Command]:
    """The commands that a module declares."""
    found = __import__(f"{_INSIDE}{module}", fromlist=["COMMANDS"])
    commands: dict[str, Command] = getattr(found, "COMMANDS", {})
    return commands


operations.declared_by(every)
