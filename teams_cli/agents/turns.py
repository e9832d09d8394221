"""Turns. A turn is one run of a client's program, until none of its processes is left. A turn can be interrupted."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass

from teams_cli import processes
from teams_cli.agents import attention, logs, sessions
from teams_cli.agents.sessions import Session
from teams_cli.clients import known, output, permissions, profiles
from teams_cli.clients.profiles import Profile
from teams_cli.messages import messages
from teams_cli.messages.messages import Message
from teams_cli.store.contract import Store, Watch
from teams_cli.teams.config import Config
from teams_cli.text import MAX_RESULT

_PAUSE = 0.03
"""Seconds to wait after a change in the team, so that changes in quick succession are handled together."""
_LOOK = 5.0
"""Seconds between two calls of *look* while the client runs."""
_ASK_AGAIN = 10.0
"""Seconds after which a turn checks again whether it has to stop, even if no change was reported."""
_GOODBYE = 5.0
"""Seconds that an agent has to finish after it asked to be ended."""
_PARENT_DEATH = 1
"""The option PR_SET_PDEATHSIG of prctl(2)."""


@dataclass
class Reason:
    """The reason why an agent must end. *own_request* says that the agent itself asked for this, so it gets time to
    finish.
    """

    text: str
    own_request: bool = False


@dataclass
class Turn:
    """The result of one run of the client. *printed* is what the client printed, which is also in the file *path*.
    *stopped* is the reason why the client was ended, or None. *interrupted* says that the client was interrupted so
    that the next turn can begin with a message.
    """

    status: int
    printed: str
    path: str
    interrupted: bool
    stopped: Reason | None

    def output(self, profile: Profile) -> str:
        """Extract the agent's answer from what the client printed, and return it, cut to the length that a result may
        have.
        """
        return logs.clipped(output.output_in(profile, self.printed), MAX_RESULT, self.path)


class ClientProcess:
    """A process of the client, for one turn."""

    def __init__(
        self,
        store: Store,
        team: str,
        session: Session,
        profile: Profile,
        mail: list[Message],
        environment: Mapping[str, str],
        user: Config,
    ) -> None:
        self.store = store
        self.team = team
        self.session = session
        self.profile = profile
        self.mail = mail
        self.user = user
        self.begins_session = session.turns == 0 or not session.session_known or bool(session.fresh)
        files_of_turn = logs.turn_of(store, team, session.agent, session.turns + 1)
        self.out, self.err = f"{files_of_turn}.out", f"{files_of_turn}.err"
        self.input = f"{files_of_turn}.messages.json"
        self.environment = {**environment, processes.TAG: session.tag}
        self.level = permissions.held_to(profile, session.permissions)
        if self.level:
            self.environment[permissions.VARIABLE] = self.level
            self.environment.update(permissions.mode(profile, self.level).set)
        if session.turns:
            self.environment.update(TEAMS_RESUME="1", TEAMS_MESSAGES_FILE=self.input)

    def start(self) -> None:
        """Start the client in the agent's directory, with its prompt or its messages as input.

        Raises:
            OSError: The client can't be started; the text says which program, and in which directory.
        """
        values = {"prompt": self.session.prompt, "session_id": self.session.session_id, "agent": self.session.agent}
        values |= profiles.of_place(self.store.root, self.store.variables)
        lists = profiles.placeholder_words(self.profile, sys.executable, self.environment, self.level)
        lists["model"] = profiles.of_model(self.profile, self.session.model)
        words = profiles.fill(self.profile.start if self.begins_session else self.profile.resume, values, lists)
        with open(os.open(self.input, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            file.write(self._input())
        try:
            client = known.find(self.profile.once)
            settings = f"{self.store.root}/settings"
            _, variables = client.once(sys.executable, settings, self.environment) if client else ([], {})
            with open(self.input, "rb") as source, open(self.out, "wb") as out, open(self.err, "wb") as err:
                self.process = subprocess.Popen(
                    words,
                    cwd=self.session.directory,
                    env={**self.environment, **variables},
                    stdin=source,
                    stdout=out,
                    stderr=err,
                    start_new_session=True,
                    preexec_fn=as_client(os.getpid()),
                )
        except (OSError, ValueError, subprocess.SubprocessError) as error:
            why = error.strerror if isinstance(error, OSError) else error
            if isinstance(error, FileNotFoundError) and error.filename == words[0]:
                why = f"there is no program {words[0]} on the PATH"
            raise OSError(f"{words[0]} can't be started in {self.session.directory}: {why}") from error

    def _input(self) -> bytes:
        """Return the standard input of the client: the messages as JSON, or the prompt and the messages as text."""
        if self.profile.input == "messages":
            return json.dumps([message.to_json() for message in self.mail]).encode()
        parts = [self.session.prompt] if self.begins_session else []
        if self.begins_session and self.profile.introduced:
            parts.append(attention.introduction(self.store, self.team, self.session.agent, self.user))
        if len(self.mail) > 1:
            parts.append(f"[While you were busy, {len(self.mail)} messages arrived]")
        parts += [messages.quote(message) + messages.how_to_answer(message) for message in self.mail]
        return "\n\n".join(parts).encode()

    def wait(self, to_stop: Callable[[], Reason | None], look: Callable[[], None]) -> Turn:
        """Wait until the client ends, end all processes that it left behind, and return the turn. The client is
        interrupted if a message asks for this, or if *to_stop*, which is called from time to time, returns a reason.
        *look* is called from time to time, so that the caller can do other work meanwhile.
        """
        watch = self.store.watch(self.team)
        pidfd = None
        with suppress(AttributeError, OSError):  # not on macOS, and not on old kernels
            pidfd = os.pidfd_open(self.process.pid)
        try:
            interrupted, stopped = self._wait_or_end(pidfd, watch, to_stop, look)
        finally:
            watch.close()
            if pidfd is not None:
                os.close(pidfd)
        status = self.process.wait()
        processes.end_descendants(self.session.tag)
        return Turn(status, logs.read(self.out, logs.ALL), self.out, interrupted, stopped)

    def _wait_or_end(
        self, pidfd: int | None, watch: Watch, to_stop: Callable[[], Reason | None], look: Callable[[], None]
    ) -> tuple[bool, Reason | None]:
        """Wait until the client ends, or end it. Returns whether a message interrupted it, and the reason why it had to
        stop, or None.
        """
        reason: Reason | None = None
        stop_at, looked_at = 0.0, time.monotonic()
        asked_at = float("-inf")  # *to_stop* is asked at once
        while not self._wait_for_end(pidfd, 0):
            now = time.monotonic()
            if reason is None and now - asked_at >= _ASK_AGAIN:
                asked_at = now
                reason = to_stop()
                session = sessions.find(self.store, self.team, self.session.agent)
                if reason:
                    stop_at = now + (_GOODBYE if reason.own_request else 0)
                elif session is not None and session.interrupted:
                    self._interrupt()
                    return True, None
            if reason and now >= stop_at:
                self._interrupt()
                return False, reason
            if now - looked_at > _LOOK:
                look()
                looked_at = now
            if self._wait_for_end_or_change(pidfd, watch):
                asked_at = float("-inf")  # ask at once
        return False, reason

    def _wait_for_end(self, pidfd: int | None, timeout: float) -> bool:
        """Wait at most *timeout* seconds for the client to end, and return whether it ended."""
        if pidfd is not None:
            return bool(select.select([pidfd], [], [], timeout)[0])
        time.sleep(timeout)
        return self.process.poll() is not None

    def _wait_for_end_or_change(self, pidfd: int | None, watch: Watch) -> bool:
        """Wait at most a second for the client's end or a change in the team. Returns whether there may be a change."""
        changes = watch.fileno()
        if changes is None or pidfd is None:  # `select` can't wait for both: look again after each pause
            self._wait_for_end(pidfd, _PAUSE)
            return True
        if not watch.wait(0):
            if changes not in select.select([pidfd, changes], [], [], 1.0)[0]:
                return bool(watch.slow)  # a slow watch reports changes late
            watch.wait(0)  # takes the change, so that the next call does not return for it
        self._wait_for_end(pidfd, _PAUSE)  # several changes often come together: look once for all
        return True

    def _interrupt(self) -> None:
        """Send the client the signals of its profile, one after the other, until it ends."""
        for name, patience in self.profile.interrupt:
            try:
                os.killpg(self.process.pid, getattr(signal, f"SIG{name}"))
                self.process.wait(patience)
                return
            except (ProcessLookupError, PermissionError):
                return
            except subprocess.TimeoutExpired:
                continue
        self.process.kill()


def as_client(keeper: int) -> Callable[[], None]:
    """Return a function that the new process of a client calls before its program starts. The function resets signals,
    and asks the system to kill the client when the *keeper*, its parent process, dies.
    """
    import ctypes

    prctl = getattr(ctypes.CDLL(None), "prctl", None)

    def prepare() -> None:
        for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)  # commands started with `&` ignore some signals
        if prctl is not None:
            prctl(_PARENT_DEATH, signal.SIGKILL)
            if os.getppid() != keeper:  # the keeper died before this was set
                os.kill(os.getpid(), signal.SIGKILL)

    return prepare
