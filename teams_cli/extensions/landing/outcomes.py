"""The outcome of a landing: its record, its notices, and its task, which returns to its owner if the landing failed."""

from __future__ import annotations

from teams_cli import errors, text
from teams_cli.agents import merging
from teams_cli.messages.notices import deliver
from teams_cli.names import SYSTEM
from teams_cli.records.records import Owed, owing
from teams_cli.store.contract import Store
from teams_cli.store.retrying import update
from teams_cli.tasks import checks, landings, reviews, tasks
from teams_cli.tasks.checks import CHECK_STALE
from teams_cli.tasks.landings import LANDING, Landing
from teams_cli.tasks.tasks import TASK, Task
from teams_cli.teams import history, settings, teams
from teams_cli.teams.teams import Team

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


_BACK = ("red", "conflict")
_UNCHECKED = ", unchecked (no check is set: teams set landingCheck COMMAND)"


def end(store: Store, team: Team, landing: Landing, state: str, **more: Any) -> Landing:
    """End the landing in *state*, unless it has ended already. Notify the members concerned, and update the task."""
    now = teams.now(store)

    def change(current: Landing) -> Landing:
        if current.over:
            return current
        done = current.having(state=state, ended_at=now, updated_at=now, **more)
        return owing(done, *_notices(team, done))

    before, done = update(store, team.name, LANDING.also_closed, landing.id, change)
    if before is not done:
        details = {"task": done.task, "commit": done.merge, "onto": done.onto, "reason": done.reason}
        history.note(store, team.name, SYSTEM, f"landing {state}", landing=done.id, **details)
    done = give_back(store, team, done)  # before the notices: their readers must find the task reopened
    deliver(store, team.name, LANDING, done)
    return done


def _notices(team: Team, landing: Landing) -> list[Owed]:
    """Return the notices of an ended landing.

    The owner of the task gets one, or if the owner has left, the member who queued the landing. Unless the landing
    succeeded, the member who queued it also gets one, and so does the leader of an active team if the landing was
    refused.
    """
    to = landing.owner if landing.owner and team.member(landing.owner) else landing.by
    uid, event = f"{landing.id}-{landing.state}", f"landing-{landing.state}"
    message = said(landing, settings.lands_by_itself(team))
    if landing.state == "landed":
        return [Owed(to=to, message=message, uid=uid, type="info", about=landing.id, event=event, task=landing.task)]
    leader = [team.leader] if landing.state == "refused" and team.state == "active" else []
    recipients = dict.fromkeys((to, landing.by, *leader))
    return [
        Owed(to=name, message=message, uid=f"{uid}~{name}", about=landing.id, event=event, task=landing.task)
        for name in recipients
    ]


def said(landing: Landing, lands_by_itself: bool) -> str:
    """Return the outcome of a landing as a sentence."""
    what = f"{landing.id} of {landing.task} ({landing.title})"
    check = landing.result
    if landing.state == "landed":
        return f"{what} landed: {_where(landing)}" + ("" if check or landing.url else _UNCHECKED)
    if landing.state == "conflict":
        cause = f" ({landings.whose(landing.against)})" if landing.against else ""
        from teams_cli.agents import regions

        places = text.listed([regions.in_words(place) for place in landing.places or []])
        repeat = f"complete {landing.task} again{'' if lands_by_itself else ', and land it'}"
        return (
            f"{what} conflicts with {landing.onto}{cause} in {places}: "
            f"merge {landing.onto} into your branch, commit, and {repeat}"
        )
    if landing.state == "red" and landing.url:
        return f"{what}: {landing.reason}"
    if landing.state == "red":
        reason = "; ".join(filter(None, (landing.reason, check.told if check else None)))
        return f"{what} is red on {landing.onto}: {reason}"
    return f"{what} was refused: {landing.reason}"


def give_back(store: Store, team: Team, landing: Landing) -> Landing:
    """Record the outcome in the task, and reopen a task whose landing failed. Do nothing if this was done before."""
    if landing.returned or not landing.over:
        return landing

    def change(task: Task) -> Task:
        if task.landing == landing.id:
            return task
        aware = task.having(landing=landing.id, checked=_checked(task, landing))
        if landing.state in _BACK and (task.status, task.claim) == ("completed", landing.claim):
            again = reviews.given_back(store, team, aware, SYSTEM, "reopened", _why(landing))
            return again.having(owed=aware.owed)  # the notice of the landing informs the owner
        return aware.noted(teams.now(store), SYSTEM, landing.state, _why(landing))

    try:
        before, task = update(store, team.name, TASK, landing.task, change)
        if before.status != task.status:
            history.note(store, team.name, SYSTEM, "task reopened", task=task.id, reason=_why(landing))
        if task.checked != before.checked:
            history.note(store, team.name, SYSTEM, CHECK_STALE, task=task.id, landing=landing.id)
    except (errors.Busy, errors.StorageFailed):  # a later call updates the task
        raise
    except errors.TeamsError:  # the task is gone, the team is closed, or the login may not change it
        pass
    return update(store, team.name, LANDING.also_closed, landing.id, lambda current: current.having(returned=True))[1]


