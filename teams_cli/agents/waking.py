"""Wake agents: resume idle ones when they have mail, and wait for those that are at work."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from teams_cli import errors, names
from teams_cli.agents import background, ending, resuming, sessions
from teams_cli.agents.background import WAKER, start_keeper
from teams_cli.agents.seats import rousing, sitting
from teams_cli.agents.sessions import Session
from teams_cli.messages import messages
from teams_cli.messages.messages import MESSAGE, Message
from teams_cli.store import opening, pace
from teams_cli.store.contract import Store
from teams_cli.teams import config, teams
from teams_cli.teams.config import Config
from teams_cli.teams.teams import Team


def wake(
    store: Store,
    team: Team,
    config: Config | None,
    recipients: list[str],
    sender: str,
    environ: Mapping[str, str],
    for_output: bool = False,
) -> list[str]:
    """Resume those recipients of a stored message that are idle, and return their names. Agents of another machine are
    left to the waker there, and clients in terminals to the waker here.
    """
    background.start_for_terminals(store, team.name, environ)
    woken = []
    for agent in recipients:
        session = ending.current(store, team.name, agent) if team.member(agent) else None
        if session and session.host not in ("", store.host):
            continue
        if not (session and session.ended and sessions.waiting_numbers(store, team.name, session)):
            continue
        if opened := resuming.reopen(store, team.name, agent, sender, for_output):
            start_keeper(store, team.name, opened, config, environ)
            woken.append(agent)
    return woken


def wake_all_with_mail(store: Store, team: Team, config: Config | None, environ: Mapping[str, str]) -> list[str]:
    """Resume every idle agent with mail, for example after a budget was raised, and return their names."""
    resumed = []
    for session in [session for session, _ in store.scan(team.name, sessions.SESSION, []) if session.ended]:
        oldest = sessions.waiting_numbers(store, team.name, session)[:1]
        for message in store.fetch(team.name, MESSAGE, oldest, []):
            if wake(store, team, config, [session.agent], message.from_, environ):
                resumed.append(session.agent)
    return resumed


def wakes(
    store: Store, config: Config | None, environ: Mapping[str, str], problems: list[errors.TeamsError]
) -> Callable[[str, Sequence[str], Message, str], None]:
    """Return the function that a store calls after a message was appended; it resumes idle recipients. If that fails,
    the message is sent all the same, and the error is added to *problems*.
    """

    def appended(team_name: str, recipients: Sequence[str], message: Message, by: str) -> None:
        try:
            team = teams.get(store, team_name)
            wake(store, team, config, list(recipients), by, environ, message.type == "output")
        except errors.TeamsError as problem:
            problems.append(problem)

    return appended


def wait_for_run(store: Store, team: str, run: str, look: Callable[[list[Session]], None]) -> list[Session]:
    """Wait until all sessions of a run are done, including those of agents that were started meanwhile, and return
    them. *look* gets the sessions at every change.
    """
    of_run: list[Session] = []

    def settled() -> bool:
        of_run[:] = ending.of_run(store, team, run)
        look(of_run)
        return all(session.ended for session in of_run)

    while True:
        pace.sleep_until(store, team, settled, None)
        ending.linger(of_run)
        if settled():
            return of_run


def wait_for(store: Store, team: str, agent: str) -> Session:
    """Wait until the session of the agent is done, and return it."""

    def settled() -> bool:
        session = ending.current(store, team, agent)
        return session is None or session.ended

    pace.sleep_until(store, team, settled, None)
    session = sessions.find(store, team, agent)
    if session is None:
        raise errors.NotFound(f"there is no session of {agent}")
    return session


def main() -> None:
    """Resume idle agents of this machine when mail comes for them, until the team is closed."""
    store, team = opening.from_environment(os.environ), os.environ["TEAMS_TEAM"]

    def begin() -> Callable[[], bool]:
        return partial(_look, store, team, config.load(store.root, os.environ), os.environ, {})

    WAKER.attend(store, team, begin, sys.stderr.write)


def _look(store: Store, name: str, user: Config, environ: Mapping[str, str], tried: dict[str, int]) -> bool:
    """Resume idle agents and wake idle clients that have mail. *tried* holds the number of the newest message for which
    each agent was resumed. Returns whether this process may end: the team is closed, or no other machine uses the store
    and no client is in a terminal.
    """
    team = teams.get(store, name)
    for session in ending.all_of(store, name, []) if store.host else ():
        if session.host == store.host:
            _resume(store, team, user, environ, tried, session)
    resume = partial(_resume, store, team, user, environ, tried)
    anybody = rousing.look(store, team, partial(_tell, store, team, user, environ), resume)
    if team.state == "closed":
        sitting.end_all_unattended(store, name, environ)
    return team.state == "closed" or not (store.host or anybody)


def _tell(store: Store, team: Team, user: Config, environ: Mapping[str, str], to: str, body: str, uid: str) -> None:
    messages.notify(store, team.name, to, body, uid, also_closed=True)
    wake(store, team, user, [to], names.SYSTEM, environ)


def _resume(
    store: Store, team: Team, user: Config, environ: Mapping[str, str], tried: dict[str, int], session: Session
) -> None:
    if not session.ended:
        return
    numbers = sessions.waiting_numbers(store, team.name, session)
    if session.outcome == "failed" and max(numbers, default=0) <= tried.get(session.agent, 0):
        return  # it can't be started: wait for newer mail
    tried[session.agent] = max(numbers, default=0)
    if mail := store.fetch(team.name, messages.MESSAGE, numbers, []):
        only_outputs = all(message.type == "output" for message in mail)
        wake(store, team, user, [session.agent], mail[0].from_, environ, only_outputs)


if __name__ == "__main__":
    main()
