"""The ways to wake a client: each gives it one constant line to take a turn for, and says whether it was taken."""

from __future__ import annotations

import json
import os

from teams_cli.agents.terminals import bindings, doorbells
from teams_cli.agents.terminals.doorbells import LINE
from teams_cli.clients import known
from teams_cli.clients.seats import BELL, CONTROL, HTTP, QUEUE, SOCKET
from teams_cli.records.annotations import Any, Mapping

TYPE_CHECKING = False
if TYPE_CHECKING:
    from teams_cli.agents.terminals.terminals import Terminal

_PATIENCE = 20.0


def wake(root: str, team: str, terminal: Terminal, secrets: Mapping[str, Any]) -> str:
    """Wake the client by the first of its ways that takes the hint, and say which; empty if none did.

    A bell is tried for every client: our wrapper listens there too.
    """
    seat = known.get(terminal.client).seat
    ways = (BELL, *(way for way in (seat.ways if seat else ()) if way != BELL))
    return next((way for way in ways if _TAKES[way](root, team, terminal, secrets)), "")


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


def _send(root: str, team: str, terminal: Terminal, secrets: Mapping[str, Any]) -> bool:
    """Write the line to the client's socket, as its own sessions write to each other."""
    import socket

    address = str(secrets.get("socket") or "")
    if not address:
        return False
    said: dict[str, Any] = {"type": "user", "message": {"role": "user", "content": LINE}}
    proof: dict[str, Any] = {"type": "auth", "token": secrets.get("socketToken")}
    seat = known.get(terminal.client).seat
    if seat and seat.framed:
        proof, said = {"msgV": 1, **proof}, {"msgV": 1, "msgId": os.urandom(8).hex(), **said}
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as line:
            line.settimeout(5)
            line.connect(address)
            line.sendall("".join(json.dumps(part) + "\n" for part in (proof, said)).encode())
    except (OSError, ValueError):
        return False
    return True


def _start_turn(root: str, team: str, terminal: Terminal, secrets: Mapping[str, Any]) -> bool:
    """Have the daemon that runs the client's sessions begin a turn with the line."""
    from teams_cli.agents.terminals import control

    seat, own = known.get(terminal.client).seat, secrets.get("environ") or {}
    if seat is None or not seat.control or not terminal.session_id:
        return False
    home, directory, path = seat.control
    top = own.get(home) or f"{own.get('HOME', '')}/{directory}"
    return control.start_turn(f"{top}/{path}", terminal.session_id, LINE)


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


_TAKES = {BELL: _ring, QUEUE: _queue, CONTROL: _start_turn, SOCKET: _send, HTTP: _post}
