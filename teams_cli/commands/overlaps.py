"""Commands on what agents change in their worktrees: where it conflicts, and what it is."""

from __future__ import annotations

from teams_cli import text
from teams_cli.agents import checkouts, overlaps
from teams_cli.commands.declaration import Command, argument, table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from teams_cli.commands.call import Call


def _overlaps(call: Call) -> Any:
    team = call.load_team()
    found = [overlap.to_json() for overlap in overlaps.of_team(call.store, team)]
    if not found and (unseen := checkouts.unseen(call.store, team)):
        call.follows = f"teams heartbeat, called in the worktrees of {text.listed(unseen)}: they were not compared"
    return found


_DIFF = """Show what an agent changes in its worktree, committed or not, that the main branch does not have: a patch.

Raises:
    AgentNotFound: No worktree of the agent is on this machine.
"""


def _diff(call: Call, of: str, paths: list[str]) -> Any:
    return overlaps.diff(call.store, call.load_team(), of, paths)


COMMANDS = table(
    "Agents",
    Command(
        "diff",
        _diff,
        argument("AGENT", "Whose changes.", name="of", required=True),
        argument(
            "PATH",
            "Only these files or directories, from the top of the repository.",
            name="paths",
            many=True,
            required=False,
        ),
        doc=_DIFF,
        reads=True,
        words="overlaps:patch",
        held="of paths",
        example="diff bob src/x.py",
        also="show-diff get-diff",
    ),
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
