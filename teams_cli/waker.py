"""The waker: where several machines use one store, a small process on each that resumes the idle agents of its own.

Whoever sends a message resumes its recipients if they are of the same machine; only there are the client's session and
the directory it works in. One waker a team is started with the first agent, and ends when the team is closed. This is
a front end: it reads the environment.
"""

from __future__ import annotations

import os
import sys

from teams_cli import conditions, config, launching, messages, sessions, teams, wakers
from teams_cli.errors import NotFound, TeamsError
from teams_cli.runs.pace import paced
from teams_cli.store import opening

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from teams_cli.config import Config
    from teams_cli.sessions import Session
    from teams_cli.store.contract import Store
    from teams_cli.teams import Team


def main() -> None:
    """Resume idle agents of this machine as mail comes for them, until the team is closed."""
    store, team = opening.from_environment(os.environ), os.environ["TEAMS_TEAM"]
    held = wakers.hold(store, team)
    if held is not None:
        user = config.load(store.root)
        tried: dict[str, int] = {}
        conditions.sleep_until(store, team, paced(lambda: _look(store, team, user, os.environ, tried)), None)


def _look(store: Store, name: str, user: Config, environ: Mapping[str, str], tried: dict[str, int]) -> bool:
    """Resume those that have mail, noting in *tried* up to which; whether the team is closed, or gone."""
    try:
        team = teams.load(store, name)
        for session in sessions.of_team(store, name, []):
            if session.ended and session.host == store.host:
                _resume(store, team, session, user, environ, tried)
        return team.state == "closed"
    except NotFound:
        return True
    except TeamsError as problem:
        sys.stderr.write(f"{problem.message}\n")
        return False


def _resume(
    store: Store, team: Team, session: Session, user: Config, environ: Mapping[str, str], tried: dict[str, int]
) -> None:
    numbers = sessions.waiting_numbers(store, team.name, session)
    if session.outcome == "failed" and max(numbers, default=0) <= tried.get(session.agent, 0):
        return  # it can't be started; trying on without end helps nobody
    tried[session.agent] = max(numbers, default=0)
    mail = store.fetch(team.name, messages.MESSAGE, numbers, [])
    if mail:
        only_outputs = all(message.type == "output" for message in mail)
        launching.wake(store, team, user, [session.agent], mail[0].from_, environ, only_outputs)


if __name__ == "__main__":
    main()
