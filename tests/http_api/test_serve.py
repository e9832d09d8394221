"""`teams serve`: real servers, asked by real clients."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from teams_cli.serving import requests
from tests.support.agents import end_all, ended, place, session, team_of_agents, until
from tests.support.cli import ALPHA, TIMEOUT, Cli, add_tasks, tree
from tests.support.serving import Events, Reply, Server, received, serving

BUSY = "touch $D/busy; while [ ! -e $D/go ]; do sleep 0.05; done;"
LISTENS = f"test $TEAMS_RESUME && cat >>$D/given || {{ {BUSY} }}"
HISTORY = ["team created", "member joined", "member joined", "task created", "message sent", "status announced"]


@pytest.fixture
def cli(tmp_path: Path) -> Iterator[Cli]:
    cli = team_of_agents(tmp_path, "bob", "mia")
    yield cli
    end_all(cli.root)


@pytest.fixture
def server(cli: Cli) -> Iterator[Server]:
    with serving(cli) as server:
        yield server


def message(server: Server, to: str, body: Any, query: str = "") -> Reply:
    return server.ask("POST", f"/api/agents/{to}/message{query}", body)


def test_the_seven_steps_of_janus(tmp_path: Path) -> None:
    """Two agents; each sees both; one writes to the other, which is interrupted and has it as its next turn; the
    sender is told at once; an unknown name is refused with those that there are; and curl sees the same.
    """
    cli = team_of_agents(tmp_path, "janus")
    try:
        with serving(cli) as server:
            # 1. two agents, of which one works in a turn of its own
            cli.ok("run-agent", LISTENS, "--agent-id", "puppet", "--detach", agent="lea")
            until((place(cli) / "busy").exists)
            # 2. both are listed
            rows = {row["name"]: row for row in server.get("/api/agents")}
            assert rows["puppet"]["status"] == "active" and rows["janus"]["status"] == "idle"
            # 3. and 5. a message, delivered at once
            said = {"message": "hello from janus", "sender": "janus"}
            sent = message(server, "puppet", said, "?interrupt=true")
            expected = {"delivered": True, "target": "puppet", "id": "msg-1", "number": 1, "interrupted": True}
            assert (sent.status, sent.json) == (200, expected)
            # 4. the running turn ended for it, and it is the next
            assert ended(cli, "puppet").turns == 2
            given = json.loads((place(cli) / "given").read_text())
            assert [(m["from"], m["message"]) for m in given] == [("janus", said["message"])]
            # 6. an agent that there is not
            missing = message(server, "muppet", {"message": "hello", "sender": "janus"})
            assert missing.status == 404 and missing.json["delivered"] is False
            assert missing.json["error"] == 'Agent "muppet" not found'
            assert missing.json["available"] == ["lea", "janus", "puppet"]
            # 7. curl
            if curl := shutil.which("curl"):
                url = f"http://localhost:{server.port}/api/agents"
                shown = subprocess.run([curl, "-sS", url], capture_output=True, timeout=TIMEOUT, check=True).stdout
                assert [row["name"] for row in json.loads(shown)] == ["lea", "janus", "puppet"]
    finally:
        end_all(cli.root)


def test_a_message_queues_unless_it_shall_interrupt(cli: Cli, server: Server) -> None:
    """It is in the inbox either way; the team's setting says what happens when nobody does, also at the shell."""
    cli.ok("run-agent", LISTENS, "--agent-id", "zoe", "--detach", agent="lea")
    until((place(cli) / "busy").exists)
    told = {"message": "true", "sender": "bob"}
    assert message(server, "zoe", told).json["interrupted"] is False
    assert message(server, "zoe", told, "?interrupt=false").json["interrupted"] is False
    assert session(cli, "zoe").turns == 1 and len(cli.ok("read-messages", "--peek", agent="zoe")) == 2
    cli.ok("set", "delivery", "interject", agent="lea")
    assert message(server, "zoe", told, "?interrupt=false").json["interrupted"] is False
    assert message(server, "zoe", told).json["interrupted"] is True
    assert ended(cli, "zoe").turns == 2
    given = json.loads((place(cli) / "given").read_text())
    assert [m["number"] for m in given] == [1, 2, 3, 4]
    (place(cli) / "busy").unlink()
    cli.ok("run-agent", LISTENS, "--agent-id", "eve", "--detach", agent="lea")
    until((place(cli) / "busy").exists)
    cli.ok("send-message", "eve", "true", agent="bob")
    assert ended(cli, "eve").turns == 2
    assert message(server, "mia", told).json["interrupted"] is False
    assert cli.refused("set", "delivery", "pigeon", agent="lea") == (2, "invalid_value")


