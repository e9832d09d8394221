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

    def start(self, store: Store, team: str, environ: Mapping[str, str], own: Mapping[str, str]) -> None:
        """Start the process with the environment *own*, unless it runs already. Inside a client's sandbox, which
        *environ* shows, none is started, because the sandbox would end it.

        Raises:
            StorageFailed: Its lock or its log can't be made.
            OSError: It can't be started.
        """
        if environ.get(SANDBOX):
            return
        held = self.hold(store, team)
        if held is None:
            return
        os.close(held)  # the new process takes it; if there are two, one ends
        log = logs.begin(store, team, f".{self._module.rpartition('.')[2]}")
        processes.start_own(self._module, [], {**own, "TEAMS_TEAM": team}, log)

    def hold(self, store: Store, team: str) -> int | None:
        """Take the lock, and return it as a descriptor to close; None if another process holds it."""
        return locks.hold(self._path(store, team), store.root)

    def is_there(self, store: Store, team: str) -> bool:
        """Whether the process runs."""
        return bindings.is_locked(self._path(store, team))

    def attend(
        self, store: Store, team: str, begin: Callable[[], Callable[[], bool]], complain: Callable[[str], object]
    ) -> None:
        """Run as this process: look at every change in the team, until a look returns that nothing is left to do, the
        team is gone, or another process holds the lock. *begin* makes the function that looks, each time the lock is
        taken. A failed look is repeated, and *complain* gets its reason once.
        """
        complaints = logs.Complaints()
        while (held := self.hold(store, team)) is not None:
            look = partial(_tried, begin(), complaints, complain)
            pace.sleep_until(store, team, paced(look), None)
            os.close(held)
            if look():  # look once more: a change without the lock would be missed
                return

    def _path(self, store: Store, team: str) -> str:
        return f"{store.root}/{self._lock.format(team=team)}"


def _tried(look: Callable[[], bool], complaints: logs.Complaints, complain: Callable[[str], object]) -> bool:
    try:
        over = look()
        complaints.end()
        return over
    except errors.NotFound:
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
    """Start the waker if clients of the team run in terminals of this machine. It does not inherit the variables that
    identify the client which starts it.
    """
    if is_seated(store.root, team) and not WAKER.is_there(store, team):
        start(store, team, environments.clean(environ))


def start_keeper(store: Store, team: str, session: Session, config: Config | None, environ: Mapping[str, str]) -> None:
    """Start the keeper of a session. If that fails, the session ends as failed, and its caller is notified. Inside a
    client's sandbox the start is left to the keeper of that client, which is outside.
    """
    if by := environ.get(SANDBOX) and environ.get("TEAMS_AGENT_ID"):
        # A process in the sandbox would end with the command.
        _change_start(store, team, session, lambda starting: starting.having(unstarted=by))
        return
    try:
        sessions.check_started_here(store, team, session)
        profile = profiles.get(session.harness, config)
        log = logs.begin(store, team, session.agent)
        member = teams.get(store, team).find(session.agent)
        name = member.agent_name if member and member.agent_name else session.agent
        type = (member.agent_type or member.role) if member else "team-member"
        ours = {**store.variables, **environments.identity(team, session.agent, name, type)}
        port = {isolation.VARIABLE: str(session.port_base)} if session.port_base else {}
        own = profile.environment(environ, {**(session.variables or {}), **ours, **port})
        if level := permissions.held_to(profile, session.permissions):
            own[permissions.VARIABLE] = level  # also for child processes that clear their environment
        path = own.get("PATH", os.defpath)
        if not shutil.which("teams", path=path):  # agents call it
            path = f"{path}{os.pathsep}{os.path.dirname(sys.executable)}"
        own["PATH"] = path
        pid = processes.start_own("teams_cli.agents.keeper", [], own, log)
    except (OSError, errors.TeamsError) as error:
        ending.finish(store, team, session, "failed", f"the process that runs it can't be started: {error}")
        return
    _change_start(store, team, session, lambda starting: starting.kept_by(pid, store.host))
    if store.host:
        start(store, team, environ)


def _change_start(store: Store, team: str, session: Session, change: Callable[[Session], Session]) -> None:
    """Change the session if it is still starting in the same generation."""
    kind = sessions.SESSION.also_closed
    update(store, team, kind, session.agent, lambda now: change(now) if now.starts(session) else now)


def start_requested(store: Store, team: str, agent: str, config: Config | None, environ: Mapping[str, str]) -> None:
    """Start the agents that the client of *agent* asked for inside its sandbox, with no more permissions than *agent*
    has.
    """
    for session, _ in store.scan(team, sessions.SESSION, []):
        waits = session.unstarted == agent and not session.ended
        taken = sessions.take_over(store, team, session) if waits else None
        if taken is None:
            continue
        try:
            own = {permissions.VARIABLE: sessions.get(store, team, agent).permissions or ""}
            if taken.caller == agent:
                level = taken.permissions or permissions.LEVELS[-1]
                permissions.refuse_more(own, level, f"start one that may do more ({level})")
        except errors.TeamsError as error:
            ending.finish(store, team, taken, "failed", error.message)
        else:
            start_keeper(store, team, taken, config, environ)
