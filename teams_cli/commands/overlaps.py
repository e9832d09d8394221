"""The command on overlaps."""

from __future__ import annotations

from teams_cli import text
from teams_cli.agents import checkouts, overlaps
from teams_cli.commands.declaration import Command, table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from teams_cli.commands.call import Call


def _overlaps(call: Call) -> Any:
    team = call.load_team()
    found = [overlap.to_json() for overlap in overlaps.of_team(call.store, team)]
    if not found and (unseen := checkouts.unseen(call.store, team)):
        call.more = f"not compared: {text.listed(unseen)}. First run `teams heartbeat` in their worktrees."
    return found


COMMANDS = table(
    "Agents",
    Command(
        "overlaps",
        _overlaps,
        doc=overlaps.of_team,
        reads=True,
        words="overlaps:shown",
        held="",
        example="overlaps",
        also="conflicts get-overlaps",
    ),
)
