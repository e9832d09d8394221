"""The MCP server with the official client library over real pipes: the tools, whom they are offered, and their
answers.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp.shared.exceptions import MCPError
from mcp_types import ListToolsResult

from teams_cli.serving import requests
from tests.support.agents import unread
from tests.support.cli import ALPHA, Cli, add_tasks
from tests.support.mcp_client import ERAS, call, client_of, names, refusal, until

EITHER = [pytest.param(ERAS[0], marks=pytest.mark.slow), *ERAS[1:]]
"""Both versions of the protocol; the older one is tested with the slow tests."""
DAILY = {"list_agents", "send_to_agent", "broadcast", "read_messages", "brief", "get_tasks", "update_task", "recall"}
OF_MEMBERS = {"claim_task", "spawn", "propose_plan", "approve_shutdown"}
_DAILY_LIST = ("--tools", "daily")
OF_LEADERS = {"create_task", "run_agent", "approve_plan", "request_shutdown"}


def listed_bytes(tools: list[Any]) -> int:
    """The length of the list of tools as JSON."""
    return len(ListToolsResult(tools=tools).model_dump_json(by_alias=True, exclude_none=True))


@pytest.mark.slow
async def test_each_role_is_offered_what_it_may_use(cli: Cli) -> None:
    """The list of tools is short, as models read it with every request, and changes with the role of the agent."""
    cli.ok("set", "broadcast", "agents", agent="lea")
    cli.ok("set", "broadcast_sensitivity", "high", agent="lea")
    for agent, some, none in (("bob", OF_MEMBERS, OF_LEADERS), ("lea", OF_LEADERS, OF_MEMBERS)):
        async with client_of(cli, agent, *_DAILY_LIST) as client:
            tools = (await client.list_tools()).tools
            found = {tool.name for tool in tools}
            assert found >= DAILY | some and not found & none
            assert listed_bytes(tools) <= 8_000
            assert all(tool.description and tool.input_schema["type"] == "object" for tool in tools)
    async with client_of(cli, "mia", *_DAILY_LIST) as client:
        found = set(await names(client))
        assert found >= {"create_task", "claim_task"} and "broadcast" not in found
    heard: list[Any] = []
    async with client_of(cli, "bob", *_DAILY_LIST, heard=heard) as client:
        assert "claim_task" in await names(client)
        cli.ok("hand-over", "bob", agent="lea")
        await until(lambda: [m for m in heard if m.method == "notifications/tools/list_changed"])
        changed = await names(client)
        assert "claim_task" not in changed and "create_task" in changed
        await call(client, "create_task", title="lead")


@pytest.mark.parametrize("era", EITHER)
async def test_a_client_begins_with_six_tools_and_has_the_others_when_it_asks(cli: Cli, era: str) -> None:
    """Some clients never read the list again."""
    heard: list[Any] = []
    for agent in ("bob", "lea", "mia", ""):
        async with client_of(cli, agent, era=era, heard=heard) as client:
            tools = (await client.list_tools()).tools
            assert len(tools) <= 6 and listed_bytes(tools) <= 3_000, [tool.name for tool in tools]
    async with client_of(cli, "bob", era=era, heard=heard) as bob:
        assert await names(bob) == ["brief", "wait", "claim_task", "broadcast", "update_task", "more_tools"]
        assert (await call(bob, "list_agents"))["self"] == "bob"
        said = {"target": "mia", "message": "hi"}
        for arguments in (said, json.dumps(said)):  # some models send the object as text
            assert (await call(bob, "more_tools", name="send_to_agent", arguments=arguments))["delivered"] is True
        for wrong in ("", "target: mia", "[1]", '{"message": "1", "message": "2"}', ["mia"], 7):
            with pytest.raises(MCPError, match="arguments must be an object"):
                await bob.call_tool("more_tools", {"name": "ack", "arguments": wrong})
        with pytest.raises(MCPError, match="arguments must be an object"):
            await bob.call_tool("more_tools", {"name": "ack", "message": "1"})
        refused = await refusal(bob, "more_tools", name="create_task", arguments={"title": "x"})
        assert refused["code"] == "not_allowed"
        with pytest.raises(MCPError, match="Unknown tool: fly"):
            await bob.call_tool("more_tools", {"name": "fly"})
        told = {row["name"]: row["arguments"] for row in (await call(bob, "more_tools"))["result"]}
        assert "target" in told["send_to_agent"] and "read_messages" in told and "wait" not in told
        if era == ERAS[0]:
            await until(lambda: [m for m in heard if m.method == "notifications/tools/list_changed"])
        assert set(await names(bob)) >= DAILY | OF_MEMBERS
    assert unread(cli, "mia") == [1, 2]
    async with client_of(cli, "bob") as bob:
        sources = (await call(bob, "whoami"))["sources"]
        assert (sources["agent"], sources["team"]) == ("TEAMS_AGENT_ID", "TEAMS_TEAM")
        cli.ok("set", "broadcast", "human", agent="lea")
        assert await names(bob) == ["brief", "wait", "ask_others", "broadcast", "update_task", "more_tools"]
        told = {row["key"]: row["help"] for row in (await call(bob, "settings"))["settings"]}
        assert told["broadcast"].startswith("whom `ask_others` asks") and "--" not in told["ack_timeout"]


@pytest.mark.slow
async def test_all_tools_are_the_commands_that_programs_may_request(cli: Cli) -> None:
    """`--tools all` offers each command with its parameters, a title and hints, and every command to some role."""
    found = {}
    for agent in ("lea", "bob", "mia", "human"):
        async with client_of(cli, agent, "--tools", "all") as client:
            found |= {tool.name: tool for tool in (await client.list_tools()).tools}
    commands = {command.name.replace("-", "_"): command for command in requests.offered()}
    assert set(found) - set(commands) == {"send_to_agent", "broadcast"} and not set(commands) - set(found)
    for name, command in commands.items():
        told = set(found[name].input_schema["properties"])
        assert told == {parameter.key for parameter in requests.parameters(command)}
        assert found[name].title and found[name].annotations
        assert "teams " + command.name not in (found[name].description or "")
    says = {name: tool.annotations for name, tool in found.items()}
    assert says["get_tasks"].read_only_hint and says["update_task"].destructive_hint is True
    assert (says["wait"].read_only_hint, says["wait"].destructive_hint) == (None, False)
    assert says["claim_task"].destructive_hint is False


async def test_without_an_identity_one_can_look_and_join(cli: Cli) -> None:
    """Who joins through the server is that agent from then on: the tools change, and the client is notified."""
    heard: list[Any] = []
    async with client_of(cli, "", *_DAILY_LIST, heard=heard) as client:
        before = await names(client)
        assert "join_team" in before and not set(before) & {"claim_task", "send_to_agent", "create_task"}
        assert (await call(client, "get_tasks"))["result"] == []
        assert (await refusal(client, "claim_task", next=True))["code"] == "no_identity"
        joined = await call(client, "join_team")
        await until(lambda: [m for m in heard if m.method == "notifications/tools/list_changed"])
        assert set(await names(client)) >= OF_MEMBERS
        assert (await call(client, "list_agents"))["self"] == joined["agentId"] == "agentA"
        sources = (await call(client, "whoami"))["sources"]
        assert (sources["agent"], sources["team"]) == ("session", "session")
        assert (await call(client, "send_to_agent", target="bob", message="hi"))["delivered"] is True
    assert unread(cli, "bob") == [1]


@pytest.mark.slow
async def test_tools_are_called_as_in_opencode_teams(tmp_path: Path) -> None:
    """A team that is created or joined becomes the session's team."""
    cli = Cli(tmp_path / "root", "lea", team="")
    cli.ok("spawn-team", "other", agent="eve")
    cli.ok("spawn-team", "another", agent="eve2")
    async with client_of(cli, "") as lead, client_of(cli, "agent-2") as member:
        leader = {"agentId": "agent-1", "agentName": "Ann", "agentType": "leader"}
        made = await call(lead, "spawn-team", teamName="review-pr-456", leaderInfo=leader)
        assert (made["name"], made["leader"]) == ("review-pr-456", "agent-1")
        assert made["members"][0]["agentName"] == "Ann"
        assert (await refusal(lead, "create_task"))["hint"] == 'Write: create_task(title="TITLE")'
        assert (await refusal(lead, "leave_team"))["hint"].startswith("Hand it over (hand_over(agent=AGENT)) or")
        assert (await call(lead, "mcp__team__create_task", title="look"))["teamName"] == "review-pr-456"
        refused = await refusal(member, "join_team", name="review-pr-456")
        assert refused["message"] == "review-pr-456 is the name of a team, not of an agent"
        assert "team_name" in (await refusal(member, "claim-task", taskId="task-1"))["hint"]
        info = {"agentName": "Security Specialist", "agentType": "security"}
        joined = await call(member, "team_join-team", teamName="review-pr-456", memberInfo=info)
        assert (joined["agentId"], joined["agentType"]) == ("agent-2", "security")
        assert (await call(member, "claim-task", taskId="task-1"))["owner"] == "agent-2"
        plan = await call(member, "propose-plan", teamName="review-pr-456", plan="read, then run", taskId="1")
        assert (await call(lead, "approve-plan", planId=plan["id"]))["status"] == "approved"
        assert (await call(lead, "request-shutdown", agentId="agent-2"))["agent"] == "agent-2"
        assert (await call(lead, "get-tasks", teamName="other"))["result"] == []
        doubled = await refusal(lead, "share", key="k", text="t", team_name="other", teamName="review-pr-456")
        assert doubled["message"] == "team_name and teamName mean the same"
        mine = await refusal(member, "join_team", teamName="other", memberInfo={"agentId": "bob"})
        assert mine["message"] == "you are agent-2, not bob"


