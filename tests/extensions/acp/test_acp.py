"""Agents whose client speaks the Agent Client Protocol, with a script as the client."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

from teams_cli.clients import own_entries
from teams_cli.environment import HELD
from teams_cli.extensions.acp.turn import is_allowed
from tests.support.agents import NEEDS_PROC, ended, lines, place, team_of_agents
from tests.support.cli import Cli
from tests.support.waits import until

pytestmark = NEEDS_PROC
AGENT = [sys.executable, str(Path(__file__).with_name("agent.py"))]
ACP = ("--harness", "acp", "--acp-command", shlex.join(AGENT))
OUTSIDE = {"kind": "edit", "locations": [{"path": "/etc/hosts"}]}


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    made = team_of_agents(tmp_path)
    made.agent = "lea"
    return made


def run(cli: Cli, prompt: str, *words: str, agent: str = "ann") -> Any:
    """Run the agent, and return how its turn ended."""
    where = ("--agent-id", agent, "--cwd", str(place(cli)))
    return json.loads(cli("run-agent", prompt, *where, *(words or ACP), "--json").stdout)


def sent(cli: Cli, method: str = "") -> list[dict[str, Any]]:
    """The parameters of each call of *method* that the client got; without *method*, all answers to its
    permission requests.
    """
    messages = [json.loads(line) for line in lines(cli, "sent")]
    if method:
        return [message.get("params") for message in messages if message.get("method") == method]
    return [message["result"]["outcome"] for message in messages if "outcome" in message.get("result", {})]


def want(**tool: Any) -> str:
    return f"want {json.dumps(tool)}"


def prompts(cli: Cli) -> list[str]:
    return [prompt["prompt"][0]["text"] for prompt in sent(cli, "session/prompt")]


def test_a_turn_is_taken_and_a_message_is_the_next_in_the_same_session(cli: Cli) -> None:
    """When the client repeats its first turn while it loads the session, that is not part of the output of the
    second turn.
    """
    (cli.root / "config.json").write_text(json.dumps({"harness": {"mine": {"acp": AGENT}}}))
    assert run(cli, "say first", "--harness", "mine")["output"] == "first"
    cli.ok("send-message", "ann", "say second")
    assert ended(cli, "ann", 2).session_id == "one"
    assert cli("recall", "ann", "--output", "--json").json["agents"][0]["output"] == "second"
    begun, loaded = sent(cli, "session/new"), sent(cli, "session/load")
    assert loaded == [{**begun[0], "sessionId": "one"}]
    if own_entries.is_server_available():
        assert {"name": "TEAMS_AGENT_ID", "value": "ann"} in begun[0]["mcpServers"][0]["env"]
    assert [mode["modeId"] for mode in sent(cli, "session/set_mode")] == ["default"] * 2


def test_at_edit_an_agent_edits_its_files_and_is_told_what_was_refused(cli: Cli) -> None:
    here = str(place(cli) / "file")
    allowed = [
        want(kind="edit", locations=[{"path": here}]),
        want(kind="execute", rawInput={"command": "teams announce here"}),
        want(kind="other", title="mcp__team__brief"),
    ]
    assert run(cli, "\n".join([*allowed, want(**OUTSIDE)]))["outcome"] == "completed"
    assert [answer["optionId"] for answer in sent(cli)] == ["my-allow_once"] * 3 + ["my-reject_once"]
    assert "/etc/hosts" in prompts(cli)[1] and "level edit" in prompts(cli)[1]


def test_tools_that_level_edit_does_not_allow(tmp_path: Path) -> None:
    for tool in (
        {"kind": "execute", "rawInput": {"command": "teams brief; touch x"}},
        {"kind": "execute", "title": "teams brief"},
        {"kind": "execute", "title": "mcp__team__brief"},
        {"kind": "edit", "locations": [{"path": ".git/config"}]},
        {"kind": "edit", "locations": [{"path": "file"}, {"path": "../file"}]},
        {"kind": "edit"},
        {"kind": "fetch", "locations": [{"path": "file"}]},
    ):
        allowed = [is_allowed(tool, level, str(tmp_path)) for level in ("ask", "edit", "all")]
        assert allowed == [False, False, True], tool


def test_at_ask_the_person_is_asked_and_an_interjection_withdraws_the_question(cli: Cli) -> None:
    """Some clients end their turn only when they are told that their question is over."""
    cli("run-agent", want(**OUTSIDE), *ACP, "--agent-id", "ann", "--permissions", "ask", "--detach")
    question = until(lambda: cli("get-questions", "--open", "--json").json)[0]
    assert "ann wants to use edit" in question["question"] and "/etc/hosts" in question["question"]
    cli.ok("interject", "ann", f"{want(**OUTSIDE)}\n{want(**OUTSIDE)}")
    second = until(lambda: [q for q in cli("get-questions", "--open", "--json").json if q["id"] != question["id"]])[0]
    cli.ok("answer", second["id"], "allow", agent="human")
    third = until(lambda: [q for q in cli("get-questions", "--open", "--json").json if q["id"] > second["id"]])[0]
    cli.ok("answer", third["id"], "not that one", agent="human")
    assert ended(cli, "ann").turns == 2
    assert [answer.get("optionId") for answer in sent(cli)] == [None, "my-allow_once", "my-reject_once"]
    assert len(sent(cli, "session/cancel")) == 1 and "not that one" in prompts(cli)[-1]
    assert cli("get-questions", "--open", "--json").json == []


def test_halves_of_a_character_are_joined_or_replaced(cli: Cli) -> None:
    """A client may cut its text between the two UTF-16 units of a character."""
    done = run(cli, 'chunk "\\ud83d"\nchunk "\\ude00 done \\ud83d"')
    assert (done["outcome"], done["output"]) == ("completed", "\U0001f600 done \ufffd")


def test_an_output_may_have_every_character_that_divides_lines(cli: Cli) -> None:
    said = "one\u2028two\u2029three\x85four\x0bfive\x0csix"
    done = run(cli, f"chunk {json.dumps(said)}")
    assert (done["outcome"], done["output"]) == ("completed", said)


def test_a_line_that_can_not_be_read_is_left_out(cli: Cli) -> None:
    done = run(cli, "print '[' * 100_000\nsay done")
    assert (done["outcome"], done["output"]) == ("completed", "done")


def test_a_client_that_refuses_or_ends_has_failed(cli: Cli) -> None:
    failed = run(cli, "fail who are you?")
    assert failed["outcome"] == "failed" and "log in" in failed["failure"] and "who are you?" in failed["failure"]
    assert "exit status 7" in run(cli, "end", agent="bob")["failure"]


def test_the_client_command_needs_this_harness_and_is_refused_to_agents_at_edit(cli: Cli) -> None:
    command = ACP[2:]
    assert "--acp-command" in cli("run-agent", "x", "--harness", "acp").stderr
    assert "has its own command" in cli("run-agent", "x", "--harness", "gemini-acp", *command).stderr
    for words in (("run-agent", "x", *command), ("spawn", "x", *command)):
        answer = cli(*words, **{HELD: "edit"})
        assert answer.status == 13 and "give --acp-command" in answer.stderr
