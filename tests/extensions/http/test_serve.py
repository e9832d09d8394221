"""How a server of `teams serve` starts, is found, and ends."""

from __future__ import annotations

import hmac
import json
import os
import signal
import socket
from pathlib import Path

import pytest

from tests.support.cli import TIMEOUT, Cli, program
from tests.support.serving import Events, Server, serving


def test_the_server_listens_at_one_local_port_only(server: Server) -> None:
    inodes = set()
    for entry in Path(f"/proc/{server.pid}/fd").iterdir():
        if (target := os.readlink(entry)).startswith("socket:["):
            inodes.add(target[8:-1])
    listening = []
    for table in ("tcp", "tcp6", "udp", "udp6"):
        for row in Path(f"/proc/{server.pid}/net/{table}").read_text().splitlines()[1:]:
            words = row.split()
            if words[9] in inodes and (words[3] == "0A" or table.startswith("udp")):
                listening.append((table, words[1]))
    assert listening == [("tcp", f"0100007F:{server.port:04X}")]


def test_a_private_server(cli: Cli) -> None:
    """A private server wants its token also for reading, except for the page itself."""
    with serving(cli, "--private") as server:
        for path in ("/api/board", "/api/agents", "/api/get-tasks", "/openapi.json", "/api/events"):
            assert server.ask("GET", path, Authorization="").refusal == (401, "wrong_token")
        assert server.ask("GET", "/", Authorization="").status == 200
        assert server.ask("GET", "/api/board").status == 200
        with Events(server, query=f"?token={server.token}") as stream:
            assert stream.status == 200
        with Events(server, query="?token=x") as stream:
            assert stream.status == 401


@pytest.mark.slow
def test_the_server_is_found_and_forgotten(cli: Cli) -> None:
    """`server.json` is for its owner alone, and has a new token at each start."""
    kept = cli.root / "server.token"
    kept.write_text("of an earlier version")
    first = Server(cli)
    path = cli.root / "server.json"
    found = json.loads(path.read_text())
    assert {"url": first.url, "token": first.token, "pid": first.pid}.items() <= found.items() and found["startedAt"]
    assert path.stat().st_mode & 0o777 == 0o600 and not kept.exists()
    proof = hmac.new(first.token.encode(), b"once", "sha256").hexdigest()
    assert first.get("/api/proof?nonce=once") == {"proof": proof}
    assert cli("doctor").status == 0
    assert first.end() == 0 and not path.exists()
    second = Server(cli)
    assert second.token != first.token and second.pid != first.pid
    assert second.end(signal.SIGINT) == 130 and not path.exists()


def test_a_second_server_is_refused_and_the_board_of_the_first_opened(cli: Cli, server: Server, tmp_path: Path) -> None:
    """Clients need one address; the opened one has the token."""
    answer = cli("serve", "--json", "--port", "0")
    assert answer.status == 11 and answer.error["code"] == "conflict" and server.url in answer.error["message"]
    opened = tmp_path / "opened"
    browser = program(tmp_path / "browser", f'echo "$1" >{opened}\n')
    answer = cli("serve", "--open", "--json", BROWSER=f"{browser} %s")
    assert (answer.status, json.loads(answer.stdout)["pid"]) == (0, server.pid)
    assert opened.read_text() == f"{server.url}/#token={server.token}\n"
    assert server.get("/api/agents") and json.loads((cli.root / "server.json").read_text())["pid"] == server.pid


@pytest.mark.slow
def test_of_two_that_start_at_once_one_serves(cli: Cli) -> None:
    started = [cli.start("serve", "--json", "--port", "0", agent="", team="") for _ in range(2)]
    lines = [process.stdout.readline() for process in started]
    serves, refused = (0, 1) if lines[0] else (1, 0)
    assert started[refused].wait(TIMEOUT) == 11
    assert json.loads((cli.root / "server.json").read_text())["pid"] == json.loads(lines[serves])["pid"]
    started[serves].terminate()
    for process in started:
        process.communicate(timeout=TIMEOUT)
    assert started[serves].returncode == 0 and not (cli.root / "server.json").exists()


@pytest.mark.slow
def test_a_killed_server_is_replaced(cli: Cli) -> None:
    """A `server.json` that names a dead or another process, or is damaged, does not keep a server from starting."""
    first = Server(cli)
    assert first.end(signal.SIGKILL) == -signal.SIGKILL
    path = cli.root / "server.json"
    left = json.loads(path.read_text())
    for stale in (json.dumps(left), json.dumps({**left, "pid": os.getpid()}), "{", "[]", '{"pid": "x", "url": 7}'):
        path.write_text(stale)
        with serving(cli) as server:
            assert json.loads(path.read_text())["pid"] == server.pid
            assert server.end() == 0


@pytest.mark.slow
def test_the_next_free_port(cli: Cli) -> None:
    """If its port is taken, the server uses the next free one, tells the person, and writes it to `server.json`."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with serving(cli, port=port) as server:
            assert server.port > port and json.loads((cli.root / "server.json").read_text())["url"] == server.url
            server.end()
            assert f"port {port} is taken" in server.said


def test_what_serve_refuses(cli: Cli, tmp_path: Path) -> None:
    assert cli("serve", "--port", "65536", "--json").error["code"] == "invalid_value"
    blocked = tmp_path / "blocked" / "starlette"
    blocked.mkdir(parents=True)
    (blocked / "__init__.py").write_text("raise ModuleNotFoundError('no', name='starlette')")
    answer = cli("serve", "--port", "0", "--json", PYTHONPATH=f"{blocked.parent}:{os.getcwd()}")
    assert answer.error["code"] == "extension_missing" and "install" in answer.error["hint"]
    assert not (cli.root / "server.json").exists()
