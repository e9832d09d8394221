"""Tasks: their fields, labels and queries."""

from __future__ import annotations

from teams_cli import errors, text
from teams_cli.names import id_of, is_id
from teams_cli.records.field_types import TYPES
from teams_cli.records.records import Owed, Record, field, shown
from teams_cli.store.contract import Kind, Store
from teams_cli.tasks import checks
from teams_cli.tasks.checks import Evidence
from teams_cli.teams import history, teams
from teams_cli.teams.permission import Standing, require

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping
    from typing import Any

    from teams_cli.records.types import (
        Checked,
        Count,
        Name,
        Priority,
        Reviewed,
        Seconds,
        Source,
        TaskId,
        TaskStatus,
        Text,
        Time,
        Word,
    )
    from teams_cli.teams.permission import Caller

STATUSES = TYPES["TaskStatus"].words
FINISHED = frozenset({"completed", "failed", "cancelled"})
PRIORITIES = TYPES["Priority"].words
"""The priorities, from the most to the least urgent."""
IF_READY = "if-ready-"
"""The prefix of the uid of a notice that a task is ready. `Task.still_due` drops the notice if this is no longer
true.
"""
IF_LAST = "if-last-"
"""The prefix of the uid of a notice that a task can be completed, because the last of its `after` tasks is
completed.
"""
READ_WHOLE = 50
"""If a team has at most this many tasks, all of them are read, so that changes made by hand are seen."""
_MAX_EVENTS = 50
_MAX_TEXTS = 100
_MAX_RESULT_SHOWN = 2000


class Note(Record):
    """An event of a task. Its kind is claimed, released, expired, in_review, completed, failed, cancelled, reopened,
    amended, kept, unassigned, accepted, rejected, landed, edited (with the *changed* keys), note (with the *added*
    text), completion-asked (the owner wants the task completed once the tasks that it waits for are), or
    completion-refused (this was tried, but refused).

    *owner* is the member that lost the task by the event. *silent* says that the only reason was its silence, so this
    member may claim the task again.
    """

    at: Time
    by: Name
    what: Word
    claim: Count | None = None
    reason: Text | None = None
    owner: Name | None = None
    silent: bool | None = None
    changed: list[Word] | None = None
    added: Text | None = None
    uid: Word | None = None
    """The uid of the command that added the note."""
    cause: Text | None = None
    """The reason alone, if *reason* also says when the owner last gave a sign of life."""


_TITLE_IN_HINT, _MOST_IN_HINT = 60, 3
COMPLETION_ASKED, COMPLETION_REFUSED = "completion-asked", "completion-refused"
_RESULT_EVENTS = ("amended", "in_review", "completed", "failed")
"""The events at which a result may be given."""
EDITABLE = ("title", "description", "priority", "check", "review_by")
"""The fields that an edit may set. All but the description are shown on the cards of the board."""