def settled(store: Store, team: Team, landing: Landing) -> Landing:
    """Finish a landing of this machine whose process died before it updated the task. Return the landing."""
    return give_back(store, team, landing) if (landing.host or "") == store.host else landing


def up_to_date(store: Store, team: Team, task: Task) -> Task:
    """Return the task after the outcomes of its ended landings are recorded in it. A completed task may be reopened."""
    if task.status != "completed":
        return task
    for landing in landings.open_ones(store, team.name):
        if landing.task == task.id and landing.over:
            settled(store, team, landing)
            task = tasks.get(store, team.name, task.id)
    return task


def _why(landing: Landing) -> str:
    if landing.state == "landed":
        return f"{landing.id}: {_where(landing)}"
    about = ", ".join(landing.files or ()) if landing.state == "conflict" else landing.reason
    check = landing.result
    about = about or (f"exit status {check.status}" if check else "")
    return f"{landing.id} is {landing.state}" + (f": {about}" if about else "")


def _where(landing: Landing) -> str:
    """Return the merged pull request, or the branch and its new commit, as a phrase."""
    if landing.url:
        return f"{landing.url} was merged"
    return f"{landing.onto} is {(landing.merge or landing.head)[:10]}"


def _checked(task: Task, landing: Landing) -> Any:
    """Return the task's check, marked as stale if the landed commit does not contain the checked one."""
    check = checks.of(task)
    if check is None or check.commit is None or landing.state != "landed":
        return task.checked
    if merging.holds(landing.repository, landing.merge or landing.head, check.commit):
        return task.checked
    return check.having(stale=True).to_json()


def begun(store: Store, team: Team, landing: Landing, base: str, wanted: list[str]) -> Landing:
    """Record that the landing is being checked on top of the commit *base*, with the commands *wanted*."""
    check, now = " && ".join(wanted) or None, teams.now(store)

    def change(current: Landing) -> Landing:
        refuse_over(current)
        return current.having(state="checking", base=base, merge=None, check=check, updated_at=now)

    _, checking = update(store, team.name, LANDING, landing.id, change)
    history.note(store, team.name, SYSTEM, "landing checking", landing=checking.id, task=checking.task, base=base)
    return checking


def about_to_move(store: Store, team: Team, landing: Landing, commit: str, checked: object) -> Landing:
    """Record the commit to which the branch is about to move. Fails if the team was closed meanwhile."""

    def change(current: Landing) -> Landing:
        refuse_over(current)
        return current.having(merge=commit, checked=checked, updated_at=teams.now(store))

    return update(store, team.name, LANDING, landing.id, change)[1]


def forget_unmoved(store: Store, team: Team, queue: list[Landing]) -> bool:
    """Clear the recorded merge of each queued landing whose branch does not contain it. Return whether there was one.

    A process that died before it moved the branch leaves such landings. They are then tried again in their order.
    """
    unmoved = []
    for landing in queue:
        if landing.over or not landing.merge:
            continue
        tip = merging.tip_of(landing.repository, landing.onto)
        if tip and not merging.holds(landing.repository, tip, landing.merge):
            unmoved.append(landing)
    for landing in unmoved:
        update(store, team.name, LANDING, landing.id, lambda now: now if now.over else now.having(merge=None))
    return bool(unmoved)


def refuse_over(landing: Landing) -> None:
    """Refuse a landing that has ended.

    Raises:
        WrongState: The landing has ended.
    """
    if landing.over:
        raise errors.WrongState(f"{landing.id} is {landing.state} already", "See: teams get-landings")


def landed(store: Store, team: Team, landing: Landing, tip: str, checkout: str) -> Landing:
    """End the landing as landed, and update the *checkout* of the branch, if any, to *tip*.

    The branch already contains the landing's commit. It may have moved on meanwhile.
    """
    behind = ""
    if checkout and landing.base and landing.merge and not merging.follow(checkout, landing.base, tip):
        behind = f"{checkout} was not updated, because somebody changed its files meanwhile; see git status there"
    return end(store, team, landing, "landed", merge=tip, reason=behind or None)
