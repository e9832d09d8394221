"""Looping agents: the same calls again and again, without a result; the leader is notified, once."""

from __future__ import annotations

import os
import time

from teams_cli import errors
from teams_cli.agents import checkouts, sessions
from teams_cli.clock import length, parse_rfc3339
from teams_cli.hooks import exchange
from teams_cli.messages import messages
from teams_cli.names import HUMAN
from teams_cli.store.contract import Store
from teams_cli.tasks import tasks
from teams_cli.tasks.tasks import Task
from teams_cli.teams import permission, settings
from teams_cli.teams.teams import Team

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from teams_cli.hooks.entry import Standpoint


def look(standpoint: Standpoint, since: float, environ: Mapping[str, str]) -> None:
    """Tell the leader of an agent whose calls have been the same since then, if it has a task, and has neither
    committed nor changed a file for as long as the setting `circlingAfter` says; once for each claim of a task.
    """
    store, caller = exchange.opened(standpoint, environ)
    try:
        team = permission.require(store, standpoint.team, caller, "read-messages").team
    except (errors.NotAllowed, errors.TeamNotFound, errors.Conflict):
        return
    patience = float(settings.value(team, settings.CIRCLING_AFTER))
    if not patience or time.time() - since < patience:
        return
    for task in tasks.labelled(store, team.name, tasks.IN_PROGRESS):
        if task.owner == caller.name:
            seconds = time.time() - max(since, _claimed(task), _changed(_directory(store, team, caller.name)))
            if seconds >= patience:
                _tell(store, team, task, caller.name, seconds)


def _tell(store: Store, team: Team, task: Task, agent: str, seconds: float) -> None:
    to = team.leader if agent != team.leader else HUMAN
    was_started = sessions.find(store, team.name, agent) is not None
    step = (
        f"teams logs {agent}; restart: teams restart-agent {agent} --fresh" if was_started else "look at its terminal"
    )
    body = (
        f"{agent} seems to loop on {task.id} ({task.title}): the same calls again and again, and for"
        f" {length(seconds)} no commit and no changed file: {step}"
    )
    messages.notify(store, team.name, to, body, f"circling-{task.id}-{task.claim}")


def _directory(store: Store, team: Team, agent: str) -> str:
    session = sessions.find(store, team.name, agent)
    return (session.worktree or session.directory) if session else os.getcwd()


def _claimed(task: Task) -> float:
    return parse_rfc3339(task.claimed_at).timestamp() if task.claimed_at else 0.0


def _changed(directory: str) -> float:
    """When something was last committed there, or a file that is not committed was written; 0 outside git."""
    checkout = checkouts.at(directory)
    if checkout is None:
        return 0.0
    found = [checkout.committed_at]
    for name in checkout.uncommitted():
        try:
            found.append(os.lstat(os.path.join(checkout.top, name)).st_mtime)
        except OSError:  # it is deleted
            continue
    return max(found)
