"""Leaving a team, and handing its leadership over."""

from __future__ import annotations

from teams_cli import errors
from teams_cli.membership import shutdowns
from teams_cli.store.contract import Store
from teams_cli.store.retrying import update
from teams_cli.tasks import assigning, claims, leases, tasks
from teams_cli.teams import history, teams
from teams_cli.teams.permission import Caller, require, verify
from teams_cli.teams.teams import LEADER, MEMBER, TEAM, Team


def leave(
    store: Store, team_name: str, caller: Caller | None, problems: list[errors.TeamsError] | None = None
) -> list[str]:
    """Leave the team. Your tasks in progress are released; your messages stay.

    Raises:
        Conflict: The leader can't leave.
    """
    if caller and _has_left(store, team_name, caller):
        return _freed(store, teams.get(store, team_name), caller.name, problems)
    caller = require(store, team_name, caller, "leave-team").caller
    name = caller.name

    def change(team: Team) -> Team:
        if team.leader == name:
            raise errors.WrongState(
                f"{name} leads team {team_name} and can't leave it",
                "Hand it over (teams hand-over AGENT) or close it (teams close-team).",
            )
        member = team.member(name)
        return team.with_member(member.having(left_at=teams.now(store))) if member else team

    _, team = update(store, team_name, TEAM, team_name, change)
    history.note(store, team_name, name, "member left")
    return _freed(store, team, name, problems)


def _freed(store: Store, team: Team, name: str, problems: list[errors.TeamsError] | None) -> list[str]:
    """Give back what a member had that has left; the ids of its tasks."""
    try:
        freed = claims.release_tasks_of(store, team, name, name, "its owner left the team")
        assigning.free_all(store, team, name, f"{name} left the team")
        return freed
    except errors.TeamsError as failure:  # it has left: its claims are over, whoever writes that down
        said = f"its tasks will be released by the next command: they could not be released now ({failure.message})"
        if problems is not None:
            problems.append(errors.StorageFailed(said, failure.hint))
        return []


def _has_left(store: Store, team_name: str, caller: Caller) -> bool:
    """Whether the caller left before, and did not hear that it did."""
    team = teams.get(store, team_name)
    member = team.find(caller.name)
    if member is None or member.active or member.stopped_by:
        return False
    verify(team, caller)
    return True


def _free_kept(store: Store, team: Team, heir: str) -> None:
    """Give what is kept for who leads now to anybody; what fails here is done by whoever looks for work next."""
    try:
        assigning.free_all(store, team, heir, f"{heir} leads the team now")
    except errors.TeamsError:
        return


def hand_over(store: Store, team_name: str, caller: Caller | None, to: str) -> Team:
    """Make another member the leader. You stay as a member.

    Raises:
        AgentNotFound: There is no such active member.
        Conflict: The new leader has tasks in progress, or is asked to shut down.
    """
    at = require(store, team_name, caller, "hand-over", to)
    before, caller = at.team, at.caller
    name = caller.name

    def change(team: Team) -> Team:
        heir = team.member(to)
        if heir is None:
            teams.get_recipient(team, to)
            raise errors.InvalidValue(f"{to} can't lead a team", f"Members: {team.names_in_words()}.")
        if to == team.leader:
            return team
        old = team.member(team.leader)
        changed = team.with_member(heir.having(role=LEADER)).having(leader=to)
        return changed.with_member(old.having(role=MEMBER)) if old else changed

    leases.release_all(store, before)
    busy = [task.id for task in tasks.labelled(store, team_name, tasks.IN_PROGRESS) if task.owner == to]
    if busy:
        raise errors.Conflict(f"{to} has {', '.join(busy)} in progress", "It must complete or release them first.")
    for asked in shutdowns.open_requests(store, before, to):
        raise errors.Conflict(
            f"{to} is asked to shut down: {asked.id}", "Wait for its answer, or choose another member."
        )
    before, team = update(store, team_name, TEAM, team_name, change)
    if before is not team:
        history.note(store, team_name, name, "team handed over", to=to)
        _free_kept(store, team, to)
    return team
