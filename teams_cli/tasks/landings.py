"""Landings: the queue of completed work that waits to be merged into the team's branch, and the outcome of each
landing.

queued ⇄ checking → landed | red | conflict | refused

One process on the machine of the repository works through the queue: see `lander`. It notes the new commit in `merge`
before it moves the branch. So a landing has happened as soon as the branch contains that commit.
"""

from __future__ import annotations

from teams_cli import errors
from teams_cli.names import id_of, number_of
from teams_cli.records.records import Owed, Record
from teams_cli.store.contract import Kind, Store
from teams_cli.tasks.checks import Check
from teams_cli.tasks.tasks import PRIORITIES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from teams_cli.records.types import (
        Checked,
        Count,
        LandingId,
        LandingState,
        Name,
        Object,
        Priority,
        TaskId,
        Text,
        Time,
        Word,
    )

OPEN = "open"
OVER = frozenset({"landed", "red", "conflict", "refused"})
_MAX_OUTPUT_SHOWN = 1200
_MAX_ENDED_SHOWN = 50
"""The maximum number of landings with an outcome that are shown."""


class LandingNotFound(errors.NotFound):
    """The team has no such landing."""


class Landing(Record):
    """One landing: it merges the commit *head* of a task into the branch *onto* of a *repository*. *base* is the last
    commit of the branch before the landing.

    *claim* is the claim of the task at the time when the landing was queued. *returned* says that the outcome was
    written into the task.
    """

    nested = {"owed": Owed}  # noqa: RUF012

    id: LandingId = ""
    team_name: Name
    task: TaskId
    title: Text
    owner: Name | None = None
    by: Name
    claim: Count = 0
    priority: Priority = "normal"
    repository: Text
    host: Word | None = None
    branch: Text | None = None
    onto: Text
    head: Word
    base: Word | None = None
    merge: Word | None = None
    state: LandingState = "queued"
    check: Text | None = None
    checked: Checked | None = None
    files: list[Text] | None = None
    places: list[Object] | None = None
    """For a conflict: the conflicting lines of the task and of the branch, as `regions.place` returns them."""
    against: Object | None = None
    """For a conflict: the work that landed earlier in the same place, with the keys `landing`, `task`, `title`, `owner`
    and `at`.
    """
    reason: Text | None = None
    via: Word | None = None
    url: Text | None = None
    created_at: Time
    updated_at: Time | None = None
    ended_at: Time | None = None
    returned: bool | None = None
    commented: bool | None = None
    """Whether the landing was reported in a comment on the issue of its task."""
    owed: list[Owed] | None = None

    @property
    def over(self) -> bool:
        """Whether the landing has an outcome: it is landed, red, in conflict or refused."""
        return self.state in OVER

    def words(self, team: str) -> str:
        """Return the message of the merge commit."""
        return f"Land {self.task}: {self.title}\n\n{self.id} of {team}, by {self.owner or self.by}"

    @property
    def result(self) -> Check | None:
        """The outcome of the landing's check; None if no check was run."""
        return Check.from_json(self.checked) if self.checked else None


def _label(landing: Landing) -> str | None:
    """Return the label of a landing that still needs work, because it has no outcome or the outcome is not in its task
    yet; else None.
    """
    return None if landing.over and landing.returned else OPEN


LANDING: Kind[Landing] = Kind("landing", Landing, numbered=True, label=_label, logins="landing")


def get(store: Store, team: str, ref: str) -> Landing:
    """Return the landing with the id *ref*. If *ref* is the id of a task, return the last landing of this task. If
    *ref* is only a number, it may be the number of a landing or of a task.

    Raises:
        LandingNotFound: There is no such landing, or the task has none.
        InvalidValue: *ref* is only a number, and can mean two landings: the landing with this number, and the last
            landing of the task with this number.
    """
    if ref.startswith("task-"):
        if landing := last_of(store, team, ref):
            return landing
        raise LandingNotFound(f"team {team} has no landing of {ref}", f"Land it: teams land {ref}")
    landing_id = id_of(ref, "landing")
    is_number = not ref.startswith("landing-")
    by_task = last_of(store, team, f"task-{number_of(ref, 'landing')}") if is_number else None
    try:
        by_id = store.get(team, LANDING, landing_id)[0]
    except errors.NotFound:
        if by_task:
            return by_task
        raise LandingNotFound(f"team {team} has no {landing_id}", "See: teams get-landings") from None
    if by_task and by_task.task != by_id.task:
        raise errors.InvalidValue(
            f"{ref} can mean {by_id.id} (of {by_id.task}) or {by_task.id} (of {by_task.task})",
            f"Write {by_id.id}, or {by_task.task}",
        )
    return by_id


def all_of(store: Store, team: str, problems: list[errors.TeamsError]) -> list[Landing]:
    """Return all landings, by number. Errors of damaged landings are appended to *problems*."""
    return [landing for landing, _ in store.scan(team, LANDING, problems)]


def open_ones(store: Store, team: str) -> list[Landing]:
    """Return the landings that have no outcome yet, or whose outcome is not in their task yet, in the order in which
    they are worked on.

    Interrupted landings come first: those that have an outcome or were about to move their branch. They may have
    updated only half of the branch's checkout, so they must be finished first.
    """
    landings = []
    for landing_id in store.labelled(team, LANDING, OPEN):
        try:
            landing, _ = store.get(team, LANDING, landing_id)
        except errors.TeamsError:  # the record was deleted or damaged: `teams doctor` reports it
            continue
        if _label(landing) == OPEN:  # the stored label may be outdated
            landings.append(landing)
    return sorted(landings, key=turn)


def turn(landing: Landing) -> tuple[bool, int, int]:
    """Return a sort key: first landings that may have moved their branch, then higher priorities, then older ones."""
    may_have_moved = landing.over or landing.merge is not None
    return not may_have_moved, PRIORITIES.index(landing.priority), LANDING.number_in(landing.id)


def whose(against: dict[str, Any]) -> str:
    """Return a phrase that says whose work is in the way of a landing. *against* is the field of that name."""
    title = against.get("title")  # older records lack it
    return f"{against['owner']}'s {against['task']}" + (f' "{title}"' if title else "")


def last_of(store: Store, team: str, task_id: str) -> Landing | None:
    """Return the last landing of the task; None if it has none."""
    landings = [landing for landing in all_of(store, team, []) if landing.task == task_id]
    return landings[-1] if landings else None


def of_interest(store: Store, team: str, problems: list[errors.TeamsError]) -> list[dict[str, Any]]:
    """Return all landings without an outcome, and the newest 50 with one, as JSON and sorted by number. Outputs of
    checks are left out, except for the end of the output of a failed check.
    """
    landings = all_of(store, team, problems)
    ended = [landing.id for landing in landings if landing.over]
    shown_ended = set(ended[-_MAX_ENDED_SHOWN:])
    documents = []
    for landing in landings:
        if not landing.over or landing.id in shown_ended:
            documents.append(document := to_document(landing))
            if check := landing.result:
                document["checked"] = check.brief()
                if not check.passed:
                    document["checked"]["output"] = check.output[-_MAX_OUTPUT_SHOWN:]
    return documents


def to_document(landing: Landing) -> dict[str, Any]:
    """Return the landing as JSON, without the fields that only the program needs."""
    document = landing.to_document()
    for key in ("returned", "commented"):
        document.pop(key, None)
    return document