def test_an_idle_agent_is_resumed_by_a_message(cli: Cli, server: Server) -> None:
    """No turn ends for it, whatever was asked for; one that was stopped has it in its inbox, and stays stopped."""
    assert cli("run-agent", "test $TEAMS_RESUME && cat >>$D/given; true", "--agent-id", "zoe", agent="lea").status == 0
    assert message(server, "zoe", {"message": "1", "sender": "bob"}).json["interrupted"] is False
    assert ended(cli, "zoe", 2).turns == 2
    assert message(server, "zoe", {"message": "2", "sender": "bob"}, "?interrupt=true").json["interrupted"] is False
    assert ended(cli, "zoe", 3).turns == 3 and '"2"' in (place(cli) / "given").read_text()
    assert cli("stop-agent", "zoe", agent="lea").status == 0
    late = message(server, "zoe", {"message": "3", "sender": "bob"}, "?interrupt=true")
    assert late.json["interrupted"] is False and session(cli, "zoe").generation == 3
    assert [m["message"] for m in cli.ok("read-messages", "--peek", agent="zoe")][-1] == "3"


def test_who_may_not_interrupt(cli: Cli, server: Server) -> None:
    """Is refused if it asks for it, and nothing is stored; what only the setting asks for waits instead."""
    cli.ok("define-role", "quiet", "--deny", "interject", agent="lea")
    cli.ok("join-team", "--role", "quiet", agent="eve")
    cli.ok("run-agent", LISTENS, "--agent-id", "zoe", "--detach", agent="lea")
    until((place(cli) / "busy").exists)
    told = {"message": "x", "sender": "eve"}
    refused = message(server, "zoe", told, "?interrupt=true")
    assert (refused.status, refused.json["code"]) == (403, "not_allowed")
    assert cli.ok("read-messages", "--peek", agent="zoe") == []
    cli.ok("set", "delivery", "interject", agent="lea")
    assert message(server, "zoe", told).json["interrupted"] is False and session(cli, "zoe").turns == 1
    assert [m["from"] for m in cli.ok("read-messages", "--peek", agent="zoe")] == ["eve"]
    (place(cli) / "go").touch()
    assert ended(cli, "zoe").turns == 2


def test_messages_that_are_not_delivered(cli: Cli, server: Server) -> None:
    incomplete = {"delivered": False, "error": "Missing message or sender"}
    for body in (
        {},
        {"message": "x"},
        {"sender": "bob"},
        {"message": " ", "sender": "bob"},
        {"message": 1, "sender": 2},
    ):
        reply = message(server, "mia", body)
        assert (reply.status, reply.json) == (400, incomplete)
    reply = message(server, "bob", {"message": "x", "sender": "bob"})
    assert (reply.status, reply.json) == (400, {"delivered": False, "error": "Cannot send message to self"})
    for body, query, status, code in [
        (b"{", "", 400, "not_json"),
        (b"[]", "", 400, "not_json"),
        ({"message": "x", "sender": "bob"}, "?interrupt=perhaps", 400, "invalid_value"),
        ({"message": "x", "sender": "stranger"}, "", 403, "not_allowed"),
        ({"message": "x", "sender": "bob", "uid": "a b"}, "", 400, "invalid_value"),
        ({"message": "x" * 70_000, "sender": "bob"}, "", 400, "invalid_value"),
        ({"message": "x", "sender": "bob"}, "?team=other", 404, "team_not_found"),
    ]:
        reply = message(server, "mia", body, query)
        assert (reply.status, reply.json["delivered"], reply.json["code"]) == (status, False, code), reply
        assert reply.json["error"] and reply.json["hint"]
    assert cli.ok("read-messages", "--peek", agent="mia") == []
    twice = [message(server, "mia", {"message": "x", "sender": "bob", "uid": "u1"}).json["id"] for _ in range(2)]
    assert twice == ["msg-1", "msg-1"]
    reply = message(server, "mia", {"message": "y", "sender": "bob", "uid": "u1"})
    assert (reply.status, reply.json["code"]) == (409, "uid_taken")


