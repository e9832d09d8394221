"""The example sessions of the IAM and MassGen documents, word for word, between agents in real clients."""

from __future__ import annotations

import json

from tests.e2e.conftest import Office, every_mcp_client
from tests.e2e.model import Run, Say, Use
from tests.support.waits import until

LISTEN = Use("more_tools", name="read_messages", arguments={"wait": 100})
"""Calls `read_messages` through `more_tools`, as the first list of tools does not have it."""


@every_mcp_client
def test_two_agents_of_iam_ask_and_answer(office: Office) -> None:
    """Messages are numbered in the team, so the question is the third one, where the document numbers by inbox.

    The backend works until the frontend has asked.
    """
    office.say("create-task", "the question")
    office.model.script(
        "[backend]",
        Use("broadcast", message="Starting backend work"),
        Run("teams wait --task 1 --timeout 100"),
        Use("more_tools", name="read_messages"),
        Use("broadcast", reply_to="3", message="Here's the schema: {...}"),
        Say("served"),
        Say("bye"),
    )
    office.model.script(
        "[frontend]",
        Use("broadcast", message="Starting frontend work"),
        Use("broadcast", send_to="agentB", message="Need the API schema"),
        LISTEN,
        Use("broadcast", reply_to="4", message="Got it, thanks!"),
        Say("built"),
    )
    backend = office.start("[backend] go", "agentB")
    office.model.wait_for("[backend]", 2)
    frontend = office.start("[frontend] go", "agentA")
    office.model.wait_for("[frontend]", 3)
    office.say("update-task", "1", "--status", "cancelled", agent="human")
    assert office.end(frontend)["output"] == "built"
    office.end(backend)
    first, second, third, fourth, *_ = office.model.requests["[frontend]"]
    assert "agentB" in second.since(first) and "Starting backend work" in second.text
    assert "agentB" in third.since(second)
    assert "Here's the schema: {...}" in fourth.text
    replies = office.model.requests["[backend]"]
    assert "Need the API schema" in replies[4].text and "repliedTo" in replies[4].text
    assert any("Got it, thanks!" in request.text for request in replies[5:])


@every_mcp_client
def test_two_agents_of_massgen_ask_the_human_who_is_asked_once(office: Office) -> None:
    office.say("set", "broadcast", "human")
    office.model.script("[colour]", Use("ask_others", text="What color theme?"), Say("dark"))
    office.model.script(
        "[style]", Use("ask_others", text="What style?"), Use("ask_others", text="What style exactly?"), Say("flat")
    )

    def is_open(text: str) -> bool:
        return text in [row["question"] for row in json.loads(office.say("get-questions", "--open"))]

    a = office.start("[colour] go", "agent_a")
    until(lambda: is_open("What color theme?"))
    b = office.start("[style] go", "agent_b")
    until(lambda: is_open("What style?"))
    office.say("answer", "1", "Dark mode", agent="human")
    until(lambda: is_open("What style exactly?"))
    office.say("answer", "3", "Flat", agent="human")
    assert [office.end(process)["output"] for process in (a, b)] == ["dark", "flat"]
    asked, answered = office.model.requests["[colour]"][:2]
    assert "Dark mode" in answered.since(asked) and "human_qa_history" not in answered.since(asked)
    first, deferred, again = office.model.requests["[style]"][:3]
    assert "deferred" in deferred.since(first) and "Dark mode" in deferred.since(first)
    assert "human_qa_note" in deferred.since(first) and "Flat" in again.since(deferred)
