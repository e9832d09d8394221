"""Answers as text: JSON for scripts, lines or tables for people. A cut answer says how to get the rest."""

from __future__ import annotations

import os

from teams_cli import errors
from teams_cli.records.json_text import dumps
from teams_cli.text import MOST_LETTER, clipped, one_part, size

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, TextIO

    from teams_cli.commands.call import Words
    from teams_cli.commands.declaration import Command


def answer(command: Command, document: Any, as_json: bool, out: TextIO, words: Words | None = None) -> None:
    """Write the *document* with which a command answers to *out*. The function *words* makes the text. If it is None,
    the function that the command declares makes the text.
    """
    if as_json:
        out.write(dumps(document) + "\n")
        return
    if not is_fancy(out):
        _write_lines(_bounded(command, document, words), out)
        return
    from teams_cli.cli.tables import draw

    lines: list[str] = []
    for part in _parts(command, document, words):
        if isinstance(part, str):
            lines.append(part)
        else:
            _write_lines(lines, out)
            lines = []
            draw(part, out)
    _write_lines(lines, out)


_MOST = 20_000
"""The most bytes of an answer to a program. The shells of clients keep 10 to 30 KB."""
_ROOM_FOR_REST = 200
"""Bytes for the line that says how to get the rest."""
_TEXT_LENGTHS = [2 * MOST_LETTER, MOST_LETTER, 2_000, 500]
"""The lengths in characters to which texts are cut, tried in turn."""


def _bounded(command: Command, document: Any, words: Words | None) -> list[str]:
    """Return the lines of the answer. If it is longer than the client of an agent would keep, long texts are cut and
    rows are left out. Then a line at the end or at the beginning says how to get the rest.
    """
    lines, is_table = _lines(command, document, words)
    if size(lines) <= _MOST or command.whole:
        return lines
    from teams_cli.text import shortened

    how_to_get_rest = rest_of(command, document)
    if isinstance(document, dict):

        def fits(short: Any) -> bool:
            return size(_lines(command, short, words)[0]) <= _MOST - _ROOM_FOR_REST

        lines, _ = _lines(command, shortened(document, fits, _TEXT_LENGTHS, mark), words)
        return lines if any(how_to_get_rest in line for line in lines) else [*lines, how_to_get_rest]
    lines, _ = _lines(command, shortened(document, lambda _: True, _TEXT_LENGTHS[-1:], mark), words)
    if is_table:  # the first rows are the most important ones
        kept = _first_that_fit(lines)
        return [*kept, _rest_line(command, len(lines) - len(kept), how_to_get_rest)]
    kept = _first_that_fit(lines[::-1])[::-1]  # the newest lines are the last
    return [_rest_line(command, len(lines) - len(kept), how_to_get_rest), *kept]


def _first_that_fit(lines: list[str]) -> list[str]:
    """Return as many of the first lines as fit, with room left for the line that says how to get the rest."""
    room = _MOST - _ROOM_FOR_REST
    for position, line in enumerate(lines):
        room -= size([line])
        if room < 0:
            return lines[:position]
    return lines


def _rest_line(command: Command, count: int, how_to_get_rest: str) -> str:
    return f"{count} more lines; a narrower list: teams help {command.name}; {how_to_get_rest}"


def _lines(command: Command, document: Any, words: Words | None) -> tuple[list[str], bool]:
    """Return the answer as plain lines, and whether it has a table."""
    lines: list[str] = []
    has_table = False
    for part in _parts(command, document, words):
        if isinstance(part, str):
            lines.append(part)
        else:
            from teams_cli.cli.tables import aligned

            lines += aligned(part)
            has_table = True
    return lines, has_table


def _parts(command: Command, document: Any, words: Words | None) -> list[Any]:
    """Return the lines and tables of the answer, in their order."""
    words = words or command.words
    assert words, f"{command.name} declares no words"
    return words(document)


def _write_lines(lines: list[str], out: TextIO) -> None:
    """Write all lines in one piece, so that other output does not come between them."""
    out.write("".join(one_part(line) + "\n" for line in lines))


def refusal(error: errors.TeamsError, as_json: bool, code: str) -> str:
    """Return the text that says on standard error why a command is refused. *code* names the kind of error in JSON."""
    if as_json:
        return dumps({"error": {"code": code, "message": error.message, "hint": error.hint}}) + "\n"
    message, hint = (clipped(one_part(text), MOST_LETTER) for text in (error.message, error.hint or ""))
    return f"teams: {message}\n" + (f"  {hint}\n" if hint else "")


def is_json_wanted(words: Sequence[str]) -> bool:
    """Return whether a command line asks for JSON. Words behind `--` do not count, because they are texts."""
    return "--json" in (words[: words.index("--")] if "--" in words else words)


def is_fancy(out: TextIO) -> bool:
    """Return whether *out* is a terminal that can show tables and colours, and the user wants them."""
    return out.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"


_SHOWN_BY = {"task": "show-task", "plan": "show-plan", "ask": "show-question", "msg": "show-message"}


def mark(owner: dict[str, Any], missing: int) -> str:
    """Return the text that stands in place of the last *missing* characters of a text that is cut. *owner* is the
    object with the text. If a command shows it in full, the result names this command.
    """
    command = _how_to_show(owner)
    return f"[cut; all of it: {command}]" if command else f"[cut: {missing} more characters]"


def rest_of(command: Command, document: Any) -> str:
    """Return a line with the command that shows all of a *document* that was cut. If there is no such command, the line
    only says that the answer was cut.
    """
    how = _how_to_show(document) if isinstance(document, dict) else ""
    if not how and command.reads:
        how = f"teams {command.name} … --json >FILE"
    return f"all of it: {how}" if how else "[cut: the answer was too long]"


def _how_to_show(document: dict[str, Any]) -> str:
    """Return where all of a *document* can be read that was cut in the answer: a command, or the path of a file that
    has it; "" if there is neither. The command writes to a file, unless the document is a message, which is short.
    """
    key = str(document.get("id") or document.get("requestId") or "")
    command = _SHOWN_BY.get(key.partition("-")[0]) if key.partition("-")[2].isdigit() else None
    if command:
        return f"teams {command} {key}{'' if command == 'show-message' else ' --json >FILE'}"
    if "key" in document and "version" in document:
        return f"teams shared {document['key']} --json >FILE"
    if "report" in document:
        return str(document["report"])
    if "diff" in document:
        return f"teams worktree diff {document['agent']} --json >FILE"
    if "output" in document and (name := document.get("agent") or document.get("name")):
        return f"teams recall {name} --output --json >FILE"
    return ""