@pytest.mark.slow
async def test_agents_list_and_write_to_each_other(cli: Cli) -> None:
    async with client_of(cli, "bob") as bob, client_of(cli, "mia") as mia:
        found = await call(bob, "list_agents")
        assert found["self"] == "bob" and [a["name"] for a in found["agents"]] == ["lea", "bob", "mia"]
        assert {a["status"] for a in found["agents"]} == {"idle"}
        sent = await call(bob, "send_to_agent", target="mia", message="I added CDP support")
        assert sent == {"delivered": True, "target": "mia", "id": "msg-1"}
        (message,) = (await call(mia, "read_messages"))["result"]
        assert (message["from"], message["message"]) == ("bob", "I added CDP support")
        told = await call(bob, "broadcast", message="reading the tests")
        there = [{"name": "lea", "status": None}, {"name": "mia", "status": None}]
        assert told == {"you_are": "bob", "id": "msg-2", "sentTo": ["lea", "mia"], "agents": there}
        hint = (await call(mia, "attend"))["state"]["output"]["hint"]
        assert hint.endswith('other agents: broadcast(message="what you are working on")')
        assert (await call(mia, "list_agents"))["agents"][1]["workingOn"] == "reading the tests"
        assert (await call(bob, "broadcast", message="only you", send_to="lea"))["sentTo"] == ["lea"]
        answer = await bob.call_tool("broadcast", {"message": "x", "send_to": "lea", "reply_to": 1})
        assert answer.is_error


