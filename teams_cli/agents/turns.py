"""Turns: one run of a client's program, from its start until nothing of it is left. It is interrupted if asked."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
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
_LOOK = 5.0
_ASK_AGAIN = 10.0
"""Seconds after which a turn looks again whether it is to stop, even if no change was reported."""
_GOODBYE = 5.0
_PARENT_DEATH = 1


@dataclass
class Reason:
    """The reason for which an agent is to end. *own* says that the agent asked for its end itself, so that it gets time
    to finish.
    """

    text: str
    own: bool = False


@dataclass
class Turn:
    """The result of one run of the client. *stopped* is the reason for which the client was ended, or None.
    *interrupted* says that it was interrupted, and that a message follows.
    """

    status: int
    printed: str
    path: str
    interrupted: bool
    stopped: Reason | None

    def output(self, profile: Profile) -> str:
        """Return the agent's answer in what the client printed, at most as long as a result may be."""
        return logs.clipped(output.output_in(profile, self.printed), MAX_RESULT, self.path)


class ClientProcess:
    """A process of the client, for one turn."""

    def __init__(
        self,
        store: Store,
        team: str,
        session: Session,
        profile: Profile,
        batch: list[Message],
        environment: Mapping[str, str],
        user: Config,
    ) -> None:
        self.store = store
        self.team = team
        self.session = session
        self.profile = profile
        self.batch = batch
        self.user = user
        self.first = session.turns == 0 or not session.session_known or bool(session.fresh)
        base = logs.turn_of(store, team, session.agent, session.turns + 1)
        self.out, self.err, self.input = f"{base}.out", f"{base}.err", f"{base}.messages.json"
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
            OSError: It can't be started; the text says which program, and in which directory.
        """
        values = {"prompt": self.session.prompt, "session_id": self.session.session_id, "agent": self.session.agent}
        values |= profiles.of_place(self.store.root, self.store.variables)
        brought = profiles.placeholder_words(self.profile, sys.executable, self.environment, self.level)
        brought["model"] = profiles.of_model(self.profile, self.session.model)
        words = profiles.fill(self.profile.start if self.first else self.profile.resume, values, brought)
        with open(os.open(self.input, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            file.write(self._input())
        try:
            client = known.find(self.profile.once)
            settings = f"{self.store.root}/settings"
            given = client.once(sys.executable, settings, self.environment)[1] if client else {}
            with open(self.input, "rb") as source, open(self.out, "wb") as out, open(self.err, "wb") as err:
                self.process = subprocess.Popen(
                    words,
                    cwd=self.session.directory,
                    env={**self.environment, **given},
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
        if self.profile.input == "messages":
            return json.dumps([message.to_json() for message in self.batch]).encode()
        parts = [self.session.prompt] if self.first else []
        if self.first and self.profile.introduced:
            parts.append(attention.introduction(self.store, self.team, self.session.agent, self.user))
        if self.batch:
            parts.append(delivered(self.batch))
        return "\n\n".join(parts).encode()

    def wait(self, to_stop: Callable[[], Reason | None], look: Callable[[], None]) -> Turn:
        """Wait until the client has ended by itself, or interrupt or stop it; afterwards none of its processes is left.
        *to_stop* returns the reason to stop the client, or None. *look* is called from time to time.
        """
        watch = self.store.watch(self.team)
        ended = _open_process(self.process.pid)
        try:
            interrupted, stopped = self._watch(ended, watch, to_stop, look)
        finally:
            watch.close()
            if ended is not None:
                os.close(ended)
        status = self.process.wait()
        processes.end_descendants(self.session.tag)
        return Turn(status, logs.read(self.out, logs.ALL), self.out, interrupted, stopped)

    def _watch(
        self, ended: int | None, watch: Watch, to_stop: Callable[[], Reason | None], look: Callable[[], None]
    ) -> tuple[bool, Reason | None]:
        """Wait until the client ends, or end it. Returns whether it was interrupted, and the reason for which it was
        stopped.
        """
        reason, looked, patience = None, time.monotonic(), 0.0
        asked_at = float("-inf")
        while not self._ended(ended, 0):
            now = time.monotonic()
            ask = reason is None and now - asked_at >= _ASK_AGAIN
            if ask and (reason := to_stop()):
                patience = now + (_GOODBYE if reason.own else 0)
            session = sessions.find(self.store, self.team, self.session.agent) if ask and reason is None else None
            interrupted = session is not None and session.interrupted
            if interrupted or (reason and now >= patience):
                self._interrupt()
                return interrupted, reason
            if now - looked > _LOOK:
                look()
                looked = now
            asked_at = now if ask else asked_at
            if self._wait_for_either(ended, watch):
                asked_at = float("-inf")
        return False, reason

    def _ended(self, descriptor: int | None, timeout: float) -> bool:
        if descriptor is not None:
            return bool(select.select([descriptor], [], [], timeout)[0])
        time.sleep(timeout)
        return self.process.poll() is not None

    def _wait_for_either(self, ended: int | None, watch: Watch) -> bool:
        """Wait until the client ends or something changes in the team, a second at most. Returns whether one of the two
        may have happened.
        """
        changes = watch.fileno()
        if changes is None or ended is None:
            self._ended(ended, _PAUSE)
            return True
        if not watch.wait(0):
            if changes not in select.select([ended, changes], [], [], 1.0)[0]:
                return bool(watch.slow)
            watch.wait(0)
        self._ended(ended, _PAUSE)  # several changes often come together: look once for all
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


def delivered(batch: list[Message]) -> str:
    """Return the messages in *batch* as the text of the client's next turn."""
    quoted = [messages.quote(message) + messages.how_to_answer(message) for message in batch]
    if len(quoted) == 1:
        return quoted[0]
    return "\n\n".join([f"[While you were busy, {len(quoted)} messages arrived]", *quoted])


def _open_process(pid: int) -> int | None:
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):
        return None


def as_client(keeper: int) -> Callable[[], None]:
    """Return a function for the new process of a client, to be called before its program starts: it resets signals, and
    has the client killed when its keeper dies.
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
