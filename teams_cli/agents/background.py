"""Start background processes: a keeper for each agent, which runs the agent's turns, and programs of which each team
has at most one process on a machine.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Mapping

from teams_cli import errors, processes
from teams_cli.agents import ending, isolation, logs, sessions
from teams_cli.agents.seats import bindings, is_seated
from teams_cli.agents.sessions import Session
from teams_cli.clients import environments, permissions, profiles
from teams_cli.environment import SANDBOX
from teams_cli.store import pace
from teams_cli.store.contract import Store, update
from teams_cli.store.files import locks
from teams_cli.store.pace import paced
from teams_cli.teams import teams
from teams_cli.teams.config import Config


class LoneProcess:
    """A program of which each team has at most one process on a machine: the Python module *module*. While the process
    runs, it holds a lock. *lock* is the path of the lock file below the root, with `{team}` for the name of the team.
    """

    def __init__(self, module: str, lock: str) -> None:
        self._module = module
        self._lock = lock

    def start(self, store: Store, team: str, environ: Mapping[str, str], variables: Mapping[str, str]) -> None:
        """Start the process with *variables* as its environment, unless it is already running. *environ* is the
        environment of the caller. If it shows that the caller is inside a client's sandbox, nothing is started, because
        the sandbox would end the process.

        Raises:
            StorageFailed: The lock or the log of the process can't be made.
            OSError: The process can't be started.
        """
        if environ.get(SANDBOX):
            return
        descriptor = self.hold(store, team)
        if descriptor is None:
            return
        os.close(descriptor)  # the new process takes the lock; if there are two, one ends
        log = logs.begin(store, team, f".{self._module.rpartition('.')[2]}")
        processes.start_own(self._module, [], {**variables, "TEAMS_TEAM": team}, log)

    def hold(self, store: Store, team: str) -> int | None:
        """Take the lock, and return a file descriptor. Closing the descriptor releases the lock. Returns None if
        another process holds the lock.
        """
        return locks.hold(f"{store.root}/{self._lock.format(team=team)}", store.root)

    def is_running(self, store: Store, team: str) -> bool:
        return bindings.is_locked(f"{store.root}/{self._lock.format(team=team)}")

    def attend(
        self, store: Store, team: str, begin: Callable[[], Callable[[], bool]], complain: Callable[[str], object]
    ) -> None:
        """Do the work of this process until nothing is left to do, the team is gone, or another process holds the lock.

        *begin* is called each time the lock is taken. It returns a function that is called after every change in the
        team, and that returns True if nothing is left to do. If the function fails, *complain* is called with the
        reason, unless the last failure had the same reason, and the function is called again.
        """
        complaints = logs.Complaints()

        def is_done() -> bool:
            try:
                has_finished = look()
                complaints.end()
                return has_finished
            except errors.NotFound:  # the team is gone
                return True
            except errors.TeamsError as problem:
                if complaints.is_new(problem):
                    complain(f"{problem.message}\n")
                return False

        while (descriptor := self.hold(store, team)) is not None:
            look = begin()
            pace.sleep_until(store, team, paced(is_done), None)
            os.close(descriptor)
            # Look once more: processes that changed something while the lock was held have relied on this process.
            if is_done():
                return


WAKER = LoneProcess("teams_cli.agents.waking", "wakers/{team}.lock")
NOTIFIER = LoneProcess("teams_cli.agents.notifying", "wakers/{team}.notify")
LANDER = LoneProcess("teams_cli.extensions.landing.lander", "landers/{team}.lock")


def start(store: Store, team: str, environ: Mapping[str, str]) -> None:
    """Start the team's waker, the process that resumes agents when they have mail, unless it already runs on this
    machine.
    """
    WAKER.start(store, team, environ, {**environments.unnamed(environ), **store.variables})


def start_for_terminals(store: Store, team: str, environ: Mapping[str, str]) -> None:
    """Start the waker of the team if clients of the team run in terminals of this machine. The waker gets the
    environment *environ* without the variables that identify a client.
    """
    if is_seated(store.root, team) and not WAKER.is_running(store, team):
        start(store, team, environments.clean(environ))


def start_keeper(store: Store, team: str, session: Session, config: Config | None, environ: Mapping[str, str]) -> None:
    """Start the keeper of the session. If the keeper can't be started, the session ends as failed, and the member that
    started the agent is notified.

    If this process is in a client's sandbox, nothing is started now. The keeper of that client, which runs outside the
    sandbox, starts the new keeper later.
    """
    requester = environ.get("TEAMS_AGENT_ID")
    if environ.get(SANDBOX) and requester:
        # A process in the sandbox would end with the command.
        _update_starting(store, team, session, lambda starting: starting.having(unstarted=requester))
        return
    try:
        sessions.check_started_here(store, team, session)
        log = logs.begin(store, team, session.agent)
        environment = _environment_of_keeper(store, team, session, config, environ)
        pid = processes.start_own("teams_cli.agents.keeper", [], environment, log)
    except (OSError, errors.TeamsError) as error:
        ending.finish(store, team, session, "failed", f"the process that runs it can't be started: {error}")
        return
    _update_starting(store, team, session, lambda starting: starting.kept_by(pid, store.host))
    if store.host:
        start(store, team, environ)


def _environment_of_keeper(
    store: Store, team: str, session: Session, config: Config | None, environ: Mapping[str, str]
) -> dict[str, str]:
    """Return the environment for the keeper of the session. The agent's client gets the same environment."""
    profile = profiles.get(session.harness, config)
    member = teams.get(store, team).find(session.agent)
    name = member.agent_name if member and member.agent_name else session.agent
    type = (member.agent_type or member.role) if member else "team-member"  # of an agent that has left
    variables = {**(session.variables or {}), **store.variables}
    variables |= environments.identity(team, session.agent, name, type)
    if session.port_base:
        variables[isolation.VARIABLE] = str(session.port_base)
    environment = profile.environment(environ, variables)
    if level := permissions.held_to(profile, session.permissions):
        environment[permissions.VARIABLE] = level  # also for child processes that clear their environment
    path = environment.get("PATH", os.defpath)
    if not shutil.which("teams", path=path):  # agents call it
        path = f"{path}{os.pathsep}{os.path.dirname(sys.executable)}"
    environment["PATH"] = path
    return environment


