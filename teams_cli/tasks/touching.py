"""The files and functions that a task touches.

A task names them by path patterns as in `.gitignore`, including `**`. A pattern names files and never a directory:
`src/**` names all files below `src`, but `src` only a file of that name. Names of functions and classes may follow
after a colon: `src/x.py:Editor.edit,main`. A task also touches the files that its agent was seen to change.
"""

from __future__ import annotations

import os

from teams_cli import environment, errors
from teams_cli.clients import environments
from teams_cli.clock import of_epoch, parse_rfc3339, rfc3339, seconds_since
from teams_cli.store.contract import Store
from teams_cli.tasks import tasks
from teams_cli.tasks.tasks import IN_PROGRESS, Task
from teams_cli.teams import presence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from teams_cli.teams.presence import Agent


_ANY_DIRECTORIES, _ANY_CHARACTERS, _ONE_CHARACTER = "**", "*", "?"


def touches(task: Task, path: str) -> bool:
    """Whether the task may touch files that match *path*, which is a pattern or a path relative to the top of the
    repository.
    """
    return any(meet(pattern, path) for pattern in task.touches or ())


def meet(pattern: str, other: str) -> bool:
    """Whether a file can match both patterns, *pattern* and *other*. A path is a pattern, too. If both also name
    functions or classes, one of the names must be equal to one of the others, or be inside it, or contain it.
    """
    path, names = _path_and_names(pattern)
    other_path, other_names = _path_and_names(other)
    overlaps = (_overlap(name, other_name) for name in names for other_name in other_names)
    if names and other_names and not any(overlaps):
        return False

    def parts_meet(part: str, other: str) -> bool:
        return _can_be_equal(_characters(part), _characters(other), _ANY_CHARACTERS, _characters_meet)

    return _can_be_equal(_path_parts(path), _path_parts(other_path), _ANY_DIRECTORIES, parts_meet)


def _path_and_names(pattern: str) -> tuple[str, list[str]]:
    """Return the path of the *pattern*, and the names of functions and classes after its colon, if there are any."""
    path, _, after_colon = pattern.rpartition(":")
    names = after_colon.split(",")
    # A dot separates a class from its member, and names of JavaScript may have a dollar sign.
    are_symbols = all(name.replace(".", "").replace("$", "").isidentifier() for name in names)
    return (path, names) if path and are_symbols else (pattern, [])


def _overlap(name: str, other: str) -> bool:
    """Whether the two names are equal, or one is a member of the other, as `Editor.edit` is of `Editor`."""
    return name == other or name.startswith(f"{other}.") or other.startswith(f"{name}.")


def _path_parts(path: str) -> list[str]:
    """Return the parts of the path. A `**` at the end stands for at least one file."""
    parts = path.split("/")
    return [*parts, _ANY_CHARACTERS] if parts[-1] == _ANY_DIRECTORIES else parts


def _can_be_equal(
    sequence: Sequence[str], other: Sequence[str], wildcard: str, items_meet: Callable[[str, str], bool]
) -> bool:
    """Whether *sequence* and *other* can be equal. An item that equals *wildcard* stands for any number of items; two
    others can be equal if *items_meet* returns True.

    Each row below belongs to a prefix of *sequence*, and says for every prefix of *other* whether the two prefixes can
    be equal. So the number of steps is the product of the two lengths.
    """
    row = [True]
    for other_item in other:
        row.append(row[-1] and other_item == wildcard)
    for item in sequence:
        next_row = [row[0] and item == wildcard]
        for index, other_item in enumerate(other):
            if wildcard in (item, other_item):
                next_row.append(row[index + 1] or next_row[index])
            else:
                next_row.append(row[index] and items_meet(item, other_item))
        row = next_row
    return row[-1]


def _characters(part: str) -> list[str]:
    """Return the characters of a part of a path. A choice such as `[abc]` counts as one character."""
    characters: list[str] = []
    while part:
        # The bracket may be the first character of the choice. Without a closing bracket it stands for itself.
        closing_bracket = part.find("]", 2) if part[0] == "[" else -1
        length = 1 if closing_bracket < 0 else closing_bracket + 1
        characters.append(part[:length])
        part = part[length:]
    return characters


def _characters_meet(character: str, other: str) -> bool:
    if character == other or _ONE_CHARACTER in (character, other):
        return True
    return _is_of(character, other) or _is_of(other, character)


def _is_of(character: str, choice: str) -> bool:
    """Whether *character* matches *choice*, such as `[abc]`. If *character* is a choice, too, assume that it does."""
    if len(choice) < 2:  # it is a single character
        return False
    from fnmatch import fnmatchcase

    return len(character) > 1 or fnmatchcase(character, choice)


