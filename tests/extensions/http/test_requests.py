"""What a server answers, and what it refuses."""

from __future__ import annotations

import http.client
import json
import socket
import time
from pathlib import Path
from typing import Any

import pytest

from tests.support.cli import ALPHA, Cli, add_tasks, but, in_progress, tree
from tests.support.serving import Server, received, serving


def test_commands_answer_as_in_the_shell(cli: Cli, server: Server) -> None:
    made = server.post("/api/create-task", {"title": "t", "blockedBy": [], "priority": "high"})
    assert made == cli.ok("show-task", "1") == server.get("/api/show-task?task=1")
    assert server.get("/api/get-tasks?status=pending&ready=true&limit=3") == [made]
    claimed = server.post("/api/claim-task?as=bob", {"task": "1"})
    assert (claimed["status"], claimed["owner"]) == ("in_progress", "bob")
    end = {"task": "1", "status": "completed", "result": "täglich ☃", "next": True}
    assert server.post("/api/update-task?as=bob", {**end, "wait": 0})["status"] == "completed"
    add_tasks(cli, "u")
    assert server.post("/api/update-task?as=bob", {**end, "wait": 60})["claimed"]["id"] == "task-2"
    assert cli.ok("show-task", "1")["result"] == "täglich ☃"
    assert server.get("/api/whoami?as=bob")["role"] == "team-member" and server.get("/api/whoami")["agentId"] == "human"
    assert server.get("/api/whoami")["sources"]["team"] == "only"
    server.post("/api/send-message?as=bob", {"to": "mia", "text": "hi"})
    assert [m["message"] for m in server.post("/api/read-messages?as=mia")] == ["hi"]
    assert [row["name"] for row in server.get("/api/list-agents")["agents"]] == ["lea", "bob", "mia"]
    assert server.get("/api/discover-teams")[0]["name"] == ALPHA
    joined = server.post("/api/join-team?as=new", {"teamName": ALPHA, "name": "New One"})
    assert (joined["agentId"], joined["agentName"], joined["team"]) == ("new", "New One", ALPHA)


def test_requests_are_made_as_in_opencode_teams(cli: Cli, server: Server) -> None:
    leader = {"agentId": "agent-1", "agentName": "Ann", "agentType": "leader"}
    for name in ("team-spawn-team", "team_spawn_team"):
        server.post(f"/api/{name}", {"teamName": name, "leaderInfo": leader})
    made = server.post("/api/spawn_team", {"teamName": "review", "leaderInfo": leader})
    assert (made["leader"], made["members"][0]["agentName"]) == ("agent-1", "Ann")
    server.post("/api/create-task?as=agent-1", {"teamName": "review", "title": "look"})
    member = {"agentId": "agent-2", "agentName": "Perf Specialist", "agentType": "performance"}
    joined = server.post("/api/join-team", {"teamName": "review", "memberInfo": member})
    assert (joined["agentId"], joined["agentType"]) == ("agent-2", "performance")
    claimed = server.post("/api/claim-task?as=agent-2", {"teamName": "review", "taskId": "task-1"})
    assert (claimed["owner"], claimed["teamName"]) == ("agent-2", "review")
    assert [task["id"] for task in server.get("/api/get-tasks?teamName=review")] == ["task-1"]
    sent = {"teamName": "review", "to": "agent-1", "message": "Security review complete."}
    assert server.post("/api/send-message?as=agent-2", sent)["message"] == "Security review complete."


