"""Resources of the MCP server can be read, and their changes are notified."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from mcp.shared.exceptions import MCPError

from tests.support.agents import unread
from tests.support.cli import ALPHA, Cli, add_tasks
from tests.support.mcp_client import ERAS, Line, client_of, names, read, until

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("era", ERAS)
async def test_resources_are_read_and_changes_of_them_are_told(cli: Cli, era: str) -> None:
    add_tasks(cli, "one", "two")
    heard: list[Any] = []
    async with client_of(cli, "bob", era=era, heard=heard) as client:
        uris = {str(resource.uri) for resource in (await client.list_resources()).resources}
        assert uris == {f"teams://{ALPHA}", f"teams://{ALPHA}/tasks", f"teams://{ALPHA}/inbox"}
        templates = (await client.list_resource_templates()).resource_templates
        assert f"{'teams'}://{{team}}/tasks/{{id}}" in {template.uri_template for template in templates}
        assert (await read(client, f"teams://{ALPHA}"))["leader"] == "lea"
        assert len(await read(client, f"teams://{ALPHA}/tasks")) == 2
        assert (await read(client, f"teams://{ALPHA}/tasks/1"))["title"] == "one"
        assert (await read(client, f"teams://{ALPHA}/agents/bob"))["agents"][0]["name"] == "bob"
        cli.ok("send-message", "bob", "look", agent="lea")
        assert (await read(client, f"teams://{ALPHA}/inbox"))[0]["message"] == "look"
        assert unread(cli, "bob") == [1]
        cli.ok("send-message", "bob", "-", agent="lea", stdin=b"x" * 60_000)
        found = await read(client, f"teams://{ALPHA}/inbox")
        assert len(str(found)) < 20_000 and "the tools show them in full" in found["cut"]
        for uri in (f"teams://{ALPHA}/tasks/9", "teams://beta", "teams://alpha/nothing", "file:///etc/passwd"):
            with pytest.raises(MCPError) as caught:
                await client.read_resource(uri)
            assert caught.value.error.code == -32002 or era == "auto"


@pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")  # the older protocol has no other
async def test_subscribers_are_told_of_their_own_resource_alone(cli: Cli) -> None:
    add_tasks(cli, "one", "two")
    heard: list[Any] = []
    async with client_of(cli, "bob", heard=heard) as client:
        one, inbox = f"teams://{ALPHA}/tasks/1", f"teams://{ALPHA}/inbox"
        await client.session.subscribe_resource(one)
        await client.session.subscribe_resource(inbox)
        cli.ok("update-task", "2", "--priority", "high", agent="lea")
        cli.ok("update-task", "1", "--priority", "high", agent="lea")
        await until(lambda: updated(heard) == [one])
        cli.ok("send-message", "bob", "look", agent="lea")
        await until(lambda: updated(heard) == [one, inbox])
        await client.session.unsubscribe_resource(one)
        cli.ok("update-task", "1", "--priority", "low", agent="lea")
        cli.ok("send-message", "bob", "again", agent="lea")
        await until(lambda: updated(heard) == [one, inbox, inbox])


async def test_a_server_without_subscriptions_watches_only_the_team(cli: Cli) -> None:
    add_tasks(cli, "one")
    cli.ok("send-message", "bob", "look", agent="lea")
    with Line(cli, "bob") as line:
        line.hello()
        await until(lambda: watched(line) == 1)
        line.send("resources/subscribe", {"uri": f"teams://{ALPHA}/inbox"})
        line.read()
        await until(lambda: watched(line) > 1)
        cli.ok("send-message", "bob", "again", agent="lea")
        assert line.read()["method"] == "notifications/resources/updated"


def watched(line: Line) -> int:
    """The number of directories that the server watches with inotify."""
    found = 0
    for entry in Path(f"/proc/{line.process.pid}/fd").iterdir():
        with suppress(FileNotFoundError):  # closed since
            if "inotify" in os.readlink(entry):
                found += (entry.parent.parent / "fdinfo" / entry.name).read_text().count("inotify wd:")
    return found


def updated(heard: list[Any]) -> list[str]:
    return [str(m.params.uri) for m in heard if m.method == "notifications/resources/updated"]


async def test_listeners_of_the_newest_protocol_are_told_too(cli: Cli) -> None:
    add_tasks(cli, "one")
    uri = f"teams://{ALPHA}/tasks/1"
    async with client_of(cli, "bob", era="auto") as client:
        await names(client)
        async with client.listen(tools_list_changed=True, resource_subscriptions=[uri]) as events:
            cli.ok("update-task", "1", "--priority", "high", agent="lea")
            assert (await anext(aiter(events))).uri == uri
            cli.ok("hand-over", "bob", agent="lea")
            while type(await anext(aiter(events))).__name__ != "ToolsListChanged":
                continue
