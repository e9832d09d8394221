"""The ways to wake a client, and to interrupt one: each gives it one constant line to take a turn for, and says whether
it was taken.
"""

from __future__ import annotations

import json
import os

from teams_cli.agents.seats import bindings, doorbells
from teams_cli.agents.seats.doorbells import LINE
from teams_cli.clients import known
from teams_cli.clients.seats import BELL, CONTROL, HTTP, QUEUE, SOCKET

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from teams_cli.agents.seats.terminals import Terminal

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
    return doorbells.is_heard(path) and doorbells.Doorbell(path).client() > 0


def _ring_to_stop(root: str, team: str, terminal: Terminal, secrets: Mapping[str, Any]) -> bool:
    return doorbells.ring(bindings.kept(root, team, terminal.agent, "bell"), doorbells.STOP)


def _ring(root: str, team: str, terminal: Terminal, secrets: Mapping[str, Any]) -> bool:
    return doorbells.ring(bindings.kept(root, team, terminal.agent, "bell"))


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
    from teams_cli.agents.seats import clients_here, lines

    address, seat = str(secrets.get("socket") or ""), known.get(terminal.client).seat
    holds = seat.socket.holds if seat and seat.socket else frozenset()
    if not address or not holds.isdisjoint(clients_here.words_of(terminal.pid)):
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
    from teams_cli.agents.seats import control

    address = _address_of_daemon(terminal, secrets)
    return bool(address) and control.start_turn(address, terminal.session_id or "", LINE, instead)


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