REFUSED: list[tuple[str, str, Any, tuple[int, str]]] = [
    ("POST", "/api/claim-task?as=mia", {"task": "9"}, (404, "task_not_found")),
    ("POST", "/api/claim-task?as=mia", {"task": "1"}, (409, "task_claimed")),
    ("POST", "/api/claim-task", {"task": "1"}, (403, "not_allowed")),
    ("POST", "/api/claim-task?as=nobody", {"task": "1"}, (403, "not_allowed")),
    ("POST", "/api/claim-task?as=mia", {}, (400, "wrong_usage")),
    ("POST", "/api/claim-task?as=mia", {"task": {"a": 1}}, (400, "invalid_value")),
    ("POST", "/api/claim-task?as=mia", {"task": "1", "more": 1}, (400, "invalid_value")),
    ("POST", "/api/claim-task?as=mia&team=nix", {"task": "2", "teamName": ALPHA}, (400, "invalid_value")),
    ("POST", "/api/join-team?as=zoe&team=nix", {"teamName": ALPHA}, (400, "invalid_value")),
    *(
        ("POST", "/api/share", {"key": "k", "text": "t", **named}, (400, "invalid_value"))
        for named in (
            {"teamName": ALPHA, "team_name": "nix"},
            {"teamName": ALPHA, "team_name": ALPHA},
            {"teamName": ""},
        )
    ),
    *(
        ("POST", f"/api/set?{query}", {"key": "permissions", "value": "all"}, (400, "invalid_value"))
        for query in ("as=", "as", "as=%20", "team=", "as=lea&as=human", "as=lea&value=ask", "key=delivery", "nix=1")
    ),
    *(
        ("GET", f"/api/{path}", None, (400, "invalid_value"))
        for path in ("get-tasks?team=", "board?as=", "agents?team=", "board/rows?nix=1", "proof?nonce=1&nix=1")
    ),
    ("GET", "/api/get-tasks?status=pending&status=failed", None, (400, "invalid_value")),
    ("POST", "/api/ack?as=mia", {"message": []}, (400, "invalid_value")),
    ("POST", "/api/claim-task?as=mia", b'{"task": "9", "task": "2"}', (400, "invalid_value")),
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
    *(
        ("GET", f"/api/board/rows?{query}", None, (400, "invalid_value"))
        for query in ["finished=x", "finished=-1", "messages=1.5", "finished=1000000", "messages=%D9%A3"]
    ),
    ("GET", "/nix", None, (404, "unknown_address")),
    ("GET", "/..%2fapp.py", None, (404, "unknown_address")),
    ("DELETE", "/", None, (405, "wrong_method")),
]


def test_refusals(cli: Cli, server: Server) -> None:
    """A refusal has the command line's code and a fitting status, and changes only signs of life."""
    in_progress(cli, "bob", "t")
    before = but(tree(cli.root), "agents")
    for method, path, body, expected in REFUSED:
        assert server.ask(method, path, body).refusal == expected, (method, path, body)
    assert but(tree(cli.root), "agents") == before


def test_a_damaged_record_is_named(cli: Cli, server: Server) -> None:
    add_tasks(cli, "t", "u")
    (cli.root / f"tasks/{ALPHA}/task-1.json").write_text("{")
    assert server.ask("GET", "/api/show-task?task=1").refusal == (500, "damaged_record")
    listed = server.ask("GET", "/api/get-tasks")
    assert [task["id"] for task in listed.json] == ["task-2"] and listed.headers["x-teams-damaged"] == "1"
    assert "task-1.json" in server.get("/api/board")["problems"][0]


def test_who_may_ask(cli: Cli, server: Server) -> None:
    """Requests with another host name, or from another site, are refused; changes need the token, too."""
    own, body = f"http://127.0.0.1:{server.port}", {"to": "mia", "text": "x"}

    def post(**headers: str) -> tuple[int, str]:
        return server.ask("POST", "/api/send-message?as=bob", body, **headers).refusal

    port = server.port
    for host in (f"evil.example:{port}", "127.0.0.1", "127.0.0.1:1", f"[::1]:{port}", f"127.1:{port}"):
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
    """Other sites can't frame, read or script the board, which loads nothing from elsewhere."""
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
    """Bodies of a wrong type, of malformed JSON or of too great a length are refused, and the server goes on."""
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
    for data in (b"\x16\x03\x01\r\n\r\n", b"GET / HTTP/1.1\r\n\r\n", b"GET /\xff HTTP/1.1\r\nHost: x\r\n\r\n"):
        with server.connect() as connection:
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
            assert received(connection).startswith((b"HTTP/1.1 400", b"HTTP/1.1 421"))
    assert server.get("/api/board")["tasks"] == []


