"""Answers as text: JSON for scripts, plain lines where there is no terminal, tables and colour where there is one."""

from __future__ import annotations

import os

from teams_cli import errors
from teams_cli.records.json_text import dumps
from teams_cli.text import one_part, size

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, TextIO

    from teams_cli.commands.declaration import Command


def answer(command: Command, document: Any, as_json: bool, out: TextIO, words: str = "") -> None:
    """Print the document that a command answers with; for a person by other *words* than usual, if given."""
    if as_json:
        out.write(dumps(document) + "\n")
        return
    from teams_cli.cli.show import parts
    from teams_cli.cli.tables import aligned, draw

    plain: list[str] = []
    shown = parts(command, document, words)
    for part in shown:
        if isinstance(part, str):
            plain.append(part)
        elif is_fancy(out):
            _tell(plain, out)
            plain = []
            draw(part, out)
        else:
            plain += _bounded(list(aligned(part)), command.name)
    if not is_fancy(out) and isinstance(document, list) and all(isinstance(part, str) for part in shown):
        plain = _bounded(plain, command.name, from_end=True)
    _tell(plain, out)


_MOST = 20_000
"""Bytes of a list that goes to a program: the shells of clients keep 10 to 30 KB."""


def _bounded(lines: list[str], name: str, from_end: bool = False) -> list[str]:
    """The first lines of a list, or *from_end* the last, as many as a client keeps; and how to get the others."""
    if size(lines) <= _MOST:
        return lines
    kept, room = 0, _MOST
    for line in reversed(lines) if from_end else lines:
        if (room := room - size([line])) < 0:
            break
        kept += 1
    rest = f"{len(lines) - kept} more lines; a narrower list: teams help {name}; all of it: teams {name} … --json >FILE"
    return [rest, *lines[len(lines) - kept :]] if from_end else [*lines[:kept], rest]


def _tell(lines: list[str], out: TextIO) -> None:
    """Write the lines at once, so that nothing of others comes between them."""
    out.write("".join(one_part(line) + "\n" for line in lines))


def refusal(error: errors.TeamsError, as_json: bool, code: str) -> str:
    """What a refused command says on standard error."""
    if as_json:
        return dumps({"error": {"code": code, "message": error.message, "hint": error.hint}}) + "\n"
    hint = f"  {one_part(error.hint)}\n" if error.hint else ""
    return f"teams: {one_part(error.message)}\n{hint}"


def is_json_wanted(words: Sequence[str]) -> bool:
    """Whether a command line asks for JSON; behind `--` it would be a text."""
    return "--json" in (words[: words.index("--")] if "--" in words else words)


def is_fancy(out: TextIO) -> bool:
    """Whether tables and colour may go there."""
    return out.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"
