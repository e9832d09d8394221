"""The waker: a small process on each machine that wakes the clients in its terminals, and, where several machines use
one store, resumes the idle agents of its own.

Whoever sends a message resumes its recipients if they are of the same machine; only there are the client's session and
the directory it works in. One waker a team is started with the first agent, and ends when the team is closed. This is
a front end: it reads the environment.
"""

from __future__ import annotations

import os
import sys
from functools import partial

from teams_cli import names
from teams_cli.agents import ending, sessions, waking
from teams_cli.agents.lone_processes import WAKER
from teams_cli.agents.seats import rousing, unattended
from teams_cli.agents.sessions import Session
from teams_cli.messages import messages
from teams_cli.store import opening
from teams_cli.store.contract import Store
from teams_cli.teams import config, teams
from teams_cli.teams.config import Config
from teams_cli.teams.teams import Team

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def main() -> None:
    """Resume idle agents of this machine as mail comes for them, until the team is closed."""
    store, team = opening.from_environment(os.environ), os.environ["TEAMS_TEAM"]

    def begin() -> Callable[[], bool]:
        return partial(_look, store, team, config.load(store.root, os.environ), os.environ, {})

    WAKER.attend(store, team, begin, sys.stderr.write)


def _look(store: Store, name: str, user: Config, environ: Mapping[str, str], tried: dict[str, int]) -> bool:
    """Resume and rouse those that have mail, noting in *tried* up to which; whether there is nothing more to do here:
    the team is closed or gone, or nobody else uses the store and no client is in a terminal.
    """
    team = teams.get(store, name)
    for session in ending.all_of(store, name, []) if store.host else ():
        if session.host == store.host:
            _resume(store, team, user, environ, tried, session)
    resume = partial(_resume, store, team, user, environ, tried)
    anybody = rousing.look(store, team, partial(_tell, store, team, user, environ), resume)
    if team.state == "closed":
        unattended.end_all(store, name, environ)
    return team.state == "closed" or not (store.host or anybody)


def _tell(store: Store, team: Team, user: Config, environ: Mapping[str, str], to: str, body: str, uid: str) -> None:
    """Give a member a notice, and resume it if it is idle; those in terminals are looked at next."""
    messages.notify(store, team.name, to, body, uid, also_closed=True)
    waking.wake(store, team, user, [to], names.SYSTEM, environ)


def _resume(
    store: Store, team: Team, user: Config, environ: Mapping[str, str], tried: dict[str, int], session: Session
) -> None:
    if not session.ended:
        return
    numbers = sessions.waiting_numbers(store, team.name, session)
    if session.outcome == "failed" and max(numbers, default=0) <= tried.get(session.agent, 0):
        return  # it can't be started; trying on without end helps nobody
    tried[session.agent] = max(numbers, default=0)
    mail = store.fetch(team.name, messages.MESSAGE, numbers, [])
    if mail:
        only_outputs = all(message.type == "output" for message in mail)
        waking.wake(store, team, user, [session.agent], mail[0].from_, environ, only_outputs)


if __name__ == "__main__":
    main()