def patterns_of_others(store: Store, team: str, agent: str) -> list[tuple[str, str, str]]:
    """Return what agents other than *agent* touch: the patterns of their tasks in progress, and the files that these
    agents were seen to change. Each row has the pattern or path, the agent, and the id of the agent's task.
    """
    of_others = [task for task in tasks.labelled(store, team, IN_PROGRESS) if task.owner != agent]
    patterns = [(pattern, task.owner or "", task.id) for task in of_others for pattern in task.touches or ()]
    task_of = {task.owner: task.id for task in of_others}
    for other, _ in store.scan(team, presence.AGENT, []):
        if other.agent in task_of:
            patterns += [(path, other.agent, task_of[other.agent]) for path in other.changing or ()]
    return patterns


def others_at(store: Store, team: str, task: Task, agent: str) -> list[dict[str, str]]:
    """Return where agents other than *agent* touch the same code as *task*. Each row has the other agent, the id of its
    task in progress, and a `region`: a pattern of that task, or a file that the agent was seen to change.
    """
    if not task.touches:
        return []
    rows = {  # by agent, task and pattern, because a changed file may also be one of the patterns
        (owner, task_id, pattern): {"agent": owner, "task": task_id, "region": pattern}
        for pattern, owner, task_id in patterns_of_others(store, team, agent)
        if touches(task, pattern)
    }
    return list(rows.values())


_LONGEST_TURN = 3600.0
"""How many seconds a turn, or a program, counts as running without a sign of life. Some clients do not report that
their user interrupted a turn, and an agent may leave a program behind.
"""
_GIT_TIMEOUT = 10.0
_MAX_NAMED = 20
"""The maximum number of uncommitted files that are named."""
_STATUS = (
    "--no-optional-locks",
    *("-c", "core.fsmonitor=false"),
    *("status", "--porcelain", "--untracked-files=all", "--no-renames", "-z"),
)


def seconds_since_work(store: Store, team: str, task: Task) -> float | None:
    """Return the seconds since the newest trace of the owner's work. Return None if the owner's last sign of life, or
    its claim, is newer than any trace.

    A trace is a running turn of the owner's client, or a changed file or a commit in the owner's worktree. If the
    client reports no turns, a program that runs with the owner's name in its environment is a trace, such as a long
    test. If no worktree of the owner is known, a change of a file that the task touches is a trace, in every checkout
    of the repository that is not the worktree of another agent.
    """
    agent = presence.load_other(store, team, task.owner or "")
    last_sign = max(filter(None, (agent.last_seen, task.claimed_at)), default=None)
    if last_sign is None:
        return None
    may_be_in_turn = seconds_since(last_sign, store.now()) < _LONGEST_TURN
    if may_be_in_turn and (presence.is_in_turn(agent) or (agent.pid is None and _runs_a_program(store, team, agent))):
        return 0.0
    checkout, is_own = _checkout(store, agent)
    # In a worktree, `.git` is a file that names the git directory. Its log changes with each commit, and whenever the
    # branch is moved.
    git_directory = environment.git_line(f"{checkout}/.git").removeprefix("gitdir: ") if is_own else ""
    try:
        committed_at = os.stat(f"{git_directory}/logs/HEAD").st_mtime if git_directory else 0.0
    except OSError:  # there is no log, so there is no trace of a commit
        committed_at = 0.0
    checkouts = [checkout] if agent.worktree else _shared_checkouts(store, team, task, agent)
    changed_at = [time for checkout in checkouts for _, time in _changed(task, checkout, bool(agent.worktree))]
    last_change = max([committed_at, *changed_at])
    if last_change <= parse_rfc3339(last_sign).timestamp():
        return None
    return max(0.0, store.now().timestamp() - last_change)


def _runs_a_program(store: Store, team: str, agent: Agent) -> bool:
    """Return whether a program runs on this machine whose environment names the agent, this team and this store."""
    if (agent.host or "") not in ("", store.host):
        return False
    from teams_cli import processes

    programs = processes.environments_of_programs("TEAMS_AGENT_ID", agent.agent)
    return any(_is_for(environ, store, team) for environ in programs)


def _is_for(environ: Mapping[str, str], store: Store, team: str) -> bool:
    """Return whether a `teams` with these environment variables would act in the *team* of this *store*."""
    try:
        root, _ = environment.root_directory(None, environ)
    except errors.TeamsError:
        return False
    address = store.variables["TEAMS_STORE"]
    return root == store.root and environ.get("TEAMS_STORE", address) == address and environ.get("TEAMS_TEAM") == team


