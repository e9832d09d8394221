"""The notifier: a small process that runs the person's commands for what happens in one team, until it is closed.

It is started by whoever does something in a team that has the setting `notify`, and there is one of it. This is a front
end: it reads the environment.
"""

from __future__ import annotations

import os
import sys
import time
from functools import partial

from teams_cli.agents import notifying
from teams_cli.agents.lone_processes import NOTIFIER
from teams_cli.store import opening
from teams_cli.store.contract import Store
from teams_cli.teams import teams
from teams_cli.teams.teams import Team

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

REST = 1.0
"""Seconds for more to happen, which is told with the first."""


def start(store: Store, team: Team, environ: Mapping[str, str]) -> None:
    """Start the notifier of the team, if it is wanted and there is none; not from inside a client's sandbox."""
    if notifying.is_wanted(team):
        NOTIFIER.start(store, team.name, environ, notifying.environment(store, environ))


def main() -> None:
    """Tell what happens, until nobody wants to know or the team is closed."""
    store, team = opening.from_environment(os.environ), os.environ["TEAMS_TEAM"]
    NOTIFIER.attend(store, team, lambda: partial(_look, store, team, os.environ), sys.stderr.write)


def _look(store: Store, name: str, environ: Mapping[str, str]) -> bool:
    """Tell what is new; whether there is nothing more to do here."""
    team = teams.get(store, name)
    if notifying.has_news(store, team):
        time.sleep(REST)
        team = teams.get(store, name)
        notifying.tell(store, team, notifying.take_news(store, team), environ)
    return not notifying.is_wanted(team)


if __name__ == "__main__":
    main()
