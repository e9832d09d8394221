"""Processes in the background of which a team has one on each machine: its waker, its notifier, its lander."""

from __future__ import annotations

import os
from functools import partial

from teams_cli import errors, processes
from teams_cli.agents import logs
from teams_cli.agents.seats import bindings
from teams_cli.environment import SANDBOX
from teams_cli.store import pace
from teams_cli.store.contract import Store
from teams_cli.store.files import locks
from teams_cli.store.pace import paced

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


class LoneProcess:
    """The program *module*, which holds the *lock* of its team as long as it lives."""

    def __init__(self, module: str, lock: str) -> None:
        self._module = module
        self._lock = lock

    def start(self, store: Store, team: str, environ: Mapping[str, str], own: Mapping[str, str]) -> None:
        """Start it with the environment *own*, unless it is there. None is started inside a client's sandbox, as
        *environ* tells, which would end it.

        Raises:
            StorageFailed: Its lock or its log can't be made.
            OSError: It can't be started.
        """
        if environ.get(SANDBOX):
            return
        held = self.hold(store, team)
        if held is None:
            return
        os.close(held)  # the one that is started takes it; of two, one ends
        log = logs.begin(store, team, f".{self._module.rpartition('.')[2]}")
        processes.start_own(self._module, [], {**own, "TEAMS_TEAM": team}, log)

    def hold(self, store: Store, team: str) -> int | None:
        """Its lock, as a descriptor to close; None if another process has it."""
        return locks.hold(self._path(store, team), store.root)

    def is_there(self, store: Store, team: str) -> bool:
        """Whether it runs."""
        return bindings.is_locked(self._path(store, team))

    def attend(
        self, store: Store, team: str, begin: Callable[[], Callable[[], bool]], complain: Callable[[str], object]
    ) -> None:
        """Be it: look at every change in the team, until a look says that there is nothing more to do here, or that the
        team is gone, or another process is there. *begin* makes the look, each time that the lock was taken. A look
        that fails is tried again, and why is given to *complain* once.
        """
        complaints = logs.Complaints()
        while (held := self.hold(store, team)) is not None:
            look = partial(_tried, begin(), complaints, complain)
            pace.sleep_until(store, team, paced(look), None)
            os.close(held)
            if look():  # nobody came since the last look, who would be left alone
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


WAKER = LoneProcess("teams_cli.agents.waker", "wakers/{team}.lock")
NOTIFIER = LoneProcess("teams_cli.agents.notifier", "wakers/{team}.notify")
LANDER = LoneProcess("teams_cli.extensions.landing.lander", "landers/{team}.lock")
