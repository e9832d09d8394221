"""Help for those who read every character they are given: what one wants to do, and the command for it."""

from __future__ import annotations

import inspect
import textwrap

from teams_cli import commands, errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from teams_cli.commands.declaration import Command, Parameter

MOST = 600
"""Characters of the help of one command, beyond which what is refused is left out first, then what else is told: a
refusal says itself what it is. No command's own parameters take more than 900.
"""
_ABOUT = """Usage: teams COMMAND [--as NAME, or TEAMS_AGENT_ID] [--team NAME, or TEAMS_TEAM, or the only one] [--json]
More on one: teams help COMMAND
"""


def guide() -> str:
    """All commands: those that agents want most with what they do, the others by their names alone."""
    every = commands.every().values()
    lines = [f"  {' '.join([command.name, *places(command)])}: {command.want}" for command in every if command.want]
    rest = [command for command in every if not command.want]
    also = " ".join(command.name for command in rest if not command.at_shell)
    at_shell = " ".join(command.name for command in rest if command.at_shell)
    return "\n".join([_ABOUT, *lines, "", f"Also: {also}", f"For people: {at_shell}", ""])


def places(command: Command) -> list[str]:
    """How its parameters that are known by their places are written."""
    return [parameter.usage for parameter in command.own if parameter.positional]


def of_command(command: Command) -> str:
    """One command: its usage, what it does, its own parameters, an example, and what is refused."""
    text, refusals = told_of(command)
    first, *more = [" ".join(part.split()) for part in text.split("\n\n")]
    usage = " ".join(["Usage: teams", command.name, *places(command)])
    kept = [
        usage + (" [OPTIONS]" if any(not p.positional for p in command.own) else ""),
        first,
        *map(_row, command.own),
        f"Example: teams {command.example}",
    ]
    rows = len(kept)
    for extra in more:
        _fit(kept, extra, len(kept) - rows + 2)
    for extra in refusals:
        _fit(kept, extra, len(kept))
    return "\n".join([*kept, ""])


def _fit(kept: list[str], extra: str, place: int) -> None:
    """Put a line at that place, if there is room for it."""
    if len("\n".join([*kept, extra, ""])) <= MOST:
        kept.insert(place, extra)


def _row(parameter: Parameter) -> str:
    """A parameter with its help; what it may be, where that is not a word for many things."""
    return f"  {' '.join(parameter.flags)}{parameter.placeholder}  {parameter.help}"


def told_of(command: Command) -> tuple[str, list[str]]:
    """What the docstring of a command says it does, with its options as they are written; and what it refuses, each
    behind its exit status.
    """
    said = inspect.cleandoc(command.doc)
    for parameter in command.own:
        said = said.replace(f"*{parameter.name}*", parameter.flags[0])
    text, _, raises = said.partition("Raises:")
    return text.strip(), _refusals(raises)


def _refusals(raises: str) -> list[str]:
    """One of each exit status, then the others: there may not be room for all."""
    found: list[tuple[int, str]] = []
    for line in textwrap.dedent(raises).strip().splitlines():
        name, colon, why = line.strip().partition(": ")
        status = getattr(errors.kinds().get(name.split(",")[0]), "status", None)
        if colon and status is not None:
            found.append((status, why))
        elif found:
            found[-1] = found[-1][0], f"{found[-1][1]} {line.strip()}"
    first = {each[0]: each for each in reversed(found)}
    ordered = sorted(found, key=lambda each: each is not first[each[0]])
    return [f"Ends with exit status {status}: {why}" for status, why in ordered]
