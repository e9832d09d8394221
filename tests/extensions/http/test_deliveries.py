"""A message sent over HTTP is queued, interrupts the agent or resumes it, and the answer says which."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.support.agents import BUSY, detach, end_all, ended, go, is_busy, place, session, team_of_agents
from tests.support.cli import TIMEOUT, Cli, make_team
from tests.support.serving import Reply, Server, serving
from tests.support.waits import until

LISTENS = f"test $TEAMS_RESUME && cat >>$D/given || {{ {BUSY} }}"


def message(server: Server, to: str, body: Any, query: str = "") -> Reply:
    return server.ask("POST", f"/api/agents/{to}/message{query}", body)


def listening(cli: Cli, agent: str) -> None:
    """Start an agent that works until it is interrupted, and writes the messages of its next turn to a file."""
    (place(cli) / "ready").unlink(missing_ok=True)
    detach(cli, agent, LISTENS)
    is_busy(cli)


def given(cli: Cli) -> list[dict[str, Any]]:
    """The messages that the agent got in its next turn."""
    return json.loads((place(cli) / "given").read_text())


@pytest.mark.slow
def test_an_agent_interrupts_another_in_the_way_of_janus(tmp_path: Path) -> None:
    """One agent sees and interrupts another over HTTP; a message to an unknown agent is refused with the known ones."""
    cli = team_of_agents(tmp_path, "janus")
    try:
        with serving(cli) as server:
            # 1. two agents, of which one works in a turn of its own
            listening(cli, "puppet")
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
            assert [(m["from"], m["message"]) for m in given(cli)] == [("janus", said["message"])]
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


@pytest.mark.slow
def test_a_message_queues_unless_it_is_to_interrupt(cli: Cli, server: Server) -> None:
    """If the request does not say, the setting `delivery` decides, also in the shell."""
    assert cli.refused("set", "delivery", "pigeon", agent="lea") == (2, "invalid_value")
    listening(cli, "zoe")
    told = {"message": "true", "sender": "bob"}
    assert message(server, "zoe", told).json["interrupted"] is False
    assert message(server, "zoe", told, "?interrupt=false").json["interrupted"] is False
    assert session(cli, "zoe").turns == 1 and len(cli.ok("read-messages", "--peek", agent="zoe")) == 2
    cli.ok("set", "delivery", "interject", agent="lea")
    assert message(server, "zoe", told, "?interrupt=false").json["interrupted"] is False
    assert message(server, "zoe", told).json["interrupted"] is True
    assert ended(cli, "zoe").turns == 2
    assert [m["number"] for m in given(cli)] == [1, 2, 3, 4]
    listening(cli, "eve")
    cli.ok("send-message", "eve", "true", agent="bob")
    assert ended(cli, "eve").turns == 2
    assert message(server, "mia", told).json["interrupted"] is False


def test_who_may_not_interrupt(cli: Cli, server: Server) -> None:
    """A sender without the right is refused if it asks; if only the setting asks, the message waits."""
    cli.ok("define-role", "quiet", "--deny", "interject", agent="lea")
    cli.ok("join-team", "--role", "quiet", agent="eve")
    listening(cli, "zoe")
    told = {"message": "x", "sender": "eve"}
    refused = message(server, "zoe", told, "?interrupt=true")
    assert (refused.status, refused.json["code"]) == (403, "not_allowed")
    assert cli.ok("read-messages", "--peek", agent="zoe") == []
    cli.ok("set", "delivery", "interject", agent="lea")
    assert message(server, "zoe", told).json["interrupted"] is False and session(cli, "zoe").turns == 1
    assert [m["from"] for m in cli.ok("read-messages", "--peek", agent="zoe")] == ["eve"]
    go(cli)
    assert ended(cli, "zoe").turns == 2


def test_messages_that_are_not_delivered(cli: Cli, server: Server) -> None:
    missing, to_self = "Missing message or sender", "Cannot send message to self"
    for to, body, error in [
        ("mia", {"message": "x"}, missing),
        ("mia", {"sender": "bob"}, missing),
        ("mia", {"message": " ", "sender": "bob"}, missing),
        ("mia", {"message": 1, "sender": 2}, missing),
        ("bob", {"message": "x", "sender": "bob"}, to_self),
    ]:
        reply = message(server, to, body)
        said = reply.json
        assert said.pop("hint") and reply.status == 400
        assert said == {"delivered": False, "error": error, "code": "wrong_usage"}
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


def test_a_message_whose_answer_was_lost_is_repeated_without_a_copy(cli: Cli, server: Server) -> None:
    body = {"message": "hi", "sender": "human"}
    server.send("/api/agents/mia/message", body).close()
    until(lambda: cli.ok("read-messages", "--peek", agent="mia"))
    assert [message(server, "mia", body).json["id"] for _ in range(2)] == ["msg-1", "msg-2"]


def test_a_message_finds_the_team_in_which_both_are(tmp_path: Path) -> None:
    """It is the team that has both agents, or the only one that has the recipient."""
    cli = make_team(tmp_path / "root", "bob")
    with serving(cli) as server:
        cli.ok("spawn-team", "beta", agent="ben")
        for agent in ("bob", "bea"):
            cli.ok("join-team", "beta", agent=agent)
        assert message(server, "bea", {"message": "hi", "sender": "ben"}).json["target"] == "bea"
        assert message(server, "bob", {"message": "hi", "sender": "lea"}).json["delivered"]
        assert message(server, "leader", {"message": "hi", "sender": "bea"}).json["target"] == "ben"
        assert message(server, "bea", {"message": "hi", "sender": "lea"}).status == 403
        assert message(server, "bob", {"message": "hi", "sender": "ghost"}).json["code"] == "no_team"
        missing = message(server, "nobody", {"message": "hi", "sender": "lea"})
        assert missing.status == 404 and missing.json["available"] == ["lea", "bob", "ben", "bob", "bea"]
    cli.team = "alpha"
    with serving(cli) as server:
        assert {row["team"] for row in server.get("/api/agents")} == {"alpha", "beta"}
        assert message(server, "bea", {"message": "hi", "sender": "ben"}).json["target"] == "bea"


def test_an_answer_says_once_that_a_record_is_damaged(cli: Cli, server: Server) -> None:
    """The message is stored, although it wakes nobody. Two steps of the command met the damaged record."""
    detach(cli, "kim", "true")
    assert ended(cli, "kim").turns == 1
    (cli.root / "teams/alpha/sessions/kim.json").write_text("{")
    reply = server.ask("POST", "/api/send-message?as=lea", {"to": ["kim"], "message": "go on"})
    assert (reply.status, reply.headers["x-teams-damaged"]) == (200, "1")
    assert cli("send-message", "kim", "go on", agent="lea").stderr.count("kim.json: is not JSON") == 1
    assert len(cli.ok("read-messages", "--peek", agent="kim")) == 2
