"""The test steps of the Janus document, with the tools of the MCP server; `curl` is for the HTTP API."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.agents.test_hooked_agents import Office
from tests.support import waits
from tests.support.agents import end_all, unread
from tests.support.mcp_client import call, client_of, until, within

pytestmark = pytest.mark.slow


@pytest.fixture
def office(tmp_path: Path) -> Iterator[Office]:
    """Where two agents are at work, `janus` and `puppet`, each in the middle of its first turn."""
    made = Office(tmp_path)
    made.cli.ok("create-task", "never done", agent="lea")
    work = ["$ touch $TEAMS_HOME/$TEAMS_AGENT_ID.begun; teams wait --task 1 --timeout 300", "---", "say as you wish"]
    for name in ("janus", "puppet"):
        made.cli.ok("run-agent", "\n".join(work), "--agent-id", name, "--detach", agent="lea")
    waits.until(lambda: all((made.cli.root / f"{name}.begun").exists() for name in ("janus", "puppet")))
    yield made
    end_all(made.cli.root)


def test_the_steps(office: Office) -> None:
    async def test() -> None:
        async with client_of(office.cli, "janus", "--tools", "all") as janus:
            listed = await call(janus, "list_agents")
            assert listed["self"] == "janus"
            status = {agent["name"]: agent["status"] for agent in listed["agents"]}
            assert status["janus"] == status["puppet"] == "active"

            sent = await call(janus, "send_to_agent", target="puppet", message="hello from janus")
            assert sent["delivered"] is True
            assert unread(office.cli, "puppet") == [1] and len(office.shown("puppet", "user")) == 1

            await call(janus, "interject", agent="puppet", text="look now")
            await until(lambda: "look now" in office.shown("puppet", "user")[-1])
            shown = office.shown("puppet", "user")[-1]
            assert '[From agent "janus"]:\n| hello from janus' in shown and '[From agent "janus"]:\n| look now' in shown

            result = await janus.call_tool("send_to_agent", {"target": "pupet", "message": "hello"})
            said = result.structured_content
            assert result.is_error and said["delivered"] is False and said["error"] == 'Agent "pupet" not found'
            assert set(said["available"]) == {"lea", "puppet"}

    within(test)
