"""Agents inside a client are members from their start to their end, as children of the client's agent."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.hooks import calls
from tests.hooks.calls import context
from tests.support.cli import Cli
from tests.support.mcp_client import Line


def hook(cli: Cli, event: str, agent_id: str, **more: Any) -> Any:
    return calls.hook(cli, event, agent_id=agent_id, **more)


def members(cli: Cli) -> dict[str, Any]:
    team = json.loads((cli.root / "teams/alpha/team.json").read_text())
    return {member["agentId"]: member for member in team["members"] if "leftAt" not in member}


def test_a_subagent_joins_is_told_and_leaves(cli: Cli) -> None:
    begun = hook(cli, "SubagentStart", "a1", agent_type="Explore")
    assert begun["hookSpecificOutput"]["hookEventName"] == "SubagentStart"
    assert "You are agentA in team alpha" in context(begun) and "--as agentA" in context(begun)
    child = members(cli)["agentA"]
    assert (child["childOf"], child["agentType"], child["role"]) == ("bob", "Explore", "team-member")
    assert "agentB" in context(hook(cli, "SubagentStart", "a2", agent_type="Plan"))
    rows = {row["name"]: row for row in cli.ok("list-agents")["agents"]}
    assert rows["agentA"]["childOf"] == "bob" and "childOf" not in rows["bob"]
    assert (rows["agentA"]["state"], rows["bob"]["state"]) == ("active", "idle")
    assert "- agentA: - (idle)" not in context(hook(cli, "SubagentStart", "a2"))
    cli.ok("send-message", "agentA", "Which file?", agent="agentB")
    assert "| Which file?" in context(hook(cli, "PostToolBatch", "a1", tool_calls=[]))
    assert hook(cli, "PostToolBatch", "a1", tool_calls=[]) is None
    assert hook(cli, "PostToolBatch", "a2", tool_calls=[]) is None
    cli.ok("broadcast-message", "Stop looking.", agent="lea")
    refused = hook(cli, "SubagentStop", "a1", stop_hook_active=False)
    assert refused["decision"] == "block" and "| Stop looking." in refused["reason"]
    assert hook(cli, "SubagentStop", "a1", stop_hook_active=True, last_assistant_message="It is a.py") is None
    assert "agentA" not in members(cli) and "agentB" in members(cli)
    late = cli("send-message", "agentA", "Sure?", agent="lea")
    assert late.status == 10 and "its task for bob is done\n  bob has its last answer: ask there" in late.stderr
    (output,) = [row for row in cli.ok("read-messages", "--all", agent="bob") if row["type"] == "output"]
    assert (output["from"], output["message"]) == ("agentA", "It is a.py") and output["handledAt"]


def test_each_subagent_has_a_name_of_its_own(cli: Cli) -> None:
    """A subagent that starts again after its end gets a new name, even with the same id."""
    hook(cli, "SubagentStart", "a1")
    assert "agentA" in context(hook(cli, "SubagentStart", "a1"))
    hook(cli, "SubagentStop", "a1")
    assert hook(cli, "SubagentStop", "a1") is None
    assert "agentB" in context(hook(cli, "SubagentStart", "a1"))
    assert sorted(members(cli)) == ["agentB", "bob", "lea", "mia"]


def test_a_subagent_speaks_as_itself_through_the_tools(cli: Cli) -> None:
    """A hook notes which subagent makes a call, and Claude Code tells the server the call's id."""
    hook(cli, "SubagentStart", "a1")
    cli.ok("send-message", "agentA", "Which file?", agent="lea")
    with Line(cli, "bob") as line:
        line.hello()
        for agent_id, call in (("a1", "toolu_1"), ("", "toolu_2")):
            given = {"tool_name": "mcp__team__broadcast", "tool_input": {"message": "m"}, "tool_use_id": call}
            assert hook(cli, "PreToolUse", agent_id, **given) is None
        answers = []
        for call, given in (("toolu_1", {"reply_to": "1"}), ("toolu_2", {}), ("", {"_agent_id": "a1"})):
            arguments = {"message": "here", **given}
            meta = {"claudecode/toolUseId": call}
            line.send("tools/call", {"name": "broadcast", "arguments": arguments, "_meta": meta})
            answers.append(line.read()["result"]["structuredContent"]["you_are"])
    assert answers == ["agentA", "bob", "agentA"]
    hook(cli, "SubagentStop", "a1", stop_hook_active=True)
    assert not list((cli.root / "subagents/alpha").iterdir())