class Task(Record):
    """One task.

    `claim` rises with each claim, so that commands of an earlier claim are refused. A pending task with an `assignee`
    is reserved for that member. A task with a `check` is completed only if the check passes, and one with `reviewBy`
    only after a review.
    """

    nested = {"notes": Note, "owed": Owed, "evidence": Evidence}  # noqa: RUF012

    id: TaskId = ""
    team_name: Name
    title: Text
    description: Text | None = None
    status: TaskStatus = "pending"
    priority: Priority = "normal"
    owner: Name | None = None
    assignee: Name | None = None
    created_by: Name | None = None
    created_at: Time
    updated_at: Time | None = None
    claimed_at: Time | None = None
    completed_at: Time | None = None
    blocked_by: list[TaskId] = field(default_factory=list)
    after: list[TaskId] | None = None
    """Tasks that must be completed before this task is completed. Unlike blockers, they do not prevent a claim."""
    require: list[Word] = field(default_factory=list)
    touches: list[Word] | None = None
    agree_with: list[TaskId] | None = None
    """Tasks whose owners must agree with the owner of this task before it is completed."""
    run: Text | None = None
    prompt: Text | None = None
    plan_required: bool | None = None
    step: Text | None = None
    item: Text | None = None
    attempts: Count | None = None
    """How often the task may be claimed and given back before it fails; set by a workflow run."""
    result: Text | None = None
    check: Text | None = None
    check_in: Text | None = None
    check_from: Text | None = None
    """The checkout in which the check was set. The check runs there if the owner has no checkout."""
    checked: Checked | None = None
    review_by: Name | None = None
    reviewed: Reviewed | None = None
    submitted: Word | None = None
    """The commit that the owner handed in for review. It is the commit that lands."""
    evidence: list[Evidence] | None = None
    landing: Word | None = None
    source: Source | None = None
    """For an imported task: the tracker, the task's id in the tracker, and a digest of each field at the import.
    `foreign` says that anybody could have written its title and description.
    """
    claim: Count = 0
    lease_expires_at: Time | None = None
    lease_epoch: Word | None = None
    lease_until: Seconds | None = None
    grace_until: Seconds | None = None
    """The value that `lease_until` has during the grace period. The grace period is over as soon as `lease_until` has
    another value, even if an older version of the program set it.
    """
    notes: list[Note] = field(default_factory=list)
    owed: list[Owed] | None = None

    def numbered(self, **numbers: Any) -> Task:
        """Return the task with its number, which is also added to the notices that it owes."""
        task = self.having(**numbers)
        owed = [
            notice.having(message=task.id + notice.message, uid=f"{notice.uid}-{task.id}", about=task.id, task=task.id)
            for notice in task.owed or ()
        ]
        return task.having(owed=owed or None)

    def notice(self, to: str, body: str, event: str, uid: str, **more: Any) -> Owed:
        """Return a notice about the task. *uid* is different for each notice that the task can owe during one claim."""
        uid = f"{uid}-{self.id}-{self.claim}"
        return Owed(to=to, message=body, uid=uid, event=event, task=self.id, **more)

    def noted(self, at: str, by: str, what: str, reason: str | None = None, **more: Any) -> Task:
        """Return the task with one more note, of the event *what*. Notes with a text are all kept, but only the last 50
        of the others.
        """
        note = Note(at=at, by=by, what=what, claim=self.claim or None, reason=reason, **more)
        notes = [*self.notes, note]
        if sum(note.added is None for note in notes) > _MAX_EVENTS:
            oldest = next(place for place, note in enumerate(notes) if note.added is None)
            del notes[oldest]
        return self.having(notes=notes, updated_at=at)

    def still_due(self, notice: Owed, store: Store, team: str) -> Owed | None:
        """Return the *notice* as it should be sent; None if it says that a task is ready or can be completed, and this
        is no longer true.
        """
        is_of_last = notice.uid.startswith(IF_LAST)
        if not (is_of_last or notice.uid.startswith(IF_READY)):
            return notice
        task = get(store, team, notice.about or "")
        if is_of_last:
            kind, recipient, status = "last", task.owner, IN_PROGRESS
            waits_for = task.waits_for
        else:
            kind, recipient, status = "ready", task.assignee, "pending"
            waits_for = task.blocked_by
        try:
            blockers = [get(store, team, task_id) for task_id in waits_for]
        except errors.TeamsError:  # a missing or unreadable task counts as open
            return None
        has_open_blocker = any(blocker.status != "completed" for blocker in blockers)
        if task.status != status or recipient != notice.to or has_open_blocker:
            return None
        # If the last blockers are completed at the same moment, each of them owes the notice. The uid is the same for
        # all of them, and another one after a blocker was claimed again, so the notice is sent once.
        claims = sum(blocker.claim for blocker in blockers)
        uid = f"{kind}-{task.id}-{task.claim}-{len(blockers)}-{claims}-{recipient}"
        # A notice about a task counts as handled once its reader has the task, as the owner here has already.
        return notice.having(about=None if is_of_last else notice.about, uid=uid)

    @property
    def named(self) -> str:
        """The task's id and title, as notices name the task: `task-7 (Write the parser)`."""
        return f"{self.id} ({self.title})"

    @property
    def waits_for(self) -> list[str]:
        """The tasks that must be completed before this task can be claimed or completed."""
        return [*self.blocked_by, *(self.after or ())]

    @property
    def of_a_run(self) -> bool:
        """Whether the task is a step of a workflow run. Nobody is notified of steps."""
        return self.run is not None or self.prompt is not None

    def has_note(self, uid: str | None) -> bool:
        """Whether the command with that *uid* has added its note to the task already."""
        return uid is not None and any(note.uid == uid for note in self.notes)

    @property
    def is_full(self) -> bool:
        """Whether the task already has the maximum number of notes with a text."""
        return sum(note.added is not None for note in self.notes) >= _MAX_TEXTS

    @property
    def concerned(self) -> str | None:
        """The member whom a change of the task concerns: its owner or its assignee. None once the task has ended."""
        if self.status in (IN_PROGRESS, IN_REVIEW):
            return self.owner
        return self.assignee if self.status == "pending" else None

    def freed(self) -> Task:
        """Return the task without owner and lease, so that it can be claimed again."""
        return self.having(
            status="pending",
            owner=None,
            claimed_at=None,
            completed_at=None,
            lease_expires_at=None,
            lease_epoch=None,
            lease_until=None,
            grace_until=None,
        )

    @property
    def in_grace(self) -> bool:
        """Whether the lease has ended and the grace period runs, in which the owner is asked for a sign of life."""
        return self.grace_until is not None and self.grace_until == self.lease_until

    @property
    def why_ended(self) -> str | None:
        """The reason that was given when the task failed or was cancelled."""
        return next((note.reason for note in reversed(self.notes) if note.what == self.status), None)

    @property
    def since_reopened(self) -> list[Note]:
        """The notes since the task was last reopened; all notes if it was never reopened."""
        opened = [place for place, note in enumerate(self.notes) if note.what == "reopened"]
        return self.notes[opened[-1] + 1 :] if opened else self.notes

    @property
    def result_so_far(self) -> str | None:
        """The result of the task; None if there is none since the task was reopened."""
        since = self.since_reopened
        was_reopened = len(since) < len(self.notes)
        if was_reopened and not any(note.what in _RESULT_EVENTS for note in since):
            return None
        return self.result

    @property
    def completion_is_asked(self) -> bool:
        """Whether the owner wants the task completed once the tasks that it waits for are, and no attempt was refused
        since.
        """
        kinds = (COMPLETION_ASKED, COMPLETION_REFUSED)
        notes = [note.what for note in self.notes if note.claim == self.claim and note.what in kinds]
        return notes[-1:] == [COMPLETION_ASKED]

    @property
    def last_event(self) -> Note | None:
        """The last note that is not an added text; None if nothing has happened to the task yet."""
        return next((note for note in reversed(self.notes) if note.added is None), None)

    def was_claimed_by(self, agent: str) -> bool:
        """Whether the notes say that the agent once owned the task."""
        return any(note.by == agent and note.what == "claimed" for note in self.notes)


