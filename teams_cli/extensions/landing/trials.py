"""Trying a merge: its commit in a checkout of its own, where the checks are run, and which is gone afterwards."""

from __future__ import annotations

from contextlib import suppress

from teams_cli import errors
from teams_cli.agents import checking, trial_trees
from teams_cli.agents.checking import Workplace
from teams_cli.names import SYSTEM
from teams_cli.store.contract import Store
from teams_cli.store.files import disk
from teams_cli.tasks import landings, tasks
from teams_cli.tasks.checks import Check
from teams_cli.tasks.landings import LANDING, Landing
from teams_cli.teams import settings
from teams_cli.teams.teams import Team

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


def commands(store: Store, team: Team, landing: Landing) -> list[str]:
    """What the merge has to pass: the task's check, and the team's for whatever lands."""
    own = tasks.get(store, team.name, landing.task).check
    of_all = str(settings.value(team, "landingCheck"))
    return list(dict.fromkeys(command for command in (own, of_all) if command))


def tried(
    store: Store, team: Team, landing: Landing, commit: str, wanted: list[str], environ: Mapping[str, str]
) -> list[Check]:
    """What came of the checks on that commit, one by one, up to the first that failed."""
    if not wanted:
        return []
    path = place_of(store, team.name, landing)
    with trial_trees.tree(team, landing.repository, commit, path, environ, "nothing was tried") as lacking:
        found: list[Check] = []
        for command in wanted:
            check = checking.run(store, team, command, Workplace(path, environ), SYSTEM)
            output = check.output if check.passed or not lacking else f"{check.output}\n{lacking}"
            found.append(check.having(commit=commit, directory=None, output=output))
            if not check.passed:
                break
        return found


def clear_left(store: Store, team: str) -> None:
    """Remove the checkouts of those who were killed while they tried something; who calls has the lander's lock."""
    directory = f"{store.root}/worktrees/{team}"
    for name in disk.names_in(directory):
        if name.startswith(f".{LANDING.name}-"):
            with suppress(errors.TeamsError):
                trial_trees.clear(landings.get(store, team, name.removeprefix(".")).repository, f"{directory}/{name}")


def place_of(store: Store, team: str, landing: Landing) -> str:
    """The directory in which it is tried."""
    return f"{store.root}/worktrees/{team}/.{landing.id}"
