"""Answers as text: JSON for scripts, plain lines where there is no terminal, tables and colour where there is one."""

from __future__ import annotations

import os

from teams_cli import errors
from teams_cli.records.json_text import dumps
from teams_cli.text import safe

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
    for part in parts(command, document, words):
        if isinstance(part, str):
            plain.append(part)
        elif is_fancy(out):
            _tell(plain, out)
            plain = []
            draw(part, out)
        else:
            plain += aligned(part)
    _tell(plain, out)


def _tell(lines: list[str], out: TextIO) -> None:
    """Write the lines at once, so that nothing of others comes between them."""
    out.write("".join(safe(line) + "\n" for line in lines))


def refusal(error: errors.TeamsError, as_json: bool, code: str) -> str:
    """What a refused command says on standard error."""
    if as_json:
        return dumps({"error": {"code": code, "message": error.message, "hint": error.hint}}) + "\n"
    hint = f"  {safe(error.hint)}\n" if error.hint else ""
    return f"teams: {safe(error.message)}\n{hint}"


def is_json_wanted(words: Sequence[str]) -> bool:
    """Whether a command line asks for JSON; behind `--` it would be a text."""
    return "--json" in (words[: words.index("--")] if "--" in words else words)


def is_fancy(out: TextIO) -> bool:
    """Whether tables and colour may go there."""
    return out.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"
