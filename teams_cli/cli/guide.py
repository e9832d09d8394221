"""Help for programs and the manual page, both from the declarations."""

from __future__ import annotations

import inspect
import re
import textwrap

from teams_cli import __version__, commands, errors
from teams_cli.commands.declaration import AS, JSON, ROOT, STORE, TEAM

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from teams_cli.commands.call import Call
    from teams_cli.commands.declaration import Command, Parameter


_ABOUT = """Usage: teams COMMAND [--as NAME] [--team NAME] [--json]
Without --as, your name is TEAMS_AGENT_ID. Without --team, your team is TEAMS_TEAM, or else the only open team."""
MORE = "One command in full: teams help COMMAND. All commands: teams help --all"
_QUESTIONS = "Questions"


def guide(call: Call | None) -> str:
    """Return the help with the everyday commands of the caller."""
    lines = [f"  {command.whole_usage}: {command.want}" for command in of_every_day(call)]
    return "\n".join([_ABOUT, "", *lines, "", MORE, ""])


def of_every_day(call: Call | None) -> list[Command]:
    """Return the everyday commands, without those that are off in the team or forbidden to the caller's role."""
    from teams_cli.teams import permission, roles

    groups_off = off_in_team(call)
    everyday = [command for command in commands.every().values() if command.want and command.group not in groups_off]
    try:
        standing = permission.standing_of(call.load_team(), call.caller) if call else None
    except errors.TeamsError:  # there is no such team, or its file can't be read
        standing = None
    if standing is None:
        return everyday
    role, team, config = standing.role, standing.team, standing.caller.config
    return [
        command
        for command in everyday
        if not roles.is_change(command.name) or roles.verdict(role, command.name, team, config) != "deny"
    ]


def all_commands(call: Call | None) -> str:
    """Return the help with all commands, one per line, under the headings of their groups."""
    groups_off = off_in_team(call)
    lines = [_ABOUT]
    for group, members in commands.groups().items():
        lines += ["", titled(group, groups_off), *(f"  {each.whole_usage}: {first_sentence(each)}" for each in members)]
    return "\n".join([*lines, "", "One command in full: teams help COMMAND", ""])


def titled(group: str, groups_off: Collection[str]) -> str:
    """Return the heading of a group of commands. If the group is off in the team, the heading says so."""
    if group not in groups_off:
        return group
    return f"{group} (off in this team; its leader can run: teams set broadcast agents)"


def first_sentence(command: Command) -> str:
    """Return the first sentence of the help of a command."""
    return parts_of_help(command)[0][0].partition(". ")[0].rstrip(".")


def off_in_team(call: Call | None) -> set[str]:
    """Return the groups of commands that are off in the team of the call. Only the group of the commands for questions
    can be off, by the setting `broadcast`. Without a team, this group counts as off.
    """
    from teams_cli.teams import settings

    try:
        has_questions = call is not None and settings.value(call.load_team(), "broadcast") != "false"
    except errors.TeamsError:
        has_questions = False
    return set() if has_questions else {_QUESTIONS}


def of_command(command: Command) -> str:
    """Return the help of one command: usage, docstring, own parameters, example, exit statuses."""
    paragraphs, refusals = parts_of_help(command)
    usage = f"Usage: teams {command.whole_usage}"
    return "\n".join(
        [
            usage + (" [OPTIONS]" if any(not p.positional for p in command.own) else ""),
            *paragraphs,
            *(f"  {' '.join(each.flags)}{each.placeholder}  {each.meaning}" for each in command.own),
            f"Example: teams {command.example}",
            *refusals,
            "",
        ]
    )


def parts_of_help(command: Command) -> tuple[list[str], list[str]]:
    """Return two lists for the help of a command. The first has the paragraphs and list items of its docstring, with
    options as users write them. If only some roles may run the command, its last paragraph names them. The second has a
    line for each exit status except 0.
    """
    from teams_cli.teams import roles

    help = inspect.cleandoc(command.doc)
    for parameter in command.own:
        help = help.replace(f"*{parameter.name}*", parameter.flags[0])
    text, _, raises = help.partition("Raises:")
    paragraphs = _paragraphs(text)
    if roles.is_change(command.name) and (allowed := roles.may(command.name)) != roles.EVERYBODY:
        paragraphs.append(f"By default, only these roles may run this command: {', '.join(allowed)}.")
    return paragraphs, _refusals(raises)


def _paragraphs(text: str) -> list[str]:
    """Return the paragraphs of a text, and its list items, which begin with a star, each on one line."""
    return [" ".join(part.split()) for part in re.split(r"\n\n|\n(?=\* )", text.strip())]


