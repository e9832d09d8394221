"""The keeper: a small process, one for each agent, that runs its client turn by turn until nothing is left to do.

After every turn it waits for what the agent started itself; while there is unread mail, the next turn gets it; only
then is the agent done, and its output goes to its caller. `python -m teams_cli.keeper` finds out from the environment
whose keeper it is. This is a front end: it reads the environment, and its standard error is the agent's log.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time

from teams_cli import (
    agents,
    conditions,
    config,
    harness,
    inboxes,
    launching,
    messages,
    processes,
    sessions,
    settings,
    teams,
)
from teams_cli.sessions import SESSION
from teams_cli.store.contract import update
from teams_cli.store.files import FileStore
from teams_cli.text import MAX_RESULT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from teams_cli.config import Config
    from teams_cli.harness import Profile
    from teams_cli.messages import Message
    from teams_cli.sessions import Session
    from teams_cli.shapes import Outcome, SessionState
    from teams_cli.store.contract import Store, Watch

_BEAT = 30.0
_PAUSE = 0.03
_LOG_END = 2000


def main() -> None:
    """Keep the agent that the environment names."""
    root, team, agent = (os.environ[name] for name in ("TEAMS_HOME", "TEAMS_TEAM", "TEAMS_AGENT_ID"))
    store = FileStore(root)
    Keeper(store, team, agent, config.load(root)).keep()


class Turn:
    """How one run of the client ended."""

    def __init__(self, status: int, printed: str, errors: str, interrupted: bool, stopped: bool) -> None:
        self.status = status
        self.printed = printed
        self.errors = errors
        self.interrupted = interrupted
        self.stopped = stopped


class Keeper:
    """The keeper of one agent's session."""

    def __init__(self, store: Store, team: str, agent: str, user: Config) -> None:
        self.store = store
        self.team = team
        self.agent = agent
        self.config = user
        self.session = sessions.take(store, team, agent)
        self.profile = harness.find(self.session.harness, user)
        self.output = ""
        agents.register_process(store, team, agent, os.getpid())

    def keep(self) -> None:
        """Run turns until nothing is left to do, then tell the caller."""
        try:
            self._keep()
        except BaseException as error:
            processes.end_marked(self.session.mark)
            self._end("failed", f"its keeper failed: {type(error).__name__}: {error}", None)
            raise

    def _keep(self) -> None:
        batch = self._unread() if self.session.generation > 1 else []
        while True:
            turn = self._turn(batch)
            if turn.stopped:
                return self._end("stopped", self._who_stopped(), turn.status)
            if not turn.interrupted and harness.has_failed(self.profile, turn.status, turn.printed):
                return self._end("failed", self._why(turn), turn.status)
            self.output = harness.output_in(self.profile, turn.printed) or self.output
            if not self._wait_for_children():
                return self._end("stopped", self._who_stopped(), turn.status)
            batch = self._unread()
            if not batch:
                self._end("completed", None, 0)
                return self._revive()
            if reason := self._too_often(batch):
                return sessions.pause(self.store, self.team, self.agent, reason)

    def _too_often(self, batch: list[Message]) -> str:
        """Why the agent shall not be resumed with the batch: the loop guard, but for interjections."""
        session = self._now()
        if session.interjected > session.delivered:
            return ""
        limit = int(settings.value(teams.load(self.store, self.team), "max_resumes_per_hour"))
        return next(filter(None, (sessions.too_often(self.store, session, m.from_, limit) for m in batch)), "")

    def _revive(self) -> None:
        """Start over if mail came in at the last moment: whoever sent it may have seen the session still running."""
        mail = self._unread()
        if mail:
            self._wake([self.agent], mail[0].from_)

    def _wake(self, agents: list[str], sender: str, for_output: bool = False) -> None:
        team = teams.load(self.store, self.team)
        launching.wake(self.store, team, self.config, agents, sender, os.environ, for_output)

    def _who_stopped(self) -> str:
        return f"{self._now().stop_asked} stopped it"

    def _end(self, outcome: Outcome, failure: str | None, status: int | None) -> None:
        """End the session, and resume its caller, if that is idle, to take the output."""
        output = self.output if outcome == "completed" else None
        session = sessions.finish(self.store, self.team, self.session, outcome, failure, output, status)
        self._wake([session.caller], self.agent, for_output=True)

    def _unread(self) -> list[Message]:
        """The unread messages, in the order of arrival."""
        numbers = inboxes.unread(self.store, self.team, self.agent)
        return self.store.fetch(self.team, messages.MESSAGE, numbers, [])

    def _now(self) -> Session:
        found = sessions.find(self.store, self.team, self.agent)
        assert found is not None
        return found

    def _turn(self, batch: list[Message]) -> Turn:
        """Run the client once, with the prompt or with a batch of messages."""
        client = Client(self.store, self.team, self._now(), self.profile, batch)
        client.start()
        self._note_turn(batch)
        turn = client.wait(self._heartbeat)
        if found := harness.session_id_in(self.profile, turn.printed):
            update(self.store, self.team, SESSION, self.agent, lambda s: s.having(session_id=found))
        return turn

    def _note_turn(self, batch: list[Message]) -> None:
        """The client runs: what it was given is read."""
        inboxes.mark_read(self.store, self.team, self.agent, {message.number for message in batch})
        last = max((message.number for message in batch), default=0)

        def change(session: Session) -> Session:
            noted = sessions.resumed(session, dict.fromkeys(m.from_ for m in batch), teams.now(self.store))
            return noted.having(turns=session.turns + 1, delivered=max(session.delivered, last))

        update(self.store, self.team, SESSION, self.agent, change)

    def _heartbeat(self) -> None:
        agents.saw(self.store, self.team, self.agent, every=0)

    def _why(self, turn: Turn) -> str:
        said = (turn.errors.strip() or turn.printed.strip())[-_LOG_END:]
        return f"exit status {turn.status}{': ' + said if said else ''}"

    def _wait_for_children(self) -> bool:
        """Block until what the agent started is done; False when it is to stop."""

        def settled() -> bool:
            session = self._now()
            if session.stop_asked or session.interjected > session.delivered:
                return True
            return all(child.ended for child in sessions.children(self.store, self.team, self.agent))

        if not settled():
            self._state("waiting")
            while not conditions.sleep_until(self.store, self.team, settled, _BEAT):
                self._heartbeat()
            self._state("running")
        return self._now().stop_asked is None

    def _state(self, state: SessionState) -> None:
        update(self.store, self.team, SESSION, self.agent, lambda s: s.having(state=state))


