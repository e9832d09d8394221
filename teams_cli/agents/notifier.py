"""The notifier: a small process that runs the person's commands for what happens in one team, until it is closed.

It is started by whoever does something in a team that has the setting `notify`, and there is one of it. This is a front
end: it reads the environment.
"""

from __future__ import annotations

import os
import sys
import time
from functools import partial

from teams_cli import processes
from teams_cli.agents import logs, notifying
from teams_cli.agents.logs import Complaints
from teams_cli.environment import SANDBOX
from teams_cli.errors import NotFound, TeamsError
from teams_cli.records.annotations import Mapping
from teams_cli.store import opening, pace
from teams_cli.store.contract import Store
from teams_cli.store.files import locks
from teams_cli.store.pace import paced
from teams_cli.teams import teams
from teams_cli.teams.teams import Team

REST = 1.0
"""Seconds for more to happen, which is told with the first."""


def start(store: Store, team: Team, environ: Mapping[str, str]) -> None:
    """Start the notifier of the team, if it is wanted and there is none; not from inside a client's sandbox."""
    if environ.get(SANDBOX) or not notifying.is_wanted(team):
        return
    held = _hold(store, team.name)
    if held is not None:
        os.close(held)  # the one that is started takes it; of two, one ends
        own = {**notifying.environment(store, environ), "TEAMS_TEAM": team.name}
        processes.start_own("teams_cli.agents.notifier", [], own, logs.begin(store, team.name, ".notifier"))


def _hold(store: Store, team: str) -> int | None:
    """The lock that the notifier has as long as it lives; None if another process has it."""
    return locks.hold(f"{store.root}/wakers/{team}.notify", store.root)


def main() -> None:
    """Tell what happens, until nobody wants to know or the team is closed."""
    store, team = opening.from_environment(os.environ), os.environ["TEAMS_TEAM"]
    look = partial(_look, store, team, os.environ, logs.Complaints())
    while (held := _hold(store, team)) is not None:
        pace.sleep_until(store, team, paced(look), None)
        os.close(held)
        if look():  # nobody came since the last look, who would be left alone
            return


def _look(store: Store, name: str, environ: Mapping[str, str], complaints: Complaints) -> bool:
    """Tell what is new; whether there is nothing more to do here."""
    try:
        team = teams.get(store, name)
        if notifying.has_news(store, team):
            time.sleep(REST)
            team = teams.get(store, name)
            notifying.tell(store, team, notifying.take_news(store, team), environ)
        complaints.end()
        return not notifying.is_wanted(team)
    except NotFound:
        return True
    except TeamsError as problem:
        if complaints.is_new(problem):
            sys.stderr.write(f"{problem.message}\n")
        return False


if __name__ == "__main__":
    main()
