"""Rights: which roles may do what, unless the rules of the team or of the user say otherwise."""

from __future__ import annotations

from teams_cli.names import HUMAN
from teams_cli.teams.teams import LEADER, MANAGER, MEMBER

MEMBERS = (LEADER, MEMBER, MANAGER)
EVERYBODY = (*MEMBERS, HUMAN)
WORKERS = (MEMBER, MANAGER)
LEADERS = (LEADER, HUMAN)

_CHANGES = {
    "ack": EVERYBODY,
    "agree": EVERYBODY,
    "announce": EVERYBODY,
    "answer": EVERYBODY,
    "approve-plan": LEADERS,
    "approve-shutdown": WORKERS,
    "ask-others": EVERYBODY,
    "broadcast-message": (LEADER, MEMBER, HUMAN),
    "claim-task": WORKERS,
    "close-team": LEADERS,
    "copy-team": LEADERS,
    "create-task": (LEADER, MANAGER, HUMAN),
    "define-role": LEADERS,
    "down": LEADERS,
    "export": LEADERS,
    "hand-over": LEADERS,
    "heartbeat": EVERYBODY,
    "import": (LEADER, MANAGER, HUMAN),
    "interject": EVERYBODY,
    "join-team": WORKERS,
    "land": EVERYBODY,
    "leave-team": MEMBERS,
    "note": EVERYBODY,
    "pause-agent": LEADERS,
    "propose-plan": WORKERS,
    "prune": LEADERS,
    "read-messages": EVERYBODY,
    "reject-plan": LEADERS,
    "reject-shutdown": WORKERS,
    "release-task": EVERYBODY,
    "reply": EVERYBODY,
    "request-shutdown": LEADERS,
    "restart-agent": LEADERS,
    "restore-team": LEADERS,
    "resume-agent": LEADERS,
    "review-task": EVERYBODY,
    "run-agent": LEADERS,
    "send-message": EVERYBODY,
    "set": LEADERS,
    "set-up-roles": LEADERS,
    "share": EVERYBODY,
    "skip-question": (HUMAN,),
    "spawn": WORKERS,
    "spawn-team": LEADERS,
    "stop-agent": LEADERS,
    "up": LEADERS,
    "update-task": EVERYBODY,
    "worktree": LEADERS,
}
"""The commands that change something, and the roles that may."""
_IN_CLOSED_TEAMS = frozenset(
    {"copy-team", "down", "export", "prune", "read-messages", "restore-team", "stop-agent", "worktree"}
)
_INSTEAD = {
    "claim-task": "Leaders coordinate: leave the task to a member, or hand over the team first.",
    "join-team": "Leaders create teams: `teams spawn-team`.",
    "propose-plan": "Members propose plans; leaders decide them.",
    "spawn": "Use `teams run-agent`.",
}
"""What leaders can do instead of an operation that they may not do."""
_READS = {
    "before-complete",
    "discover-teams",
    "get-evidence",
    "get-landings",
    "get-plans",
    "get-questions",
    "get-tasks",
    "history",
    "list-agents",
    "logs",
    "diff",
    "overlaps",
    "recall",
    "search",
    "sent",
    "settings",
    "shared",
    "show-message",
    "show-plan",
    "show-question",
    "show-task",
    "show-team",
    "usage",
    "whoami",
}
"""The commands that only look, which everybody may, members or not, also in a closed team."""


def may(operation: str) -> tuple[str, ...]:
    """The roles that may do the operation.

    Raises:
        LookupError: It is in no table: that is a bug, and nothing may be done under its name.
    """
    if operation in _READS:
        return EVERYBODY
    if operation not in _CHANGES:
        raise LookupError(f"no rights are declared for {operation!r}")
    return _CHANGES[operation]


def in_closed_teams(operation: str) -> bool:
    """Whether the operation is possible in a closed team."""
    return operation in _IN_CLOSED_TEAMS or operation in _READS


def instead(operation: str) -> str:
    """The advice to leaders who may not do the operation; empty if there is none."""
    return _INSTEAD.get(operation, "")


def is_change(name: str) -> bool:
    """Whether the command of that name changes something, and needs a right for that."""
    return name in _CHANGES


def names() -> list[str]:
    """The names of all operations, in the order of the alphabet."""
    return sorted({*_CHANGES, *_READS})