class Client:
    """One process of the harness's client: started, watched, interrupted when asked, and cleaned up after."""

    def __init__(self, store: Store, team: str, session: Session, profile: Profile, batch: list[Message]) -> None:
        self.store = store
        self.team = team
        self.session = session
        self.profile = profile
        self.batch = batch
        self.first = session.turns == 0
        base = f"{store.place}/logs/{team}/{session.agent}.{session.turns + 1}"
        self.out, self.err, self.input = f"{base}.out", f"{base}.err", f"{base}.messages.json"

    def start(self) -> None:
        """Start the client in the agent's directory, with what it is to work on.

        Raises:
            OSError: It can't be started.
        """
        values = {"prompt": self.session.prompt, "session_id": self.session.session_id, "agent": self.session.agent}
        words = harness.fill(self.profile.start if self.first else self.profile.resume, values)
        given = self._input()
        self._private(self.input, given)
        with open(self.input, "rb") as source, open(self.out, "wb") as out, open(self.err, "wb") as err:
            self.process = subprocess.Popen(
                words,
                cwd=self.session.directory,
                env=self._environment(),
                stdin=source,
                stdout=out,
                stderr=err,
                start_new_session=True,
                preexec_fn=_die_with_parent,
            )

    def _input(self) -> bytes:
        if self.profile.input == "messages":
            return json.dumps([message.to_json() for message in self.batch]).encode()
        if self.first and not self.batch:
            return self.session.prompt.encode()
        return delivered(self.batch).encode()

    def _private(self, path: str, data: bytes) -> None:
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            file.write(data)

    def _environment(self) -> dict[str, str]:
        environment = {**os.environ, processes.MARK: self.session.mark}
        if not self.first:
            environment.update(TEAMS_RESUME="1", TEAMS_MESSAGES_FILE=self.input)
        return environment

    def wait(self, heartbeat: Callable[[], None]) -> Turn:
        """Block until the client ended by itself, or was interrupted or stopped; nothing of it is left then."""
        interrupted = stopped = False
        ended = os.pidfd_open(self.process.pid)
        watch = self.store.watch(self.team)
        beat = time.monotonic()
        try:
            while not _readable(ended, 0):
                session = sessions.find(self.store, self.team, self.session.agent)
                stopped = session is not None and session.stop_asked is not None
                interrupted = session is not None and session.interjected > session.delivered
                if stopped or interrupted:
                    self._interrupt()
                    break
                if time.monotonic() - beat > _BEAT:
                    heartbeat()
                    beat = time.monotonic()
                _wait_for_either(ended, watch)
        finally:
            watch.close()
            os.close(ended)
        status = self.process.wait()
        processes.end_marked(self.session.mark)
        return Turn(status, _tail(self.out), _tail(self.err), interrupted, stopped)

    def _interrupt(self) -> None:
        """The profile's ladder of signals for the client; what it left behind is ended afterwards."""
        for name, patience in self.profile.interrupt:
            try:
                os.killpg(self.process.pid, getattr(signal, f"SIG{name}"))
                self.process.wait(patience)
                return
            except (ProcessLookupError, PermissionError):
                return
            except subprocess.TimeoutExpired:
                continue


def delivered(batch: list[Message]) -> str:
    """A batch of messages as the next user turn of a client."""
    quoted = [messages.quote(message) + f"\n(answer with: teams reply {message.id} TEXT)" for message in batch]
    if len(quoted) == 1:
        return quoted[0]
    return "\n\n".join([f"[While you were busy, {len(quoted)} messages arrived]", *quoted])


def _die_with_parent() -> None:
    """In the client, before it starts: end when the keeper does, however that ends."""
    import ctypes

    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


def _readable(descriptor: int, timeout: float) -> bool:
    return bool(select.select([descriptor], [], [], timeout)[0])


def _wait_for_either(ended: int, watch: Watch) -> None:
    """Block until the client ends or something changes in the team, a second at the most."""
    descriptor = watch.fileno()
    if descriptor is None:
        _readable(ended, _PAUSE)
    elif descriptor in select.select([ended, descriptor], [], [], 1.0)[0]:
        watch.wait(0)
        _readable(ended, _PAUSE)  # changes come in flocks: look once for all of them


def _tail(path: str) -> str:
    """What a client printed; of more than 1 MiB the end."""
    with open(path, "rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - MAX_RESULT))
        text = file.read().decode(errors="replace")
    return text if size <= MAX_RESULT else f"[the first {size - MAX_RESULT} bytes are in {path}]\n{text}"


if __name__ == "__main__":
    main()
    sys.exit(0)