def _update_starting(store: Store, team: str, session: Session, change: Callable[[Session], Session]) -> None:
    """Apply *change* to the stored session if the session is still starting and has not been resumed since."""

    def changed(latest: Session) -> Session:
        return change(latest) if latest.state == "starting" and latest.generation == session.generation else latest

    update(store, team, sessions.SESSION.even_in_closed_team, session.agent, changed)


def start_requested(store: Store, team: str, agent: str, config: Config | None, environ: Mapping[str, str]) -> None:
    """Start the agents that *agent* requested from inside its client's sandbox, where it can't start them. An agent
    that would get more permissions than *agent* has is not started: its session ends as failed.
    """
    for session, _ in store.scan(team, sessions.SESSION, []):
        if session.unstarted != agent or session.ended:
            continue
        taken_session = sessions.take_over(store, team, session)
        if taken_session is None:  # it was started or ended meanwhile
            continue
        try:
            environ_of_agent = {permissions.VARIABLE: sessions.get(store, team, agent).permissions or ""}
            if taken_session.caller == agent:  # a resumed session keeps the permissions that its own caller gave it
                level = taken_session.permissions or permissions.LEVELS[-1]  # without a level, everything is allowed
                permissions.refuse_more(environ_of_agent, level, f"start one that may do more ({level})")
        except errors.TeamsError as error:
            ending.finish(store, team, taken_session, "failed", error.message)
        else:
            start_keeper(store, team, taken_session, config, environ)
