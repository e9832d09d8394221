"""Going on: what follows for who waited in vain, or leads a team the work of which is done."""

from __future__ import annotations

from teams_cli import errors
from teams_cli.store.contract import Store
from teams_cli.tasks import overviews
from teams_cli.teams import teams
from teams_cli.teams.teams import Team
from teams_cli.views import held, needed, standing, steps, work

TYPE_CHECKING = False
if TYPE_CHECKING:
    from teams_cli.teams.caller import Caller


def after_all(store: Store, team: Team, caller: Caller) -> str:
    """How who leads ends the team's work, if all of it is done, or can't be, and whoever was asked to end did."""
    is_idle = work.when_idle(team, caller) == steps.WAIT_TO_LEAD
    if not is_idle or needed.expects_ends(store, team.name, caller.name):
        return ""
    found = overviews.settled(store, team.name)
    return steps.after_all(found["stuck"]) if found and any(found["taskCounts"].values()) else ""


def after_waiting(store: Store, team: str, caller: Caller, again: str) -> str:
    """How the work stands, for who waited in vain, and how to wait on; or what it could do instead."""
    try:
        said = _instead(store, teams.get(store, team), caller)
    except errors.TeamsError:  # that nothing came is told all the same
        said = ""
    said = said or standing.in_words(store, team, caller)
    return f"{f'{said}. ' if said else ''}Keep waiting: {again}"


def _instead(store: Store, team: Team, caller: Caller) -> str:
    """That the team can be closed, or that the caller has a task to go on with."""
    if after_all(store, team, caller) == steps.CLOSE:
        return f"All tasks are finished: {steps.CLOSE}, unless you wait for messages"
    found = held.of(store, team, caller.name)
    return f"{found.why}: {found.step}" if found else ""
