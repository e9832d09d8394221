"""Doorbells, which wake a client, and the control socket of a daemon, where a turn of a client is started."""

from __future__ import annotations

import json
import os
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from teams_cli.agents.seats import doorbells
from teams_cli.agents.seats.channels import start_turn
from teams_cli.agents.seats.doorbells import Doorbell

LONG = "x" * 300


class Daemon:
    """A daemon that answers like Codex's, between notices and pings; some methods it *refuses*."""

    def __init__(self, path: Path, *refuses: str) -> None:
        self.refuses = refuses
        self.turns: list[dict[str, Any]] = []
        self.asked: list[dict[str, Any]] = []
        self.door = socket.socket(socket.AF_UNIX)
        self.door.bind(str(path))
        self.door.listen()
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self) -> None:
        with self.door:
            line, _ = self.door.accept()
        with line, suppress(ConnectionError):
            line.recv(4096)
            line.sendall(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n")
            while said := self.hear(line):
                self.asked.append(said)
                self.tell(line, {"method": "thread/status/changed", "params": {"id": said.get("id")}})
                line.sendall(b"\x89\x00")
                found = {"long": LONG, "data": self.turns}
                what = {"error": {"code": -1}} if said["method"] in self.refuses else {"result": found}
                if "id" in said:
                    self.tell(line, {"id": said["id"], **what})

    def hear(self, line: socket.socket) -> dict[str, Any] | None:
        """The next message, or None at the end; answers to pings are skipped."""
        while head := line.recv(2):
            size = head[1] & 0x7F
            if size == 126:
                (size,) = struct.unpack(">H", line.recv(2))
            mask, data = line.recv(4), line.recv(size) if size else b""
            if head[0] == 0x81:
                return json.loads(bytes(b ^ mask[n % 4] for n, b in enumerate(data)))
        return None

    def tell(self, line: socket.socket, said: dict[str, Any]) -> None:
        """Send *said* in two frames."""
        data = json.dumps(said).encode()
        line.sendall(struct.pack(">BB", 1, 5) + data[:5] + struct.pack(">BBH", 0x80, 126, len(data) - 5) + data[5:])


@pytest.fixture
def place() -> Iterator[Path]:
    """A path for a socket; such a path must be short."""
    with TemporaryDirectory() as made:
        yield Path(made) / "sock"


def test_a_turn_is_started_instead_of_the_one_that_runs(place: Path) -> None:
    daemon = Daemon(place)
    daemon.turns = [{"id": "u-7", "status": "inProgress"}]
    assert start_turn(str(place), "t-1", "mail", interrupts=True)
    listed, ended, began = daemon.asked[-3:]
    assert (listed["method"], listed["params"]["threadId"]) == ("thread/turns/list", "t-1")
    assert (ended["method"], ended["params"]) == ("turn/interrupt", {"threadId": "t-1", "turnId": "u-7"})
    assert began["method"] == "turn/start"
    os.remove(place)
    daemon = Daemon(place)
    daemon.turns = [{"id": "u-7", "status": "completed"}]
    assert start_turn(str(place), "t-1", "mail", interrupts=True)
    assert [said["method"] for said in daemon.asked[-2:]] == ["thread/turns/list", "turn/start"]


def test_no_turn_is_started_if_the_daemon_refuses_it_or_is_gone(place: Path) -> None:
    assert not start_turn(str(place), "t-1", "mail")
    Daemon(place, "turn/start")
    assert not start_turn(str(place), "t-1", "mail")
    os.remove(place)
    Daemon(place, "turn/interrupt").turns = [{"id": "u-7", "status": "inProgress"}]
    assert not start_turn(str(place), "t-1", "mail", interrupts=True)
    os.remove(place)
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(str(place))
        door.listen()
        threading.Thread(target=lambda: door.accept()[0].close(), daemon=True).start()
        assert not start_turn(str(place), "t-1", "mail")


PID = 4711


def test_nobody_waits_for_a_client_whose_hooks_were_taken_out_until_they_are_back(tmp_path: Path) -> None:
    bells = {client: Doorbell(str(tmp_path / f"{client}.bell")) for client in ("claude", "codex")}
    for client, bell in bells.items():
        (tmp_path / f"{client}.json").write_text(json.dumps({"client": client}))
        assert bell.listen(PID)
    doorbells.dismiss(str(tmp_path), "claude")
    assert bells["claude"].wait(100) == doorbells.LEAVE and bells["codex"].wait(0) == b""
    for bell in bells.values():
        bell.close()
    assert bells["claude"].is_dismissed(PID) and not bells["codex"].is_dismissed(PID)
    assert not bells["claude"].is_dismissed(PID + 1)
    doorbells.dismiss(str(tmp_path), "claude")
    doorbells.readmit(str(tmp_path), "claude")
    assert not bells["claude"].is_dismissed(PID) and bells["claude"].client_pid() == PID
