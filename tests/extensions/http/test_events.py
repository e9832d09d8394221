"""The stream of events loses no event and repeats none."""

from __future__ import annotations

import json
import os
import signal
import threading
from pathlib import Path

import pytest

from tests.support.cli import ALPHA, Cli, add_tasks
from tests.support.serving import Events, Server
from tests.support.waits import until

HISTORY = ["team created", "member joined", "member joined", "task created", "message sent", "status announced"]


def test_events_say_what_changes(cli: Cli, server: Server) -> None:
    """A stream goes on behind the last event seen; at an unknown position, all must be read again."""
    with Events(server) as live:
        add_tasks(cli, "one")
        first = live.next()
        assert first["event"] == "change" and json.loads(first["data"])["task"] == "task-1"
        server.post("/api/send-message?as=bob", {"to": "mia", "text": "x"})
        cli.ok("announce", "busy", agent="mia")
        assert live.whats(2) == ["message sent", "status announced"]
    with Events(server, 0) as whole:
        assert whole.whats(6) == HISTORY
    with Events(server, first["id"]) as resumed:
        assert resumed.whats(2) == ["message sent", "status announced"]
    with Events(server, query=f"?team={ALPHA}&lastEventId={first['id']}") as resumed:
        assert resumed.whats(1) == ["message sent"]
    board = server.get("/api/board")
    with Events(server, board["position"]) as since:
        cli.ok("announce", "still busy", agent="mia")
        assert since.whats(1) == ["status announced"]
    for seen in (10_000_000, "nonsense", "-1"):  # a position that is not there
        with Events(server, seen) as stream:
            reset = stream.next()
            assert reset["event"] == "reset" and json.loads(reset["data"]) == {"position": int(reset["id"])}
            cli.ok("announce", "hello", agent="bob")
            assert stream.whats(1) == ["status announced"]


def test_another_history_as_long_as_the_last_one_is_noticed(cli: Cli, server: Server) -> None:
    """Such a history comes from a backup, or from a server of a database that crashed and lost its newest notes."""
    cli.ok("announce", "one", agent="bob")
    with Events(server) as stream:
        os.kill(server.pid, signal.SIGSTOP)
        history = Path(cli.root, f"teams/{ALPHA}/history.jsonl")
        history.write_text(history.read_text().replace('"one"', '"two"'))
        os.kill(server.pid, signal.SIGCONT)
        assert stream.next()["event"] == "reset"


@pytest.mark.slow
def test_nothing_is_lost_or_told_twice_by_coming_back(cli: Cli, server: Server) -> None:
    """A reader that reconnects again and again, also to a restarted server, gets each event once."""
    count, seen, told = 60, 0, []

    def write() -> None:
        for n in range(count):
            add_tasks(cli, f"task {n}")

    writer = threading.Thread(target=write)
    writer.start()
    replaced = server
    while len(told) < count:
        if len(told) == 30 and replaced is server:
            assert server.end() == 0
            replaced = Server(cli)
        with Events(replaced, seen) as stream:
            for _ in range(7 if len(told) < count - 7 else count - len(told)):
                event = stream.next()
                seen, entry = int(event["id"]), json.loads(event["data"])
                if entry["what"] == "task created":
                    told.append(entry["task"])
                if len(told) in (30, count):
                    break
    writer.join()
    assert told == [f"task-{n}" for n in range(1, count + 1)]
    assert replaced.end() == 0


@pytest.mark.slow
def test_200_streams(cli: Cli, server: Server) -> None:
    """200 streams share few threads and little memory; more than 300 are refused."""
    server.get("/api/board")
    before = server.memory()
    streams = [Events(server) for _ in range(200)]
    try:
        threads = len(os.listdir(f"/proc/{server.pid}/task"))
        for n in range(3):
            cli.ok("announce", f"line {n}", agent="bob")
            assert {json.loads(stream.next()["data"])["status"] for stream in streams} == {f"line {n}"}
        assert server.memory() - before < 32 * 1024 * 1024 and threads < 20
        assert server.get("/api/list-agents")["agents"]
        streams += [Events(server) for _ in range(100)]
        more = Events(server)
        assert more.status == 503 and more.response.getheader("Retry-After") == "1"
        more.close()
        streams.pop().close()
        until(lambda: _taken(server))
    finally:
        for stream in streams:
            stream.close()
    assert server.end() == 0


def _taken(server: Server) -> bool:
    with Events(server) as stream:
        return stream.status == 200
