"""Reviews: a completed task waits for a reviewer, who accepts it, or returns it to its owner with a reason."""

from __future__ import annotations

import os

from teams_cli import errors, text
from teams_cli.messages.messages import Event
from teams_cli.messages.notices import close_requests, deliver
from teams_cli.names import HUMAN
from teams_cli.records.records import Owed, owing
from teams_cli.store.contract import Store, update
from teams_cli.tasks import assigning, dependencies, leases, tasks
from teams_cli.tasks.tasks import IN_PROGRESS, IN_REVIEW, TASK, Task
from teams_cli.teams import history, roles, teams
from teams_cli.teams.permission import Standing, require
from teams_cli.teams.teams import Team

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from teams_cli.teams.config import Config
    from teams_cli.teams.permission import Caller

_DESCRIPTION = 600
"""The maximum number of characters of a task's description in the request to review the task."""


def review(
    store: Store, team_name: str, caller: Caller | None, task_ref: str, accept: bool, why: str | None = None
) -> Task:
    """Accept the work on a task, which completes it; or reject it with a reason, which returns it to its owner.

    A task names a member or a role as its reviewer. This reviewer, the leader and the human may review the task, but
    never its owner. Repeating the command changes nothing.

    Raises:
        TaskNotFound: There is no such task.
        WrongState: The task is not in review.
        NotAllowed: The work is your own, or you are not its reviewer.
        Conflict: The owner has submitted newer work, which the error shows. If you then repeat the command, it
            succeeds.
        TaskBlocked: Since the work was submitted, the task was made to wait for other tasks, which are not completed.
    """
    standing = require(store, team_name, caller, "review-task", task_ref)
    if not accept and not (why or "").strip():
        raise errors.WrongUsage("the reason is missing", f'Write: teams review-task {task_ref} --reject "WHY"')
    if accept:
        _refuse_unseen(store, standing, tasks.get(store, team_name, task_ref))
    if why:
        text.within(why, "reason", text.MAX_MESSAGE)
    new_review = {"verdict": "accepted" if accept else "rejected", "by": standing.name}
    if why:
        new_review["reason"] = why

    def change(task: Task) -> Task:
        last_review = task.reviewed or {}
        is_repeated = all(last_review.get(key) == new_review.get(key) for key in ("verdict", "by", "reason"))
        if task.status != IN_REVIEW and is_repeated:
            return task
        _refuse_reviewer(task, standing)
        now = teams.now(store)
        task = task.having(reviewed={**new_review, "at": now})
        if accept:
            _refuse_too_early(store, standing, task)
        else:
            return given_back(store, standing.team, task, standing.name, "rejected", why or "")
        done = task.having(status="completed", completed_at=now).noted(now, standing.name, "accepted", why)
        return owing(done, *_notices_of_acceptance(store, standing, done))

    before, task = update(store, team_name, TASK, tasks.get(store, team_name, task_ref).id, change)
    deliver(store, team_name, TASK, task)
    close_requests(store, team_name, standing.name, task.id)
    if before is not task:
        what = "task completed" if accept else "task rejected"
        history.note(
            store, team_name, standing.name, what, task=task.id, title=task.title, owner=before.owner, reason=why
        )
    return task


def _refuse_unseen(store: Store, standing: Standing, task: Task) -> None:
    """Refuse to accept a task if the reviewer has not yet seen that its owner handed in newer work. The error shows the
    newer work, so a second attempt succeeds.
    """
    times_handed_in = sum((note.what, note.claim) == (IN_REVIEW, task.claim) for note in task.notes)
    if task.status != IN_REVIEW or times_handed_in < 2:  # there is no newer work, so the mail need not be searched
        return
    from teams_cli.tasks import editing

    if unseen := editing.read_unseen(store, standing.team.name, standing.name, _uid_of_newer_work(task)):
        hint = f"Look at it, then: teams review-task {task.id} --accept"
        raise errors.Conflict(f"{task.id} is still in review: {unseen}", hint)


def _refuse_too_early(store: Store, standing: Standing, task: Task) -> None:
    """Refuse to accept a task before the tasks for which it waits are completed."""
    if before := dependencies.before_completion(task, dependencies.stored(store, standing.team.name)):
        names = text.listed([str(each) for each in before])
        if standing.leads or standing.manages:
            unblock = f": teams update-task {task.id} --unblock {','.join(each.id for each in before)}"
        else:
            unblock = f", ask {standing.team.leader}: teams send-message {standing.team.leader} TEXT"
        raise errors.TaskBlocked(
            f"{task.id} is still in review: it waits for {names}", f"Accept it later; if it need not wait{unblock}"
        )


