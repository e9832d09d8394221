"""The command on the worktrees of agents."""

from __future__ import annotations

from teams_cli import errors
from teams_cli.agents import keeping, worktrees
from teams_cli.commands.declaration import Command, argument, switch, table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from teams_cli.commands.call import Call

_DOC = """List the worktrees of agents, show the changes of one, merge it, remove it, or restore it.

`diff` prints all changes as a patch, committed or not. `merge` commits what the agent left uncommitted, with
the hooks of the repository. It merges the work into the branch of the checkout that the worktree was made from,
and removes worktree and branch. `remove` removes them unmerged.

Removed work is kept in the repository as one commit; the answer names its reference. `list --kept` lists it,
and `restore REF` brings it back in a new worktree. `teams prune` removes it after 30 days (worktree.keptFor).

Raises:
    AgentNotFound: The agent has no worktree.
    Conflict: Somebody is at work there, the work conflicts, or some would be lost; nothing was changed.
    NotAllowed: Only the leader and the human merge, remove and restore.
"""


def _worktree(call: Call, action: str, of: str | None, force: bool, kept: bool) -> Any:
    if kept:
        if action != "list":
            raise errors.WrongUsage("--kept needs list", "Write: teams worktree list --kept")
        call.words = "worktrees:kept"
        return [one.to_json() for one in keeping.all_of(call.store, call.said_team)]
    if action == "list":
        return [tree.to_json() for tree in worktrees.all_of(call.store, call.load_team().name)]
    if of is None:
        what = "what to restore" if action == "restore" else f"whose worktree to {action}"
        raise errors.WrongUsage(f"{what} is missing", f"See: teams worktree list{' --kept' * (action == 'restore')}")
    if action == "restore":
        return worktrees.restore(call.store, call.caller, of, call.said_directory)
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
        argument("ACTION", "What to do.", name="action", choices=("list", "diff", "merge", "remove", "restore")),
        argument("AGENT", "The owner of the worktree; with `restore` the reference.", name="of", required=False),
        switch("--force", "With `remove`: even with unmerged work."),
        switch("--kept", "With `list`: the kept work of removed worktrees."),
        doc=_DOC,
        held="action=list,diff of",
        example="worktree diff bob",
        changes=False,
        at_shell=True,
        words="worktrees:shown",
    ),
)
