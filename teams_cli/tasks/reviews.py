"""Reviews: a completed task waits for a reviewer, who accepts it, or rejects it and returns it to its owner with the
reason.
"""

from __future__ import annotations

import os

from teams_cli import errors, text
from teams_cli.messages import events
from teams_cli.messages.notices import deliver, settle_request
from teams_cli.names import HUMAN
from teams_cli.records.records import Owed, owing
from teams_cli.store.contract import Store
from teams_cli.store.retrying import update
from teams_cli.tasks import assigning, leases, tasks
from teams_cli.tasks.tasks import IN_REVIEW, TASK, Task
from teams_cli.teams import history, roles, teams
from teams_cli.teams.permission import Standing, require
from teams_cli.teams.teams import Team

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from teams_cli.teams.config import Config
    from teams_cli.teams.permission import Caller


def review(
    store: Store, team_name: str, caller: Caller | None, word: str, accept: bool, why: str | None = None
) -> Task:
    """Accept the work on a task, which completes it; or reject it with a reason, which returns it to its owner.

    The reviewer or role that the task names, the leader and the human may review it, but never its owner. Repeating it
    changes nothing.

    Raises:
        TaskNotFound: There is no such task.
        WrongState: It is not in review.
        NotAllowed: The work is your own, or you are not its reviewer.
        Conflict: Its owner handed in newer work since you were last notified. This is refused once.
    """
    at = require(store, team_name, caller, "review-task", word)
    if not accept and not (why or "").strip():
        raise errors.WrongUsage("the reason is missing", f'Write: teams review-task {word} --reject "WHY"')
    if accept:
        _refuse_unseen(store, at, tasks.get(store, team_name, word))
    verdict, why = ("accepted" if accept else "rejected"), why and text.within(why, "reason", text.MAX_MESSAGE)

    def change(task: Task) -> Task:
        if task.status != IN_REVIEW and _said_so(task, at.name, verdict, why):
            return task
        _refuse(task, at)
        now = teams.now(store)
        said = {"verdict": verdict, "by": at.name, "at": now, **({"reason": why} if why else {})}
        reviewed = task.having(reviewed=said)
        if not accept:
            return given_back(store, at.team, reviewed, at.name, "rejected", why or "")
        done = reviewed.having(status="completed", completed_at=now).noted(now, at.name, "accepted", why)
        return owing(done, *_accepted(store, at, done))

    before, task = update(store, team_name, TASK, tasks.get(store, team_name, word).id, change)
    deliver(store, team_name, TASK, task)
    settle_request(store, team_name, at.name, task.id)
    if before is not task:
        what = "task completed" if accept else "task rejected"
        history.note(store, team_name, at.name, what, task=task.id, title=task.title, owner=before.owner, reason=why)
    return task


def _refuse_unseen(store: Store, at: Standing, task: Task) -> None:
    """Refuse once to accept a task whose owner handed in newer work that the reviewer was not notified of yet.

    Raises:
        Conflict: There is such work; by this the reviewer knows of it.
    """
    times = sum((note.what, note.claim) == (IN_REVIEW, task.claim) for note in task.notes)
    if task.status != IN_REVIEW or times < 2:  # else the mail need not be searched
        return
    from teams_cli.tasks import editing

    if unseen := editing.read_unseen(store, at.team.name, at.name, _newer(task)):
        hint = f"Look at it, then: teams review-task {task.id} --accept"
        raise errors.Conflict(f"{task.id} is still in review: {unseen}", hint)


def _said_so(task: Task, name: str, verdict: str, why: str | None) -> bool:
    said = task.reviewed or {}
    return (said.get("by"), said.get("verdict"), said.get("reason")) == (name, verdict, why or None)


def _refuse(task: Task, at: Standing) -> None:
    if task.status != IN_REVIEW:
        raise errors.WrongState(
            f"{task.id} is {assigning.state_of(task)}, not in review", f"See: teams show-task {task.id}"
        )
    if task.owner == at.name:
        raise errors.NotAllowed(f"{task.id} is your own work", f"It is reviewed by {task.review_by}.")
    if not (at.leads or at.caller.is_human or reviews(at.team, task, at.name, at.caller.config)):
        raise errors.NotAllowed(f"{task.id} is reviewed by {task.review_by}", "Send them or the leader a message.")


def reviews(team: Team, task: Task, name: str, config: Config | None) -> bool:
    """Whether that member is the reviewer of the task, by name or by role."""
    if task.review_by == name:
        return task.owner != name
    member = team.member(name)
    if member is None or task.owner == name or task.review_by is None:
        return False
    return task.review_by in roles.lineage(member.role, team, config)


def for_person(found: Iterable[Task]) -> list[Task]:
    """Return the tasks that wait for the human's review."""
    return [task for task in found if task.status == IN_REVIEW and task.review_by == HUMAN]