def test_commands_are_what_they_are_at_the_shell(cli: Cli, server: Server) -> None:
    made = server.post("/api/create-task", {"title": "t", "blockedBy": [], "priority": "high"})
    assert made == cli.ok("show-task", "1") == server.get("/api/show-task?task=1")
    assert server.get("/api/get-tasks?status=pending&ready=true&limit=3") == [made]
    claimed = server.post("/api/claim-task?as=bob", {"task": "1"})
    assert (claimed["status"], claimed["owner"]) == ("in_progress", "bob")
    server.post("/api/update-task?as=bob", {"task": "1", "status": "completed", "result": "täglich ☃"})
    assert cli.ok("show-task", "1")["result"] == "täglich ☃"
    assert server.get("/api/whoami?as=bob")["role"] == "team-member" and server.get("/api/whoami")["agentId"] == "human"
    server.post("/api/send-message?as=bob", {"to": "mia", "text": "hi"})
    assert [m["message"] for m in server.post("/api/read-messages?as=mia")] == ["hi"]
    assert [row["name"] for row in server.get("/api/list-agents")["agents"]] == ["lea", "bob", "mia"]
    assert server.get("/api/discover-teams")[0]["name"] == ALPHA
    joined = server.post("/api/join-team?as=new", {"teamName": ALPHA, "name": "New One"})
    assert (joined["agentId"], joined["agentName"], joined["team"]) == ("new", "New One", ALPHA)


REFUSED: list[tuple[str, str, Any, tuple[int, str]]] = [
    ("POST", "/api/claim-task?as=mia", {"task": "9"}, (404, "task_not_found")),
    ("POST", "/api/claim-task?as=mia", {"task": "1"}, (409, "task_claimed")),
    ("POST", "/api/claim-task", {"task": "1"}, (403, "not_allowed")),
    ("POST", "/api/claim-task?as=nobody", {"task": "1"}, (403, "not_allowed")),
    ("POST", "/api/claim-task?as=mia", {}, (400, "wrong_usage")),
    ("POST", "/api/claim-task?as=mia", {"task": {"a": 1}}, (400, "invalid_value")),
    ("POST", "/api/claim-task?as=mia", {"task": "1", "more": 1}, (400, "invalid_value")),
    ("POST", "/api/ack?as=mia", {"message": []}, (400, "invalid_value")),
    ("POST", "/api/read-messages?as=mia", {"wait": 0.05}, (408, "wait_ran_out")),
    ("POST", "/api/send-message?team=nix", {"to": "mia", "text": "x"}, (404, "team_not_found")),
    ("POST", "/api/set", {"key": "nix", "value": "1"}, (400, "invalid_value")),
    ("GET", "/api/get-tasks?limit=many", None, (400, "invalid_value")),
    ("GET", "/api/get-tasks?colour=red", None, (400, "invalid_value")),
    ("GET", "/api/board?team=nix", None, (404, "team_not_found")),
    ("GET", "/api/board?team=..%2F..", None, (404, "team_not_found")),
    ("GET", "/api/events?team=nix", None, (404, "team_not_found")),
    ("GET", "/api/agents/bob/log", None, (404, "agent_not_found")),
    ("GET", "/api/agents/bob/log?lines=x", None, (400, "invalid_value")),
    ("GET", "/api/claim-task?task=1", None, (405, "wrong_method")),
    ("POST", "/api/get-tasks", {}, (405, "wrong_method")),
    ("POST", "/api/board", {}, (405, "wrong_method")),
    ("GET", "/api/serve", None, (404, "unknown_address")),
    ("GET", "/api/doctor", None, (404, "unknown_address")),
    ("GET", "/nix", None, (404, "unknown_address")),
    ("GET", "/..%2fapp.py", None, (404, "unknown_address")),
    ("DELETE", "/", None, (405, "wrong_method")),
]