UNDELIVERABLE: list[tuple[dict[str, Any], str]] = [
    ({"target": "zoe", "message": "hi"}, 'Agent "zoe" not found'),
    ({"target": "bob", "message": "hi"}, "Cannot send message to self"),
    ({"target": "mia"}, "Missing target or message"),
    ({"target": "mia", "message": " "}, "the message is blank"),
    ({"target": "mia", "message": {"a": 1}}, "message: must be a string"),
    ({"target": "mia", "message": "hi", "cc": "lea"}, "cc: unknown field"),
]


async def test_refusals_name_tools_and_leave_the_server_running(cli: Cli) -> None:
    """A message that is not delivered is answered with the reason and the possible recipients."""
    add_tasks(cli, "one", "two")
    async with client_of(cli, "bob") as client:
        for arguments, error in UNDELIVERABLE:
            result = await client.call_tool("send_to_agent", arguments)
            said = result.structured_content
            assert result.is_error and said["delivered"] is False and said["hint"]
            assert said["error"] == error and said["available"] == ["lea", "mia"]
            assert json.loads(result.content[0].text) == said
        refused = await refusal(client, "claim_task", task=7)
        assert (refused["code"], refused["hint"]) == ("task_not_found", "See: get_tasks")
        assert refused["message"] == "team alpha has no task task-7"
        assert (await refusal(client, "claim_task", task=["1"]))["code"] == "invalid_value"
        assert (await refusal(client, "claim_task", id="1"))["code"] == "invalid_value"
        assert (await refusal(client, "update_task"))["code"] == "invalid_value"
        assert (await refusal(client, "create_task", title="mine"))["code"] == "not_allowed"
        with pytest.raises(MCPError, match="Unknown tool: fly"):
            await client.call_tool("fly", {})
        with pytest.raises(MCPError, match="Unknown tool: install"):
            await client.call_tool("install", {"client": "claude"})
        claimed = await call(client, "claim_task", next=True)
        assert (claimed["owner"], claimed["status"]) == ("bob", "in_progress")
        done = await call(client, "update_task", task="#1", status="completed", result="12 lines")
        assert done["result"] == "12 lines"
    assert cli.ok("read-messages", agent="mia") == []


async def test_hints_are_commands_for_what_tools_cannot_do(cli: Cli) -> None:
    """A tool acts only for the agent that calls it, so what somebody else must do stays a command."""
    async with client_of(cli, "lea") as client:
        hint = (await refusal(client, "set", key="notify", value="date"))["hint"]
    assert hint == "The human sets it: teams set notify VALUE --as human"


