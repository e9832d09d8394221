"""Waking agents: resume those that are done when there is something for them, and wait for what is under way."""

from __future__ import annotations

from teams_cli import errors
from teams_cli.agents import background, ending, resuming, sessions
from teams_cli.agents.background import start_keeper
from teams_cli.agents.sessions import Session
from teams_cli.messages.messages import MESSAGE, Message
from teams_cli.store import pace
from teams_cli.store.contract import Store
from teams_cli.teams import teams
from teams_cli.teams.teams import Team

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from teams_cli.teams.config import Config


def wake(
    store: Store,
    team: Team,
    config: Config | None,
    recipients: list[str],
    sender: str,
    environ: Mapping[str, str],
    for_output: bool = False,
) -> list[str]:
    """Resume those of the recipients of a stored message that are idle; their names.

    Those of another machine are left to the waker there, those that sit in terminals to the waker here.
    """
    background.start_for_terminals(store, team.name, environ)
    woken = []
    for agent in recipients:
        session = ending.current(store, team.name, agent) if team.member(agent) else None
        if session and session.host not in ("", store.host):
            continue
        if session and session.ended and sessions.waiting_numbers(store, team.name, session):
            opened = resuming.reopen(store, team.name, agent, sender, for_output)
            if opened:
                start_keeper(store, team.name, opened, config, environ)
                woken.append(agent)
    return woken


def wake_all_with_mail(store: Store, team: Team, config: Config | None, environ: Mapping[str, str]) -> list[str]:
    """Resume every agent that is idle and has mail, as once a budget was raised; their names."""
    waiting = [
        (session.agent, sessions.waiting_numbers(store, team.name, session))
        for session, _ in store.scan(team.name, sessions.SESSION, [])
        if session.ended
    ]
    return [
        agent
        for agent, numbers in waiting
        for first in store.fetch(team.name, MESSAGE, numbers[:1], [])
        if wake(store, team, config, [agent], first.from_, environ)
    ]


def wakes(
    store: Store, config: Config | None, environ: Mapping[str, str], problems: list[errors.TeamsError]
) -> Callable[[str, Sequence[str], Message, str], None]:
    """What a store is to call once a message was appended: it resumes those of its recipients that are idle.

    The message is stored, so that failing here is no failure of who sent it: it is added to *problems*.
    """

    def appended(team_name: str, recipients: Sequence[str], message: Message, by: str) -> None:
        try:
            team = teams.get(store, team_name)
            wake(store, team, config, list(recipients), by, environ, message.type == "output")
        except errors.TeamsError as problem:
            problems.append(problem)

    return appended


def wait_for_run(store: Store, team: str, run: str, look: Callable[[list[Session]], None]) -> list[Session]:
    """Block until all sessions of a run are done, also those that it led to; *look* is shown them at every change."""
    found: list[Session] = []

    def settled() -> bool:
        found[:] = ending.of_run(store, team, run)
        look(found)
        return all(session.ended for session in found)

    while True:
        pace.sleep_until(store, team, settled, None)
        ending.linger(found)
        if settled():
            return found


def wait_for(store: Store, team: str, agent: str) -> Session:
    """Block until the session of the agent is done."""

    def settled() -> bool:
        session = ending.current(store, team, agent)
        return session is None or session.ended

    pace.sleep_until(store, team, settled, None)
    session = sessions.find(store, team, agent)
    if session is None:
        raise errors.NotFound(f"there is no session of {agent}")
    return session