def test_refusals(cli: Cli, server: Server) -> None:
    """Each with the code of the command line, and the status that fits; all of them leave every file as it was."""
    add_tasks(cli, "t")
    cli.ok("claim-task", "1", agent="bob")
    before = tree(cli.root)
    for method, path, body, expected in REFUSED:
        assert server.ask(method, path, body).refusal == expected, (method, path, body)
    assert tree(cli.root) == before


def test_a_damaged_record_is_named(cli: Cli, server: Server) -> None:
    add_tasks(cli, "t", "u")
    (cli.root / f"tasks/{ALPHA}/task-1.json").write_text("{")
    assert server.ask("GET", "/api/show-task?task=1").refusal == (500, "damaged_record")
    listed = server.ask("GET", "/api/get-tasks")
    assert [task["id"] for task in listed.json] == ["task-2"] and listed.headers["x-teams-damaged"] == "1"
    assert "task-1.json" in server.get("/api/board")["problems"][0]


def test_who_may_ask(cli: Cli, server: Server) -> None:
    """Only who calls the server by its name, from no other site, and with the token to change something."""
    own, body = f"http://127.0.0.1:{server.port}", {"to": "mia", "text": "x"}

    def post(**headers: str) -> tuple[int, str]:
        return server.ask("POST", "/api/send-message?as=bob", body, **headers).refusal

    for host in (
        f"evil.example:{server.port}",
        "127.0.0.1",
        "127.0.0.1:1",
        f"[::1]:{server.port}",
        f"127.1:{server.port}",
    ):
        assert post(Host=host) == server.ask("GET", "/", Host=host).refusal == (421, "wrong_host")
    for origin in ("http://evil.example", "null", "http://localhost:1", own + "0", own.replace("http", "https")):
        assert post(Origin=origin) == server.ask("GET", "/api/board", Origin=origin).refusal == (403, "foreign_origin")
    assert post(Sec_Fetch_Site="cross-site") == post(Sec_Fetch_Site="same-site") == (403, "foreign_origin")
    for given in ("", "Bearer", "Bearer ", "Bearer x", f"Basic {server.token}", f"Bearer {server.token}x", "Bearer ü"):
        assert post(Authorization=given) == (401, "wrong_token"), given
    assert server.ask("POST", "/api/claim-task", Authorization="").headers["www-authenticate"] == "Bearer"
    assert cli.ok("read-messages", "--peek", agent="mia") == []
    assert server.ask("POST", "/api/send-message?as=bob", body, Origin=own, Sec_Fetch_Site="same-origin").status == 200
    named = {"Host": f"localhost:{server.port}", "Origin": f"http://localhost:{server.port}"}
    assert server.ask("POST", "/api/send-message?as=bob", body, **named).status == 200


def test_what_browsers_are_told(server: Server) -> None:
    """No other page may frame, read or script the board, nor may what is in it load anything from elsewhere."""
    for path in ("/", "/board.js", "/api/board", "/nix", "/openapi.json"):
        headers = server.ask("GET", path).headers
        assert headers["content-security-policy"].startswith("default-src 'none'; script-src 'self';"), path
        assert headers["x-content-type-options"] == "nosniff" and headers["x-frame-options"] == "DENY"
        assert headers["cross-origin-resource-policy"] == "same-origin" and "server" not in headers
        assert not [name for name in headers if name.startswith("access-control")]
    assert server.ask("GET", "/").headers["content-type"].startswith("text/html")
    for path in ("/", "/api/board", "/api/events"):
        assert server.ask("HEAD", path, Authorization="").body == b""


