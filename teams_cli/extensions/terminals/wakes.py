"""Tests whether a message wakes a client. The test opens the client in a terminal without a screen, sends it a message,
and watches whether it reads the message.
"""

from __future__ import annotations

import os
import select
import signal
import termios
import time
from contextlib import suppress
from tempfile import TemporaryDirectory

from teams_cli import errors
from teams_cli.agents import background
from teams_cli.agents.seats import sitting, terminals
from teams_cli.agents.seats.control_sequences import plain
from teams_cli.clients import known
from teams_cli.clients.seats import IDLE
from teams_cli.doctor import finding
from teams_cli.extensions.terminals import opening
from teams_cli.extensions.terminals.opening import Opened, OpenRequest
from teams_cli.membership import joining
from teams_cli.messages import inboxes, messages
from teams_cli.store.contract import Store
from teams_cli.store.files.engine import FileStore
from teams_cli.teams.permission import Caller

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from teams_cli.store.contract import Finding
    from teams_cli.teams.config import Config

_TEAM, _LEAD, _AGENT = "probe", "lead", "probe"
_PROMPT = "Answer with one word: ready"
_MAIL = "This is a test of the wake-up. Answer with one word: woken"
_TURN_SECONDS, _READ_SECONDS = 180.0, 120.0
"""Seconds that the client may take until it has ended its first turn, and then until it has read the message."""
_SHOWN_LENGTH = 300
_COLUMNS, _ROWS = 120, 40
_CHUNK = 1 << 16


def examine(client: str, config: Config | None, environ: Mapping[str, str], directory: str) -> Finding:
    """Open the client as `teams open` does, in a team created for this test, and give it a prompt. Once it is idle,
    send it a message. Return a finding that says whether the client read the message.
    """
    seat = known.get(client).seat
    if seat is None:
        return finding(client, "warning", "this client has no terminal mode that teams can test", "")
    with TemporaryDirectory() as temporary:
        store = FileStore(f"{temporary}/root")
        joining.spawn_team(store, _TEAM, Caller(_LEAD))
        options = [word.replace("{prompt}", _PROMPT) for word in seat.first]
        request = OpenRequest(client, options, directory, _AGENT)
        try:
            opened = opening.prepare(store, _TEAM, request, config, environ)
        except errors.TeamsError as refused:
            return finding(client, "problem", refused.message, refused.hint)
        terminal = HiddenTerminal(opened)
        try:
            return _test(client, store, terminal, environ)
        finally:
            terminal.end()
            with suppress(errors.TeamsError):  # the client may have signed off by itself
                sitting.stand_up(store, _TEAM, _AGENT, "doctor")


def _test(client: str, store: Store, hidden: HiddenTerminal, environ: Mapping[str, str]) -> Finding:
    """Send the client a message after its first turn. Return a finding that says whether the client read it."""

    def is_idle() -> bool:
        terminal = terminals.find(store, _TEAM, _AGENT)
        # A client that has just started reports that it is idle, too.
        return terminal is not None and terminal.state == IDLE and terminal.source != "hook SessionStart"

    if not hidden.run_until(is_idle, _TURN_SECONDS):
        remedy = known.get(client).remedy or f"Start {client} here by hand once, and answer its questions."
        return finding(client, "problem", f"did not take a turn in a terminal; it showed: {hidden.shown}", remedy)
    message = messages.send(store, _TEAM, Caller(_LEAD), _AGENT, _MAIL)
    background.start_for_terminals(store, _TEAM, environ)
    started = time.monotonic()
    if hidden.run_until(lambda: message.number not in inboxes.unread(store, _TEAM, _AGENT), _READ_SECONDS):
        seconds = time.monotonic() - started
        return finding(client, "good", f"was woken by mail and read it after {seconds:.1f} s{_wake_phrase(store)}")
    if wake_phrase := _wake_phrase(store):
        failure = f"was woken and did not read within {_READ_SECONDS:g} s{wake_phrase}"
    else:
        failure = f"was not woken by mail within {_READ_SECONDS:g} s"
    return finding(client, "problem", failure, f"teams install {client}")


def _wake_phrase(store: Store) -> str:
    """Return a phrase that says how the client was woken; "" if it was not woken."""
    ways = [entry.get("way") for _, entry in store.history(_TEAM) if entry.get("what") == "terminal woken"]
    return f", by its {ways[-1]}" if ways and ways[-1] else ""


class HiddenTerminal:
    """Runs a client in a terminal without a screen."""

    def __init__(self, opened: Opened) -> None:
        self.pid, self._master = os.forkpty()
        if self.pid == 0:  # become the client
            try:
                os.chdir(opened.directory)
                os.execvpe(opened.words[0], opened.words, {"TERM": "xterm-256color", **opened.environ})
            finally:
                os._exit(127)
        self._output = b""
        with suppress(termios.error):  # any size will do
            termios.tcsetwinsize(self._master, (_ROWS, _COLUMNS))

    def run_until(self, is_reached: Callable[[], bool], patience: float) -> bool:
        """Let the client run until *is_reached* returns True, and return True. Return False if the client ends before,
        or if *patience* seconds have passed.
        """
        give_up = time.monotonic() + patience
        while not is_reached():
            if time.monotonic() > give_up:
                return False
            try:
                if select.select([self._master], [], [], 0.2)[0]:
                    self._output = (self._output + os.read(self._master, _CHUNK))[-_CHUNK:]
            except OSError:  # the client has closed its terminal
                return is_reached()
        return True

    @property
    def shown(self) -> str:
        """The last words that the client printed; `nothing` if it printed none."""
        words = [word for word in plain(self._output).split() if any(map(str.isalnum, word))]  # no frames
        return " ".join(words)[-_SHOWN_LENGTH:] or "nothing"

    def end(self) -> None:
        """End all processes in the terminal."""
        with suppress(OSError):  # all have ended already
            os.killpg(self.pid, signal.SIGHUP)
        with suppress(OSError):  # it is closed already
            os.close(self._master)
        give_up = time.monotonic() + 5
        while os.waitpid(self.pid, os.WNOHANG) == (0, 0):
            if time.monotonic() > give_up:
                os.kill(self.pid, signal.SIGKILL)
                give_up += 5
            time.sleep(0.05)
