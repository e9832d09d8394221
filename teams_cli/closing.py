"""Closing a team when its work is done, and reopening it. Nothing is deleted."""

from __future__ import annotations

from contextlib import suppress

from teams_cli import errors, extensions, processes
from teams_cli.agents import ending
from teams_cli.agents.seats import sitting, terminals
from teams_cli.clients.seats import GONE, IDLE
from teams_cli.store.contract import Store
from teams_cli.store.retrying import update
from teams_cli.tasks import landings, leases, tasks
from teams_cli.teams import history, presence, teams
from teams_cli.teams.permission import require
from teams_cli.teams.teams import TEAM, Team

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from teams_cli.teams.permission import Caller


class Closed:
    """A closed team: the agents whose detached clients were ended, and those *left* because somebody is attached."""

    def __init__(self, team: Team, ended: list[str], left: list[str]) -> None:
        self.team = team
        self.ended = ended
        self.left = left


def close_with_clients(
    store: Store, team_name: str, caller: Caller | None, force: bool, environ: Mapping[str, str]
) -> Closed:
    """Close the team, and end its detached clients on this machine to which nobody is attached."""
    there = _clients_of(store, team_name, environ)
    team = close(store, team_name, caller, force)
    try:
        left = sitting.end_all_unattended(store, team_name, environ)
    except (errors.TeamsError, OSError):  # the team is closed; the waker of this machine ends them
        left = there
    return Closed(team, [agent for agent in there if agent not in left], left)


def _clients_of(store: Store, team: str, environ: Mapping[str, str]) -> list[str]:
    """Return the agents with a detached client to which nobody is attached; none if that cannot be found out."""
    try:
        return sitting.unattended_agents(store, team, environ)
    except errors.TeamsError:
        return []


def close(store: Store, team_name: str, caller: Caller | None, force: bool = False) -> Team:
    """Close the team. A closed team can be read, but not changed until it is restored.

    Clients opened with `open --detach` are ended, unless somebody is attached.

    Raises:
        Conflict: A task is in progress, in review or landing, or an agent runs; *force* closes the team anyway.
    """
    at = require(store, team_name, caller, "close-team")
    team, caller = at.team, at.caller
    name = caller.name
    if not force:
        refuse_busy(store, team, name)

    def change(team: Team) -> Team:
        return team if team.state == "closed" else team.having(state="closed", closed_at=teams.now(store))

    before, team = update(store, team_name, TEAM, team_name, change)
    if before is not team:
        history.note(store, team_name, name, "team closed")
    with suppress(errors.TeamsError):  # else the lander does it
        if refuse_landings := extensions.provided("refuse all landings"):
            refuse_landings(store, team_name, "the team was closed")
    return team


def refuse_busy(store: Store, team: Team, but: str = "") -> None:
    """Raises Conflict: A task is in progress, or an agent other than the caller runs."""
    leases.release_all(store, team)
    claimed = tasks.labelled(store, team.name, tasks.IN_PROGRESS)
    busy = [f"{task.id} ({task.owner})" for task in claimed if not leases.why_claim_ended(store, team, task)]
    if busy:
        raise errors.Conflict(
            f"in progress: {', '.join(busy)}", "Wait for them: teams wait --all-tasks; or use --force."
        )
    waiting = [task.id for task in tasks.labelled(store, team.name, tasks.IN_REVIEW)]
    if waiting:
        raise errors.Conflict(
            f"in review: {', '.join(waiting)}", "Review them: teams review-task ID --accept; or use --force."
        )
    landing = [landing.id for landing in landings.open_ones(store, team.name) if not landing.over]
    if landing:
        raise errors.Conflict(
            f"landing: {', '.join(landing)}", "Wait for them: teams wait --landing ID; or use --force."
        )
    started = {session.agent for session in ending.all_of(store, team.name, []) if not session.ended}
    sat_at = [name for name in team.active_names() if name != but and _runs(store, team, name)]
    running = sorted(started.union(sat_at))
    if running:
        raise errors.Conflict(f"still running: {', '.join(running)}", "Wait for them, or use --force.")


def _runs(store: Store, team: Team, name: str) -> bool:
    """Whether a process of this agent is at work. A client that is idle, waiting for its user, does not count."""
    agent = presence.load(store, team.name, name)
    if agent.pid is None or presence.is_gone(agent):
        return False
    terminal = terminals.find(store, team.name, name)
    if terminal and terminal.pid == agent.pid and terminals.state_of(store, team, terminal) in (GONE, IDLE):
        return False
    elsewhere = store.host not in ("", processes.host_of(agent.pid_boot))
    return not (elsewhere and presence.is_silent(store, team, name))


def restore(store: Store, team_name: str, caller: Caller | None) -> Team:
    """Reopen a closed team with everything it had. An open team stays as it is."""
    caller = require(store, team_name, caller, "restore-team").caller
    name = caller.name

    def change(team: Team) -> Team:
        if team.state == "active":
            return team
        return team.uncopied().having(state="active", closed_at=None)

    before, team = update(store, team_name, TEAM.also_closed, team_name, change)
    if before is not team:
        history.note(store, team_name, name, "team restored")
    return team
