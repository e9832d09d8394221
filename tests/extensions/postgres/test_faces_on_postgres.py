"""The MCP server and the HTTP API with teams in PostgreSQL: the same requests, the same answers, told at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.cli import ALPHA, Cli, add_tasks, make_team
from tests.support.mcp_client import call, client_of, within
from tests.support.serving import Events, serving

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("on_postgres")]


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    made = make_team(tmp_path / "root", "bob", "mia")
    add_tasks(made, "one")
    return made


def test_the_api_and_its_events_work_on_a_database(cli: Cli) -> None:
    with serving(cli) as server, Events(server) as events:
        sent = server.ask("POST", "/api/agents/mia/message", {"message": "hi", "sender": "bob"})
        assert (sent.status, sent.json["delivered"]) == (200, True)
        assert server.post("/api/claim-task?as=bob", {"next": True})["id"] == "task-1"
        cli.ok("announce", "at work", agent="mia")
        assert events.whats(3) == ["message sent", "task claimed", "status announced"]
        board = server.get(f"/api/board?team={ALPHA}")
        assert [task["owner"] for task in board["tasks"]] == ["bob"]
        assert [message["message"] for message in board["messages"]] == ["hi"]
        assert (cli.root / "server.json").exists()
        assert server.end() == 0 and not (cli.root / "server.json").exists()


def test_the_database_searches(cli: Cli) -> None:
    cli.ok("send-message", "mia", "Where is the zebra-crossing?", agent="bob")
    cli.ok("claim-task", "1", agent="bob")
    cli.ok("update-task", "1", "--status", "completed", "--result", "Zebras are clean", agent="bob")
    found = cli.ok("search", "ZEBRA", agent="")
    assert [(hit["in"], hit["id"], hit["from"]) for hit in found] == [
        ("messages", "msg-2", "system"),
        ("results", "task-1", "bob"),
        ("messages", "msg-1", "bob"),
    ]
    with serving(cli) as server:
        assert server.get("/api/search?words=zebra&words=cross&in=messages") == [found[2]]

    async def test() -> None:
        async with client_of(cli, "bob") as client:
            assert await call(client, "search", words=["zebra"]) == {"result": found}

    within(test)
