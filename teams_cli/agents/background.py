"""Start processes in the background: a keeper for each agent, and processes that each team has once on each machine."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Mapping
from functools import partial

from teams_cli import errors, processes
from teams_cli.agents import ending, isolation, logs, sessions
from teams_cli.agents.seats import bindings, is_seated
from teams_cli.agents.sessions import Session
from teams_cli.clients import environments, permissions, profiles
from teams_cli.environment import SANDBOX
from teams_cli.store import pace
from teams_cli.store.contract import Store
from teams_cli.store.files import locks
from teams_cli.store.pace import paced
from teams_cli.store.retrying import update
from teams_cli.teams import teams
from teams_cli.teams.config import Config


class LoneProcess:
    """A program, *module*, of which each team has at most one process on a machine. That process holds the lock file
    *lock* while it runs.
    """

    def __init__(self, module: str, lock: str) -> None:
        self._module = module
        self._lock = lock

    def start(self, store: Store, team: str, environ: Mapping[str, str], environment: Mapping[str, str]) -> None:
        """Start the process with the variables *environment*, unless it runs already. If the caller, whose variables
        are *environ*, is inside a client's sandbox, nothing is started, because the sandbox would end it.

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
        processes.start_own(self._module, [], {**environment, "TEAMS_TEAM": team}, log)

    def hold(self, store: Store, team: str) -> int | None:
        """Take the lock, and return it as a descriptor to close; None if another process holds it."""
        return locks.hold(self._path(store, team), store.root)

    def is_running(self, store: Store, team: str) -> bool:
        """Whether the process runs."""
        return bindings.is_locked(self._path(store, team))

    def attend(
        self, store: Store, team: str, begin: Callable[[], Callable[[], bool]], complain: Callable[[str], object]
    ) -> None:
        """Work as this process: look at every change in the team, until a look returns that nothing is left to do, the
        team is gone, or another process holds the lock.

        Each time the lock is taken, *begin* makes the function that looks. A failed look is repeated, and *complain*
        gets the reason of the failure once.
        """
        complaints = logs.Complaints()
        while (descriptor := self.hold(store, team)) is not None:
            look = partial(_look_or_complain, begin(), complaints, complain)
            pace.sleep_until(store, team, paced(look), None)
            os.close(descriptor)
            # Look once more: who changed something while the lock was held left it to this process.
            if look():
                return

    def _path(self, store: Store, team: str) -> str:
        return f"{store.root}/{self._lock.format(team=team)}"


def _look_or_complain(look: Callable[[], bool], complaints: logs.Complaints, complain: Callable[[str], object]) -> bool:
    """Look once, and return whether nothing is left to do. If the look fails, return False, so that it is repeated;
    *complain* gets the reason, unless the last look failed for the same reason.
    """
    try:
        is_done = look()
        complaints.end()
        return is_done
    except errors.NotFound:  # the team is gone
        return True
    except errors.TeamsError as problem:
        if complaints.is_new(problem):
            complain(f"{problem.message}\n")
        return False


WAKER = LoneProcess("teams_cli.agents.waking", "wakers/{team}.lock")
NOTIFIER = LoneProcess("teams_cli.agents.notifying", "wakers/{team}.notify")
LANDER = LoneProcess("teams_cli.extensions.landing.lander", "landers/{team}.lock")


def start(store: Store, team: str, environ: Mapping[str, str]) -> None:
    """Start this machine's waker of the team, unless it runs."""
    WAKER.start(store, team, environ, {**environments.unnamed(environ), **store.variables})


def start_for_terminals(store: Store, team: str, environ: Mapping[str, str]) -> None:
    """Start the waker if clients of the team run in terminals of this machine. The waker does not inherit the variables
    that identify the client which starts it.
    """
    if is_seated(store.root, team) and not WAKER.is_running(store, team):
        start(store, team, environments.clean(environ))


def start_keeper(store: Store, team: str, session: Session, config: Config | None, environ: Mapping[str, str]) -> None:
    """Start the keeper of a session. If the start fails, the session ends as failed, and its caller is notified. Inside
    a client's sandbox nothing is started: the keeper of that client, which runs outside, starts the session later.
    """
    if by := environ.get(SANDBOX) and environ.get("TEAMS_AGENT_ID"):
        # A process in the sandbox would end with the command.
        _update_starting(store, team, session, lambda starting: starting.having(unstarted=by))
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
    """Return the environment of the keeper, which its client inherits."""
    profile = profiles.get(session.harness, config)
    member = teams.get(store, team).find(session.agent)
    name = member.agent_name if member and member.agent_name else session.agent
    type = (member.agent_type or member.role) if member else "team-member"
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
    """Change the stored session, if it is still starting and no newer generation of it has begun."""

    def changed(latest: Session) -> Session:
        return change(latest) if latest.state == "starting" and latest.generation == session.generation else latest

    update(store, team, sessions.SESSION.also_closed, session.agent, changed)


def start_requested(store: Store, team: str, agent: str, config: Config | None, environ: Mapping[str, str]) -> None:
    """Start the agents that the client of *agent* asked for inside its sandbox. The new agents get no more permissions
    than *agent* has.
    """
    for session, _ in store.scan(team, sessions.SESSION, []):
        is_requested = session.unstarted == agent and not session.ended
        taken = sessions.take_over(store, team, session) if is_requested else None
        if taken is None:
            continue
        try:
            own_level = {permissions.VARIABLE: sessions.get(store, team, agent).permissions or ""}
            if taken.caller == agent:
                level = taken.permissions or permissions.LEVELS[-1]
                permissions.refuse_more(own_level, level, f"start one that may do more ({level})")
        except errors.TeamsError as error:
            ending.finish(store, team, taken, "failed", error.message)
        else:
            start_keeper(store, team, taken, config, environ)
