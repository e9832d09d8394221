"""Which files a task touches, as it was said when it was made: patterns of paths, as in `.gitignore` with `**`.

A pattern names files and never all that is below a directory: `src/**` does, `src` is a file of that name.
"""

from __future__ import annotations

from teams_cli.store.contract import Store
from teams_cli.tasks import tasks
from teams_cli.tasks.tasks import IN_PROGRESS, Task

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

_ANY_DEPTH, _ANY, _ONE = "**", "*", "?"


def touches(task: Task, path: str) -> bool:
    """Whether the task touches the file of that path, from the top of the repository."""
    return any(meet(pattern, path) for pattern in task.touches or ())


def meet(one: str, other: str) -> bool:
    """Whether there may be a file that both patterns name. A path is a pattern too."""
    return _meet(_parts(one), _parts(other), _ANY_DEPTH, _parts_meet)


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


def taken(store: Store, team: str, agent: str) -> list[str]:
    """The patterns of what others than the agent touch in what they have in progress."""
    return [pattern for task in in_progress(store, team, agent) for pattern in task.touches or ()]


def meets_any(task: Task, patterns: Iterable[str]) -> bool:
    """Whether there may be a file that the task touches and one of the patterns names."""
    return any(meet(ours, theirs) for ours in task.touches or () for theirs in patterns)