IN_PROGRESS = "in_progress"
IN_REVIEW = "in_review"
KEPT = "kept"
"""The label of pending tasks that are assigned to a member."""


def free_label(priority: str) -> str:
    """Return the label of pending tasks that are assigned to nobody, wait for no task and require no skill."""
    return f"free-{priority}"


def pending_labels(priority: str) -> tuple[str, str]:
    """Return the two labels of pending tasks with that *priority*: the label of free tasks, and the label of tasks with
    blockers or required skills. Older versions gave free tasks the second label, too.
    """
    return free_label(priority), f"pending-{priority}"


FREED = frozenset(
    {
        *("task:", f"task:{KEPT}", *(f"task:{status}" for status in FINISHED)),
        *(f"task:{label}" for priority in PRIORITIES for label in pending_labels(priority)),
    }
)
"""The topics of the changes that may make a task ready, or end the last unfinished task: all changes except claims."""


def after_colon(task: Task, result: str | None) -> str:
    """Return `: RESULT` for a notice about the task, cut to 2,000 characters; "" if there is no result."""
    if not result:
        return ""
    return f": {text.clipped(result, _MAX_RESULT_SHOWN, f' (all of it: teams show-task {task.id})')}"


def why_failed(task: Task, lines: int = 3) -> str:
    """Return why the task failed or was cancelled: the last *lines* lines of its result, followed by the reason that
    was given, unless these lines contain it.
    """
    result_lines = [line for line in (task.result or "").splitlines() if line.strip()]
    shown = "\n".join(result_lines[-lines:])
    if task.why_ended and task.why_ended not in shown:
        shown = f"{shown}\n{task.why_ended}" if shown else task.why_ended
    return shown or "no reason was given"