def asked(team: Team, task: Task, config: Config | None) -> list[Owed]:
    """Return the notices to the reviewers of a task that has come into review; to the leader if nobody else can review
    it.
    """
    to = [name for name in team.active_names() if reviews(team, task, name, config)]
    if task.review_by == HUMAN:
        to = [HUMAN]
    body = f"{task.id} ({task.title}) by {task.owner} waits for your review: teams show-task {task.id}{_result(task)}"
    notice = task.notice("", body, "review-asked", "review", by=task.owner or "", about=task.id)
    return [notice.having(to=name, uid=f"{notice.uid}~{name}") for name in to or [team.leader]]


def asked_again(team: Team, before: Task, task: Task, config: Config | None) -> list[Owed]:
    """Return the notices to the reviewers of a task in review whose owner handed in newer work."""
    commit = f", commit {task.submitted[:10]}" if task.submitted and task.submitted != before.submitted else ""
    body = f"{task.owner} handed in newer work on {task.id} ({task.title}){commit}: teams show-task {task.id}"
    return [
        notice.having(message=body + _result(task), uid=f"{_newer(task)}-{os.urandom(4).hex()}~{notice.to}")
        for notice in asked(team, task, config)
    ]


def of_edit(team: Team, task: Task, config: Config | None, edits: list[Owed]) -> list[Owed]:
    """Return the notices of *edits* of a task in review: to its owner with how to hand in changed work, and to its
    reviewers.
    """
    how = f"If your work lacks it, change it, then: teams update-task {task.id} --status completed"
    reviewers = [notice.to for notice in asked(team, task, config)]
    return [edit.having(message=f"{edit.message}\n{how}") for edit in edits] + [
        edit.having(to=name, message=f"{edit.message}; you review it", uid=f"{edit.uid}~{name}")
        for edit in edits
        for name in reviewers
        if name not in (edit.by, edit.to)
    ]


def _newer(task: Task) -> str:
    """Return how the uids of notices of newer work begin."""
    return f"newer-{task.id}-{task.claim}"


def _result(task: Task) -> str:
    return f"\nresult{tasks.after_colon(task, task.result)}" if task.result else ""


def withdrawn(team: Team, before: Task, task: Task, config: Config | None, by: str) -> list[Owed]:
    """Return the notices to the owner and to the reviewers when *by* takes the task out of review, which ends its
    claim.
    """
    told = []
    if task.owner == before.owner != by:
        body = f"{task.id} ({task.title}) is yours again, withdrawn from review by {by}: teams show-task {task.id}"
        told.append(task.notice(task.owner or "", body, "task-back", "back", by=by))
    elif task.owner is None and before.owner not in (None, by) and team.member(before.owner or ""):
        told.append(leases.loss_notice(before, f"{by} withdrew it from review", by=by))
    body = f"{task.id} ({task.title}) no longer waits for your review: {by} withdrew it"
    for asked_before in asked(team, before, config):
        if asked_before.to not in (by, task.owner, before.owner):
            uid = f"withdrawn-{task.id}-{before.claim}~{asked_before.to}"
            told.append(
                asked_before.having(message=body, uid=uid, type="info", by=by, about=None, event="review-withdrawn")
            )
    return told


def _accepted(store: Store, at: Standing, task: Task) -> list[Owed]:
    told = assigning.ready_notices(store, at.team, task)
    said = f"{at.name} accepted {task.id} ({task.title})"
    if task.owner and at.team.member(task.owner):
        told.append(task.notice(task.owner, said, events.REVIEW_ACCEPTED, "accepted", type="info", by=at.name))
    if at.team.leader not in (at.name, task.owner):
        result = tasks.after_colon(task, task.result)
        body = f"{task.id} ({task.title}) completed by {task.owner}, accepted by {at.name}{result}"
        told.append(task.notice(at.team.leader, body, "task-completed", "completed", type="info", about=task.id))
    return told


def given_back(store: Store, team: Team, task: Task, by: str, what: str, why: str) -> Task:
    """Return the task in progress again, under a new claim, with a notice to its owner. If the owner is gone, the task
    is free.
    """
    now = teams.now(store)
    noted = task.noted(now, by, what, why)
    if task.owner is None or not team.member(task.owner):
        return noted.freed()
    again = noted.having(status="in_progress", completed_at=None, claimed_at=now, claim=task.claim + 1)
    body = f"{task.id} ({task.title}) is yours again, {what} by {by}: {why}"
    uid = f"back-{task.id}-{again.claim}"
    return owing(
        leases.with_full_lease(store, team, again),
        Owed(to=task.owner, message=body, uid=uid, by=by, event="task-back", task=task.id),
    )
