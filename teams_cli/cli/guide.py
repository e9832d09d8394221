"""Help in plain lines, for programs: the commands that carry the work, all commands, or one in full."""

from __future__ import annotations

import inspect
import textwrap

from teams_cli import commands, errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection

    from teams_cli.commands.call import Call
    from teams_cli.commands.declaration import Command, Parameter

_ABOUT = "Usage: teams COMMAND [--as NAME, or TEAMS_AGENT_ID] [--team NAME, or TEAMS_TEAM, or the only one] [--json]"
MORE = "One command in full: teams help COMMAND. All commands: teams help --all"
_QUESTIONS = "Questions"


def guide(off: Collection[str] = ()) -> str:
    """The commands that carry the work; those of a group that is *off* in the team are not offered."""
    lines = [f"  {_written(each)}: {each.want}" for each in of_every_day(off)]
    return "\n".join([_ABOUT, "", *lines, "", MORE, ""])


def of_every_day(off: Collection[str]) -> list[Command]:
    return [command for command in commands.every().values() if command.want and command.group not in off]


def all_commands(off: Collection[str] = ()) -> str:
    """All commands in their groups, a line each; a group that is *off* in the team says so."""
    lines = [_ABOUT]
    for group, members in commands.groups().items():
        lines += ["", titled(group, off), *(f"  {_written(each)}: {first_sentence(each)}" for each in members)]
    return "\n".join([*lines, "", "One command in full: teams help COMMAND", ""])


def titled(group: str, off: Collection[str]) -> str:
    return f"{group} (off in this team; its leader: teams set broadcast agents)" if group in off else group


def first_sentence(command: Command) -> str:
    """The first sentence of the help of a command."""
    first = " ".join(told_of(command)[0].partition("\n\n")[0].split())
    return first.partition(". ")[0].rstrip(".")


def off_in_team(call: Call | None) -> set[str]:
    """The groups of commands that are off in the team of who asks for help; there is no call where that is nobody."""
    from teams_cli.teams import settings

    try:
        is_on = call is not None and settings.value(call.load_team(), "broadcast") != "false"
    except errors.TeamsError:
        is_on = False
    return set() if is_on else {_QUESTIONS}


def _written(command: Command) -> str:
    return " ".join([command.name, *places(command)])


def places(command: Command) -> list[str]:
    """How its parameters that are known by their places are written."""
    return [parameter.usage for parameter in command.own if parameter.positional]


def of_command(command: Command) -> str:
    """One command: its usage, its docstring, its own parameters, an example, and its exit statuses."""
    text, refusals = told_of(command)
    usage = f"Usage: teams {_written(command)}"
    return "\n".join(
        [
            usage + (" [OPTIONS]" if any(not p.positional for p in command.own) else ""),
            *(" ".join(part.split()) for part in text.split("\n\n")),
            *map(_row, command.own),
            f"Example: teams {command.example}",
            *refusals,
            "",
        ]
    )


def _row(parameter: Parameter) -> str:
    """A parameter with its help."""
    return f"  {' '.join(parameter.flags)}{parameter.placeholder}  {parameter.help}"


def told_of(command: Command) -> tuple[str, list[str]]:
    """The docstring of a command with its options as they are written; and a line for each exit status but 0."""
    said = inspect.cleandoc(command.doc)
    for parameter in command.own:
        said = said.replace(f"*{parameter.name}*", parameter.flags[0])
    text, _, raises = said.partition("Raises:")
    return text.strip(), _refusals(raises)


def _refusals(raises: str) -> list[str]:
    """The reasons for each exit status, in the order of the statuses."""
    found: list[tuple[int, str]] = []
    for line in textwrap.dedent(raises).strip().splitlines():
        name, colon, why = line.strip().partition(": ")
        status = getattr(errors.kinds().get(name.split(",")[0]), "status", None)
        if colon and status is not None:
            found.append((status, why))
        elif found:
            found[-1] = found[-1][0], f"{found[-1][1]} {line.strip()}"
    reasons: dict[int, list[str]] = {}
    for status, why in sorted(found, key=lambda each: each[0]):
        reasons.setdefault(status, []).append(why)
    return [f"Exit {status}: {' '.join(whys)}" for status, whys in reasons.items()]
