"""The MCP server of Codex, which a daemon starts before anybody has joined: each call says of which session it is."""

from __future__ import annotations

import pytest

from tests.support.cli import ALPHA, Cli
from tests.support.mcp_client import Line
from tests.support.seated_client import SeatedClient

THREADS = ("01a21f04-216e", "01a21f04-317f")


@pytest.mark.slow
def test_the_session_that_a_call_is_of_is_the_caller(cli: Cli) -> None:
    with Line(cli, "") as line:
        line.hello("codex-mcp-client")
        line.send("tools/list")
        listed = {tool["name"] for tool in line.read()["result"]["tools"]}
        assert listed == {"brief", "wait", "claim_task", "broadcast", "update_task", "more_tools"}
        seats = [SeatedClient(cli.environ("", ALPHA), "codex", thread) for thread in THREADS]
        try:
            for seat, name in zip(seats, ("agentA", "agentB"), strict=True):
                assert f"You are {name}" in seat.hook("SessionStart")
                call = {"name": "whoami", "arguments": {}, "_meta": {"threadId": seat.session}}
                line.send("tools/call", call)
                assert line.read()["result"]["structuredContent"]["agentId"] == name
            line.use("brief")
            assert line.read()["result"]["structuredContent"]["error"]["code"] == "no_identity"
        finally:
            for seat in seats:
                seat.kill()
