"""The MCP server and the HTTP API with teams in PostgreSQL: the same requests, the same answers, told at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.cli import ALPHA, Cli, add_tasks, make_team
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
