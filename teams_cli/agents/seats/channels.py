"""The ways to wake a client, and to interrupt one: each gives it one constant line to take a turn for, and says whether
it was taken.
"""

from __future__ import annotations

import base64
import fcntl
import json
import os
import select
import socket
import stat
import struct

from teams_cli.agents.seats import bindings
from teams_cli.agents.seats.lines import connected
from teams_cli.clients import known
from teams_cli.clients.seats import BELL, CONTROL, HTTP, QUEUE, SOCKET

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from teams_cli.agents.seats.terminals import Terminal


LINE = "[teams] You have messages. If they are not shown now, run: teams read-messages"
"""All that a client is woken with: never what somebody wrote."""
MAIL, STOP, LEAVE = b"m", b"s", b"l"
"""What is rung for: there is mail; the client is to be interrupted, because there is; nobody is to wait any more."""


class Doorbell:
    """The bell of one terminal, while we are the one who hears it."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._lock = -1
        self._pipe = -1

    def take(self, client: int = 0) -> bool:
        """Become the one who hears it, for the client with that process id; False if somebody is."""
        os.makedirs(os.path.dirname(self.path), 0o700, exist_ok=True)
        lock = os.open(f"{self.path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            return False
        os.ftruncate(lock, 0)
        os.pwrite(lock, b"%d" % client, 0)
        self._lock = lock
        self._pipe = _open_pipe(self.path)
        return True

    def client(self) -> int:
        """The process id of the client for which somebody hears it; 0 if that is not known."""
        try:
            with open(f"{self.path}.lock", encoding="ascii") as file:
                return int(file.read() or 0)
        except (OSError, ValueError):
            return 0

    def is_dismissed(self, client: int) -> bool:
        """Whether nobody is to wait any more for the client with that process id."""
        return client > 0 and self.client() == -client

    def fileno(self) -> int:
        """What `select` wakes on when it rings."""
        return self._pipe

    def wait(self, seconds: float) -> bytes:
        """What it was rung for, within *seconds*; empty if it was not."""
        ready, _, _ = select.select([self._pipe], [], [], seconds)
        return self.heard() if ready else b""

    def heard(self) -> bytes:
        """What it was rung for since the last time."""
        try:
            said = os.read(self._pipe, 4096)
        except BlockingIOError:
            return b""
        return next((what for what in (LEAVE, STOP) if what in said), said[:1])

    def close(self) -> None:
        """Hear it no more."""
        for descriptor in (self._pipe, self._lock):
            if descriptor >= 0:
                os.close(descriptor)
        self._pipe = self._lock = -1


def _open_pipe(path: str) -> int:
    """The pipe, opened for both, so that it has no end; rings of before are forgotten with their listener."""
    try:
        os.mkfifo(path, 0o600)
    except FileExistsError:
        if not stat.S_ISFIFO(os.lstat(path).st_mode):
            raise
    return os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW)


def ring(path: str, what: bytes = MAIL) -> bool:
    """Ring; False if nobody hears it."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:  # no pipe, or nobody who reads
        return False
    try:
        return os.write(descriptor, what) == len(what)
    except OSError:
        return False
    finally:
        os.close(descriptor)


def is_heard(path: str) -> bool:
    """Whether somebody waits for it to ring."""
    return ring(path, b"")


def dismiss(directory: str, client: str) -> None:
    """Have nobody wait any more at the bells below the directory for a client of that kind, also after its next turn. A
    wrapper, which serves its person, stays.
    """
    for bell in _of_kind(directory, client):
        _admit(bell, False)
        ring(bell, LEAVE)


def readmit(directory: str, client: str) -> None:
    """Have those wait again, from their next turn on, who were told not to."""
    for bell in _of_kind(directory, client):
        _admit(bell, True)


def _of_kind(directory: str, client: str) -> Iterator[str]:
    """The bells of the clients of that kind."""
    for top, _, files in os.walk(directory):
        for name in files:
            if name.endswith(".bell") and _client_of(f"{top}/{name}") in ("", client):
                yield f"{top}/{name}"


