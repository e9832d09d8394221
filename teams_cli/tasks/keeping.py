"""Assigning a task to a member, or to nobody, and notifying that member, again when it is ready."""

from __future__ import annotations

from teams_cli import errors
from teams_cli.names import SYSTEM
from teams_cli.records.owed import Owed, owing
from teams_cli.store.contract import Store
from teams_cli.tasks import dependencies, tasks
from teams_cli.tasks.tasks import IF_LAST, IF_READY, IN_PROGRESS, KEPT, Task
from teams_cli.teams import teams
from teams_cli.teams.teams import Team

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_IS_ASSIGNED, _WAS_KEPT = " is assigned to you", " is kept for you"
_IS_READY, _WAS_READY = ", assigned to you, is ready: ", ", kept for you, is ready: "
"""How such notices begin after the title; older versions wrote the second of each."""
_BLOCKED = "blocked by "


def keep(store: Store, team: Team, task: Task, name: str, by: str) -> Task:
    """The task kept for the member, who is to be told."""
    if task.assignee == name:
        return task
    kept = task.having(assignee=name).noted(teams.now(store), by, "kept", owner=name)
    if name == by:
        return kept
    body = f"{task.id} ({task.title}){_standing(task, dependencies.stored(store, team.name))}"
    return owing(
        kept, Owed(to=name, message=body, uid=f"kept-{task.id}-{len(kept.notes)}-{task.claim}", by=by, about=task.id)
    )


def kept_from_the_start(draft: Task, status_of: Callable[[str], str], name: str, by: str) -> Task:
    """The draft of a task that is kept for the member; what it owes is told under its number: see `Task.numbered`."""
    if name == by:
        return draft.having(assignee=name)
    body = f" ({draft.title}){_standing(draft, status_of)}"
    return draft.having(assignee=name, owed=[Owed(to=name, message=body, uid="kept-new", by=by)])


def _standing(task: Task, status_of: Callable[[str], str]) -> str:
    blockers = dependencies.open_blockers(task, status_of)
    if not blockers:
        return f"{_IS_ASSIGNED} and ready: teams claim-task --next"
    return f"{_IS_ASSIGNED}, {_BLOCKED}{', '.join(map(str, blockers))}; you will be notified when it is ready"


def tells_of_keeping(notice: str, task: Task) -> bool:
    """Whether the notice says that the task is assigned to its reader, which ends when the task is not."""
    begins = (_IS_ASSIGNED, _WAS_KEPT, _IS_READY, _WAS_READY)
    return notice.startswith(tuple(f"{task.id} ({task.title}){begin}" for begin in begins))


def tells_of_blockers(notice: str, task: Task) -> bool:
    """Whether the notice says that the task is assigned to its reader, and not ready yet."""
    begins = (f"{_IS_ASSIGNED}, {_BLOCKED}", f"{_WAS_KEPT}; it waits for ")
    return notice.startswith(tuple(f"{task.id} ({task.title}){begin}" for begin in begins))


def give_up(store: Store, task: Task, by: str, reason: str | None = None) -> Task:
    """The task for anybody; for whom it was kept is to be told."""
    if task.assignee is None:
        raise errors.WrongState(f"{task.id} is assigned to nobody", f"See: teams show-task {task.id}")
    free = task.having(assignee=None).noted(teams.now(store), by, "unassigned", reason, owner=task.assignee)
    if task.assignee == by:
        return free
    body = f"{task.id} ({task.title}) is no longer assigned to you, by {by}{f': {reason}' if reason else ''}"
    uid = f"unassigned-{task.id}-{len(free.notes)}-{task.claim}"
    return owing(free, Owed(to=task.assignee, message=body, uid=uid, by=by))


def ready_notices(store: Store, team: Team, done: Task) -> list[Owed]:
    """What completing *done* may make ready for those for whom it is kept, and may let owners complete:
    `Task.still_due` says whether it is sent.
    """

    def told(to: str, task: Task, what: str, when: str) -> Owed:
        uid = f"{when}{task.id}-{done.id}-{done.claim}"
        by = done.owner or SYSTEM
        return Owed(to=to, message=f"{task.id} ({task.title}){what}", uid=uid, by=by, about=task.id)

    ready = [
        told(task.assignee, task, f"{_IS_READY}teams claim-task --next", IF_READY)
        for task in tasks.labelled(store, team.name, KEPT)
        if done.id in task.blocked_by and task.assignee
    ]
    return ready + [
        told(task.owner, task, f" can be completed now: {done.id} ({done.title}) is", IF_LAST)
        for task in tasks.labelled(store, team.name, IN_PROGRESS)
        if done.id in (task.after or ()) and task.owner not in (None, done.owner)
    ]
