"""Closing a team when its work is done, reopening it, and removing it for ever. Only removal deletes anything."""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from typing import Any, NamedTuple

from teams_cli import errors, extensions, processes, text
from teams_cli.agents import ending, worktrees
from teams_cli.agents.seats import sitting, terminals
from teams_cli.clients.seats import GONE, IDLE
from teams_cli.clock import seconds_since
from teams_cli.names import HUMAN
from teams_cli.store.contract import Store, update
from teams_cli.tasks import landings, leases, tasks
from teams_cli.teams import history, presence, teams
from teams_cli.teams.permission import Caller, require
from teams_cli.teams.teams import TEAM, Team

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_DIRECTORIES = ("runs", "logs", "started", "worktrees")
"""The directories below the root that have data of teams on this machine, in addition to the store."""


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
    *closed_by*, which is closing the team, may itself be running. *otherwise* is added to each hint, and says what the
    reader can do instead of waiting.

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
            f"in review: {', '.join(in_review)}", f"Review them: teams review-task {in_review[0]} --accept{otherwise}"
        )
    in_queue = [landing.id for landing in landings.open_ones(store, team.name) if not landing.over]
    if in_queue:
        hint = f"Wait for them: teams wait --landing {in_queue[0]}{otherwise}"
        raise errors.Conflict(f"landing: {', '.join(in_queue)}", hint)
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


def refuse_copied(team: Team) -> None:
    """Refuse to go on with a closed team as a part of another command, if the team was copied elsewhere.

    Raises:
        WrongState: It was copied: if it were open in both places, two agents could own one task.
    """
    if team.state == "closed" and team.copied_to:
        raise errors.WrongState(
            f"{team.name} was copied to {team.copied_to}, and is closed here",
            f"Go on with it there. To open it here again, to work in both: teams restore-team {team.name}",
        )


def closed_teams(
    store: Store, caller: Caller | None, days: float, problems: list[errors.TeamsError]
) -> list[dict[str, Any]]:
    """Return a row for each team that was closed at least *days* ago. `kept` in the row says why the team can't be
    removed, or is None.
    """
    rows = []
    for team in teams.all_of(store, problems):
        closed_at = team.closed_at or team.created_at
        if team.state == "closed" and seconds_since(closed_at, store.now()) >= days * 86400:
            rows.append({"team": team.name, "closedAt": closed_at, "kept": _why_kept(store, team.name, caller)})
    return rows


def _why_kept(store: Store, name: str, caller: Caller | None) -> str | None:
    """Return why the team can't be removed: the caller may not remove it, or it may hold work. None if it can."""
    try:
        require(store, name, caller or Caller(HUMAN), "prune")
        for tree in worktrees.all_of(store, name):
            if tree.has_record and tree.state != "empty":  # those without a record are unknown, see below
                work = " and ".join(tree.work.phrases())
                return f"{tree.agent} has work in {tree.path}, {work}: teams worktree merge {tree.agent} --team {name}"
            worktrees.refuse_occupied(store, name, tree.path)
        if unknown := worktrees.unknown_in(store, name):
            return f"{text.listed(unknown, 3)}: unknown, may hold work; check it, and move it away"
    except errors.TeamsError as problem:
        return problem.message
    return None


def remove(store: Store, name: str, caller: Caller | None) -> None:
    """Remove a closed team permanently, with its messages, tasks, worktrees, logs and reports.

    Raises:
        NotAllowed: The caller is neither the team's leader nor the human.
        StaleRevision: The team was changed just now.
        Conflict: Something in the team may hold work.
    """
    require(store, name, caller or Caller(HUMAN), "prune")
    _, revision = store.get(name, TEAM, name)
    if why := _why_kept(store, name, caller):
        raise errors.Conflict(f"{name} is kept: {why}", "Check that directory, and repeat the command.")
    for tree in worktrees.all_of(store, name):
        worktrees.drop(store, name, tree)
    trash = f"{store.root}/tmp/dropped-{name}-{os.urandom(6).hex()}"
    store.drop(name, TEAM, revision, lambda: _move_away(store.root, name, trash))
    shutil.rmtree(trash, ignore_errors=True)


def _move_away(root: str, team: str, trash: str) -> None:
    """Move the directories of a removed team into the new directory *trash*, so that a new team of that name does not
    lose its own.
    """
    for directory in _DIRECTORIES:
        path = os.path.join(root, directory, team)
        try:
            os.makedirs(trash, 0o700, exist_ok=True)
            os.rename(path, os.path.join(trash, directory))
        except FileNotFoundError:
            pass
        except OSError:  # for example, it is on another disk
            shutil.rmtree(path, ignore_errors=True)
