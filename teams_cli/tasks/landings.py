"""Landings: the queue of completed work that is to be merged into the team's branch, and the outcome of each.

queued ⇄ checking → landed | red | conflict | refused

One process on the machine of the repository works through the queue: see `lander`. It notes the new commit in `merge`
before it moves the branch, so a landing has happened as soon as the branch contains that commit.
"""

from __future__ import annotations

from teams_cli import errors
from teams_cli.names import id_of
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
"""How many of the landings with an outcome are shown."""


class LandingNotFound(errors.NotFound):
    """The team has no such landing."""


class Landing(Record):
    """One landing: it merges the commit *head* of a task into the branch *onto* of a *repository*. The branch's tip was
    *base*.

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
    """For a conflict: the work that landed before in the same place, by `landing`, `task`, `title`, `owner` and
    `at`.
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
        """Whether the landing has its outcome: it is landed, red, in conflict or refused."""
        return self.state in OVER

    def words(self, team: str) -> str:
        """Return the message of the merge commit."""
        return f"Land {self.task}: {self.title}\n\n{self.id} of {team}, by {self.owner or self.by}"

    @property
    def result(self) -> Check | None:
        """The outcome of the landing's check; None if none was run."""
        return Check.from_json(self.checked) if self.checked else None


def _label(landing: Landing) -> str | None:
    """Return the label by which landings with work left are found: they have no outcome yet, or it is not in their task
    yet. None if nothing is left to do.
    """
    return None if landing.over and landing.returned else OPEN


LANDING: Kind[Landing] = Kind("landing", Landing, numbered=True, label=_label, logins="landing")


def get(store: Store, team: str, ref: str) -> Landing:
    """Return the landing with that id, or the last landing of the task with that id.

    Raises:
        LandingNotFound: There is no such landing, or the task has none.
    """
    if ref.startswith("task-"):
        if landing := last_of(store, team, ref):
            return landing
        raise LandingNotFound(f"team {team} has no landing of {ref}", f"Land it: teams land {ref}")
    landing_id = id_of(ref, "landing")
    try:
        return store.get(team, LANDING, landing_id)[0]
    except errors.NotFound:
        raise LandingNotFound(f"team {team} has no {landing_id}", "See: teams get-landings") from None


def all_of(store: Store, team: str, problems: list[errors.TeamsError]) -> list[Landing]:
    """Return all landings, by number. Errors of damaged landings are appended to *problems*."""
    return [landing for landing, _ in store.scan(team, LANDING, problems)]


def open_ones(store: Store, team: str) -> list[Landing]:
    """Return the landings that have no outcome yet, or whose outcome is not in their task yet, in the order of their
    turns.

    A landing that has its outcome, or is about to move its branch, comes first: it may have updated only half of the
    branch's checkout.
    """
    landings = []
    for landing_id in store.labelled(team, LANDING, OPEN):
        try:
            landing, _ = store.get(team, LANDING, landing_id)
        except errors.TeamsError:
            continue
        if _label(landing) == OPEN:
            landings.append(landing)
    return sorted(landings, key=turn)


def turn(landing: Landing) -> tuple[bool, int, int]:
    """Return the key that sorts landings into the queue: first those that have started, then by priority, then by
    age.
    """
    has_started = landing.over or landing.merge is not None
    return not has_started, PRIORITIES.index(landing.priority), LANDING.number_in(landing.id)


def whose(against: dict[str, Any]) -> str:
    """Return whose work is in the way of the landing, from its field *against*: the owner, the task and its title. The
    title is missing in older landings.
    """
    title = against.get("title")
    return f"{against['owner']}'s {against['task']}" + (f' "{title}"' if title else "")


def last_of(store: Store, team: str, task_id: str) -> Landing | None:
    """Return the last landing of the task; None if it has none."""
    landings = [landing for landing in all_of(store, team, []) if landing.task == task_id]
    return landings[-1] if landings else None


def of_interest(store: Store, team: str, problems: list[errors.TeamsError]) -> list[dict[str, Any]]:
    """Return as JSON, by number, all landings without an outcome, and the newest of those with an outcome. Of the
    output of a failed check only the end is kept.
    """
    landings = all_of(store, team, problems)
    ended = [landing.id for landing in landings if landing.over]
    shown_ended = set(ended[-_MAX_ENDED_SHOWN:])
    return [_brief(landing) for landing in landings if not landing.over or landing.id in shown_ended]


def _brief(landing: Landing) -> dict[str, Any]:
    document = to_document(landing)
    if check := landing.result:
        document["checked"] = check.brief()
        if not check.passed:
            document["checked"]["output"] = check.output[-_MAX_OUTPUT_SHOWN:]
    return document


def to_document(landing: Landing) -> dict[str, Any]:
    """Return the landing as JSON, without what only the program needs."""
    document = landing.to_document()
    for key in ("returned", "commented"):
        document.pop(key, None)
    return document
