"""The files and functions that a task touches.

They are patterns of paths, as in `.gitignore` with `**`. A pattern names files and never a directory: `src/**` names
all files below `src`, but `src` only a file of that name. Names of functions and classes may follow after a colon:
`src/x.py:Editor.edit,main`. Files that an agent was seen to change are added.
"""

from __future__ import annotations

import os

from teams_cli import environment
from teams_cli.clients import environments
from teams_cli.clock import of_epoch, parse_rfc3339, rfc3339, seconds_since
from teams_cli.store.contract import Store
from teams_cli.tasks import tasks
from teams_cli.tasks.tasks import IN_PROGRESS, Task
from teams_cli.teams import presence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any

    from teams_cli.teams.presence import Agent


_ANY_DEPTH, _ANY, _ONE = "**", "*", "?"


def touches(task: Task, path: str) -> bool:
    """Whether the task touches the file of that path, from the top of the repository."""
    return any(meet(pattern, path) for pattern in task.touches or ())


def meet(one: str, other: str) -> bool:
    """Whether a file can match both patterns; if both name functions, whether a function can be in both. A path is a
    pattern too.
    """
    (path, names), (other_path, others) = _split(one), _split(other)
    if names and others and not any(_is_inside(mine, theirs) for mine in names for theirs in others):
        return False
    return _meet(_parts(path), _parts(other_path), _ANY_DEPTH, _parts_meet)


def _split(region: str) -> tuple[str, list[str]]:
    """Return the path, and the names after the colon."""
    path, _, names = region.rpartition(":")
    parts = names.split(",")
    is_named = path and all(part.replace(".", "").replace("$", "").isidentifier() for part in parts)
    return (path, parts) if is_named else (region, [])


def _is_inside(one: str, other: str) -> bool:
    """Whether one name is the other, or a member of it."""
    return one == other or one.startswith(f"{other}.") or other.startswith(f"{one}.")


def _parts(pattern: str) -> list[str]:
    """Return the parts of the path. A `**` at the end stands for at least one file."""
    parts = pattern.split("/")
    return [*parts, _ANY] if parts[-1] == _ANY_DEPTH else parts


def _parts_meet(one: str, other: str) -> bool:
    return _meet(_characters(one), _characters(other), _ANY, _characters_meet)


def _meet(one: Sequence[str], other: Sequence[str], any_: str, equal: Callable[[str, str], bool]) -> bool:
    """Whether two sequences can be equal if *any_* stands for any number of parts.

    Each row says of every prefix of the second sequence whether it can equal the prefix of the first, so the number of
    steps is at most the product of both lengths.
    """
    row = [True]
    for theirs in other:
        row.append(row[-1] and theirs == any_)
    for ours in one:
        after = [row[0] and ours == any_]
        for place, theirs in enumerate(other):
            if any_ in (ours, theirs):
                after.append(row[place + 1] or after[place])
            else:
                after.append(row[place] and equal(ours, theirs))
        row = after
    return row[-1]


def _characters(part: str) -> list[str]:
    """Return the characters of a part; `[abc]` counts as one."""
    found: list[str] = []
    while part:
        end = part.find("]", 2) + 1 if part[0] == "[" else 1
        end = end or 1
        found.append(part[:end])
        part = part[end:]
    return found


def _characters_meet(one: str, other: str) -> bool:
    if one == other or _ONE in (one, other):
        return True
    return _is_of(one, other) or _is_of(other, one)


def _is_of(character: str, choice: str) -> bool:
    """Whether the character is in the choice. Two choices count as equal."""
    if len(choice) < 2:
        return False
    from fnmatch import fnmatchcase

    return len(character) > 1 or fnmatchcase(character, choice)


def in_progress(store: Store, team: str, agent: str) -> list[Task]:
    """Return the tasks that other agents have in progress and that name what they touch."""
    found = tasks.labelled(store, team, IN_PROGRESS)
    return [task for task in found if task.touches and task.owner != agent]


def patterns_of_others(store: Store, team: str, agent: str) -> list[tuple[str, str, str]]:
    """Return the patterns that other agents touch, each with its agent and task in progress."""
    said = [(task.owner or "", task.id, task.touches or ()) for task in in_progress(store, team, agent)]
    owners = {task.owner: task.id for task in tasks.labelled(store, team, IN_PROGRESS) if task.owner != agent}
    seen = [
        (one.agent, owners[one.agent], one.changing or ())
        for one, _ in store.scan(team, presence.AGENT, [])
        if one.agent in owners
    ]
    return [(pattern, owner, task) for owner, task, patterns in (*said, *seen) for pattern in patterns]


def others_at(store: Store, team: str, task: Task, agent: str) -> list[dict[str, str]]:
    """Return the other agents that touch the same code as the task: `agent`, `task` and `region`, each once."""
    if not task.touches:
        return []
    found = {
        (owner, other, pattern): {"agent": owner, "task": other, "region": pattern}
        for pattern, owner, other in patterns_of_others(store, team, agent)
        if any(meet(ours, pattern) for ours in task.touches)
    }
    return list(found.values())


def meets_any(task: Task, taken: Iterable[tuple[str, str, str]]) -> bool:
    """Whether the task and one of the *taken* patterns may touch the same file."""
    return any(meet(ours, theirs) for ours in task.touches or () for theirs, _, _ in taken)


_LONGEST_TURN = 3600.0
"""Seconds for which a silent turn counts as running: some clients do not report that their user interrupted it."""
_PATIENCE = 10.0
_MOST = 20
"""How many uncommitted files are named."""
_STATUS = (
    "--no-optional-locks",
    *("-c", "core.fsmonitor=false"),
    *("status", "--porcelain", "--untracked-files=all", "--no-renames", "-z"),
)


def seconds_since_work(store: Store, team: str, task: Task) -> float | None:
    """Return the seconds since the newest trace of the owner's work after its last sign of life; None without such a
    trace.

    Traces are a running turn of its client, a changed file and a commit in its worktree, and a change of a file that
    the task touches in a checkout that the owner shares with others.
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
    """Return the uncommitted files of the task where that agent worked, newest first, with the time and author of the
    last change.
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
    """Return the owner of the task at that time; None if it had none, so that anybody may have changed its files."""
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
    """Return the checkout on this machine in which the agent was last seen, and whether it is its own worktree."""
    if (agent.host or "") not in ("", store.host):
        return "", False
    return (agent.worktree, True) if agent.worktree else (agent.checkout or "", False)


def _changed(store: Store, task: Task, agent: Agent) -> list[tuple[str, float]]:
    """Return the uncommitted files that may belong to the task, with the time of the last change."""
    top, is_own = _place(store, agent)
    if not top or not (is_own or task.touches):
        return []
    found = []
    for path in _status(top):
        if is_own or touches(task, path):
            try:
                found.append((path, os.lstat(f"{top}/{path}").st_mtime))
            except OSError:  # it was deleted
                continue
    return found


def _status(top: str) -> list[str]:
    """Return the files that differ from the commit or are untracked; none if git does not answer in time."""
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
    """Return when the branch of the agent's own worktree last moved; 0 if unknown."""
    top, is_own = _place(store, agent)
    own = environment.git_line(f"{top}/.git").removeprefix("gitdir: ") if is_own else ""
    try:
        return os.stat(f"{own}/logs/HEAD").st_mtime if own else 0.0
    except OSError:
        return 0.0
