"""A stream of frames as one picture on the terminal, drawn anew with each of them."""

from __future__ import annotations

from teams_cli.cli import output
from teams_cli.cli.show.watching import frame

TYPE_CHECKING = False
_LEAST = 3
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, TextIO

    from rich.console import Group


def show(frames: Iterator[dict[str, Any]], out: TextIO) -> None:
    """Show each frame in place of the one before, until there are no more or somebody interrupts."""
    from rich.console import Console
    from rich.live import Live

    console = Console(file=out, highlight=False)
    with Live(console=console, screen=True, auto_refresh=False, vertical_overflow="crop") as live:
        for found in frames:
            live.update(picture(found, console.height), refresh=True)


def picture(found: dict[str, Any], height: int) -> Group:
    """The frame as rich draws it: each thing on one line, and of the tasks as many as there is room for."""
    from rich.console import Group
    from rich.text import Text

    room = height - len(found["agents"]) - len(found["messages"]) - 7
    parts = frame({**found, "tasks": found["tasks"][: max(room, _LEAST)]})
    drawn = [output.drawn(part, compact=True) if isinstance(part, output.Table) else part for part in parts]
    return Group(*(Text(output.safe(part), style="bold") if isinstance(part, str) else part for part in drawn if part))
