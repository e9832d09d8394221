"""The outcome of a landing: its record, its notices, and its task. If the landing failed, the task returns to its
owner.
"""

from __future__ import annotations

from teams_cli import errors, text
from teams_cli.agents import merging
from teams_cli.messages.notices import deliver
from teams_cli.names import SYSTEM
from teams_cli.records.records import Owed, owing
from teams_cli.store.contract import Store, update
from teams_cli.tasks import checks, landings, reviews, tasks
from teams_cli.tasks.checks import CHECK_STALE, Check
from teams_cli.tasks.landings import LANDING, Landing
from teams_cli.tasks.tasks import TASK, Task
from teams_cli.teams import history, settings, teams
from teams_cli.teams.teams import Team

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


_UNCHECKED = ", unchecked (no check is set: teams set landingCheck COMMAND)"


def end(store: Store, team: Team, landing: Landing, state: str, **fields: Any) -> None:
    """End the landing in *state*, and set the other *fields* of its record. Notify the members concerned, and update
    the landing's task. If the landing has ended before, keep its record as it is.

    Raises:
        WrongState: The landing failed, and the team was closed meanwhile. The task can't return to its owner, so the
            landing stays open until the team is restored.
    """
    now = teams.now(store)

    def with_end(current: Landing) -> Landing:
        if current.over:
            return current
        ended = current.having(state=state, ended_at=now, updated_at=now, **fields)
        return owing(ended, *_notices(team, ended))

    # The branch has moved, so this is recorded even if the team was closed meanwhile.
    kind = LANDING.even_in_closed_team if state == "landed" else LANDING
    before, ended = update(store, team.name, kind, landing.id, with_end)
    if before is not ended:
        details = {"task": ended.task, "commit": ended.merge, "onto": ended.onto, "reason": ended.reason}
        history.note(store, team.name, SYSTEM, f"landing {state}", landing=ended.id, **details)
    ended = update_task(store, team, ended)  # before the notices: their readers must find the task reopened
    deliver(store, team.name, LANDING, ended)


def _notices(team: Team, landing: Landing) -> list[Owed]:
    """Return the notices of an ended landing. One goes to the task's owner or, if the owner has left, to the member who
    queued the landing. If the landing failed, both get one; if it was refused, the leader gets one, too.
    """
    owner = landing.owner if landing.owner and team.member(landing.owner) else landing.by
    uid, event = f"{landing.id}-{landing.state}", f"landing-{landing.state}"
    message = sentence_of(landing, settings.lands_by_itself(team))
    if landing.state == "landed":
        return [Owed(to=owner, message=message, uid=uid, type="info", about=landing.id, event=event, task=landing.task)]
    leader = [team.leader] if landing.state == "refused" else []
    recipients = dict.fromkeys((owner, landing.by, *leader))  # each once
    return [
        Owed(to=name, message=message, uid=f"{uid}~{name}", about=landing.id, event=event, task=landing.task)
        for name in recipients
    ]


def sentence_of(landing: Landing, lands_by_itself: bool) -> str:
    """Return the outcome of a landing as a sentence. If the landing failed, the sentence says what to do.
    *lands_by_itself* is True if tasks land as soon as they are completed, so that no command to land is needed.
    """
    subject = f"{landing.id} of {landing.task} ({landing.title})"
    check = landing.result
    if landing.state == "landed":
        was_checked = check or landing.url  # GitHub checks pull requests
        problem = f"; {landing.reason}" if landing.reason else ""
        return f"{subject} landed: {where(landing)}{'' if was_checked else _UNCHECKED}{problem}"
    if landing.state == "conflict":
        cause = f" ({landings.whose(landing.against)})" if landing.against else ""
        from teams_cli.agents import regions

        places = text.listed([regions.in_words(place) for place in landing.places or []])
        repeat = f"complete {landing.task} again{'' if lands_by_itself else ', and land it'}"
        return (
            f"{subject} conflicts with {landing.onto}{cause} in {places}: "
            f"merge {landing.onto} into your branch, commit, and {repeat}"
        )
    if landing.state == "red" and landing.url:
        return f"{subject}: {landing.reason}"
    if landing.state == "red":
        reason = "; ".join(filter(None, (landing.reason, check.in_words if check else None)))
        return f"{subject} is red on {landing.onto}: {reason}"
    return f"{subject} was refused: {landing.reason}"


