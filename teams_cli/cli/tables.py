"""Tables for people, plain or drawn."""

from __future__ import annotations

from teams_cli.text import safe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any, TextIO


class Table:
    """Rows under headings; in plain text aligned columns, on a terminal a table."""

    def __init__(self, columns: list[str], rows: list[list[str]], empty: str = "") -> None:
        self.columns = columns
        self.rows = rows
        self.empty = empty


def aligned(table: Table) -> Iterable[str]:
    """The rows as plain lines, their columns under each other and under their headings."""
    if not table.rows:
        return [table.empty] if table.empty else []
    rows = [[column.upper() for column in table.columns], *map(_lines, table.rows)]
    columns = zip(*rows, strict=True)
    shape = "  ".join(f"%-{max(map(len, column))}s" for column in columns)
    return [(shape % tuple(row)).rstrip() for row in rows]


def _lines(row: list[str]) -> list[str]:
    """The cells, each on one line without spaces that say nothing, as nearly all are: so all are looked at in one."""
    whole = f" {' | '.join(row)} "
    return row if whole.isprintable() and "  " not in whole and "" not in row else list(map(_line, row))


def _line(cell: str) -> str:
    return " ".join(cell.split())


def draw(table: Table, out: TextIO) -> None:
    """Draw the table on a terminal."""
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
    "in_review": "magenta",
    "cancelled": "dim",
    "blocked": "yellow",
    "active": "green",
    "stale": "red",
    "stopped": "dim",
    "lost": "red",
}
