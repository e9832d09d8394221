"""The command on the worktrees of agents."""

from __future__ import annotations

from teams_cli import errors
from teams_cli.agents import worktrees
from teams_cli.commands.declaration import Command, argument, switch, table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from teams_cli.commands.call import Call

_DOC = """List the worktrees of agents, show what one holds, merge it, or remove it.

`list` names those that are there; `diff` prints all that the agent changed, committed or not, as a patch. `merge`
commits what the agent left uncommitted, merges its branch into the checkout that the worktree was made of, and removes
worktree and branch. `remove` removes them unmerged, with --force also when they hold work.

Raises:
    AgentNotFound: The agent has no worktree.
    Conflict: The agent is at work, its work does not fit, or would be lost; nothing was changed.
    NotAllowed: Only the leader and the human merge and remove.
"""


def _worktree(call: Call, action: str, of: str | None, force: bool) -> Any:
    if action == "list":
        return [tree.to_json() for tree in worktrees.all_of(call.store, call.load_team().name)]
    if of is None:
        raise errors.WrongUsage(f"say whose worktree to {action}", "See `teams worktree list`.")
    if action == "diff":
        tree = worktrees.of_agent(call.store, call.load_team().name, of)
        return {**tree.to_json(), "diff": worktrees.diff(tree)}
    if action == "merge":
        return worktrees.merge(call.store, call.team, call.caller, of)
    return worktrees.remove(call.store, call.team, call.caller, of, force)


COMMANDS = table(
    "Agents",
    Command(
        "worktree",
        _worktree,
        argument("ACTION", "What to do.", name="action", choices=("list", "diff", "merge", "remove")),
        argument("AGENT", "Whose worktree.", name="of", required=False),
        switch("--force", "With `remove`: also when it holds work that is not merged."),
        doc=_DOC,
        held="action=list,diff of",
        example="worktree diff bob",
        changes=False,
        at_shell=True,
        words="worktrees:shown",
    ),
)