def _refuse_reviewer(task: Task, standing: Standing) -> None:
    """Refuse to review a task that is not in review, or that the caller may not review."""
    if task.status != IN_REVIEW:
        raise errors.WrongState(
            f"{task.id} is {assigning.state_of(task)}, not in review", f"See: teams show-task {task.id}"
        )
    if task.owner == standing.name:
        names = text.listed(reviewers(standing.team, task, standing.caller.config))
        raise errors.NotAllowed(f"{task.id} is your own work", f"It is reviewed by {names}.")
    if standing.leads or standing.caller.is_human:
        return
    if not reviews(standing.team, task, standing.name, standing.caller.config):
        raise errors.NotAllowed(f"{task.id} is reviewed by {task.review_by}", f"See: teams show-task {task.id}")


def reviews(team: Team, task: Task, name: str, config: Config | None) -> bool:
    """Whether the member *name* is a reviewer of the task, by name or by role. An owner never reviews its own task."""
    if task.owner == name:
        return False
    if task.review_by == name:
        return True
    member = team.member(name)
    if member is None or task.review_by is None:
        return False
    return task.review_by in roles.lineage(member.role, team, config)


def reviewers(team: Team, task: Task, config: Config | None) -> list[str]:
    """Return who is asked to review the task: the human, or the members that review it. If there is no such member, it
    is the leader.
    """
    if task.review_by == HUMAN:
        return [HUMAN]
    return [name for name in team.active_names() if reviews(team, task, name, config)] or [team.leader]


def for_person(tasks_of_team: Iterable[Task]) -> list[Task]:
    """Return the tasks among *tasks_of_team* that wait for the human's review."""
    return [task for task in tasks_of_team if task.status == IN_REVIEW and task.review_by == HUMAN]


def asked(team: Team, task: Task, config: Config | None) -> list[Owed]:
    """Return the notices that ask the reviewers of the task for a review."""
    commit = f", commit {task.submitted[:10]}" if task.submitted else ""
    head = f"{task.named} by {task.owner} waits for your review{commit}"
    described = text.clipped(task.description or "", _DESCRIPTION, f" (all of it: teams show-task {task.id})")
    notice = task.notice("", "", Event.REVIEW_ASKED, "review", by=task.owner or "", about=task.id)
    notices = []
    for name in reviewers(team, task, config):
        # The member that created the task knows the description.
        task_in_words = f"\ntask: {described}" if described and name != task.created_by else ""
        body = f"{head}{task_in_words}{_result(task)}"
        notices.append(notice.having(to=name, message=body, uid=f"{notice.uid}~{name}"))
    return notices


def ask_leader_instead(store: Store, team: Team, gone: str, config: Config | None) -> None:
    """Ask the leader to review the tasks that only *gone*, who is no longer a member, was asked to review. Ignore
    errors: the member has ended all the same.
    """
    former = team.find(gone)
    roles_of_gone = roles.lineage(former.role, team, config) if former else []

    def lacks_reviewer(task: Task) -> bool:
        if task.status != IN_REVIEW or task.owner == gone or task.review_by not in (gone, *roles_of_gone):
            return False
        return not any(reviews(team, task, name, config) for name in team.active_names())

    def change(task: Task) -> Task:
        return owing(task, *asked(team, task, config)) if lacks_reviewer(task) else task

    for task in tasks.labelled(store, team.name, IN_REVIEW):
        if lacks_reviewer(task):
            try:
                deliver(store, team.name, TASK, update(store, team.name, TASK, task.id, change)[1])
            except errors.TeamsError:  # a login of a database may not change the task of another
                continue


def asked_again(team: Team, before: Task, task: Task, config: Config | None) -> list[Owed]:
    """Return the notices that tell the reviewers of a task in review that its owner handed in newer work."""
    commit = f", commit {task.submitted[:10]}" if task.submitted and task.submitted != before.submitted else ""
    body = f"{task.owner} handed in newer work on {task.named}{commit}: teams show-task {task.id}"
    return [
        notice.having(message=body + _result(task), uid=f"{_uid_of_newer_work(task)}-{os.urandom(4).hex()}~{notice.to}")
        for notice in asked(team, task, config)
    ]