def _refusals(raises: str) -> list[str]:
    """Return a line for each exit status in the `Raises` section of a docstring, with all reasons for this status."""
    entries: list[tuple[int, str]] = []
    for line in textwrap.dedent(raises).strip().splitlines():
        name, colon, why = line.strip().partition(": ")
        status = getattr(errors.kinds().get(name.split(",")[0]), "status", None)
        if colon and status is not None:
            entries.append((status, why))
        elif entries:  # the line continues the entry before it
            status, why = entries[-1]
            entries[-1] = status, f"{why} {line.strip()}"
    reasons: dict[int, list[str]] = {}
    for status, why in entries:
        reasons.setdefault(status, []).append(why)
    return [f"Exit {status}: {' '.join(whys)}" for status, whys in sorted(reasons.items())]


_NAME = r"teams \- team coordination for AI coding agents"
_MANUAL_ABOUT = """Agents in one team share tasks, so that no task is done twice. They send each other messages, and no
message is lost. Teams, tasks and messages are JSON files under one directory, or rows of a PostgreSQL database.

A command that changes something needs your name. Most commands need a team; if only one team is open, you need not name
it. With --json, the answer is one JSON document, and so is an error, on standard error. The ids 7, #7 and task-7 mean
the same task. If you give - as a text, the text is read from standard input.
"""
_VARIABLES = {
    "TEAMS_AGENT_ID": "Your name in the team.",
    "TEAMS_TEAM": "The team to act in.",
    "TEAMS_HOME": "The directory where the teams are kept.",
    "TEAMS_STORE": "The database where the teams are kept, instead of a directory.",
    "TEAMS_TOKEN": "Your token, in a team made with --secure.",
    "NO_COLOR": "If it is set, nothing is printed in colour.",
}
_STATUSES = {
    0: "The command succeeded.",
    1: "The command failed for another reason.",
    3: "There is a bug in the program; the error names its log.",
    14: "The wait timed out.",
    15: "A file is damaged. It was left unchanged.",
    130: "The command was interrupted.",
}
"""The meanings of these exit statuses. They replace the docstring of the status's error class, if it has one."""


def page() -> str:
    """Return the manual page in roff."""
    lines = [
        f'.TH TEAMS 1 "" "teams {__version__}" "User Commands"',
        *_section("NAME", [_NAME]),
        *_section("SYNOPSIS", [r".B teams", r"\fICOMMAND\fR [\fIOPTIONS\fR]"]),
        *_section("DESCRIPTION", _in_roff(_paragraphs(_MANUAL_ABOUT))),
        *_section("OPTIONS OF EVERY COMMAND", _parameters((TEAM, AS, ROOT, STORE, JSON))),
    ]
    for group, members in commands.groups().items():
        lines.append(f'.SH "{_escaped(group).upper()}"')
        for command in members:
            paragraphs, refusals = parts_of_help(command)
            lines.append(f'.SS "{_escaped(f"teams {command.whole_usage}")}"')
            lines += [*_in_roff(paragraphs), *_parameters(command.own)]
            for refusal in refusals:
                lines += [".PP", _escaped(refusal)]
            lines += [".PP", "Example:", rf"\fBteams {_escaped(command.example)}\fR"]
    lines += _section("ENVIRONMENT", _items(_VARIABLES.items()))
    kinds = reversed(errors.kinds().values())  # the first kind that declares a status describes it
    statuses = {kind.status: (kind.__doc__ or "").partition("\n")[0] for kind in kinds} | _STATUSES
    lines += _section("EXIT STATUS", _items((str(status), meaning) for status, meaning in sorted(statuses.items())))
    return "\n".join([*lines, ""])


def _section(name: str, lines: list[str]) -> list[str]:
    return [f'.SH "{name}"', *lines]


def _parameters(parameters: Iterable[Parameter]) -> list[str]:
    return _items((f"{', '.join(each.flags)}{each.placeholder}", each.meaning) for each in parameters)


def _items(terms_with_texts: Iterable[tuple[str, str]]) -> list[str]:
    lines: list[str] = []
    for term, text in terms_with_texts:
        lines += [".TP", rf"\fB{_escaped(term)}\fR", _escaped(text)]
    return lines


def _in_roff(paragraphs: list[str]) -> list[str]:
    lines: list[str] = []
    for paragraph in paragraphs:
        head = r".IP \(bu 2" if paragraph.startswith("* ") else ".PP"
        lines += [head, _escaped(paragraph.removeprefix("* "))]
    return lines


def _escaped(text: str) -> str:
    escaped = text.replace("\\", r"\e").replace("-", r"\-")
    return rf"\&{escaped}" if escaped.startswith((".", "'")) else escaped
