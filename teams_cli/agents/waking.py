"""Wake agents: resume idle agents that have mail, wake and interrupt clients in terminals, and wait for agents that are
at work.
"""

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
    """After a message was stored, resume the idle agents among its *recipients*, and return the names of the resumed
    agents. Each machine has a background process, the waker. The waker of another machine resumes the agents there, and
    the waker of this machine wakes the clients in terminals here.
    """
    background.start_for_terminals(store, team.name, environ)
    woken = []
    for agent in recipients:
        session = ending.current(store, team.name, agent) if team.member(agent) else None
        if session is None or not session.ended or session.host not in ("", store.host):
            continue
        if not sessions.waiting_numbers(store, team.name, session):
            continue
        if reopened := resuming.reopen(store, team.name, agent, sender, for_output):
            start_keeper(store, team.name, reopened, config, environ)
            woken.append(agent)
    return woken


def wake_all_with_mail(store: Store, team: Team, config: Config | None, environ: Mapping[str, str]) -> list[str]:
    """Resume every idle agent with mail, for example after a budget was raised, and return their names."""
    resumed = []
    for session in [session for session, _ in store.scan(team.name, sessions.SESSION, []) if session.ended]:
        numbers = sessions.waiting_numbers(store, team.name, session)
        for oldest in store.fetch(team.name, MESSAGE, numbers[:1], []):
            resumed += wake(store, team, config, [session.agent], oldest.from_, environ)
    return resumed


def wake_on_append(
    store: Store, config: Config | None, environ: Mapping[str, str], problems: list[errors.TeamsError]
) -> Callable[[str, Sequence[str], Message, str], None]:
    """Return a function for the store to call after it appended a message. The function resumes the idle recipients of
    the message. If this fails, the message stays sent, and the error is added to *problems*.
    """

    def wake_recipients(team_name: str, recipients: Sequence[str], message: Message, by: str) -> None:
        try:
            team = teams.get(store, team_name)
            wake(store, team, config, list(recipients), by, environ, message.type == "output")
        except errors.TeamsError as problem:
            problems.append(problem)

    return wake_recipients


def wait_for_run(store: Store, team: str, run: str, look: Callable[[list[Session]], None]) -> list[Session]:
    """Wait until all sessions of a run are done, and return them. Sessions of agents that are started meanwhile are
    included. At every change, *look* is called with the sessions.
    """
    of_run: list[Session] = []

    def is_done() -> bool:
        nonlocal of_run
        of_run = ending.of_run(store, team, run)
        look(of_run)
        return all(session.ended for session in of_run)

    while True:
        pace.sleep_until(store, team, is_done, None)
        ending.linger(of_run)
        if is_done():  # else a keeper resumed an agent just before it exited
            return of_run


def wait_for(store: Store, team: str, agent: str) -> Session:
    """Wait until the session of the agent is done, and return the session."""

    def is_done() -> bool:
        session = ending.current(store, team, agent)
        return session is None or session.ended

    pace.sleep_until(store, team, is_done, None)
    return sessions.get(store, team, agent)


def main() -> None:
    """Resume idle agents of this machine when mail comes for them, until the team is closed."""
    store, team = opening.from_environment(os.environ), os.environ["TEAMS_TEAM"]
    WAKER.attend(store, team, lambda: _Waker(store, team, os.environ).look, sys.stderr.write)


class _Waker:
    """Resumes idle agents and wakes idle clients in terminals that have mail."""

    def __init__(self, store: Store, team: str, environ: Mapping[str, str]) -> None:
        self.store = store
        self.team_name = team
        self.environ = environ
        self.config = config.load(store.root, environ)
        self.tried: dict[str, int] = {}
        """The number of the newest message for which each agent was resumed."""

    def look(self) -> bool:
        """Look once for mail. Returns whether this process may end, because the team is closed, or because no other
        machine uses the store and no client is in a terminal.
        """
        team = teams.get(self.store, self.team_name)
        if self.store.host:
            for session in ending.all_of(self.store, team.name, []):
                if session.host == self.store.host:
                    self._resume(team, session)
        has_clients = rousing.look(self.store, team, partial(self._notify, team), partial(self._resume, team))
        if team.state == "closed":
            sitting.end_all_unattended(self.store, team.name, self.environ)
        return team.state == "closed" or not (self.store.host or has_clients)

    def _notify(self, team: Team, to: str, body: str, uid: str) -> None:
        """Send a member a notice, and resume the member if it is an idle agent."""
        messages.notify(self.store, team.name, to, body, uid, also_closed=True)
        wake(self.store, team, self.config, [to], names.SYSTEM, self.environ)

    def _resume(self, team: Team, session: Session) -> None:
        """Resume the agent of the session if it is idle and has mail."""
        if not session.ended:
            return
        numbers = sessions.waiting_numbers(self.store, team.name, session)
        newest = max(numbers, default=0)
        if session.outcome == "failed" and newest <= self.tried.get(session.agent, 0):
            return  # it can't be started: wait for newer mail
        self.tried[session.agent] = newest
        if mail := self.store.fetch(team.name, MESSAGE, numbers, []):
            only_outputs = all(message.type == "output" for message in mail)
            wake(self.store, team, self.config, [session.agent], mail[0].from_, self.environ, only_outputs)


if __name__ == "__main__":
    main()
