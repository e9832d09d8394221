"""OpenCode's sub-sessions and Claude Code's subagents are agents of the team."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest

from tests.e2e.apis import Use
from tests.e2e.conftest import NEWEST, Office
from tests.e2e.model import Run, Say

TOOL = {"opencode": ("task", "general"), "claude": ("Agent", "general-purpose")}
"""The tool by which each client starts a subagent, and a kind of subagent that always exists."""


@pytest.mark.parametrize("office", [*TOOL, *(f"{client}{NEWEST}" for client in TOOL)], indirect=True)
def test_a_subagent_is_an_agent_while_it_works(office: Office) -> None:
    """A subagent joins under the next alias, gets messages, and leaves when it has answered; its answer is
    kept.
    """
    tool, kind = TOOL[office.client]
    call = Use(tool, description="count files", prompt="[sub] count the files", subagent_type=kind)
    office.model.script(
        "[ann]", call, Say("done"), Say("done")
    )  # the newest Claude Code waits for the subagent in a later turn
    office.model.script(
        "[sub]",
        Run("teams list-agents --json"),
        Run("teams send-message agentA 'mind the hidden ones' --as human"),
        Run("true"),
        Say("7 files"),
    )
    done = office.run("[ann] look")
    assert done["output"] == "done", office.logs()
    requests = office.model.requests["[sub]"]
    assert "agentA" in requests[1].text and "mind the hidden ones" in requests[3].text, requests[3].text
    assert "7 files" in office.model.requests["[ann]"][-1].text
    rows = {row["name"] for row in json.loads(office.say("list-agents"))["agents"]}
    assert "agentA" not in rows and "ann" in rows
    assert "7 files" in office.say("read-messages", "--all", agent="ann")


@pytest.mark.parametrize("office", [*TOOL, *(f"{client}{NEWEST}" for client in TOOL)], indirect=True)
def test_a_subagent_speaks_as_itself_through_the_tools(office: Office) -> None:
    """A subagent broadcasts, answers mail and spawns as itself; the output of what it spawned goes to it or to
    its parent.
    """
    tool, kind = TOOL[office.client]
    office.model.script(
        "[ann]",
        Use(tool, description="count files", prompt="[sub] count the files", subagent_type=kind),
        Say("done"),
        Say("done"),
        Say("done"),
    )
    office.model.script(
        "[sub]",
        Use("broadcast", message="Starting frontend work"),
        Run("teams send-message agentA 'Need the API schema'"),
        Use("broadcast", message="it is in api.yaml", reply_to="2"),
        Use("more_tools", name="spawn", arguments={"prompt": "[kid] look", "agent_id": "kid"}),
        *(Say("7 files") for _ in range(4)),
    )
    office.model.script("[kid]", Say("kid is done"))
    office.run("[ann] look")
    requests = office.model.requests["[sub]"]
    answers = [later.since(one) for one, later in pairwise(requests)]
    assert "agentA" in answers[0] and "sentTo" in answers[0] and "repliedTo" in answers[2], answers
    (broadcast,) = [row for row in json.loads(office.say("read-messages", "--all")) if row["from"] == "agentA"]
    assert broadcast["message"] == "Starting frontend work"
    texts = "".join(request.text for name in ("[ann]", "[sub]") for request in office.model.requests[name])
    assert "kid is done" in texts + office.say("read-messages", "--all", agent="ann")


@pytest.mark.parametrize("office", ["claude", f"claude{NEWEST}"], indirect=True)
def test_claudes_task_list_completes_no_task_whose_check_fails(office: Office) -> None:
    office.variables["CLAUDE_CODE_ENABLE_TODO_TOOLS"] = "1"
    office.say("create-task", "Add login", "--check", "false")
    office.model.script(
        "[ann]",
        Use("TaskCreate", subject="Add login", description="with tests"),
        Use("TaskUpdate", taskId="1", status="completed"),
        Say("done"),
    )
    office.run("[ann] add the login")
    (task,) = json.loads(office.say("get-tasks"))
    assert task["status"] != "completed" and "task-1 is not completed" in office.model.requests["[ann]"][2].text
