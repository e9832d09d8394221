"""Closing a team when its work is done, and opening it again; nothing is deleted."""

from __future__ import annotations

from teams_cli import agents, history, leases, sessions, tasks, teams
from teams_cli.errors import Conflict
from teams_cli.roles import require
from teams_cli.store.contract import update
from teams_cli.teams import TEAM, Team

TYPE_CHECKING = False
if TYPE_CHECKING:
    from teams_cli.caller import Caller
    from teams_cli.store.contract import Store

COPIED_TO, STATE_BEFORE, COPY = COPIED = ("copiedTo", "stateBefore", "copy")
"""What a copied team carries beside its own fields: where it went, what it was before, and which copy did it last."""


def close(store: Store, team_name: str, caller: Caller | None, force: bool = False) -> Team:
    """Close the team: it stays readable, and changes are refused until it is restored.

    Raises:
        Conflict: A task is in progress or an agent runs, and *force* was not given.
    """
    team = require(store, team_name, caller, "close-team")
    assert caller is not None
    name = caller.name
    if not force:
        refuse_busy(store, team)

    def change(team: Team) -> Team:
        return team if team.state == "closed" else team.having(state="closed", closed_at=teams.now(store))

    before, team = update(store, team_name, TEAM, team_name, change)
    if before is not team:
        history.note(store, team_name, name, "team closed")
    return team


def refuse_busy(store: Store, team: Team) -> None:
    """Raises Conflict: A task is in progress or an agent runs."""
    leases.release_all(store, team)
    busy = [f"{task.id} ({task.owner})" for task in tasks.labelled(store, team.name, tasks.IN_PROGRESS)]
    if busy:
        raise Conflict(f"in progress: {', '.join(busy)}", "Wait for them (teams wait --all-tasks), or use --force.")
    started = {session.agent for session in sessions.of_team(store, team.name, []) if not session.ended}
    running = sorted(started.union(name for name in team.active_names() if _runs(store, team.name, name)))
    if running:
        raise Conflict(f"still running: {', '.join(running)}", "Wait for them, or use --force.")


def _runs(store: Store, team: str, name: str) -> bool:
    agent = agents.load(store, team, name)
    if agent.pid is None or agents.is_gone(agent):
        return False
    elsewhere = store.host not in ("", agents.host_of(agent.pid_boot))
    return not (elsewhere and agents.is_silent(store, teams.load(store, team), name))


def restore(store: Store, team_name: str, caller: Caller | None) -> Team:
    """Open a closed team again, with all it had; an open one stays as it is."""
    require(store, team_name, caller, "restore-team")
    assert caller is not None
    name = caller.name

    def change(team: Team) -> Team:
        if team.state == "active":
            return team
        opened = team.having(state="active", closed_at=None)
        opened.extra = {key: value for key, value in team.extra.items() if key not in COPIED}
        return opened

    before, team = update(store, team_name, TEAM, team_name, change)
    if before is not team:
        history.note(store, team_name, name, "team restored")
    return team
