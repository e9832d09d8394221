"""The files that a task touches: patterns of paths, as in `.gitignore` with `**`, and the functions in them. Agents at
work add what they were seen to change.

A pattern names files and never all that is below a directory: `src/**` does, `src` is a file of that name. Behind a
colon may stand names of functions and classes, with commas between them: `src/x.py:Editor.edit,main`.
"""

from __future__ import annotations

from teams_cli.store.contract import Store
from teams_cli.tasks import tasks
from teams_cli.tasks.tasks import IN_PROGRESS, Task
from teams_cli.teams import presence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

_ANY_DEPTH, _ANY, _ONE = "**", "*", "?"


def touches(task: Task, path: str) -> bool:
    """Whether the task touches the file of that path, from the top of the repository."""
    return any(meet(pattern, path) for pattern in task.touches or ())


def meet(one: str, other: str) -> bool:
    """Whether there may be a file that both patterns name, and in it a function, if both name some. A path is a pattern
    too.
    """
    (path, names), (other_path, others) = _split(one), _split(other)
    if names and others and not any(_is_inside(mine, theirs) for mine in names for theirs in others):
        return False
    return _meet(_parts(path), _parts(other_path), _ANY_DEPTH, _parts_meet)


def _split(region: str) -> tuple[str, list[str]]:
    """The path, and the names in it that stand behind the colon."""
    path, _, names = region.rpartition(":")
    parts = names.split(",")
    is_named = path and all(part.replace(".", "").replace("$", "").isidentifier() for part in parts)
    return (path, parts) if is_named else (region, [])


def _is_inside(one: str, other: str) -> bool:
    """Whether one name is the other, or that of something in it."""
    return one == other or one.startswith(f"{other}.") or other.startswith(f"{one}.")


def _parts(pattern: str) -> list[str]:
    """The parts of the path; behind `**` at its end there is a file."""
    parts = pattern.split("/")
    return [*parts, _ANY] if parts[-1] == _ANY_DEPTH else parts


def _parts_meet(one: str, other: str) -> bool:
    return _meet(_characters(one), _characters(other), _ANY, _characters_meet)


def _meet(one: Sequence[str], other: Sequence[str], any_: str, equal: Callable[[str, str], bool]) -> bool:
    """Whether two sequences can be the same, where *any_* stands for any number of parts.

    A row says of each beginning of the other whether it can be the same as the beginning of the one up to here, so that
    this takes as many steps as the product of their lengths, whatever they are.
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
    """The characters of a part; `[abc]` is one of them."""
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
    """Whether the character is one of a choice; two choices may always have one in common."""
    if len(choice) < 2:
        return False
    from fnmatch import fnmatchcase

    return len(character) > 1 or fnmatchcase(character, choice)


def in_progress(store: Store, team: str, agent: str) -> list[Task]:
    """The tasks that others than the agent have in progress and that say what they touch."""
    found = tasks.labelled(store, team, IN_PROGRESS)
    return [task for task in found if task.touches and task.owner != agent]


def taken(store: Store, team: str, agent: str) -> list[tuple[str, str, str]]:
    """What others than the agent touch: the pattern, whose it is, and the task that they have in progress."""
    said = [(task.owner or "", task.id, task.touches or ()) for task in in_progress(store, team, agent)]
    owners = {task.owner: task.id for task in tasks.labelled(store, team, IN_PROGRESS) if task.owner != agent}
    seen = [
        (one.agent, owners[one.agent], one.changing or ())
        for one, _ in store.scan(team, presence.AGENT, [])
        if one.agent in owners
    ]
    return [(pattern, owner, task) for owner, task, patterns in (*said, *seen) for pattern in patterns]


def others_at(store: Store, team: str, task: Task, agent: str) -> list[dict[str, str]]:
    """Who of the others touches what the task touches: `agent`, `task` and `region`, each of them once."""
    if not task.touches:
        return []
    found = {
        (owner, other, pattern): {"agent": owner, "task": other, "region": pattern}
        for pattern, owner, other in taken(store, team, agent)
        if any(meet(ours, pattern) for ours in task.touches)
    }
    return list(found.values())


def meets_any(task: Task, taken: Iterable[tuple[str, str, str]]) -> bool:
    """Whether there may be something that the task touches and that is taken."""
    return any(meet(ours, theirs) for ours in task.touches or () for theirs, _, _ in taken)