def _admit(bell: str, admitted: bool) -> None:
    """Note for the client that has the bell whether one may wait beside it: its process id is negative if not."""
    pid = abs(Doorbell(bell).client())
    try:
        descriptor = os.open(f"{bell}.lock", os.O_WRONLY | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:  # its client went meanwhile
        return
    os.write(descriptor, b"%d" % (pid if admitted else -pid))
    os.close(descriptor)


def _client_of(bell: str) -> str:
    """The kind of client that has the bell; empty where nobody noted that."""
    import json

    try:
        with open(f"{bell.removesuffix('.bell')}.json", encoding="utf-8") as file:
            return str(json.load(file).get("client") or "")
    except (OSError, ValueError):
        return ""


_PATIENCE = 20.0


def wake(root: str, team: str, terminal: Terminal, secrets: Mapping[str, Any]) -> str:
    """Wake the client by the first of its ways that takes the hint, and say which; empty if none did.

    A bell is tried for every client: our wrapper listens there too.
    """
    seat = known.get(terminal.client).seat
    ways = (BELL, *(way for way in (seat.ways if seat else ()) if way != BELL))
    return next((way for way in ways if _TAKES[way](root, team, terminal, secrets)), "")


def way_to_stop(root: str, team: str, terminal: Terminal, secrets: Mapping[str, Any]) -> str:
    """The first of the ways to interrupt the client that is within reach; empty if none is."""
    seat = known.get(terminal.client).seat
    ways = seat.stops if seat else ()
    return next((way for way in ways if _REACHES[way](root, team, terminal, secrets)), "")


def stop(way: str, root: str, team: str, terminal: Terminal, secrets: Mapping[str, Any]) -> bool:
    """Interrupt the client by that way: it ends what it does, and takes a turn for the line."""
    return _STOPS[way](root, team, terminal, secrets)


def _has_waiter(root: str, team: str, terminal: Terminal, secrets: Mapping[str, Any]) -> bool:
    """Whether what the client runs beside itself waits at the bell: our wrapper, which does so too, only types."""
    path = bindings.kept(root, team, terminal.agent, "bell")
    return is_heard(path) and Doorbell(path).client() > 0


def _ring_to_stop(root: str, team: str, terminal: Terminal, secrets: Mapping[str, Any]) -> bool:
    return ring(bindings.kept(root, team, terminal.agent, "bell"), STOP)


def _ring(root: str, team: str, terminal: Terminal, secrets: Mapping[str, Any]) -> bool:
    return ring(bindings.kept(root, team, terminal.agent, "bell"))


def _queue(root: str, team: str, terminal: Terminal, secrets: Mapping[str, Any]) -> bool:
    """Have the client's own command put the line into the queue of its session."""
    import subprocess

    program = secrets.get("program") or []
    if not program or not terminal.session_id:
        return False
    words = [*program, "queue", "--thread", terminal.session_id, "--message", LINE]
    try:
        done = subprocess.run(
            words,
            env=dict(secrets.get("environ") or {}),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_PATIENCE,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def _has_socket(root: str, team: str, terminal: Terminal, secrets: Mapping[str, Any]) -> bool:
    """Whether the client has a socket, and does not ask its person about what comes by it."""
    from teams_cli.agents.seats import lines, terminals

    address, seat = str(secrets.get("socket") or ""), known.get(terminal.client).seat
    holds = seat.socket.holds if seat and seat.socket else frozenset()
    if not address or not holds.isdisjoint(terminals.words_of(terminal.pid)):
        return False
    return lines.is_there(address)


def _send(root: str, team: str, terminal: Terminal, secrets: Mapping[str, Any]) -> bool:
    """Write the line to the client's socket, as its own sessions write to each other."""
    return _write(terminal, secrets, {})


def _send_to_stop(root: str, team: str, terminal: Terminal, secrets: Mapping[str, Any]) -> bool:
    return _write(terminal, secrets, {"priority": "now"})


def _write(terminal: Terminal, secrets: Mapping[str, Any], more: Mapping[str, Any]) -> bool:
    from teams_cli.agents.seats import lines

    address = str(secrets.get("socket") or "")
    if not address:
        return False
    said: dict[str, Any] = {"type": "user", "message": {"role": "user", "content": LINE}, **more}
    proof: dict[str, Any] = {"type": "auth", "token": secrets.get("socketToken")}
    seat = known.get(terminal.client).seat
    if seat and seat.socket and seat.socket.framed:
        proof, said = {"msgV": 1, **proof}, {"msgV": 1, "msgId": os.urandom(8).hex(), **said}
    try:
        with lines.connected(address, 5) as line:
            line.sendall("".join(json.dumps(part) + "\n" for part in (proof, said)).encode())
    except (OSError, ValueError):
        return False
    return True


def _address_of_daemon(terminal: Terminal, secrets: Mapping[str, Any]) -> str:
    """Where the daemon that runs the client's sessions listens; empty if it has none."""
    seat = known.get(terminal.client).seat
    if seat is None or seat.daemon is None or not terminal.session_id:
        return ""
    return seat.daemon.address(secrets.get("environ") or {})


def _has_daemon(root: str, team: str, terminal: Terminal, secrets: Mapping[str, Any]) -> bool:
    from teams_cli.agents.seats import lines

    address = _address_of_daemon(terminal, secrets)
    return bool(address) and lines.is_there(address)


def _start_turn(root: str, team: str, terminal: Terminal, secrets: Mapping[str, Any]) -> bool:
    """Have the daemon that runs the client's sessions begin a turn with the line."""
    return _begin(terminal, secrets, False)


def _start_instead(root: str, team: str, terminal: Terminal, secrets: Mapping[str, Any]) -> bool:
    return _begin(terminal, secrets, True)


def _begin(terminal: Terminal, secrets: Mapping[str, Any], instead: bool) -> bool:
    address = _address_of_daemon(terminal, secrets)
    return bool(address) and start_turn(address, terminal.session_id or "", LINE, instead)


def _post(root: str, team: str, terminal: Terminal, secrets: Mapping[str, Any]) -> bool:
    """Have the client's own server prompt its session with the line."""
    import base64
    import http.client

    host, port, password = secrets.get("server") or ("", 0, "")
    if not port or not terminal.session_id:
        return False
    head = {"Content-Type": "application/json"}
    if password:
        head["Authorization"] = "Basic " + base64.b64encode(f"opencode:{password}".encode()).decode()
    line = http.client.HTTPConnection(str(host), int(port), timeout=5)
    try:
        body = json.dumps({"parts": [{"type": "text", "text": LINE}]})
        line.request("POST", f"/session/{terminal.session_id}/prompt_async", body, head)
        return line.getresponse().status in (200, 204)
    except (OSError, http.client.HTTPException):
        return False
    finally:
        line.close()


_REACHES = {BELL: _has_waiter, SOCKET: _has_socket, CONTROL: _has_daemon}
_STOPS = {BELL: _ring_to_stop, SOCKET: _send_to_stop, CONTROL: _start_instead}
_TAKES = {BELL: _ring, QUEUE: _queue, CONTROL: _start_turn, SOCKET: _send, HTTP: _post}
_CONTROL_PATIENCE = 5.0
_HANDSHAKE = (
    "GET / HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {key}\r\n\r\n"
)
_MOST = 1 << 24
_TEXT, _CONTINUES, _CLOSES, _PING, _PONG = 1, 0, 8, 9, 10
_LAST, _MASKED = 0x80, 0x80


def start_turn(address: str, thread: str, text: str, instead: bool = False) -> bool:
    """Have the daemon start a turn of that thread with the text, *instead* of the one that runs if so asked; whether it
    said that it did.
    """
    try:
        with connected(address, _CONTROL_PATIENCE) as line:
            control = _Control(line)
            control.ask("initialize", {"clientInfo": {"name": "teams", "title": "teams", "version": "1"}})
            control.say({"method": "initialized"})
            control.ask("thread/resume", {"threadId": thread})
            if instead:
                _end_turn(control, thread)
            control.ask("turn/start", {"threadId": thread, "input": [{"type": "text", "text": text}]})
    except (OSError, ValueError, struct.error):
        return False
    return True


def _end_turn(control: _Control, thread: str) -> None:
    """End the turn of the thread that runs, if one does."""
    turns = control.ask("thread/turns/list", {"threadId": thread, "limit": 1}).get("data") or []
    for turn in turns:
        if turn.get("status") == "inProgress":
            control.ask("turn/interrupt", {"threadId": thread, "turnId": turn["id"]})


class _Control:
    """The connection. Whatever is not as it should be is a ValueError."""

    def __init__(self, line: socket.socket) -> None:
        self._line = line
        self._asked = 0
        line.sendall(_HANDSHAKE.format(key=base64.b64encode(os.urandom(16)).decode()).encode())
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            head += self._read(1)
        if b" 101 " not in head.partition(b"\r\n")[0]:
            raise ValueError("it speaks no WebSocket")

    def ask(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """Call a method, and wait for its result."""
        self._asked += 1
        self.say({"id": self._asked, "method": method, "params": params})
        while True:
            said = json.loads(self._message())
            if said.get("id") == self._asked and "method" not in said:
                if "error" in said:
                    raise ValueError(f"{method} was refused")
                return dict(said.get("result") or {})

    def say(self, said: Mapping[str, Any]) -> None:
        """Send a message."""
        self._send(_TEXT, json.dumps(said).encode())

    def _send(self, kind: int, data: bytes) -> None:
        """Send a frame, masked, as what a client sends has to be."""
        size = len(data)
        if size < 126:
            head = struct.pack(">BB", _LAST | kind, _MASKED | size)
        else:
            head = struct.pack(">BBH", _LAST | kind, _MASKED | 126, size)
        mask = os.urandom(4)
        self._line.sendall(head + mask + bytes(byte ^ mask[place % 4] for place, byte in enumerate(data)))

    def _message(self) -> bytes:
        """The next message, of one frame or several."""
        found = b""
        while True:
            kind, is_last, data = self._frame()
            if kind == _CLOSES:
                raise ValueError("it hung up")
            if kind == _PING:
                self._send(_PONG, data)
            elif kind in (_TEXT, _CONTINUES):
                found += data
                if is_last:
                    return found

    def _frame(self) -> tuple[int, bool, bytes]:
        first, size = self._read(2)
        if size == 126:
            (size,) = struct.unpack(">H", self._read(2))
        elif size == 127:
            (size,) = struct.unpack(">Q", self._read(8))
        if size > _MOST:
            raise ValueError("it says too much")
        return first & 0x0F, bool(first & _LAST), self._read(size)

    def _read(self, size: int) -> bytes:
        found = b""
        while len(found) < size:
            part = self._line.recv(size - len(found))
            if not part:
                raise ValueError("it hung up")
            found += part
        return found
