"""Tasks: what is to be done, in what order, and by whom it is being done."""

from __future__ import annotations

from teams_cli import history, teams, text
from teams_cli.errors import DependencyCycle, NotFound, TaskNotFound, TeamsError
from teams_cli.names import id_of
from teams_cli.records import Record, field
from teams_cli.roles import require
from teams_cli.store.contract import Kind

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    from teams_cli.caller import Caller
    from teams_cli.shapes import Count, Name, Priority, Seconds, TaskId, TaskStatus, Text, Time, Word
    from teams_cli.store.contract import Store

STATUSES = ("pending", "in_progress", "completed", "failed", "cancelled")
FINISHED = frozenset({"completed", "failed", "cancelled"})
PRIORITIES = ("high", "normal", "low")
_NOTES = 50


class Note(Record):
    """Something that happened to a task: claimed, released, expired, completed, failed, cancelled, reopened."""

    at: Time
    by: Name
    what: Word
    claim: Count | None = None
    reason: Text | None = None


class Task(Record):
    """One task. `claim` is the fencing number: it rises with each claim, and an older one is over."""

    nested = {"notes": Note}  # noqa: RUF012

    id: TaskId = ""
    team_name: Name
    title: Text
    description: Text | None = None
    status: TaskStatus = "pending"
    priority: Priority = "normal"
    owner: Name | None = None
    created_by: Name | None = None
    created_at: Time
    updated_at: Time | None = None
    claimed_at: Time | None = None
    completed_at: Time | None = None
    blocked_by: list[TaskId] = field(default_factory=list)
    require: list[Word] = field(default_factory=list)
    run: Text | None = None
    prompt: Text | None = None
    plan_required: bool | None = None
    result: Text | None = None
    claim: Count = 0
    lease_expires_at: Time | None = None
    lease_epoch: Word | None = None
    lease_until: Seconds | None = None
    notes: list[Note] = field(default_factory=list)

    def noted(self, at: str, by: str, what: str, reason: str | None = None) -> Task:
        """The task with one more note; the last 50 are kept."""
        note = Note(at=at, by=by, what=what, claim=self.claim or None, reason=reason)
        return self.having(notes=[*self.notes, note][-_NOTES:], updated_at=at)

    def freed(self) -> Task:
        """The task without owner and lease, to be claimed again."""
        return self.having(
            status="pending",
            owner=None,
            claimed_at=None,
            completed_at=None,
            lease_expires_at=None,
            lease_epoch=None,
            lease_until=None,
        )

    def was_claimed_by(self, agent: str) -> bool:
        """Whether the agent had it, as far as the notes tell."""
        return any(note.by == agent and note.what == "claimed" for note in self.notes)


IN_PROGRESS = "in_progress"


def waiting(priority: str) -> str:
    """The label of pending tasks of that priority."""
    return f"pending-{priority}"


def _label(task: Task) -> str | None:
    if task.status == "pending":
        return waiting(task.priority)
    return IN_PROGRESS if task.status == "in_progress" else None


TASK: Kind[Task] = Kind("task", Task, numbered=True, label=_label)


def create(store: Store, team_name: str, caller: Caller | None, draft: Task) -> Task:
    """Add a task to the team's queue. It waits until all tasks in `blocked_by` are completed.

    Raises:
        TaskNotFound: A blocker does not exist.
        InvalidValue: The title, the command or a skill is blank or too long.
    """
    require(store, team_name, caller, "create-task", draft.title)
    assert caller is not None
    text.one_line(draft.title, "title", 500)
    text.within(draft.description or "", "description", text.MAX_MESSAGE)
    for skill in draft.require:
        text.one_line(skill, "skill", text.MAX_SKILL)
    if draft.run is not None:
        text.checked(draft.run, "command")
    for blocker in draft.blocked_by:
        load(store, team_name, blocker)
    now = teams.now(store)
    draft = draft.having(created_by=caller.name, created_at=now, updated_at=now)
    task, _ = store.create(team_name, TASK, None, draft)
    history.note(store, team_name, caller.name, "task created", task=task.id, title=task.title)
    return task


def load(store: Store, team: str, word: str) -> Task:
    """The task of that id.

    Raises:
        TaskNotFound: There is none.
        DamagedRecord: Its file is damaged.
    """
    task_id = id_of(word, "task")
    try:
        return store.get(team, TASK, task_id)[0]
    except NotFound:
        raise TaskNotFound(f"team {team} has no task {task_id}", "See `teams get-tasks`.") from None


def everything(store: Store, team: str, problems: list[TeamsError]) -> Iterator[Task]:
    """All tasks, by number; damaged ones are added to *problems*."""
    return (task for task, _ in store.scan(team, TASK, problems))


def labelled(store: Store, team: str, label: str) -> Iterator[Task]:
    """The tasks that seem to have the label, by number; damaged ones are passed over."""
    for key in store.labelled(team, TASK, label):
        try:
            task, _ = store.get(team, TASK, key)
        except TeamsError:
            continue
        if _label(task) == label:
            yield task


def open_blockers(store: Store, team: str, task: Task) -> list[Task]:
    """The tasks that this one waits for and that are not completed."""
    return [blocker for blocker in (load(store, team, key) for key in task.blocked_by) if blocker.status != "completed"]


def refuse_cycle(store: Store, team: str, task_id: str, blockers: Iterable[str]) -> None:
    """Refuse blockers that wait, themselves or through others, for the task.

    Raises:
        DependencyCycle: One does; names the way.
        TaskNotFound: One does not exist.
    """
    ways = [[blocker] for blocker in blockers]
    seen: set[str] = set()
    while ways:
        way = ways.pop()
        if way[-1] == task_id:
            raise DependencyCycle(
                f"{task_id} would wait for itself: {' waits for '.join([task_id, *way])}", "Drop one of these."
            )
        if way[-1] not in seen:
            seen.add(way[-1])
            ways += [[*way, further] for further in load(store, team, way[-1]).blocked_by]


def as_shown(task: Task, blockers: list[str]) -> dict[str, Any]:
    """The task as JSON, with which of the tasks that it waits for are not completed."""
    return {**task.to_json(), "blocked": bool(blockers), "openBlockers": blockers}