def test_bodies_that_are_refused(cli: Cli, server: Server) -> None:
    """By their type, by what they are, and by their length, said or not; and the server goes on."""
    send, big = "/api/send-message?as=bob", 8 * 1024 * 1024 + 1
    for kind in ("text/plain", "application/x-www-form-urlencoded", ""):
        assert server.ask("POST", send, b"{}", Content_Type=kind).refusal == (415, "not_json")
    for data in (b"{", b"[1]", b'"x"', b"\xff", b'{"to": NaN}', b"[" * 100_000):
        assert server.ask("POST", send, data).refusal == (400, "not_json"), data[:9]
    assert server.ask("POST", send, b'{"to": "\\ud800", "text": "x"}').status in (400, 404)
    assert server.ask("POST", send, b'{"to": "mia", "text": "\\ud800"}').refusal == (400, "invalid_value")
    head = f"POST {send} HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nContent-Type: application/json\r\n"
    head += f"Authorization: Bearer {server.token}\r\n"
    for how, parts in [
        (f"Content-Length: {big}\r\n\r\n", []),
        ("Transfer-Encoding: chunked\r\n\r\n", [b"10000\r\n" + b"x" * 0x10000 + b"\r\n"] * 200),
    ]:
        with server.connect() as connection:
            connection.sendall((head + how).encode())
            for part in parts:
                connection.sendall(part)
            assert connection.recv(65536).startswith(b"HTTP/1.1 413 ")
    assert server.get("/api/board")["messages"] == []
    server.post(send, {"to": "mia", "text": "ä" * 30_000})


def test_what_is_no_http_is_refused(server: Server) -> None:
    for data in (
        b"\x16\x03\x01\x00\x05hello\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n",
        b"GET /\xff HTTP/1.1\r\nHost: x\r\n\r\n",
    ):
        with server.connect() as connection:
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
            assert received(connection).startswith((b"HTTP/1.1 400", b"HTTP/1.1 421"))
    with server.connect() as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nHost: x\r\nX: " + b"a" * 200_000)
        assert received(connection).startswith(b"HTTP/1.1 4")
    assert server.get("/api/board")["tasks"] == []


def test_nothing_else_listens(server: Server) -> None:
    """One socket, on 127.0.0.1."""
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


def test_events_say_what_changes(cli: Cli, server: Server) -> None:
    """Made by whomever; a stream that says what it saw goes on right behind it."""
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


def test_nothing_is_lost_or_told_twice_by_coming_back(cli: Cli, server: Server) -> None:
    """A reader that drops its stream again and again, while others write, also over a restart of the server."""
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


def test_a_position_that_is_not_there(cli: Cli, server: Server) -> None:
    """The client is told to look at everything anew, and goes on from the end."""
    for seen in (10_000_000, "nonsense", "-1"):
        with Events(server, seen) as stream:
            reset = stream.next()
            assert reset["event"] == "reset" and json.loads(reset["data"]) == {"position": int(reset["id"])}
            cli.ok("announce", "hello", agent="bob")
            assert stream.whats(1) == ["status announced"]


def test_a_history_that_was_cut(cli: Cli, server: Server) -> None:
    with Events(server, 0) as stream:
        assert stream.whats(3)[0] == "team created"
        (cli.root / f"teams/{ALPHA}/history.jsonl").unlink()
        cli.ok("announce", "anew", agent="bob")
        assert stream.next()["event"] == "reset"
        cli.ok("announce", "and on", agent="bob")
        until(lambda: json.loads(stream.next()["data"])["status"] == "and on")


def test_200_streams(cli: Cli, server: Server) -> None:
    """One change reaches all, without a thread for each, and in little memory; more than 300 are refused."""
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


