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
        call.more = f"not compared: {text.listed(unseen)}. First run `teams heartbeat` in their worktrees."
    return found


_DIFF = """Show the changes in an agent's worktree, committed or not, that the main branch lacks, as a patch.

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
        argument("AGENT", "The agent.", name="of", required=True),
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
        also="conflict conflicts get-overlaps",
    ),
)
