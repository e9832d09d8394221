"""Noting the progress of a landing, so that another process can continue it."""

from __future__ import annotations

from teams_cli import errors
from teams_cli.agents import merging
from teams_cli.extensions.landing import outcomes
from teams_cli.names import SYSTEM
from teams_cli.store.contract import Store
from teams_cli.store.retrying import update
from teams_cli.tasks.landings import LANDING, Landing
from teams_cli.teams import history, teams
from teams_cli.teams.teams import Team


def begun(store: Store, team: Team, landing: Landing, base: str, wanted: list[str]) -> Landing:
    """Note that it is being checked, on that tip."""
    check, now = " && ".join(wanted) or None, teams.now(store)

    def change(found: Landing) -> Landing:
        refuse_over(found)
        return found.having(state="checking", base=base, merge=None, check=check, updated_at=now)

    _, checking = update(store, team.name, LANDING, landing.id, change)
    history.note(store, team.name, SYSTEM, "landing checking", landing=checking.id, task=checking.task, base=base)
    return checking


def about_to_move(store: Store, team: Team, landing: Landing, commit: str, checked: object) -> Landing:
    """Note to which commit the branch is to move. In a team that was closed meanwhile nothing moves."""

    def change(found: Landing) -> Landing:
        refuse_over(found)
        return found.having(merge=commit, checked=checked, updated_at=teams.now(store))

    return update(store, team.name, LANDING, landing.id, change)[1]


def forget_unmoved(store: Store, team: Team, queue: list[Landing]) -> bool:
    """Have none of the queue be about to move its branch that did not, as when who tried several together was
    ended: each has its turn again, behind those before it. Whether there was one.
    """
    found = [one for one in queue if one.merge and not one.over and not _is_on_branch(one, one.merge)]
    for landing in found:
        update(store, team.name, LANDING, landing.id, _forget)
    return bool(found)


def _is_on_branch(landing: Landing, commit: str) -> bool:
    tip = merging.tip(landing.repository, landing.onto)
    return not tip or merging.holds(landing.repository, tip, commit)


def _forget(landing: Landing) -> Landing:
    return landing if landing.over else landing.having(merge=None)


def refuse_over(landing: Landing) -> None:
    """Raises WrongState: It is decided."""
    if landing.over:
        raise errors.WrongState(f"{landing.id} is {landing.state} already", "See: teams get-landings")


def landed(store: Store, team: Team, landing: Landing, tip: str, checkout: str) -> Landing:
    """The branch holds it: bring along the *checkout* that has the branch, and say so. That is due as well where the
    branch is further by now: others went on from there, or git, at work still for one that was ended, moved it to its
    commit.
    """
    behind = ""
    if checkout and landing.base and landing.merge and not merging.follow(checkout, landing.base, tip):
        behind = f"{checkout} did not go along: somebody changed its files meanwhile; see git status there"
    return outcomes.end(store, team, landing, "landed", merge=tip, reason=behind or None)
