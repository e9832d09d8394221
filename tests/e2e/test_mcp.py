"""Real clients that `teams` starts use the tools of its MCP server."""

from __future__ import annotations

import json
import re

from tests.e2e.conftest import Office, every_mcp_client
from tests.e2e.model import Run, Say, Use


@every_mcp_client
def test_an_agent_has_the_tools_of_its_role_and_uses_them(office: Office) -> None:
    office.say("create-task", "Count the lines")
    office.model.script(
        "[ann]",
        Use("claim_task", next=True),
        Use("more_tools", name="send_to_agent", arguments={"target": "lea", "message": "I am at it"}),
        Use("more_tools", name="send_to_agent", arguments={"target": "zoe", "message": "and you?"}),
        Use("update_task", task="1", status="completed", result="12 lines"),
        Say("counted"),
    )
    done = office.run("[ann] take what is ready")
    first, *later = office.model.requests["[ann]"]
    assert done["output"] == "counted", later[-1].text
    tools = {re.sub("^(mcp_+)?team_+", "", name) for name in first.tools}
    assert tools >= {"brief", "wait", "claim_task", "broadcast", "update_task", "more_tools"}
    assert not tools & {"create_task", "send_to_agent"}
    assert "Count the lines" in later[0].since(first) and "in_progress" in later[0].since(first)
    assert "delivered" in later[1].since(later[0])
    refused = later[2].since(later[1])
    assert "not found" in refused and "available" in refused and "lea" in refused
    (task,) = json.loads(office.say("get-tasks"))
    assert (task["status"], task["owner"], task["result"]) == ("completed", "ann", "12 lines")
    assert "I am at it" in [m["message"] for m in json.loads(office.say("read-messages"))]


@every_mcp_client
def test_an_agent_spawns_another_through_a_tool(office: Office) -> None:
    """The spawned agent can reach its model, though clients do not pass their keys on to MCP servers."""
    said = {"prompt": "[ben] count the files", "agent_id": "ben"}
    office.model.script("[ann]", Use("more_tools", name="spawn", arguments=said), Say("waiting"), Say("done"))
    office.model.script("[ben]", Run("teams announce counting"), Use("more_tools", name="list_agents"), Say("7 files"))
    done = office.run("[ann] look")
    assert done["output"] == "done" and [row["outcome"] for row in done["agents"]] == ["completed"] * 2
    assert "| 7 files" in office.model.requests["[ann]"][2].said_by_user()[-1]
    listed = office.model.requests["[ben]"][2]
    assert "workingOn" in listed.text and "counting" in listed.text