_AROUND_A_WORD = "`'\"()[].,:;!?"


def mentioned(words: str) -> list[str]:
    """Return the ids of the tasks that a text mentions, in the order of the text. It may write them as `task-7`, `task
    7`, or `tasks 7, 8 and 9`. Other words that begin with `task-` are returned too, because a task that another program
    made may have a name in place of the number.
    """
    ids: dict[str, None] = {}
    counts = False  # whether a number would be that of a task
    for word in words.split():
        name = word.strip(_AROUND_A_WORD).lower()
        number = name.removeprefix("task-")
        is_number = number.isascii() and number.isdecimal()
        if is_number and (counts or number != name):
            ids[f"task-{number}"] = None
        elif is_id(own_name := word.strip(_AROUND_A_WORD), "task"):
            ids[own_name] = None
        counts = name in ("task", "tasks") or (counts and (is_number or name in ("and", "or")))
    return list(ids)


def label_of(task: Task) -> str:
    """Return the label by which the task is found and counted without being read. For most tasks it is the status. For
    a pending task, it is `kept` if the task is assigned to a member. Otherwise it contains the priority, and shows
    whether any member may claim the task.
    """
    if task.status != "pending":
        return task.status
    if task.assignee:
        return KEPT
    free, waiting_or_skilled = pending_labels(task.priority)
    return waiting_or_skilled if task.blocked_by or task.require else free


TASK: Kind[Task] = Kind("task", Task, numbered=True, label=label_of, logins="task")


def create(store: Store, team_name: str, caller: Caller | None, draft: Task, tried_after: int | None = None) -> Task:
    """Add a task to the team's queue.

    A blocked task can be claimed when all its blockers are completed.

    Raises:
        TaskNotFound: A blocker does not exist.
        InvalidValue: The title, the command or a skill is blank or too long.
        NotAllowed: You may not set a check or a review.
    """
    standing = require(store, team_name, caller, "create-task", draft.title)
    draft = drafted(standing, draft, teams.now(store))
    draft = draft.having(after=[key for key in draft.after or () if key not in draft.blocked_by] or None)
    for task_id in (*draft.waits_for, *(draft.agree_with or ())):
        get(store, team_name, task_id)
    # *tried_after* is the number of the last task before an earlier attempt whose answer was lost.
    if tried_after is not None and (created := created_after(store, team_name, tried_after, [draft])):
        return created[0]
    task, _ = store.create(team_name, TASK, None, draft)
    note_created(store, task)
    return task


def created_after(store: Store, team: str, number: int, drafts: Collection[Task]) -> list[Task]:
    """Return the tasks after task *number* that were created from the *drafts*, which one commit did; else []."""

    def content(task: Task) -> tuple[str | None, ...]:
        return task.created_by, task.title, task.description

    keys = [f"task-{each}" for each in range(number + 1, store.last(team, TASK) + 1)]
    wanted = sorted(map(content, drafts), key=str)
    found = [task for task, _ in store.scan(team, TASK, [], keys) if content(task) in wanted]
    first = found[: len(wanted)]
    return first if sorted(map(content, first), key=str) == wanted else []