async def test_hints_are_for_the_team_of_the_call(cli: Cli) -> None:
    """The agent has a task of the same number in its own team, which the next call must not end."""
    cli.ok("spawn-team", "beta", agent="lea", team="")
    cli.ok("join-team", agent="bob", team="beta")
    for team in (ALPHA, "beta"):
        cli.ok("create-task", "one", agent="lea", team=team)
        cli.ok("claim-task", "1", agent="bob", team=team)
    cli.ok("send-message", "bob", "hi", agent="lea", team="beta")
    async with client_of(cli, "bob") as client:
        said = (await call(client, "brief", team_name="beta"))["next"]
        assert said.startswith("read_messages(team_name=beta")
        unread = (await call(client, "get_tasks", team_name="beta"))["unread"]
        assert unread.endswith("call read_messages(team_name=beta)")
        await call(client, "read_messages", team_name="beta")
        said = (await call(client, "brief", team_name="beta"))["next"]
        assert said.startswith("update_task(team_name=beta, task=task-1")
        hint = (await refusal(client, "claim_task", team_name="beta", task="7"))["hint"]
        assert hint == "See: get_tasks(team_name=beta)"
        assert (await call(client, "brief"))["next"].startswith("update_task(task=task-1")


@pytest.mark.slow
async def test_unread_mail_is_told_of_beside_answers(cli: Cli) -> None:
    async with client_of(cli, "bob") as client:
        assert "unread" not in await call(client, "get_tasks")
        cli.ok("send-message", "bob", "the build is red", agent="lea")
        assert (await call(client, "get_tasks"))["unread"] == "1 unread message: call read_messages"
        assert "unread" not in await call(client, "read_messages")
        assert "unread" not in await call(client, "heartbeat")
        assert "unread" not in await call(client, "send_message", to="lea", text="I look into it")
        cli.ok("send-message", "lea", "so do I", agent="mia")
        assert "unread" not in await call(client, "send_message", to="lea", text="it is green")
        cli.ok("send-message", "bob", "thanks", agent="lea")
        told = await call(client, "send_message", to="lea", text="you are welcome")
        assert told["unread"] == "1 unread message: call read_messages"


@pytest.mark.slow
async def test_a_cancelled_call_takes_nothing(cli: Cli) -> None:
    async with client_of(cli, "bob") as client:
        for _ in range(5):
            with anyio.move_on_after(0.3):
                await client.call_tool("read_messages", {"wait": 60})
        await call(client, "list_agents")
        cli.ok("send-message", "bob", "later", agent="lea")
        assert unread(cli, "bob") == [1]
        assert [m["message"] for m in (await call(client, "read_messages", wait=10))["result"]] == ["later"]


@pytest.mark.slow
async def test_the_human_is_asked_when_the_rules_say_so(cli: Cli) -> None:
    """Rules count as they are at the call; others go on while one waits."""
    add_tasks(cli, "one")
    async with client_of(cli, "bob") as client, anyio.create_task_group() as group:
        await names(client)
        (cli.root / "config.json").write_text('{"permission": {"tool": {"claim-task": {"team-member": "ask"}}}}')
        found: list[Any] = []

        async def claim() -> None:
            found.append(await call(client, "claim_task", task="1"))

        group.start_soon(claim)
        await until(lambda: cli.ok("get-questions", "--open"))
        assert "claim_task" in await names(client) and not found
        cli.ok("answer", "1", "allow", agent="human")
        await until(lambda: found)
        assert found[0]["owner"] == "bob"
        (cli.root / "config.json").write_text('{"permission": {"tool": {"claim-task": {"team-member": "deny"}}}}')
        assert (await refusal(client, "claim_task", task="1"))["code"] == "not_allowed"
        assert "claim_task" not in await names(client)


@pytest.mark.slow
async def test_a_team_that_asks_for_tokens_gets_them(tmp_path: Path) -> None:
    """The server uses the token of its environment, or the one that it got by joining."""
    cli = Cli(tmp_path / "root", team=ALPHA)
    token = cli.ok("spawn-team", ALPHA, "--secure", agent="lea")["token"]
    async with client_of(cli, "lea") as client:
        refused = await refusal(client, "create_task", title="one")
        assert refused["code"] == "not_allowed" and "TEAMS_TOKEN where the server is started" in refused["hint"]
    async with client_of(cli, "lea", TEAMS_TOKEN=token) as client:
        await call(client, "create_task", title="one")
    async with client_of(cli, "") as client:
        assert (await call(client, "join_team"))["token"]
        assert (await call(client, "claim_task", task="1"))["owner"] == "agentA"


async def test_the_copy_of_an_agent_that_answers_a_question_has_no_tools(cli: Cli) -> None:
    async with client_of(cli, "bob", TEAMS_SHADOW="1") as client:
        assert await names(client) == []
        with pytest.raises(MCPError, match="Unknown tool"):
            await client.call_tool("claim_task", {"next": True})
