"""Answers as text: JSON for scripts, lines or tables for people. A cut answer says how to get the rest."""

from __future__ import annotations

import os
from itertools import compress

from teams_cli import errors
from teams_cli.store.documents import dumps
from teams_cli.text import MOST_LETTER, clipped, one_part, safe, size

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, TextIO

    from teams_cli.commands.call import Words
    from teams_cli.commands.declaration import Command, Table


def answer(command: Command, document: Any, as_json: bool, out: TextIO, words: Words | None = None) -> None:
    """Write the *document* of an answer to *out*. *words* is the function that makes text of it; the default is the
    function that the command declares.
    """
    if as_json:
        out.write(dumps(document) + "\n")
        return
    words = words or command.words
    assert words, f"{command.name} declares no words"
    if not is_fancy(out):  # a program reads it: plain lines, of limited length
        _write_lines(_bounded(command, document, words), out)
        return
    lines: list[str] = []
    for part in words(document):
        if isinstance(part, str):
            lines.append(part)
        elif part.rows:
            from rich.console import Console

            _write_lines(lines, out)
            lines = []
            console = Console(file=out, highlight=False)
            console.print(_drawn(part, console.width))
        elif part.empty:
            lines.append(part.empty)
    _write_lines(lines, out)


_MOST = 20_000
"""The most bytes of an answer to a program. The shells of clients keep 10 to 30 KB."""
_ROOM_FOR_REST = 200
"""The bytes reserved for the line that says how to get the rest."""
_TEXT_LENGTHS = [2 * MOST_LETTER, MOST_LETTER, 2_000, 500]
"""The lengths in characters to which texts are cut, tried in turn."""


def _bounded(command: Command, document: Any, words: Words) -> list[str]:
    """Return the lines of the answer. If they have more bytes than an agent's client would keep, texts are cut and rows
    left out, and a line at the end or the beginning says how to get the rest.
    """
    lines, is_table = _lines(words(document))
    if size(lines) <= _MOST or command.whole:
        return lines
    from teams_cli.text import shortened

    source = _how_to_show(document) if isinstance(document, dict) else ""
    if not source and command.reads:
        source = f"teams {command.name} … --json >FILE"
    how_to_get_rest = f"all of it: {source}" if source else "[cut: the answer was too long]"
    if isinstance(document, dict):

        def fits(short: Any) -> bool:
            return size(_lines(words(short))[0]) <= _MOST - _ROOM_FOR_REST

        lines, _ = _lines(words(shortened(document, fits, _TEXT_LENGTHS, mark)))
        return lines if any(how_to_get_rest in line for line in lines) else [*lines, how_to_get_rest]
    lines, _ = _lines(words(shortened(document, lambda _: True, _TEXT_LENGTHS[-1:], mark)))
    kept: list[str] = []
    room = _MOST - _ROOM_FOR_REST
    for line in lines if is_table else lines[::-1]:  # the first rows matter most; without a table, the newest lines
        room -= size([line])
        if room < 0:
            break
        kept.append(line)
    missing = len(lines) - len(kept)
    rest = f"{missing} more lines; a narrower list: teams help {command.name}; {how_to_get_rest}"
    return [*kept, rest] if is_table else [rest, *kept[::-1]]


def _lines(parts: list[Any]) -> tuple[list[str], bool]:
    """Return the *parts* of an answer, which are lines and tables, as plain lines. The columns of a table are aligned.
    Also return whether there is a table.
    """
    lines: list[str] = []
    has_table = False
    for part in parts:
        if isinstance(part, str):
            lines.append(part)
            continue
        has_table = True
        if part.rows:
            rows = [[column.upper() for column in part.columns], *(_narrowed(_cells(row)) for row in part.rows)]
            row_format = "  ".join(f"%-{max(map(len, column))}s" for column in zip(*rows, strict=True))
            lines += [(row_format % tuple(row)).rstrip() for row in rows]
        elif part.empty:
            lines.append(part.empty)
    return lines, has_table


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


def _how_to_show(document: dict[str, Any]) -> str:
    """Return the command that shows all of a *document*, or the path of a file with all of it; "" if there is neither.
    The command writes to a file, unless the document is a message, which is short.
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


def _narrowed(row: list[str]) -> list[str]:
    """Return the row with very long cells cut, except the last cell: one wide cell widens its column in every row."""
    *cells, last = row
    if max(map(len, cells), default=0) <= _WIDEST:
        return row
    return [*(clipped(cell, _WIDEST) for cell in cells), last]


def _cells(row: list[str]) -> list[str]:
    """Return the row with each run of whitespace in a cell replaced by a blank."""
    whole = f" {' | '.join(row)} "  # an empty cell, or a blank at the edge of a cell, makes two blanks
    if whole.isprintable() and "  " not in whole:  # so nearly all rows need no change
        return row
    return [_line(cell) for cell in row]


def _line(cell: str) -> str:
    return " ".join(cell.split())


def _drawn(table: Table, width: int) -> Any:
    """Return the table for rich. If it is wider than *width*, empty columns are left out. If it is still too wide,
    each row becomes a paragraph: its first cell, and below it the others with the names of their columns.
    """
    from rich.box import SIMPLE_HEAD
    from rich.console import Group
    from rich.padding import Padding
    from rich.table import Table as RichTable
    from rich.text import Text

    rows = [[safe(_line(cell)) for cell in _narrowed(row)] for row in table.rows]
    columns, cells = table.columns, rows
    if not _fits(columns, cells, width):
        filled = [any(row[index] not in ("", "-") for row in rows) for index in range(len(columns))]
        columns = list(compress(columns, filled))
        cells = [list(compress(row, filled)) for row in rows]
    if not _fits(columns, cells, width):
        paragraphs: list[Any] = []
        for first, *others in rows:
            names = zip(table.columns[1:], others, strict=True)
            labelled = "; ".join(f"{name}: {cell}" for name, cell in names if cell not in ("", "-"))
            paragraphs += [Text(first, style="bold"), Padding(Text(labelled), (0, 0, 0, 2))]
        return Group(*paragraphs)
    drawn_table = RichTable(box=SIMPLE_HEAD, header_style="bold")
    for index, column in enumerate(columns):
        is_last = index == len(columns) - 1
        drawn_table.add_column(column, no_wrap=not is_last, overflow="fold")
    for row in cells:
        drawn_table.add_row(*(Text(cell, style=_STYLES.get(cell, "")) for cell in row))
    return drawn_table


def _fits(columns: list[str], rows: list[list[str]], width: int) -> bool:
    """Return whether a table fits into *width*, with the last column narrowed until it is just readable."""
    from rich.cells import cell_len

    widths = [max(map(cell_len, column)) for column in zip(columns, *rows, strict=True)]
    last_width = min(widths.pop(), _READABLE) if widths else 0
    separators = 3 * (len(widths) + 1) + 1
    return sum(widths) + last_width + separators <= width


_WIDEST = 80
"""The most characters of a cell. The last cell of a row may be longer."""
_READABLE = 20
"""The minimum number of characters on a line for a text to be readable."""
_STYLES = {
    "completed": "green",
    "failed": "red",
    "in_progress": "cyan",
    "in_review": "magenta",
    "cancelled": "dim",
    "blocked": "yellow",
    "active": "green",
    "stale": "red",
    "stopped": "dim",
    "lost": "red",
}