def drafted(standing: Standing, draft: Task, now: str) -> Task:
    """Check the *draft*, and return it as it will be stored, except for its number: with its creator, and with *now* as
    its times.

    Raises:
        InvalidValue, NotAllowed: As for `create`.
    """
    checks.refuse_setter(standing, draft.check, draft.check_in, draft.review_by)
    text.one_line(draft.title, "title", 500)
    text.within(draft.description or "", "description", text.MAX_MESSAGE)
    for skill in draft.require:
        text.one_line(skill, "skill", text.MAX_SKILL)
    if draft.run is not None:
        text.checked(draft.run, "command")
    if draft.check is not None:
        text.checked(draft.check, "check")
    if draft.review_by:
        draft = draft.having(review_by=checks.reviewer(standing, draft.review_by))
    return draft.having(created_by=standing.name, created_at=now, updated_at=now)


def note_created(store: Store, task: Task) -> None:
    """Note in the history that the task was created."""
    history.note(store, task.team_name, task.created_by or "", "task created", task=task.id, title=task.title)


def get(store: Store, team: str, task_ref: str) -> Task:
    """Return the task with that id, which may be written as a number.

    Raises:
        InvalidValue: *task_ref* is not an id. The hint names the tasks with *task_ref* in their titles, if there are
            any.
        TaskNotFound: There is no such task.
        DamagedRecord: The task's file is damaged.
    """
    try:
        task_id = id_of(task_ref, "task")
    except errors.InvalidValue as refusal:
        fitting = [task for task in all_of(store, team, []) if task_ref.lower() in task.title.lower()]
        if fitting and task_ref.strip():
            named = [f"{task.id} ({text.clipped_line(task.title, _TITLE_IN_HINT)})" for task in fitting]
            refusal.hint = f"Tasks with such a title: {text.listed(named, _MOST_IN_HINT)}"
        raise
    try:
        return store.get(team, TASK, task_id)[0]
    except errors.NotFound:
        raise errors.TaskNotFound(f"team {team} has no task {task_id}", "See: teams get-tasks") from None


def all_of(store: Store, team: str, problems: list[errors.TeamsError]) -> Iterator[Task]:
    """Yield all tasks by number. Errors of damaged tasks are appended to *problems*."""
    return (task for task, _ in store.scan(team, TASK, problems))


def all_pending(store: Store, team: str) -> Iterator[Task]:
    """Yield all pending tasks by number, including those that somebody edited by hand."""
    newest_first = store.search(team, TASK, ["pending"], [])
    return reversed([task for task in newest_first if task.status == "pending"])


def are_few(labels: Mapping[str, Collection[str]]) -> bool:
    """Whether the team has so few tasks that commands read all of them. *labels* maps labels to the ids of tasks."""
    return sum(map(len, labels.values())) <= READ_WHOLE


def beyond_labels(store: Store, team: str) -> Iterator[Task]:
    """Yield the tasks that `labelled` may miss, because the store has no label or several labels for them. If the team
    has few tasks, yield all of them.
    """
    labels = store.by_label(team, TASK)
    if are_few(labels):
        return all_of(store, team, [])
    return (task for task, _ in store.scan(team, TASK, [], labels.get("", ())))


def documents(store: Store, team: str, problems: list[errors.TeamsError]) -> Iterator[dict[str, Any]]:
    """Yield all tasks as JSON, by number, for commands that only show them. Errors of damaged tasks are appended to
    *problems*.
    """
    return map(shown, store.documents(team, TASK, problems))


def count(counted: Iterable[Task]) -> dict[str, int]:
    """Return the number of tasks by status. `in_review` is left out if no task is in review."""
    counts = dict.fromkeys(STATUSES, 0)
    for task in counted:
        counts[task.status] += 1
    if not counts[IN_REVIEW]:
        del counts[IN_REVIEW]
    return counts


def labelled(store: Store, team: str, *labels: str) -> Iterator[Task]:
    """Yield the tasks that have one of the *labels*, by number. Damaged tasks are skipped."""
    for key in store.labelled(team, TASK, *labels):
        try:
            task, _ = store.get(team, TASK, key)
        except errors.TeamsError:
            continue
        if label_of(task) in labels:
            yield task


def held_by(store: Store, team: str, name: str) -> list[Task]:
    """Return the tasks that the agent *name* has in progress."""
    return [task for task in labelled(store, team, IN_PROGRESS) if task.owner == name]