def test_the_board(cli: Cli, server: Server) -> None:
    """What a person needs to see; `moves` are those that the server then makes, and no others."""
    add_tasks(cli, *"abcde")
    for n in ("1", "2", "3"):
        cli.ok("claim-task", n, agent="bob")
    cli.ok("update-task", "2", "--status", "completed", agent="bob")
    cli.ok("update-task", "3", "--status", "failed", agent="bob")
    cli.ok("update-task", "4", "--status", "cancelled", agent="human")
    cli.ok("update-task", "5", "--blocked-by", "1", agent="lea")
    cli.ok("propose-plan", "first", agent="bob")
    cli.ok("set", "broadcast", "human", agent="lea")
    cli.ok("ask-others", "why?", "--no-wait", agent="bob")
    cli.ok("request-shutdown", "mia", agent="lea")
    board = server.get("/api/board")
    assert board["team"]["name"] == ALPHA and board["settings"]["broadcast"] == "human"
    assert [agent["name"] for agent in board["agents"]] == ["lea", "bob", "mia"]
    assert board["taskCounts"] == {"pending": 1, "in_progress": 1, "completed": 1, "failed": 1, "cancelled": 1}
    assert board["tasks"][4]["openBlockers"] == ["task-1"] and board["tasks"][0]["leaseExpiresAt"]
    assert [plan["status"] for plan in board["plans"]] == ["proposed"]
    assert [q["question"] for q in board["questions"]] == ["why?"] and board["questions"][0]["expiresAt"]
    assert [s["agent"] for s in board["shutdowns"]] == ["mia"]
    assert [(m["from"], m["to"]) for m in board["messages"]] == [
        ("system", who) for who in ("lea", "lea", "lea", "mia")
    ]
    again = ["pending"]
    moves = {"task-1": again, "task-2": again, "task-3": again, "task-4": again, "task-5": ["cancelled"]}
    assert board["moves"] == moves
    for task in board["tasks"]:
        for status in ("pending", "completed", "failed", "cancelled"):
            released = (task["status"], status) == ("in_progress", "pending")
            given = {"task": task["id"]} if released else {"task": task["id"], "status": status}
            reply = server.ask("POST", f"/api/{'release-task' if released else 'update-task'}", given)
            moved = reply.status == 200 and reply.json["status"] == status != task["status"]
            assert moved == (status in moves[task["id"]]), (task, status, reply)
            if moved:
                break


def test_of_finished_tasks_the_newest(cli: Cli, server: Server) -> None:
    from teams_cli.tasks import changes as task_changes
    from teams_cli.teams.caller import Caller

    add_tasks(cli, *(f"t{n}" for n in range(103)))
    for n in range(1, 103):
        changes = task_changes.Edit(status="cancelled")
        task_changes.change_task(cli.store(), ALPHA, Caller("human"), str(n), changes)
    board = server.get("/api/board")
    assert [task["id"] for task in board["tasks"]] == [f"task-{n}" for n in range(3, 104)]
    assert board["taskCounts"]["cancelled"] == 102


def test_an_agent_is_looked_after(cli: Cli, server: Server) -> None:
    """Started, paused, resumed, interrupted and stopped over HTTP; its log shows what it printed."""
    work = {"prompt": f"echo working; {BUSY} echo done", "agentId": "zoe", "detach": True, "cwd": cli.more["D"]}
    assert server.post("/api/run-agent", work)["agent"] == "zoe"
    until((place(cli) / "busy").exists)
    until(lambda: server.get("/api/agents/zoe/log")["lines"] == ["working"])
    assert server.post("/api/pause-agent", {"agent": "zoe"})["paused"] is True
    row = server.get("/api/board")["agents"][-1]
    assert (row["name"], row["harness"], row["paused"], row["sessionState"]) == ("zoe", "shell", True, "running")
    (place(cli) / "go").touch()
    assert ended(cli, "zoe").state == "paused"
    assert server.get("/api/agents/zoe/log?lines=1") == {"agent": "zoe", "lines": ["done"]}
    server.post("/api/resume-agent", {"agent": "zoe"})
    server.post("/api/interject", {"agent": "zoe", "text": "echo more"})
    assert ended(cli, "zoe", 2).turns == 2
    assert server.post("/api/stop-agent", {"agent": "zoe"})["outcome"] == "stopped"


def test_who_waits_keeps_nobody(cli: Cli, server: Server) -> None:
    """Many that wait for messages do not hold up others; and when they go, their places are free at once."""
    waiting = [server.send("/api/read-messages?as=mia", {"wait": 300}) for _ in range(90)]
    until(lambda: _threads(server) >= 90)
    assert server.get("/api/board")["messages"] == []
    server.post("/api/send-message", {"to": "mia", "text": "wake up"})
    assert all(b"wake up" in received(connection) for connection in waiting)
    server.post("/api/ack?as=mia", {"message": ["1"]})
    for _ in range(4):
        for connection in [server.send("/api/read-messages?as=mia", {"wait": 300}) for _ in range(40)]:
            connection.close()
    server.post("/api/send-message?as=bob", {"to": "lea", "text": "x"})
    assert server.end() == 0


