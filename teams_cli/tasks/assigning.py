"""Assigning: the other members leave a pending task to its assignee, while that member is there. Its notices are in
`keeping`.
"""

from __future__ import annotations

from teams_cli import errors
from teams_cli.clock import seconds_since
from teams_cli.messages.notices import deliver
from teams_cli.names import SYSTEM
from teams_cli.records.owed import Owed, owing
from teams_cli.store.contract import Store
from teams_cli.store.retrying import update
from teams_cli.tasks import tasks
from teams_cli.tasks.tasks import KEPT, PRIORITIES, TASK, Task
from teams_cli.teams import history, presence, roles, teams
from teams_cli.teams.teams import Team

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from teams_cli.store.pace import Alarm
    from teams_cli.teams.config import Config

_AGAIN = 1.0
"""Seconds until what is kept for one that is lost, and for others to free, is looked at again."""


def refuse_unskilled(team: Team, task: Task, name: str, config: Config | None) -> None:
    """Raises NotAllowed: The task asks for a skill that the member has not. One that has yet to join may have it."""
    member = team.member(name)
    if member is None:
        return
    skills = roles.skills_of(member, team, config)
    if missing := set(task.require) - skills:
        raise errors.NotAllowed(
            f"{task.id or 'the task'} requires skills {name} does not have: {', '.join(sorted(missing))}",
            "A role or join-team --type gives skills: teams define-role",
        )


def refuse_other(store: Store, team: Team, task: Task, name: str) -> None:
    """Raises TaskKept: The task is kept for another member, who is there."""
    if task.assignee and task.assignee != name and not lost(store, team, task):
        raise errors.TaskKept(
            f"{task.id} is assigned to {task.assignee}",
            "Claim another: teams claim-task --next; or ask the leader for: teams update-task ID --unassign",
        )


def of_agent(store: Store, team: str, agent: str) -> list[Task]:
    """The tasks that are kept for the agent, best first."""
    found = [task for task in tasks.labelled(store, team, KEPT) if task.assignee == agent]
    return sorted(found, key=lambda task: PRIORITIES.index(task.priority))


def lost(store: Store, team: Team, task: Task) -> str:
    """Why the member for whom the task is kept will not take it; empty while it may.

    One that `teams` started is resumed when there is something for it, so its silence means nothing.
    """
    name = task.assignee
    member = team.find(name) if name else None
    if member is None or name is None:
        return ""
    if not teams.is_member(store, team, name):
        return f"{name} {'was shut down' if member.stopped_by else 'left the team'}"
    if name == team.leader:
        return f"{name} leads the team now"
    if member.started_by:
        return ""
    if presence.is_gone(presence.load(store, team.name, name)):
        return f"the process of {name} is gone"
    if presence.is_silent(store, team, name, task.updated_at):
        return f"nothing was heard of {name} for {team.silence:g} seconds"
    return ""


def set_alarm(store: Store, team: Team, kept: Iterable[Task], alarm: Alarm) -> None:
    """Have the alarm ring when silence alone may have lost a member for whom one of the tasks is kept."""
    for task in kept:
        member = team.member(task.assignee or "")
        if member and not member.started_by:
            agent = presence.load(store, team.name, member.agent_id)
            if since := max(filter(None, (agent.last_seen, task.updated_at)), default=""):
                left = team.silence - seconds_since(since, store.now())
                alarm.ring_after(left if left > 0 else _AGAIN)
            alarm.ring_at_end_of(agent.pid, agent.pid_started, agent.pid_boot)


def free_lost(store: Store, team: Team) -> list[Task]:
    """Give what is kept for members that are lost to anybody, and tell the leader; all that was kept. What could not be
    given away is for whoever comes next.
    """
    kept = list(tasks.labelled(store, team.name, KEPT))
    for task in kept:
        if lost(store, team, task):
            _free(store, team, task.id, lambda found: lost(store, team, found))
    return kept


def free_all(store: Store, team: Team, agent: str, reason: str) -> None:
    """Give all that is kept for the agent to anybody, and tell the leader. It is gone: failing here is no failure."""
    for task in of_agent(store, team.name, agent):
        _free(store, team, task.id, lambda found: reason if found.assignee == agent else "")


def _free(store: Store, team: Team, key: str, why: Callable[[Task], str]) -> None:
    def change(task: Task) -> Task:
        reason = why(task)
        if task.status != "pending" or not task.assignee or not reason:
            return task
        free = task.having(assignee=None).noted(teams.now(store), SYSTEM, "unassigned", reason, owner=task.assignee)
        body = f"{task.id} ({task.title}) was assigned to {task.assignee}, and anybody may claim it now: {reason}"
        return owing(free, Owed(to=team.leader, message=body, uid=f"freed-{task.id}-{len(free.notes)}-{task.claim}"))

    try:
        before, task = update(store, team.name, TASK, key, change)
        if before is not task:
            history.note(store, team.name, SYSTEM, "task unassigned", task=key, owner=before.assignee)
        deliver(store, team.name, TASK, task)
    except errors.TeamsError:  # another's login, or a disk that can't be written: whoever comes next
        return
