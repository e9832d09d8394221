"""A question to a real client is answered by a copy of its session, and does not disturb the agent."""

from __future__ import annotations

import json
import subprocess

from tests.e2e.conftest import TO_START, Office, every_client
from tests.e2e.model import Run, Say
from tests.support.cli import ALPHA


@every_client
def test_a_shadow_answers_while_its_agent_is_held_in_a_tool_call(office: Office) -> None:
    """The agent's next request differs only by the note of what its copy answered."""
    office.say("set", "broadcast", "agents")
    office.say("create-task", "the gate")
    office.model.script("[ann]", Run("teams wait --task 1 --timeout 40"), Say("done"))
    office.model.answer("[ask]", "the word is xylophone")
    process = office.start("[ann] remember the word xylophone")
    office.model.wait_for("[ann]", 1, TO_START)
    found = json.loads(office.say("ask-others", "[ask] which word?", "--to", "ann", "--timeout", "40"))
    assert found["status"] == "complete", (found, office.logs())
    assert found["responses"] == [{"responder_id": "ann", "content": "the word is xylophone", "is_human": False}]
    (shadow,) = office.model.requests["[ask]"]
    assert not shadow.tools & {"Bash", "exec_command", "shell", "run_shell_command", "bash", "write_file", "edit"}
    assert "remember the word xylophone" in shadow.text and "You are ann" in shadow.said_by_user()[-1]
    assert len(office.model.requests["[ann]"]) == 1
    office.say("update-task", "1", "--status", "cancelled", agent="human")
    done = office.end(process)
    assert (done["output"], done["agents"][0]["turns"]) == ("done", 1)
    first, second = office.model.requests["[ann]"][:2]
    assert len(second.turns) > len(first.turns)
    for (role, said), again in zip(first.turns, second.turns, strict=False):
        # OpenCode ends each request with a note of members and open messages, which only that request has.
        assert again[0] == role and said.startswith(again[1]) and (said == again[1] or office.client == "opencode")
    assert "[ask] which word?" not in first.text
    assert "Your fork answered" in second.since(first) and second.text.count("the word is xylophone") == 1


@every_client
def test_a_shadow_of_an_idle_agent_leaves_its_session_as_it_is(office: Office) -> None:
    office.say("set", "broadcast", "agents")
    office.model.script("[ann]", Say("first"), Say("second"))
    office.model.answer("This is a copy of you", "the word is xylophone")
    office.run("[ann] remember the word xylophone")
    before = kept_by_client(office)
    found = json.loads(office.say("ask-others", "[ask] which word?", "--to", "ann", "--timeout", "40"))
    assert [said["content"] for said in found["responses"]] == ["the word is xylophone"], (found, office.logs())
    after = kept_by_client(office)
    assert before and {path: after.get(path) for path in before} == before
    office.say("send-message", "ann", "go on")
    second = office.model.wait_for("[ann]", 2)
    assert "[ann] remember the word" in second.text and "first" in second.text
    assert not any(role == "user" and "This is a copy of you" in text for role, text in second.turns)


def kept_by_client(office: Office) -> dict[str, bytes]:
    """The files that hold the conversation; OpenCode has a database instead, and exports the session from
    it.
    """
    if office.client == "opencode":
        words = [str(office.bin / "opencode"), "export", session_of(office)]
        done = subprocess.run(words, env=office.environ(), cwd=office.work, capture_output=True, timeout=60)
        return {"export": done.stdout}
    files = {str(path): path.read_bytes() for path in office.home.rglob("*.jsonl")}
    return {path: data for path, data in files.items() if b"remember the word xylophone" in data}


def session_of(office: Office) -> str:
    """The id of ann's session, which the client chose."""
    line = (office.cli.root / "logs" / ALPHA / "ann.1.out").read_text().splitlines()[0]
    return str(json.loads(line)["sessionID"])