def test_a_wait_for_anything_is_woken_by_what_concerns_it(cli: Cli, server: Server) -> None:
    """Mail to another, and a task that is claimed by another, are no news to it."""
    waiting = server.send("/api/wait?as=mia", {"timeout": 300})
    server.post("/api/send-message?as=lea", {"to": "bob", "text": "not for mia"})
    server.post("/api/send-message?as=lea", {"to": "mia", "text": "wake up"})
    said = received(waiting)
    assert b"wake up" in said and b"teams reply msg-2 TEXT" in said and b"not for mia" not in said


def _threads(server: Server) -> int:
    return len(os.listdir(f"/proc/{server.pid}/task"))


def test_a_wait_ends_with_its_server(cli: Cli, server: Server) -> None:
    before = _threads(server)
    waiting = server.send("/api/wait?as=mia", {"message": True, "timeout": 300})
    with Events(server):
        until(lambda: _threads(server) > before + 1)
        assert server.end() == 0
    assert received(waiting).startswith(b"HTTP/1.1 503")


def test_the_person_gets_on_while_agents_wait_for_leave(cli: Cli, server: Server) -> None:
    """Requests that the rules say to ask about wait, more of them than there are threads for the person's own."""
    rules = {"permission": {"tool": {"broadcast-message": {"*": "ask"}}}}
    (cli.root / "config.json").write_text(json.dumps(rules))
    asking = [server.send("/api/broadcast-message?as=bob", {"text": f"to all {n}"}) for n in range(20)]
    until(lambda: len(server.get("/api/board")["questions"]) == 20)
    for n, question in enumerate(server.get("/api/board")["questions"]):
        assert question["operation"] == "broadcast-message"
        server.post("/api/answer", {"question": question["id"], "text": "deny" if n else "allow"})
    statuses = [received(connection).split(b" ", 2)[1] for connection in asking]
    assert sorted(statuses) == [b"200"] + [b"403"] * 19
    assert [m["from"] for m in server.get("/api/board")["messages"]] == ["bob"]


