"""The command that removes closed teams."""

from __future__ import annotations

from teams_cli import errors, text
from teams_cli.agents import keeping, pruning
from teams_cli.commands.declaration import Command, option, switch, table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from teams_cli.commands.call import Call

_DOC = """Remove teams that were closed some time ago, for ever: messages, tasks, logs, reports and worktrees.

At a terminal it asks first; elsewhere it only lists them, unless --yes is given. A team is kept if its agents
left work in worktrees, if something unknown lies in its folder, or if you do not lead it. The human may remove
all. The kept work of removed worktrees goes when it is older than the setting worktree.keptFor.

Raises:
    InvalidValue: The number of days is below zero.
"""


def _prune(call: Call, older_than: float, yes: bool) -> Any:
    if not older_than >= 0:
        raise errors.InvalidValue(f"{older_than:g} is not a number of days", "Give a number from 0: --older-than 30")
    rows = pruning.found(call.store, call.caller, older_than, call.problems)
    expired = pruning.expired(call.store, call.caller, call.config)
    names = [row["team"] for row in rows if not row["kept"]] + [kept.ref for kept in expired]
    agreed = bool(names) and (yes or _agrees(call, names))
    for row in rows:
        row["removed"] = agreed and not row["kept"] and _removed(call, row)
    for kept in expired:
        rows.append({"team": kept.team, "closedAt": None, "kept": None, "ref": kept.ref, "removed": agreed})
        if agreed:
            keeping.forget(kept)
    return rows


def _removed(call: Call, row: dict[str, Any]) -> bool:
    """Whether the team is removed; where it can't be, the row says why, and the next has its turn."""
    try:
        pruning.remove(call.store, row["team"], call.caller)
    except errors.TeamsError as problem:
        row["kept"] = problem.message
    return not row["kept"]


def _agrees(call: Call, names: list[str]) -> bool:
    return call.person is not None and call.person.agrees(f"Remove for ever: {text.listed(names, 20)}?")


COMMANDS = table(
    "Teams",
    Command(
        "prune",
        _prune,
        option(
            "--older-than",
            "Closed at least this long ago: days, or 12h.",
            type=float,
            metavar="DAYS",
            default=30.0,
        ),
        switch("--yes", "Do not ask."),
        doc=_DOC,
        example="prune --older-than 7",
        changes=False,
        at_shell=True,
        words="pruning:pruned",
        also=dict.fromkeys(("delete-team", "remove-team"), "close-team; and later: teams prune"),
    ),
)
