"""Traces of work: what shows that the owner of a task is at work though it runs no command, and what it left behind."""

from __future__ import annotations

import os

from teams_cli import environment
from teams_cli.clients import environments
from teams_cli.clock import of_epoch, parse_rfc3339, rfc3339, seconds_since
from teams_cli.store.contract import Store
from teams_cli.tasks import touching
from teams_cli.tasks.tasks import Task
from teams_cli.teams import presence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from teams_cli.teams.presence import Agent

_LONGEST_TURN = 3600.0
"""Seconds for which a turn counts of which nothing is heard: some clients don't say that their person broke it off."""
_PATIENCE = 10.0
_MOST = 20
"""Uncommitted files that are named."""
_STATUS = (
    "--no-optional-locks",
    *("-c", "core.fsmonitor=false"),
    *("status", "--porcelain", "--untracked-files=all", "--no-renames", "-z"),
)


def age(store: Store, team: str, task: Task) -> float | None:
    """Seconds since the last trace of its owner's work that is newer than the last sign of life; None if there is none.

    A turn of its client that runs is one, and so are a change of a file or a commit: in its worktree, or of files that
    the task touches in a checkout that it shares with others.
    """
    agent = presence.load(store, team, task.owner or "")
    heard = max(filter(None, (agent.last_seen, task.claimed_at)), default=None)
    if heard and presence.is_in_turn(agent) and seconds_since(heard, store.now()) < _LONGEST_TURN:
        return 0.0
    last = max([*(when for _, when in _changed(store, task, agent)), _committed_at(store, agent)])
    if heard is None or last <= parse_rfc3339(heard).timestamp():
        return None
    return max(0.0, store.now().timestamp() - last)


def uncommitted(store: Store, team: str, task: Task, name: str) -> list[dict[str, Any]]:
    """The uncommitted files of the task where that agent worked, with when and by whom each was changed last, the
    newest first.
    """
    agent = presence.load(store, team, name)
    found = sorted(_changed(store, task, agent), key=lambda each: -each[1])
    top, is_own = _place(store, agent)
    return [
        {
            "path": f"{top}/{path}",
            "changedAt": (at := rfc3339(of_epoch(when))),
            "by": name if is_own else _had(task, at),
        }
        for path, when in found[:_MOST]
    ]


def _had(task: Task, at: str) -> str | None:
    """Who had the task at that time; None if nobody did, so that anybody may have changed its files."""
    owner = None
    for note in task.notes:
        if note.at > at:
            break
        if note.what == "claimed":
            owner = note.by
        elif note.what in ("expired", "released", "completed", "failed", "reopened"):
            owner = None
    return owner


def _place(store: Store, agent: Agent) -> tuple[str, bool]:
    """The checkout on this machine in which the agent was last seen, and whether that is a worktree of its own."""
    if (agent.host or "") not in ("", store.host):
        return "", False
    return (agent.worktree, True) if agent.worktree else (agent.checkout or "", False)


def _changed(store: Store, task: Task, agent: Agent) -> list[tuple[str, float]]:
    """The uncommitted files that may be of the task, with when each was changed last."""
    top, is_own = _place(store, agent)
    if not top or not (is_own or task.touches):
        return []
    found = []
    for path in _status(top):
        if is_own or touching.touches(task, path):
            try:
                found.append((path, os.lstat(f"{top}/{path}").st_mtime))
            except OSError:  # it was deleted
                continue
    return found


def _status(top: str) -> list[str]:
    """The files that differ from the commit, or that git does not know; none where git does not answer in time."""
    import subprocess  # only for tasks whose lease has ended, or that change hands

    unset = [word for name in environments.OF_A_REPOSITORY for word in ("-u", name)]
    try:
        done = subprocess.run(
            ["env", *unset, "git", "-C", top, *_STATUS],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_PATIENCE,
            start_new_session=True,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return []
    return [os.fsdecode(entry[3:]) for entry in done.stdout.split(b"\0") if entry] if done.returncode == 0 else []


def _committed_at(store: Store, agent: Agent) -> float:
    """When the branch moved last in the agent's own worktree; 0 where that is not known."""
    top, is_own = _place(store, agent)
    own = environment.git_line(f"{top}/.git").removeprefix("gitdir: ") if is_own else ""
    try:
        return os.stat(f"{own}/logs/HEAD").st_mtime if own else 0.0
    except OSError:
        return 0.0