def test_one_of_many_has_the_task(cli: Cli, server: Server) -> None:
    """Claims by HTTP and at the shell at the same time: one wins, all others are told who."""
    add_tasks(cli, "wanted")
    names = [f"w{n}" for n in range(12)]
    for name in names:
        cli.ok("join-team", agent=name)
    results: dict[str, str] = {}

    def by_http(name: str) -> None:
        reply = server.ask("POST", f"/api/claim-task?as={name}", {"task": "1"})
        results[name] = "won" if reply.status == 200 else reply.refusal[1]

    def at_shell(name: str) -> None:
        answer = cli("claim-task", "1", "--json", agent=name)
        results[name] = "won" if answer.status == 0 else answer.error["code"]

    threads = [threading.Thread(target=by_http if n % 4 else at_shell, args=(name,)) for n, name in enumerate(names)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(results.values()) == ["task_claimed"] * 11 + ["won"]
    winner = next(name for name, how in results.items() if how == "won")
    assert cli.ok("show-task", "1")["owner"] == winner


def test_a_secure_team_asks_for_the_agents_own_token(tmp_path: Path) -> None:
    """That of the server only says that the person is at the machine."""
    cli = Cli(tmp_path / "root", team="safe")
    human = cli.ok("spawn-team", "safe", "--secure", agent="lea")
    bob = cli.ok("join-team", agent="bob")["token"]
    with serving(cli) as server:
        body = {"to": "lea", "text": "x"}
        assert server.ask("POST", "/api/send-message?as=bob", body).refusal == (403, "not_allowed")
        wrong = server.ask("POST", "/api/send-message?as=bob", body, X_Teams_Token="wrong")
        assert wrong.refusal == (403, "not_allowed")
        assert server.ask("POST", "/api/send-message?as=bob", body, X_Teams_Token=bob).status == 200
        told = {"message": "x", "sender": "bob"}
        assert server.ask("POST", "/api/agents/lea/message", told).status == 403
        assert server.ask("POST", "/api/agents/lea/message", told, X_Teams_Token=bob).status == 200
        shown = json.dumps([server.get("/api/board"), server.get("/api/show-team")])
        assert "okenHash" not in shown and human["token"] not in shown


def test_a_private_server(cli: Cli) -> None:
    """Reading asks for the token too; the page itself, in which nothing is, does not."""
    with serving(cli, "--private") as server:
        for path in ("/api/board", "/api/agents", "/api/get-tasks", "/openapi.json", "/api/events"):
            assert server.ask("GET", path, Authorization="").refusal == (401, "wrong_token")
        assert server.ask("GET", "/", Authorization="").status == 200
        assert server.ask("GET", "/api/board").status == 200
        with Events(server, query=f"?token={server.token}") as stream:
            assert stream.status == 200
        with Events(server, query="?token=x") as stream:
            assert stream.status == 401


def test_the_server_is_found_and_forgotten(cli: Cli) -> None:
    """`server.json` is there while it runs, for its owner alone; the token stays."""
    first = Server(cli)
    path = cli.root / "server.json"
    found = json.loads(path.read_text())
    assert {"url": first.url, "token": first.token, "pid": first.pid}.items() <= found.items() and found["startedAt"]
    for secret in (path, cli.root / "server.token"):
        assert secret.stat().st_mode & 0o777 == 0o600
    assert cli("doctor").status == 0
    assert first.end() == 0 and not path.exists()
    second = Server(cli)
    assert second.token == first.token and second.pid != first.pid
    assert second.end(signal.SIGINT) == 130 and not path.exists()


def test_a_second_server_is_refused(cli: Cli, server: Server) -> None:
    """It would tell clients another address; the first goes on."""
    answer = cli("serve", "--json", "--port", "0")
    assert answer.status == 11 and answer.error["code"] == "conflict" and server.url in answer.error["message"]
    assert server.get("/api/agents") and json.loads((cli.root / "server.json").read_text())["pid"] == server.pid


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


def test_a_killed_server_is_replaced(cli: Cli) -> None:
    """What it left says a process that is not there; so does a file that says another's, or nothing."""
    first = Server(cli)
    assert first.end(signal.SIGKILL) == -signal.SIGKILL
    path = cli.root / "server.json"
    left = json.loads(path.read_text())
    for stale in (json.dumps(left), json.dumps({**left, "pid": os.getpid()}), "{", "[]", '{"pid": "x", "url": 7}'):
        path.write_text(stale)
        with serving(cli) as server:
            assert json.loads(path.read_text())["pid"] == server.pid
            assert server.end() == 0


def test_the_next_free_port(cli: Cli) -> None:
    """Told to the person, and in `server.json`."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with serving(cli, port=port) as server:
            assert server.port > port and json.loads((cli.root / "server.json").read_text())["url"] == server.url
            server.end()
            assert f"port {port} is taken" in server.said


def test_the_address_for_the_person(cli: Cli) -> None:
    process = cli.start("serve", "--port", "0", agent="", team="", text=True)
    try:
        url, _, token = process.stdout.readline().strip().partition("/#token=")
        assert url.startswith("http://127.0.0.1:") and token == (cli.root / "server.token").read_text().strip()
    finally:
        process.terminate()
        process.communicate(timeout=TIMEOUT)
    assert process.returncode == 0


def test_what_serve_refuses(cli: Cli, tmp_path: Path) -> None:
    assert cli("serve", "--port", "65536", "--json").error["code"] == "invalid_value"
    blocked = tmp_path / "blocked" / "starlette"
    blocked.mkdir(parents=True)
    (blocked / "__init__.py").write_text("raise ModuleNotFoundError('no', name='starlette')")
    answer = cli("serve", "--port", "0", "--json", PYTHONPATH=f"{blocked.parent}:{os.getcwd()}")
    assert answer.error["code"] == "not_installed" and ".[serve]" in answer.error["hint"]
    assert not (cli.root / "server.json").exists()


def test_the_description_is_whole(server: Server) -> None:
    """Every command is in it, every reference leads somewhere, every answer to a request is one it tells of."""
    found = server.get("/openapi.json")
    for command in requests.offered():
        method = "get" if command.reads else "post"
        operation = found["paths"][f"/api/{command.name}"][method]
        assert operation["summary"] and operation["operationId"] == command.name
    text = json.dumps(found)
    for reference in {part.partition('"')[0] for part in text.split('"$ref": "#/')[1:]}:
        place = found
        for key in reference.split("/"):
            place = place[key]
    assert "\\\\z" not in text and {"Error", "Task", "Message", "Board"} <= set(found["components"]["schemas"])