def test_what_a_subagent_started_holds_it_or_goes_to_its_parent(cli: Cli, tmp_path: Path) -> None:
    hook(cli, "SubagentStart", "a1")
    script = f"until test -e {tmp_path}/go; do sleep 0.02; done; echo kid"
    kid = cli.ok("spawn", script, agent="agentA")["agent"]
    hook(cli, "SubagentStop", "a1", can_go_on=False)
    assert "agentA" not in members(cli)
    assert kid in hook(cli, "Stop", agent_id=None, attends=True)["reason"]
    (tmp_path / "go").touch()
    (output,) = cli.ok("read-messages", "--wait", "60", agent="bob")
    assert (output["from"], output["message"].strip()) == (kid, "kid")
    hook(cli, "SubagentStart", "a2")
    kid = cli.ok("spawn", "echo kid", agent="agentC")["agent"]
    assert "| kid" in hook(cli, "SubagentStop", "a2")["reason"]


DRIVER = """
const { server: teams } = (await import(process.argv[2])).default
const hooks = await teams({ client: { session: { promptAsync: async () => {} } } })
const shown = []
await hooks["chat.message"]({ sessionID: "ses_main" }, { parts: [] })
const info = { id: "ses_child", parentID: "ses_main", title: "Look (@explore subagent)" }
await hooks.event({ event: { type: "session.created", properties: { info } } })
const parts = [{ id: "p1", sessionID: "ses_child", messageID: "m1", type: "text", text: "go" }]
await hooks["chat.message"]({ sessionID: "ses_child" }, { parts })
shown.push(parts.at(-1).text)
const output = { output: "listing" }
await hooks["tool.execute.after"]({ sessionID: "ses_child" }, output)
shown.push(output.output)
await hooks["experimental.text.complete"]({ sessionID: "ses_child" }, { text: "It is a.py" })
await hooks.event({ event: { type: "session.idle", properties: { sessionID: "ses_child" } } })
console.log(JSON.stringify(shown))
process.exit(0)
"""


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("node"), reason="the plugin needs node")
def test_a_session_inside_opencode_is_an_agent(cli: Cli, in_opencode: Callable[[str], Any]) -> None:
    """A child session in OpenCode is a member from its creation until it is idle."""
    greeted, result = in_opencode(DRIVER)
    assert "You are agentA in team alpha" in greeted and result == "listing"
    team = json.loads((cli.root / "teams/alpha/team.json").read_text())
    (child,) = [member for member in team["members"] if member.get("childOf")]
    assert (child["agentType"], child["childOf"]) == ("explore", "bob") and child["leftAt"]
    (output,) = [row for row in cli.ok("read-messages", "--all", agent="bob") if row["type"] == "output"]
    assert (output["from"], output["message"]) == ("agentA", "It is a.py")


def test_claudes_task_list_is_mirrored_and_a_failed_check_refuses_completion(cli: Cli, tmp_path: Path) -> None:
    def change(event: str, **more: Any) -> tuple[int, str]:
        given = {"session_id": "s", "hook_event_name": event, "task_id": "1", "cwd": str(tmp_path), **more}
        answer = cli("hook", "claude", agent="lea", stdin=json.dumps(given).encode())
        return answer.status, answer.stderr

    for _ in range(2):
        assert change("TaskCreated", task_subject="Add login", task_description="tests too") == (0, "")
    (task,) = cli.ok("get-tasks")
    assert (task["title"], task["description"]) == ("Add login", "tests too")
    assert change("TaskCreated", task_subject="--from x", task_description="--help") == (0, "")
    assert cli.ok("get-tasks")[-1]["title"] == "--from x", "a title is no option"
    cli.ok("update-task", "2", "--status", "cancelled", agent="human")
    assert change("TeammateIdle", teammate_name="ann") == (
        2,
        "Ready in team alpha: task-1: Add login. Take one: teams claim-task --next",
    )
    assert change("TeammateIdle", teammate_name="ann") == (0, "")
    cli.ok("update-task", "1", "--check", f"test -e {tmp_path}/login", agent="lea")
    status, why = change("TaskCompleted", task_subject="Add login")
    assert status == 2 and "task-1 is not completed" in why and "test -e" in why
    (tmp_path / "login").touch()
    assert change("TaskCompleted", task_subject="Add login") == (0, "")
    assert change("TaskCompleted", task_subject="Not in the team") == (0, "")
    assert cli.ok("get-tasks")[0]["status"] == "completed" and "agentA" not in members(cli)