def update_task(store: Store, team: Team, landing: Landing) -> Landing:
    """Record the outcome of an ended landing in its task, and return the landing with `returned` set. If the landing is
    red or a conflict, reopen the task, unless somebody changed its status or claimed it since it was queued. Do nothing
    if the landing has not ended, or if `returned` is already set.
    """
    if landing.returned or not landing.over:
        return landing
    if landing.state == "landed":
        summary = f"{landing.id}: {where(landing)}"
    else:
        reason = ", ".join(landing.files or ()) if landing.state == "conflict" else landing.reason
        if not reason and (result := landing.result):
            reason = f"exit status {result.status}"
        summary = f"{landing.id} is {landing.state}" + (f": {reason}" if reason else "")

    def with_outcome(task: Task) -> Task:
        if task.landing == landing.id:
            return task
        updated = task.having(landing=landing.id)
        check = checks.of(task) if landing.state == "landed" else None
        landed = landing.merge or landing.head
        if check and check.commit and not merging.holds(landing.repository, landed, check.commit):
            updated = updated.having(checked=check.having(stale=True).to_json())  # the checked commit did not land
        is_unchanged = (task.status, task.claim) == ("completed", landing.claim)  # since the landing was queued
        if landing.state in ("red", "conflict") and is_unchanged:
            reopened = reviews.given_back(store, team, updated, SYSTEM, "reopened", summary)
            return reopened.having(owed=updated.owed)  # without its own notice, because the landing sends one
        return updated.noted(teams.now(store), SYSTEM, landing.state, summary)

    try:
        before, task = update(store, team.name, TASK, landing.task, with_outcome)
        if before.status != task.status:
            history.note(store, team.name, SYSTEM, "task reopened", task=task.id, reason=summary)
        if task.checked != before.checked:
            history.note(store, team.name, SYSTEM, CHECK_STALE, task=task.id, landing=landing.id)
    except (errors.Busy, errors.StorageFailed):  # a later call updates the task
        raise
    except errors.TeamsError:  # the task is gone, the team is closed, or the login may not change it
        pass
    kind = LANDING.even_in_closed_team
    return update(store, team.name, kind, landing.id, lambda current: current.having(returned=True))[1]


def is_of_this_machine(store: Store, landing: Landing) -> bool:
    """Return whether the landing was queued on this machine, where its repository is."""
    return (landing.host or "") == store.host


def settled(store: Store, team: Team, landing: Landing) -> Landing:
    """Return the landing. If the landing has ended, but the lander died before it updated the task, update the task
    first. Only the machine that queued the landing does this.
    """
    return update_task(store, team, landing) if is_of_this_machine(store, landing) else landing


def up_to_date(store: Store, team: Team, task: Task) -> Task:
    """Return the task. If it is completed, first record the outcomes of its ended landings in it, because a landing
    that failed reopens it.
    """
    if task.status != "completed":
        return task
    for landing in landings.open_ones(store, team.name):
        if landing.task == task.id and landing.over:
            settled(store, team, landing)
            task = tasks.get(store, team.name, task.id)
    return task


def where(landing: Landing) -> str:
    """Return a phrase that says where the landing went: its merged pull request, or its branch with the new commit."""
    if landing.url:
        return f"{landing.url} was merged"
    return f"{landing.onto} is {(landing.merge or landing.head)[:10]}"


def record_begin(store: Store, team: Team, landing: Landing, base: str, commands: list[str]) -> Landing:
    """Record that the check of the landing begins. The landing is merged with the commit *base*, and the merge commit
    is checked with *commands*. Return the changed landing.
    """
    check, now = " && ".join(commands) or None, teams.now(store)

    def begin(current: Landing) -> Landing:
        refuse_ended(current)
        return current.having(state="checking", base=base, merge=None, check=check, updated_at=now)

    _, checking = update(store, team.name, LANDING, landing.id, begin)
    history.note(store, team.name, SYSTEM, "landing checking", landing=checking.id, task=checking.task, base=base)
    return checking


def record_merge(store: Store, team: Team, landing: Landing, commit: str, check: Check | None) -> Landing:
    """Record the merge commit to which the branch is about to move, and the result of its last check; *check* is None
    if there was nothing to check. Return the changed landing.

    Raises:
        WrongState: The landing has ended, or the team was closed meanwhile.
    """
    checked = check.to_json() if check else None

    def with_merge(current: Landing) -> Landing:
        refuse_ended(current)
        return current.having(merge=commit, checked=checked, updated_at=teams.now(store))

    return update(store, team.name, LANDING, landing.id, with_merge)[1]


def forget_unmoved(store: Store, team: Team, queue: list[Landing]) -> bool:
    """Find the landings of *queue* for which a lander recorded a merge commit, but died before it moved the branch.
    Clear these records, so that the landings are tried again. Return whether there were such landings.
    """
    unmoved = []

    def without_merge(current: Landing) -> Landing:
        return current if current.over else current.having(merge=None)

    for landing in queue:
        if landing.over or not landing.merge:
            continue
        tip = merging.tip_of(landing.repository, landing.onto)
        if tip and not merging.holds(landing.repository, tip, landing.merge):
            unmoved.append(landing)
    for landing in unmoved:
        update(store, team.name, LANDING, landing.id, without_merge)
    return bool(unmoved)


def refuse_ended(landing: Landing) -> None:
    """Refuse a landing that has ended.

    Raises:
        WrongState: The landing has ended.
    """
    if landing.over:
        raise errors.WrongState(f"{landing.id} is {landing.state} already", "See: teams get-landings")


def end_landed(store: Store, team: Team, landing: Landing, tip: str, checkout: str) -> None:
    """End a landing whose commit is in the target branch, which is at the commit *tip* now. *checkout* is where the
    branch is checked out, or "". If a lander moved the branch, update the files of the checkout.
    """
    reason = None
    if checkout and landing.base and landing.merge and not merging.follow(checkout, landing.base, tip):
        reason = f"{checkout} was not updated, and a commit there would undo this; see git status there"
    end(store, team, landing, "landed", merge=tip, reason=reason)
