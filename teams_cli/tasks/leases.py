"""Leases: a claim lasts as long as its owner is heard from; after that the task is free, and everybody is told."""

from __future__ import annotations

from teams_cli import errors
from teams_cli.clock import later, of_day, rfc3339, seconds_since
from teams_cli.messages.notices import deliver
from teams_cli.names import SYSTEM
from teams_cli.records.owed import Owed, owing
from teams_cli.store.contract import Store
from teams_cli.store.retrying import update
from teams_cli.tasks import tasks
from teams_cli.tasks.tasks import TASK, Note, Task
from teams_cli.teams import history, presence, teams
from teams_cli.teams.teams import Team

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from teams_cli.store.pace import Alarm

_HEARD = ", and it was last heard of "
WAS_YOURS = ", which was yours: "
_LOST = " is no longer yours: "
_RELEASED = " released it ("
"""How a notice goes on that gives somebody's reason."""
_SET = 30.0
"""Seconds from which on a clock was set, and does not merely differ a little."""
_AGAIN = 1.0
"""Seconds until a claim that is over, and for others to release, is looked at again."""


def length(team: Team) -> float:
    """How long a lease lasts, in seconds: the team's `staleAfterSeconds`."""
    return team.silence


def leased(store: Store, team: Team, task: Task) -> Task:
    """The task with a lease from now on."""
    epoch, seconds = store.steady()
    expires = rfc3339(later(store.now(), length(team)))
    return task.having(lease_epoch=epoch, lease_until=round(seconds + length(team), 3), lease_expires_at=expires)


def expires_at(store: Store, task: Task) -> str | None:
    """When the lease ends by the wall clock as it is now: what was noted may be of before that was set."""
    epoch, seconds = store.steady()
    if task.lease_expires_at is None or task.lease_until is None or task.lease_epoch != epoch:
        return task.lease_expires_at
    left = task.lease_until - seconds
    is_so = abs(left + seconds_since(task.lease_expires_at, store.now())) < _SET
    return task.lease_expires_at if is_so else rfc3339(later(store.now(), left))


def over(store: Store, team: Team, task: Task, known: Callable[[str], presence.Agent] | None = None) -> str:
    """Why the claim on a task in progress is over, by what is *known* of its owner, or now; empty while it holds."""
    if task.status != "in_progress":
        return ""
    if task.owner is None or not teams.is_member(store, team, task.owner):
        return f"{task.owner or 'its owner'} is no longer a member"
    epoch, seconds = store.steady()
    if task.lease_until is None or task.lease_epoch != epoch:
        return f"the machine restarted since {task.owner} claimed it"
    agent = known(task.owner) if known else presence.load(store, team.name, task.owner)
    if seconds > task.lease_until:
        heard = f"{_HEARD}{of_day(agent.last_seen)}" if agent.last_seen else ""
        return f"the lease of {task.owner} expired {of_day(task.lease_expires_at or '')} UTC{heard}"
    if presence.is_gone(agent):
        return f"the process of {task.owner} is gone"
    return ""


def current(store: Store, team: Team, task: Task) -> Task:
    """The task as it is once claims that are over are released. On a read-only disk, only in what is returned."""
    if not over(store, team, task):
        return task
    try:
        return release_if_over(store, team, task.id)
    except errors.TeamsError:
        return task.freed()


def release_if_over(store: Store, team: Team, task_id: str) -> Task:
    """Release the task if the claim on it is over, and tell the leader."""
    reasons: list[str] = []

    def change(task: Task) -> Task:
        reasons[:] = [over(store, team, task)]
        return expired(store, team, task, reasons[0]) if reasons[0] else task

    before, task = update(store, team.name, TASK, task_id, change)
    if before is not task:
        note_expiry(store, team, before, reasons[0])
    deliver(store, team.name, TASK, task)
    return task


def expired(store: Store, team: Team, task: Task, reason: str, taker: str = "") -> Task:
    """The task free again, with the reason, of which the leader and who had it are to be told; and who has it then."""
    now_with = f"; {taker} has it now" if taker else ""
    takers = now_with or _who_waits(store, team, task)
    body = f"{task.id} ({task.title}) is free again: {reason}{takers}."
    told = [Owed(to=team.leader, message=body, uid=f"expired-{task.id}-{task.claim}")]
    if task.owner and team.member(task.owner) and task.owner != taker:
        told.append(loss(task, reason.partition(_HEARD)[0], now_with))
    return owing(task.noted(teams.now(store), SYSTEM, "expired", reason, owner=task.owner).freed(), *told)


