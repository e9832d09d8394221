"""Answers of MCP tools are short enough for a model, and say what was left out and how to get it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from teams_cli.messages import messages
from teams_cli.teams.permission import Caller
from tests.support.agents import unread
from tests.support.cli import ALPHA, Cli, add_tasks
from tests.support.mcp_client import client_of, until

MOST = 8_000
GIST = {"id", "title", "status", "priority", "owner", "openBlockers"}


async def use(client: Any, tool: str, **arguments: Any) -> tuple[int, dict[str, Any]]:
    """The length of the tool's answer in bytes, and the answer."""
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result
    (part,) = result.content
    assert json.loads(part.text) == result.structured_content
    return len(part.text.encode()), result.structured_content


@pytest.mark.slow
async def test_lists_are_short_and_say_how_much_more_there_is(cli: Cli) -> None:
    add_tasks(cli, *(f"number {i}" for i in range(1, 131)), description="long " * 100)
    add_tasks(cli, "waits", blocked_by=["task-1"])
    async with client_of(cli, "bob") as client:
        size, found = await use(client, "get_tasks")
        assert size <= MOST and len(found["result"]) == 50 and found["more"] == 81
        assert all(set(row) <= GIST for row in found["result"])
        size, found = await use(client, "get_tasks", limit=131)
        assert len(found["result"]) == 131 and "more" not in found
        assert found["result"][-1]["openBlockers"] == ["task-1"]
        size, found = await use(client, "get_tasks", full=True)
        assert len(found["result"]) == 131 and found["result"][0]["description"].startswith("long long")
        _, found = await use(client, "history")  # of which the oldest are left out
        assert found["more"] >= 21 and found["result"][-1]["task"] == "task-131", found


@pytest.mark.slow
async def test_long_texts_are_cut_unless_all_is_asked_for(cli: Cli) -> None:
    add_tasks(cli, "t", description="x" * 60_000)
    async with client_of(cli, "bob") as client:
        for tool, arguments in (("show_task", {"task": 1}), ("claim_task", {"task": 1})):
            size, found = await use(client, tool, **arguments)
            assert size <= MOST and "more characters)" in found["description"] and "full=true" in found["cut"]
            size, found = await use(client, tool, **arguments, full=True)
            assert found["description"] == "x" * 60_000 and "cut" not in found


@pytest.mark.slow
async def test_only_mail_that_is_shown_is_read(cli: Cli) -> None:
    for number in range(1, 41):
        messages.send(cli.store(), ALPHA, Caller("lea"), "bob", f"{number} {'y' * 500}")
    async with client_of(cli, "bob") as client:
        size, found = await use(client, "read_messages")
        count = len(found["result"])
        assert size <= MOST and 5 < count < 40 and found["more"] == 40 - count
        assert all(message["message"].endswith("y" * 500) for message in found["result"])
        await until(lambda: unread(cli, "bob") == list(range(count + 1, 41)))  # noted once the answer is out
        size, found = await use(client, "read_messages", limit=40)
        assert len(found["result"]) == 40
        await until(lambda: unread(cli, "bob") == [])


@pytest.mark.slow
async def test_texts_and_recipients_have_one_name(cli: Cli) -> None:
    """All tools name texts and recipients alike, and accept the earlier names, too."""
    cli.ok("set", "broadcast", "agents", agent="lea")
    async with client_of(cli, "bob", "--tools", "all") as client:
        schemas = {tool.name: tool.input_schema["properties"] for tool in (await client.list_tools()).tools}
        for tool in ("ask_others", "announce", "reply", "answer", "interject", "propose_plan"):
            assert "text" in schemas[tool], tool
        assert "to" in schemas["interject"] and "question" not in schemas["ask_others"]
        for key in ("text", "status"):
            assert (await use(client, "announce", **{key: f"by {key}"}))[1]["status"] == f"by {key}"
        for key in ("text", "question"):
            said = await use(client, "ask_others", **{key: "Which?"}, to=["lea"], no_wait=True)
            assert said[1]["status"] == "pending"


@pytest.mark.slow
async def test_mail_that_is_cut_off_stays_unread(cli: Cli) -> None:
    """Whatever makes an answer too long: a limit that the request gives, other parts of the answer, or long rows."""
    for number in range(1, 32):
        messages.send(cli.store(), ALPHA, Caller("lea"), "bob", f"{number} {'y' * 700}", fyi=True)
    async with client_of(cli, "bob", "--tools", "all") as client:
        _, found = await use(client, "read_messages", limit=30)
        shown = [message["number"] for message in found["result"]]
        assert shown == list(range(1, len(shown) + 1)) and found["more"] == 31 - len(shown)
        await until(lambda: unread(cli, "bob") == list(range(len(shown) + 1, 32)))
        await use(client, "read_messages", full=True)
        await until(lambda: unread(cli, "bob") == [])
        for number in range(32, 52):
            messages.send(cli.store(), ALPHA, Caller("lea"), "bob", f"{number} {'y' * 140}")
        touched = [f"src/{'z' * 140}{number}.py" for number in range(10)]
        add_tasks(cli, "t" * 200, description="x" * 3000, touches=touched)
        _, found = await use(client, "wait", claim=True, timeout=5)
        count = len(found["messages"])
        assert found["claimed"]["id"] == "task-1" and count < 20
        assert found["moreMessages"] == 20 - count and "more" not in found
        await until(lambda: unread(cli, "bob") == list(range(32 + count, 52)))
        for number in range(52, 72):
            messages.send(cli.store(), ALPHA, Caller("lea"), "bob", f"{number} " + '"\n' * 100)
        size, found = await use(client, "attend")
        assert size <= MOST
        missing = {*range(32, 72)} - {message["id"] for message in found["state"]["output"]["messages"]}
        await until(lambda: set(unread(cli, "bob")) <= missing)
        assert {number for number in range(52, 72) if number in missing} <= set(unread(cli, "bob"))
