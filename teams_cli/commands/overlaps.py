"""The command on overlaps."""

from __future__ import annotations

from teams_cli.agents import overlaps
from teams_cli.commands.declaration import Command, table
from teams_cli.records.annotations import Any

TYPE_CHECKING = False
if TYPE_CHECKING:
    from teams_cli.commands.call import Call


def _overlaps(call: Call) -> Any:
    return [overlap.to_json() for overlap in overlaps.of_team(call.store, call.load_team())]


COMMANDS = table(
    "Agents",
    Command(
        "overlaps",
        _overlaps,
        doc=overlaps.of_team,
        reads=True,
        words="overlaps:shown",
        example="overlaps",
        also="conflicts get-overlaps",
    ),
)