@pytest.mark.slow
def test_a_head_that_does_not_end_is_refused(server: Server) -> None:
    """This holds for the first and for a later request of a connection."""
    first = f"GET /api/agents HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n\r\n".encode()
    post = f"POST /api/send-message HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nContent-Type: application/json\r\n"
    post += f"Authorization: Bearer {server.token}\r\nTransfer-Encoding: chunked\r\nExpect: 100-continue\r\n\r\n"
    post += "2\r\n{}\r\n0"
    fields = b"".join(b"X-%d: %s\r\n" % (n, b"a" * 90) for n in range(900))
    for beginning, endless in (
        (b"", b"GET /" + b"a" * 90_000),
        (b"", b"GET / HTTP/1.1\r\nHost: x\r\nX: " + b"a" * 90_000),
        (b"", b"GET / HTTP/1.1\r\nHost: x\r\n" + fields),
        (b"", post.encode() + b"\r\n" + fields),
        (post.encode(), b"\r\nX: " + b"a" * 90_000),
        (post.encode(), b";x=" + b"a" * 90_000),
    ):
        for before in (b"", first):
            with server.connect() as connection:
                if before:
                    connection.sendall(before)
                    with http.client.HTTPResponse(connection) as answer:
                        answer.begin()
                        assert answer.status == 200 and answer.read()
                connection.sendall(beginning)
                if beginning:  # the first part is read alone
                    assert connection.recv(65536).startswith(b"HTTP/1.1 100")
                connection.sendall(endless)
                assert b"HTTP/1.1 400" in received(connection), endless[:20]
    assert server.get("/api/board")["messages"] == []


def test_a_long_head_is_read_in_however_many_parts_it_comes(server: Server) -> None:
    head = f"GET /api/agents HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nConnection: close\r\n".encode()
    head += b"".join(b"X-%d: %s\r\n" % (n, b"a" * 990) for n in range(60)) + b"\r\n"
    for size in (len(head), 40_000, 1_500):
        with server.connect() as connection:
            for begin in range(0, len(head), size):
                connection.sendall(head[begin : begin + size])
                time.sleep(0.005)  # so that each part is read by itself
            assert received(connection).startswith(b"HTTP/1.1 200"), size


def test_the_board(cli: Cli, server: Server) -> None:
    """It has what a person needs; `moves` has exactly the changes of status that the server accepts."""
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
    assert [(m["from"], m["to"]) for m in board["messages"]] == [("system", who) for who in ["lea"] * 3 + ["mia"]]
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


def test_hints_are_for_the_team_of_the_request(cli: Cli, server: Server) -> None:
    cli.ok("spawn-team", "beta", agent="lea", team="")
    hint = server.ask("GET", "/api/show-task?task=99&team=beta").json["error"]["hint"]
    assert hint == "See: GET /api/get-tasks?team=beta"
    assert "--team beta" in server.post("/api/brief?as=lea&team=beta")["next"]


def test_a_secure_team_asks_for_the_agents_own_token(tmp_path: Path) -> None:
    cli = Cli(tmp_path / "root", team="safe")
    human = cli.ok("spawn-team", "safe", "--secure", agent="lea")
    bob = cli.ok("join-team", agent="bob")["token"]
    with serving(cli) as server:
        body = {"to": "lea", "text": "x"}
        missing = server.ask("POST", "/api/send-message?as=bob", body)
        assert missing.refusal == (403, "not_allowed") and "X-Teams-Token" in missing.json["error"]["hint"]
        wrong = server.ask("POST", "/api/send-message?as=bob", body, X_Teams_Token="wrong")
        assert wrong.refusal == (403, "not_allowed")
        assert server.ask("POST", "/api/send-message?as=bob", body, X_Teams_Token=bob).status == 200
        told = {"message": "x", "sender": "bob"}
        assert server.ask("POST", "/api/agents/lea/message", told).status == 403
        assert server.ask("POST", "/api/agents/lea/message", told, X_Teams_Token=bob).status == 200
        shown = json.dumps([server.get("/api/board"), server.get("/api/show-team")])
        assert "okenHash" not in shown and human["token"] not in shown
