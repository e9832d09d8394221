"""Questions to real clients: the copy answers from the history, the agent works on undisturbed."""

from __future__ import annotations

import json

from tests.e2e.conftest import Office
from tests.e2e.model import Run, Say


def test_a_shadow_answers_while_its_agent_is_held_in_a_tool_call(office: Office) -> None:
    """The agent's own next request is as it would have been, but for the note of what was said in its name."""
    office.say("set", "broadcast", "agents")
    office.say("create-task", "the gate")
    office.model.script("[ann]", Run("teams wait --task 1 --timeout 40"), Say("done"))
    office.model.answer("[ask]", "the word is xylophone")
    process = office.start("[ann] remember the word xylophone")
    office.model.wait_for("[ann]", 1)
    found = json.loads(office.say("ask-others", "[ask] which word?", "--to", "ann", "--timeout", "40"))
    assert found["status"] == "complete", (found, office.logs())
    assert found["responses"] == [{"responder_id": "ann", "content": "the word is xylophone", "is_human": False}]
    (shadow,) = office.model.requests["[ask]"]
    assert "remember the word xylophone" in shadow.text and "You are ann" in shadow.said_by_user()[-1]
    assert len(office.model.requests["[ann]"]) == 1
    office.say("update-task", "1", "--status", "cancelled", agent="human")
    done = office.end(process)
    assert (done["output"], done["agents"][0]["turns"]) == ("done", 1)
    first, second = office.model.requests["[ann]"][:2]
    assert second.turns[: len(first.turns)] == first.turns
    assert "Your shadow answered" in second.since(first)
    assert "[ask] which word?" not in first.text and second.text.count("the word is xylophone") == 1
