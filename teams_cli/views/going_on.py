"""Going on: what follows for who waited in vain."""

from __future__ import annotations

from teams_cli import errors
from teams_cli.store.contract import Store
from teams_cli.teams import teams
from teams_cli.teams.teams import Team
from teams_cli.views import held, standing, steps, work

TYPE_CHECKING = False
if TYPE_CHECKING:
    from teams_cli.teams.caller import Caller


def after_waiting(store: Store, team: str, caller: Caller, again: str) -> str:
    """How the work stands, for who waited in vain, and how to wait on; or what it could do instead, and that nothing is
    left to do.
    """
    said = ""
    try:
        found = teams.get(store, team)
        if done := _done(store, found, caller):
            return done
        said = _instead(store, found, caller)
    except errors.TeamsError:  # that nothing came is told all the same
        pass
    said = said or standing.in_words(store, team, caller)
    return f"{f'{said}. ' if said else ''}Keep waiting: {again}"


def _done(store: Store, team: Team, caller: Caller) -> str:
    """That all tasks are settled, and what is left to a leader."""
    if not team.member(caller.name) and team.leader != caller.name:
        return ""
    step = work.when_idle(store, team, caller)
    return "" if steps.is_wait(step) else f"All tasks are settled: {step or 'you are done'}"


def _instead(store: Store, team: Team, caller: Caller) -> str:
    """That the caller has a task to go on with."""
    found = held.of(store, team, caller.name)
    return f"{found.why}: {found.step}" if found else ""