def _who_waits(store: Store, team: Team, task: Task) -> str:
    """Who will take the task that is free again, as far as that is to be seen."""
    if task.assignee or task.require:
        return f"; it is assigned to {task.assignee}" if task.assignee else ""
    waiting = (agent for agent, _ in store.scan(team.name, presence.AGENT, []) if agent.waiting)
    # One that was killed as it waited says so for ever.
    names = (agent.agent for agent in waiting if agent.agent != task.owner and presence.is_around(store, team, agent))
    name = next(names, "")
    return f"; {name} waits for work, and is notified" if name else ""


def loss(task: Task, reason: str, now_with: str = "", by: str = SYSTEM) -> Owed:
    """What the owner of the task is to be told when it has it no longer: why, and who has it now."""
    what = now_with or _free(task.id)
    body = f"{_no_longer(task)}{reason}{what}."
    return Owed(to=task.owner or "", message=body, uid=f"lost-{task.id}-{task.claim}", by=by)


def _free(key: str) -> str:
    return f"; it is free: teams claim-task {key}"


def without_offer(notice: str, others: Collection[str]) -> str:
    """The notice, without the offer to claim the task again where one of the *others* tells who has taken it since."""
    key, _, _ = notice.partition(" (")
    taken = any(other.startswith(f"{key} (") and WAS_YOURS in other for other in others)
    return notice.replace(_free(key), "") if taken else notice


def lost_in(notice: str) -> str:
    """The task of which the notice tells its reader that it has it no longer, or who has it since; empty if of none."""
    key, _, rest = notice.partition(" (")
    return key if _LOST in rest or WAS_YOURS in rest else ""


def is_past(notice: str, task: Task) -> bool:
    """Whether the notice told its reader, which has the task again, no more than that it had lost it."""
    taken = f"{task.id} ({task.title}){WAS_YOURS}"
    return notice.startswith((_no_longer(task), taken)) and _RELEASED not in notice


def tells_of_loss(notice: str, task: Task) -> bool:
    """Whether the notice told its owner that it has the task no longer: so it is no more once it has it again."""
    return notice.startswith(_no_longer(task))


def _no_longer(task: Task) -> str:
    return f"{task.id} ({task.title}){_LOST}"


def note_expiry(store: Store, team: Team, task: Task, reason: str) -> None:
    """Note in the history that the claim on *task* expired."""
    history.note(store, team.name, SYSTEM, "claim expired", task=task.id, owner=task.owner, reason=reason)


def release_all(store: Store, team: Team) -> list[Task]:
    """Release every task in progress whose claim is over; those that are left. Some are for others' logins to release,
    and in a closed team none is.
    """
    known = presence.load_each_once(store, team.name)
    left = []
    for task in list(tasks.labelled(store, team.name, tasks.IN_PROGRESS)):
        try:
            now = release_if_over(store, team, task.id) if over(store, team, task, known) else task
        except (errors.NotAllowed, errors.WrongState):
            now = task
        if now.status == "in_progress":
            left.append(now)
    return left


def set_alarm(store: Store, team: Team, found: Iterable[Task], alarm: Alarm) -> None:
    """Have the alarm ring when time alone, or the end of a process, may have ended the claim on one of these tasks."""
    _, seconds = store.steady()
    for task in found:
        if task.status != "in_progress" or task.owner is None:
            continue
        left = (task.lease_until or 0) - seconds
        alarm.ring_after(left if left >= 0 else _AGAIN)
        agent = presence.load(store, team.name, task.owner)
        alarm.ring_at_end_of(agent.pid, agent.pid_started, agent.pid_boot)


def lost_before(task: Task) -> Note | None:
    """How another lost the task, if its owner took it over: there may be uncommitted work of that one's; or how its
    owner did, which claimed it again when its lease was over.
    """
    ended = [note for note in task.notes if note.what in ("claimed", "expired", "released", "completed", "reopened")]
    if task.status != tasks.IN_PROGRESS or len(ended) < 2 or ended[-1].what != "claimed":
        return None
    lost = ended[-2]
    if lost.what not in ("expired", "released") or (lost.what == "released" and (lost.owner or lost.by) == task.owner):
        return None
    return lost.having(owner=lost.owner or lost.by)
