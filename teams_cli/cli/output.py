"""Answers as text: JSON for scripts, plain lines where there is no terminal, tables and colour where there is one."""

from __future__ import annotations

import json
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any, TextIO

    from teams_cli.errors import TeamsError


class Table:
    """Rows under headings; in plain text aligned columns, on a terminal a table."""

    def __init__(self, columns: list[str], rows: list[list[str]], empty: str = "") -> None:
        self.columns = columns
        self.rows = rows
        self.empty = empty


def answer(name: str, document: Any, as_json: bool, out: TextIO) -> None:
    """Print the document that a command answers with."""
    if as_json:
        out.write(json.dumps(document) + "\n")
        return
    from teams_cli.cli.show import parts

    for part in parts(name, document):
        if isinstance(part, str):
            out.write(safe(part) + "\n")
        elif is_fancy(out):
            _table(part, out)
        else:
            out.write("".join(safe(line) + "\n" for line in _aligned(part)))


def refusal(error: TeamsError, as_json: bool, code: str) -> str:
    """What a refused command says on standard error."""
    if as_json:
        return json.dumps({"error": {"code": code, "message": error.message, "hint": error.hint}}) + "\n"
    hint = f"  {safe(error.hint)}\n" if error.hint else ""
    return f"teams: {safe(error.message)}\n{hint}"


def safe(text: str) -> str:
    """The text as a terminal may have it: control, escape, direction characters and lone surrogates are spelt out."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(c if c == "\n" or c == "\t" or _harmless(c) else _spelt(c) for c in text)


def _harmless(character: str) -> bool:
    return character.isprintable() or character == "\u200d"  # joins the parts of an emoji


def _spelt(character: str) -> str:
    if character.isspace() and character not in "\r\v\f\x1c\x1d\x1e\x1f\x85\u2028\u2029":
        return character
    code = ord(character)
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def is_fancy(out: TextIO) -> bool:
    """Whether tables and colour may go there."""
    return out.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"


def _aligned(table: Table) -> Iterable[str]:
    if not table.rows:
        return [table.empty] if table.empty else []
    rows = [[_line(cell) for cell in row] for row in table.rows]
    widths = [max(len(row[i]) for row in rows) for i in range(len(table.columns))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def _line(cell: str) -> str:
    return " ".join(cell.split())


def _table(table: Table, out: TextIO) -> None:
    if not table.rows:
        out.write(table.empty + "\n" if table.empty else "")
        return
    from rich.console import Console

    Console(file=out, highlight=False).print(drawn(table))


def drawn(table: Table, compact: bool = False) -> Any:
    """The table as rich draws it; *compact*, with one line a row; nothing where there are no rows."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table as RichTable
    from rich.text import Text

    if not table.rows:
        return table.empty
    shown = RichTable(box=None if compact else SIMPLE_HEAD, header_style="dim" if compact else "bold")
    for column in table.columns:
        shown.add_column(column, no_wrap=compact, overflow="ellipsis" if compact else "fold")
    for row in table.rows:
        shown.add_row(*(Text(safe(_line(cell)), style=_STYLES.get(cell, "")) for cell in row))
    return shown


_STYLES = {
    "completed": "green",
    "failed": "red",
    "in_progress": "cyan",
    "cancelled": "dim",
    "blocked": "yellow",
    "active": "green",
    "stale": "red",
    "stopped": "dim",
    "lost": "red",
}
