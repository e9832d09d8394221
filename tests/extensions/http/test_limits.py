"""`teams serve` with slow clients, many connections and generated requests."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.support.cli import ALPHA, Cli, add_tasks
from tests.support.serving import Server, received
from tests.support.waits import until

pytestmark = pytest.mark.slow
MEGABYTE = 1024 * 1024


def _sockets(server: Server) -> int:
    found = 0
    for entry in os.listdir(f"/proc/{server.pid}/fd"):
        try:
            found += os.readlink(f"/proc/{server.pid}/fd/{entry}").startswith("socket:")
        except FileNotFoundError:
            continue
    return found


def test_a_client_that_does_not_finish_its_request(server: Server) -> None:
    """The server ends connections that are silent, send one byte at a time, or stop in the middle of a request."""
    whole = f"GET /api/agents HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n\r\n"
    head = f"POST /api/send-message HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nContent-Type: application/json\r\n"
    head += f"Authorization: Bearer {server.token}\r\nContent-Length: 100\r\n\r\n" + '{"to": '
    silent, partial, kept, half = (server.connect() for _ in range(4))
    partial.sendall(b"GET /api/agents HT")
    kept.sendall(whole.encode() + b"GET /")
    half.sendall(head.encode())
    with server.connect() as dripping, pytest.raises(OSError):
        for letter in whole[:-2] * 10:
            dripping.sendall(letter.encode())
            time.sleep(0.2)  # the client's own pace
    assert received(silent) == received(partial) == b""
    assert received(kept).startswith(b"HTTP/1.1 200")
    assert received(half).startswith(b"HTTP/1.1 408")
    assert server.get("/api/agents")


def test_a_reader_that_takes_nothing_is_dropped(cli: Cli, server: Server) -> None:
    """A reader that takes no events is disconnected, and the server keeps none in memory for it."""
    for n in range(12_000):
        cli.store().journal(ALPHA, {"at": "2030-01-01T00:00:00.000Z", "actor": "bob", "what": "x" * 1000, "n": n})
    server.get("/api/board")
    before, open_before = server.memory(), _sockets(server)
    with ExitStack() as held:
        for _ in range(20):
            reader = held.enter_context(socket.socket())
            reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            reader.connect(("127.0.0.1", server.port))
            reader.sendall(f"GET /api/events?lastEventId=0 HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n\r\n".encode())
        until(lambda: _sockets(server) > open_before + 1)
        until(lambda: _sockets(server) <= open_before, "the readers are dropped", timeout=120)
    assert server.memory() - before < 16 * MEGABYTE
    assert server.get("/api/agents")


def test_more_connections_than_there_may_be(server: Server) -> None:
    """A connection above the limit is answered with 503; connections are accepted again once others end."""
    held = [server.connect() for _ in range(512)]
    until(lambda: _sockets(server) > 512)
    refused = server.connect()
    refused.sendall(b"GET / HTTP/1.1\r\n")
    assert received(refused).startswith(b"HTTP/1.1 503")
    for connection in held:
        connection.close()
    until(lambda: server.ask("GET", "/api/agents").status == 200)


@pytest.mark.slow(first=True)
def test_requests_that_were_made_up(cli: Cli, server: Server, tmp_path: Path) -> None:
    """No request that schemathesis generates from the description is answered with 5xx or with an undescribed
    answer.

    Requests that start processes or never end are tested elsewhere.
    """
    add_tasks(cli, "a", "b")
    command = Path(sys.executable).with_name("schemathesis")
    checks = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"
    words = [command, "run", f"{server.url}/openapi.json", "-H", f"Authorization: Bearer {server.token}"]
    words += ["--checks", checks, "--phases", "coverage,fuzzing", "--max-examples", "5", "--generation-deterministic"]
    words += [word for path in ("events", "run-agent", "spawn") for word in ("--exclude-path", f"/api/{path}")]
    words += ["--no-color"]
    environ = {**os.environ, "SCHEMATHESIS_HOOKS": "tests.extensions.http.fuzz_hooks", "PYTHONPATH": os.getcwd()}
    done = subprocess.run(words, cwd=tmp_path, env=environ, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]
    assert server.get("/api/board?team=alpha") and server.end() == 0 and "bug" not in server.said
