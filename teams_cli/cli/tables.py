"""Tables for people, plain or drawn."""

from __future__ import annotations

from itertools import compress

from teams_cli.text import clipped, safe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any, TextIO

    from teams_cli.commands.phrases import Table


def aligned(table: Table) -> Iterable[str]:
    """Return the table as plain lines, with aligned columns under headings. If the table has no rows, return its text
    for that case, if it has one.
    """
    if not table.rows:
        return [table.empty] if table.empty else []
    rows = [[column.upper() for column in table.columns], *(_bounded(_cells(row)) for row in table.rows)]
    columns = zip(*rows, strict=True)
    row_format = "  ".join(f"%-{max(map(len, column))}s" for column in columns)
    return [(row_format % tuple(row)).rstrip() for row in rows]


def _bounded(row: list[str]) -> list[str]:
    """Return the cells of a row. If a cell before the last is very long, cut it, because the widest cell of a column
    widens every row.
    """
    *cells, last = row
    if max(map(len, cells), default=0) <= _WIDEST:
        return row
    return [*(clipped(cell, _WIDEST) for cell in cells), last]


def _cells(row: list[str]) -> list[str]:
    """Return the cells of a row, with whitespace collapsed. The whole row is checked at once, because nearly all rows
    need no change.
    """
    whole = f" {' | '.join(row)} "
    if whole.isprintable() and "  " not in whole and "" not in row:
        return row
    return [_line(cell) for cell in row]


def _line(cell: str) -> str:
    return " ".join(cell.split())


def draw(table: Table, out: TextIO) -> None:
    """Draw the table on a terminal."""
    if not table.rows:
        out.write(table.empty + "\n" if table.empty else "")
        return
    from rich.console import Console

    console = Console(file=out, highlight=False)
    console.print(_drawn(table, console.width))


def _drawn(table: Table, width: int) -> Any:
    """Return the table as rich draws it at this *width*. Only the last column is wrapped. If the table does not fit, it
    loses its empty columns; if it still does not fit, each row becomes a paragraph.
    """
    from rich.box import SIMPLE_HEAD
    from rich.table import Table as RichTable
    from rich.text import Text

    rows = [[safe(_line(cell)) for cell in _bounded(row)] for row in table.rows]
    columns, cells = table.columns, rows
    if not _fits(columns, cells, width):
        filled = [any(row[place] not in ("", "-") for row in rows) for place in range(len(columns))]
        columns = list(compress(columns, filled))
        cells = [list(compress(row, filled)) for row in rows]
    if not _fits(columns, cells, width):
        return _paragraphs(table.columns, rows)
    shown = RichTable(box=SIMPLE_HEAD, header_style="bold")
    for place, column in enumerate(columns):
        is_last = place == len(columns) - 1
        shown.add_column(column, no_wrap=not is_last, overflow="fold")
    for row in cells:
        shown.add_row(*(Text(cell, style=_STYLES.get(cell, "")) for cell in row))
    return shown


def _fits(columns: list[str], rows: list[list[str]], width: int) -> bool:
    """Whether there is room to draw all columns but the last whole, and the last wide enough to be read."""
    from rich.cells import cell_len

    widths = [max(map(cell_len, column)) for column in zip(columns, *rows, strict=True)]
    last = min(widths.pop(), _READABLE) if widths else 0
    separators = 3 * (len(widths) + 1) + 1
    return sum(widths) + last + separators <= width


def _paragraphs(columns: list[str], rows: list[list[str]]) -> Any:
    """Return each row as a paragraph: its first cell, with the other cells below it."""
    from rich.console import Group
    from rich.padding import Padding
    from rich.text import Text

    shown: list[Any] = []
    for first, *others in rows:
        named = [f"{name}: {cell}" for name, cell in zip(columns[1:], others, strict=True) if cell not in ("", "-")]
        shown += [Text(first, style="bold"), Padding(Text("; ".join(named)), (0, 0, 0, 2))]
    return Group(*shown)


_WIDEST = 80
"""The most characters of a cell, except the last of its row."""
_READABLE = 20
"""The fewest columns in which a text can be read."""
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