def of_edit(team: Team, before: Task, task: Task, config: Config | None, notices: list[Owed], by: str) -> list[Owed]:
    """Return the notices to send after *by* edited a task in review. *notices* are the notices to the task's owner.
    Advice is added to them if the title or description changed. Reviewers that remain reviewers get copies. New
    reviewers are asked for the review, and former reviewers are notified.
    """
    requests = asked(team, task, config)
    former_requests = asked(team, before, config)
    present_reviewers = {request.to for request in requests}
    former_reviewers = {request.to for request in former_requests}
    staying_reviewers = present_reviewers & former_reviewers
    # Edits under one claim may name a reviewer again whom an earlier edit removed, so each edit has uids of its own.
    # The *notices* have such uids already.
    uid_end = os.urandom(4).hex()
    all_notices = []
    for notice in notices:
        advice = ""
        if (task.title, task.description) != (before.title, before.description):
            advice = f"\nIf your work lacks it, change it, then: teams update-task {task.id} --status completed"
        all_notices.append(notice.having(message=notice.message + advice))
        for name in sorted(staying_reviewers - {notice.by, notice.to}):
            body = f"{notice.message}; you review it"
            all_notices.append(notice.having(to=name, message=body, uid=f"{notice.uid}~{name}"))
    for request in requests:
        if request.to not in {*former_reviewers, by}:
            all_notices.append(request.having(uid=f"{request.uid}-{uid_end}"))
    for request in former_requests:
        if request.to not in {*present_reviewers, by}:
            body = f"{task.named} no longer waits for your review: {by} chose {task.review_by}"
            uid = f"withdrawn-{request.uid}-{uid_end}"
            all_notices.append(_withdrawal(request, body, uid, by))
    return all_notices


def _withdrawal(request: Owed, body: str, uid: str, by: str) -> Owed:
    return request.having(message=body, uid=uid, type="info", by=by, about=None, event="review-withdrawn")


def _uid_of_newer_work(task: Task) -> str:
    """Return the prefix of the uids of notices about newer work under the task's claim. The notices are found by it."""
    return f"newer-{task.id}-{task.claim}"


def _result(task: Task) -> str:
    return f"\nresult{tasks.after_colon(task, task.result)}" if task.result else ""


def withdrawn(team: Team, before: Task, task: Task, config: Config | None, by: str) -> list[Owed]:
    """Return the notices that tell the owner and the reviewers that *by* withdrew a task from review. *before* is the
    task in review, and *task* the task after the change.
    """
    notices = []
    if task.owner == before.owner and task.owner != by:
        body = f"{task.named} is yours again, withdrawn from review by {by}: teams show-task {task.id}"
        notices.append(task.notice(task.owner or "", body, Event.TASK_BACK, "back", by=by))
    elif task.owner is None and before.owner not in (None, by) and team.member(before.owner or ""):
        notices.append(leases.loss_notice(before, f"{by} withdrew it from review", by=by))
    body = f"{task.named} no longer waits for your review: {by} withdrew it"
    for request in asked(team, before, config):
        if request.to not in (by, task.owner, before.owner):
            uid = f"withdrawn-{task.id}-{before.claim}~{request.to}"
            notices.append(_withdrawal(request, body, uid, by))
    return notices


def _notices_of_acceptance(store: Store, standing: Standing, task: Task) -> list[Owed]:
    """Return the notices about the acceptance to the owner and the leader, and those to members whose tasks are now
    ready.
    """
    team, name = standing.team, standing.name
    notices = assigning.ready_notices(store, team, task)
    if task.owner and team.member(task.owner):
        body = f"{name} accepted {task.named}"
        notices.append(task.notice(task.owner, body, Event.REVIEW_ACCEPTED, "accepted", type="info", by=name))
    if team.leader not in (name, task.owner):
        body = f"{task.named} completed by {task.owner}, accepted by {name}{tasks.after_colon(task, task.result)}"
        notices.append(task.notice(team.leader, body, Event.TASK_COMPLETED, "completed", type="info", about=task.id))
    return notices


def given_back(store: Store, team: Team, task: Task, by: str, what: str, why: str) -> Task:
    """Return the task in progress again, under a new claim and with a notice to its owner. If the owner is no longer a
    member, return it as a free task instead. *what* is the event to note, such as `rejected`, and *why* its reason.
    """
    now = teams.now(store)
    noted = task.noted(now, by, what, why)
    if task.owner is None or not team.member(task.owner):
        return noted.freed()
    claimed = noted.having(status=IN_PROGRESS, completed_at=None, claimed_at=now, claim=task.claim + 1)
    body = f"{task.named} is yours again, {what} by {by}: {why}"
    notice = claimed.notice(task.owner, body, Event.TASK_BACK, "back", by=by)
    return owing(leases.with_lease(store, claimed, team.silence), notice)
