"""Closing a team when its work is done, and reopening it. Nothing is deleted."""

from __future__ import annotations

from contextlib import suppress
from typing import NamedTuple

from teams_cli import errors, extensions, processes
from teams_cli.agents import ending
from teams_cli.agents.seats import sitting, terminals
from teams_cli.clients.seats import GONE, IDLE
from teams_cli.store.contract import Store, update
from teams_cli.tasks import landings, leases, tasks
from teams_cli.teams import history, presence, teams
from teams_cli.teams.permission import require
from teams_cli.teams.teams import TEAM, Team

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from teams_cli.teams.permission import Caller


class Closed(NamedTuple):
    """A team that was just closed. The detached clients of the agents in *ended* were ended. The detached clients of
    the agents in *still_open* still run, because somebody is attached to them, or because they could not be ended yet.
    """

    team: Team
    ended: list[str]
    still_open: list[str]


def close_with_clients(
    store: Store,
    team_name: str,
    caller: Caller | None,
    force: bool,
    environ: Mapping[str, str],
    refuses_landings: bool = True,
) -> Closed:
    """Close the team. A closed team can be read, but not changed until it is restored.

    Clients opened with `open --detach` on this machine are ended, unless somebody is attached to them.

    Raises:
        Conflict: A task is in progress, in review or landing, or an agent runs; *force* closes the team anyway.
    """
    try:
        unattended = sitting.unattended_agents(store, team_name, environ)
    except errors.TeamsError:  # only for the report, so the team is closed all the same
        unattended = []
    team = close(store, team_name, caller, force, refuses_landings)
    try:
        still_open = sitting.end_all_unattended(store, team_name, environ)
    except (errors.TeamsError, OSError):  # the team is closed; the waker of this machine will end the clients
        still_open = unattended
    return Closed(team, [agent for agent in unattended if agent not in still_open], still_open)


def close(
    store: Store, team_name: str, caller: Caller | None, force: bool = False, refuses_landings: bool = True
) -> Team:
    """Close the team. Its landings are refused or, if *refuses_landings* is false, wait until the team is restored. The
    clients of its agents are left as they are. If the team is at work, only *force* closes it.

    Raises:
        Conflict: As for `close_with_clients`.
    """
    standing = require(store, team_name, caller, "close-team")
    if not force:
        refuse_busy(store, standing.team, standing.name, "; or use --force")

    def change(team: Team) -> Team:
        return team if team.state == "closed" else team.having(state="closed", closed_at=teams.now(store))

    before, team = update(store, team_name, TEAM, team_name, change)
    if before is not team:
        history.note(store, team_name, standing.name, "team closed")
    if refuses_landings and (refuse_all := extensions.provided("refuse all landings")):
        with suppress(errors.TeamsError):  # if this fails, they wait until the team is restored
            refuse_all(store, team_name, "the team was closed")
    return team


def refuse_busy(store: Store, team: Team, closed_by: str = "", otherwise: str = "") -> None:
    """Release the tasks whose claims have expired, and then refuse to close the team if it is still at work. The agent
    *closed_by*, which closes the team, may be running. *otherwise* is added to each hint. It says what the reader can
    do instead of waiting.

    Raises:
        Conflict: A task is in progress, in review or landing, or an agent runs.
    """
    leases.release_all(store, team)
    # A claim that has ended may still be recorded, because only another login may release its task.
    claimed = tasks.labelled(store, team.name, tasks.IN_PROGRESS)
    in_progress = [f"{task.id} ({task.owner})" for task in claimed if not leases.why_claim_ended(store, team, task)]
    if in_progress:
        raise errors.Conflict(
            f"in progress: {', '.join(in_progress)}", f"Wait for them: teams wait --all-tasks{otherwise}"
        )
    in_review = [task.id for task in tasks.labelled(store, team.name, tasks.IN_REVIEW)]
    if in_review:
        raise errors.Conflict(
            f"in review: {', '.join(in_review)}", f"Review them: teams review-task ID --accept{otherwise}"
        )
    in_queue = [landing.id for landing in landings.open_ones(store, team.name) if not landing.over]
    if in_queue:
        raise errors.Conflict(f"landing: {', '.join(in_queue)}", f"Wait for them: teams wait --landing ID{otherwise}")
    started = {session.agent for session in ending.all_of(store, team.name, []) if not session.ended}
    others = [name for name in team.active_names() if name != closed_by and _runs(store, team, name)]
    running = sorted(started.union(others))
    if running:
        hint = f"Wait for them: teams wait --agent {running[0]}{otherwise}"
        raise errors.Conflict(f"still running: {', '.join(running)}", hint)


def _runs(store: Store, team: Team, name: str) -> bool:
    """Return whether a process of the agent *name* is at work. An idle client, which waits for its user, is not."""
    agent = presence.load(store, team.name, name)
    if agent.pid is None or presence.is_gone(agent):
        return False
    terminal = terminals.find(store, team.name, name)
    if terminal and terminal.pid == agent.pid and terminals.state_of(store, team, terminal) in (GONE, IDLE):
        return False
    is_on_other_machine = store.host not in ("", processes.host_of(agent.pid_boot))  # "": there is only this one
    if is_on_other_machine:  # from here, only silence shows that the process has ended
        return not presence.is_silent(store, team, name)
    return True


def restore(store: Store, team_name: str, caller: Caller | None) -> Team:
    """Reopen a closed team with everything it had. An open team stays as it is."""
    standing = require(store, team_name, caller, "restore-team")

    def change(team: Team) -> Team:
        if team.state == "active":
            return team
        return team.uncopied().having(state="active", closed_at=None)

    before, team = update(store, team_name, TEAM.even_in_closed_team, team_name, change)
    if before is not team:
        history.note(store, team_name, standing.name, "team restored")
    return team