def uncommitted(store: Store, team: str, task: Task, name: str) -> list[dict[str, Any]]:
    """Return the uncommitted files of the task in the checkout of the agent *name*, newest first, at most 20. Each row
    has the file's path, the time of its last change, and the agent that made this change, if known.
    """
    agent = presence.load_other(store, team, name)
    checkout, is_own = _checkout(store, agent)
    newest_first = sorted(_changed(task, checkout, is_own), key=lambda path_and_time: -path_and_time[1])
    rows = []
    for path, changed_at in newest_first[:_MAX_NAMED]:
        time = rfc3339(of_epoch(changed_at))
        author = name if is_own else _owner_at(task, time)
        rows.append({"path": f"{checkout}/{path}", "changedAt": time, "by": author})
    return rows


def _owner_at(task: Task, time: str) -> str | None:
    """Return the owner of the task at that *time*; None if it had no owner, and anybody may have changed its files."""
    owner = None
    for note in task.notes:
        if note.at > time:
            break
        if note.what == "claimed":
            owner = note.by
        elif note.what in ("expired", "released", "completed", "failed", "reopened"):
            owner = None
    return owner


def _checkout(store: Store, agent: Agent) -> tuple[str, bool]:
    """Return the checkout on this machine in which the agent was last seen, and whether it is the agent's worktree. The
    checkout is "" if none is known.
    """
    if (agent.host or "") not in ("", store.host):
        return "", False
    return (agent.worktree, True) if agent.worktree else (agent.checkout or "", False)


def _shared_checkouts(store: Store, team: str, task: Task, agent: Agent) -> list[str]:
    """Return the checkouts on this machine in which the agent may work on the task, without the worktrees of other
    agents. They belong to the repositories in which the check of the task runs or was set, in which the agent was last
    seen, or in which other agents have worktrees.
    """
    if (agent.host or "") not in ("", store.host) or not task.touches:
        return []
    of_others = {
        other.worktree
        for other, _ in store.scan(team, presence.AGENT, [])
        if other.agent != agent.agent and other.worktree and (other.host or "") in ("", store.host)
    }
    checkouts = [task.check_in, task.check_from, agent.checkout, *of_others]
    tops = [environment.checkout_around(checkout) for checkout in checkouts if checkout]
    repositories = dict.fromkeys(_repository_of(top) for top in tops if top)
    found = dict.fromkeys(path for repository in repositories for path in _checkouts_of(repository))
    return [path for path in found if path not in of_others]


def _repository_of(checkout: str) -> str:
    """Return the directory with the data that the *checkout* shares with the other checkouts of its repository."""
    link = environment.git_line(f"{checkout}/.git").removeprefix("gitdir: ")  # "" if `.git` is a directory
    return os.path.realpath(environment.common_git_directory(os.path.join(checkout, link or ".git")))


def _checkouts_of(repository: str) -> list[str]:
    """Return the main checkout and the worktrees of the *repository*."""
    try:
        linked = [f"{repository}/worktrees/{name}" for name in os.listdir(f"{repository}/worktrees")]
    except OSError:  # the repository has no worktrees
        linked = []
    worktrees = [os.path.dirname(os.path.join(data, environment.git_line(f"{data}/gitdir"))) for data in linked]
    return [os.path.dirname(repository), *worktrees]


def _changed(task: Task, checkout: str, is_own: bool) -> list[tuple[str, float]]:
    """Return the uncommitted files in the *checkout*, each with the time of its last change. If the checkout is not the
    owner's own worktree, return only the files that the task touches.
    """
    if not checkout or not (is_own or task.touches):
        return []
    changed = []
    for path in _uncommitted_paths(checkout):
        if is_own or touches(task, path):
            try:
                changed.append((path, os.lstat(f"{checkout}/{path}").st_mtime))
            except OSError:  # it was deleted
                continue
    return changed


def _uncommitted_paths(checkout: str) -> list[str]:
    """Return the paths of uncommitted files, relative to the top of the checkout. Return an empty list if git fails."""
    import subprocess  # only for tasks whose lease has ended, or that change hands

    # Variables of the caller, such as GIT_DIR, would lead git to another repository.
    unset = [word for name in environments.OF_A_REPOSITORY for word in ("-u", name)]
    try:
        git = subprocess.run(
            ["env", *unset, "git", "-C", checkout, *_STATUS],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_GIT_TIMEOUT,
            start_new_session=True,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return []
    if git.returncode != 0:
        return []
    status_letters = 3  # two letters and a space precede each path
    return [os.fsdecode(entry[status_letters:]) for entry in git.stdout.split(b"\0") if entry]
