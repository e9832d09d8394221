"""Tests whether a message wakes a client: opens the client in a terminal without a screen, sends it a message, and
watches it.
"""

from __future__ import annotations

import fcntl
import os
import select
import signal
import struct
import termios
import time
from contextlib import suppress
from tempfile import TemporaryDirectory

from teams_cli import errors
from teams_cli.agents import background
from teams_cli.agents.seats import sitting, terminals
from teams_cli.agents.seats.lines import plain
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
_TO_JOIN, _TO_READ = 180.0, 120.0
_SHOWN = 300
_WIDE, _HIGH = 120, 40


def examine(client: str, config: Config | None, environ: Mapping[str, str], directory: str) -> Finding:
    """Open the client as `teams open` does, prompt it once, and test whether it then reads a message while it is idle.
    Return the finding.
    """
    seat = known.get(client).seat
    if seat is None:
        return finding(client, "warning", "this client has no terminal mode that teams can test", "")
    with TemporaryDirectory() as top:
        store = FileStore(f"{top}/root")
        joining.spawn_team(store, _TEAM, Caller(_LEAD))
        first = [word.replace("{prompt}", _PROMPT) for word in seat.first]
        try:
            opened = opening.prepare(store, _TEAM, OpenRequest(client, first, directory, agent=_AGENT), config, environ)
        except errors.TeamsError as refused:
            return finding(client, "problem", refused.message, refused.hint)
        unseen = Unseen(opened)
        try:
            return _watch(client, store, unseen, environ)
        finally:
            unseen.end()
            with suppress(errors.TeamsError):
                sitting.stand_up(store, _TEAM, _AGENT, "doctor")


def _watch(client: str, store: Store, unseen: Unseen, environ: Mapping[str, str]) -> Finding:
    def is_idle() -> bool:
        terminal = terminals.find(store, _TEAM, _AGENT)
        return terminal is not None and terminal.state == IDLE and terminal.source != "hook SessionStart"

    if not unseen.until(is_idle, _TO_JOIN):
        remedy = known.get(client).remedy or f"Start {client} here by hand once, and answer its questions."
        return finding(client, "problem", f"did not take a turn in a terminal; it showed: {unseen.shown}", remedy)
    sent = messages.send(store, _TEAM, Caller(_LEAD), _AGENT, _MAIL)
    background.start_for_terminals(store, _TEAM, environ)
    began = time.monotonic()
    if unseen.until(lambda: sent.number not in inboxes.unread(store, _TEAM, _AGENT), _TO_READ):
        took = time.monotonic() - began
        return finding(client, "good", f"was woken by mail and read it after {took:.1f} s{_way(store)}")
    woken = "was woken and did not read" if _way(store) else "was not woken by mail"
    return finding(client, "problem", f"{woken} within {_TO_READ:g} s{_way(store)}", f"teams install {client}")


def _way(store: Store) -> str:
    """Return a phrase with the way in which the client was woken, or "" if it was not woken."""
    ways = [entry.get("way") for _, entry in store.history(_TEAM) if entry.get("what") == "terminal woken"]
    return f", by its {ways[-1]}" if ways and ways[-1] else ""


class Unseen:
    """Runs a client in a terminal without a screen."""

    def __init__(self, opened: Opened) -> None:
        self.pid, self._master = os.forkpty()
        if self.pid == 0:
            _become(opened)
        self._output = b""
        self._ended = False
        with suppress(OSError):
            fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", _HIGH, _WIDE, 0, 0))

    def until(self, ready: Callable[[], bool], patience: float) -> bool:
        """Let the client work until *ready* returns True; return False if the client ends first or *patience* seconds
        pass.
        """
        give_up = time.monotonic() + patience
        while not ready():
            if self._ended or time.monotonic() > give_up:
                return False
            self._listen(0.2)
        return True

    def _listen(self, seconds: float) -> None:
        try:
            if select.select([self._master], [], [], seconds)[0]:
                self._output = (self._output + os.read(self._master, 1 << 16))[-(1 << 16) :]
        except OSError:  # the client has closed its terminal
            self._ended = True

    @property
    def shown(self) -> str:
        """The last words that the client printed."""
        words = [word for word in plain(self._output).split() if any(map(str.isalnum, word))]  # no frames
        return " ".join(words)[-_SHOWN:] or "nothing"

    def end(self) -> None:
        """End all processes in the terminal."""
        with suppress(OSError):
            os.killpg(self.pid, signal.SIGHUP)
        with suppress(OSError):
            os.close(self._master)
        give_up = time.monotonic() + 5
        while os.waitpid(self.pid, os.WNOHANG) == (0, 0):
            if time.monotonic() > give_up:
                os.kill(self.pid, signal.SIGKILL)
                give_up += 5
            time.sleep(0.05)


def _become(opened: Opened) -> None:
    try:
        os.chdir(opened.directory)
        os.execvpe(opened.words[0], opened.words, {"TERM": "xterm-256color", **opened.environ})
    finally:
        os._exit(127)
