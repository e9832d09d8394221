"""What the models of real clients are shown while they work in a team, seen in their requests."""

from __future__ import annotations

import json
import time

from tests.e2e.apis import CACHED, INPUT, OUTPUT
from tests.e2e.conftest import Office, every_client, every_client_and
from tests.e2e.model import Hang, Run, Say


@every_client_and("opencode-acp", "qwen-acp")
def test_a_failure_of_the_model_is_a_failure_of_the_agent(office: Office) -> None:
    """Clients report a failing model in different ways; one exits with status 0."""
    office.model.refuse("[ann]")
    document = office.end(office.start("[ann] try"), status=1)
    assert document["outcome"] == "failed" and document["failure"]


@every_client
def test_outputs_of_spawned_agents_resume_the_caller_once(office: Office) -> None:
    office.model.script(
        "[ann]",
        Run("teams spawn '[ben] count the files' --agent-id ben --description counting"),
        Run("teams spawn '[cyd] name the files' --agent-id cyd"),
        Say("waiting"),
        Say("both are in"),
    )
    office.model.script("[ben]", Say("ben found 7", held=True))
    office.model.script("[cyd]", Say("cyd named them", held=True))
    process = office.start("[ann] look")
    office.wait_for_state("ann", "waiting")
    office.model.release()
    done = office.end(process)
    assert (done["output"], done["agents"][0]["turns"]) == ("both are in", 2)
    assert [row["outcome"] for row in done["agents"]] == ["completed"] * 3
    third, fourth = office.model.requests["[ann]"][2:]
    batch = fourth.said_by_user()[-1]
    for output in ("ben found 7", "cyd named them"):
        assert f'[From agent "{output[:3]}"]:\n| {output}' in batch and output not in third.text
    assert "[ann] look" in fourth.text and "waiting" in fourth.text
    assert "[ben] count the files" in office.model.requests["[ben]"][0].said_by_user()[-1].splitlines()


@every_client
def test_a_stop_with_unread_mail_is_refused(office: Office) -> None:
    """The mail is the next turn of the same process. A client that has no hook for that, or would join both
    answers, is resumed instead.
    """
    office.model.script("[ann]", Say("first answer", held=True), Say("second answer"))
    process = office.start("[ann] work")
    office.model.wait_for("[ann]", 1)
    office.say("send-message", "ann", "one more thing")
    office.model.release()
    done = office.end(process)
    assert (done["output"], done["agents"][0]["turns"]) == (
        "second answer",
        1 if office.client in ("claude", "codex", "opencode") else 2,
    )
    first, second = office.model.requests["[ann]"]
    assert '[From agent "lea"]:\n| one more thing' in second.since(first)


@every_client_and("gemini-acp", "copilot-acp")
def test_a_message_resumes_an_idle_agent_with_its_history(office: Office) -> None:
    office.model.script("[ann]", Say("first"), Say("second"))
    assert office.run("[ann] begin")["output"] == "first"
    office.say("send-message", "ann", "go on")
    office.say("wait", "--agent", "ann", "--timeout", "150")
    second = office.model.wait_for("[ann]", 2)
    assert "| go on" in second.said_by_user()[-1] and "first" in second.text and "[ann] begin" in second.text


@every_client_and("gemini-acp", "opencode-acp", "qwen-acp")
def test_an_interjection_stops_the_turn_and_is_the_next_one(office: Office) -> None:
    """An answer and a tool call are interrupted; the latter by a message, as the team's setting `delivery`
    says.
    """
    office.say("create-task", "never done")
    office.model.script("[ann]", Hang(), Run("teams wait --task 1 --timeout 300"), Say("as you wish"))
    process = office.start("[ann] work")
    office.model.wait_for("[ann]", 1)
    for number, how, text in ((1, "interject", "not this"), (2, "send-message", "nor that")):
        office.say(how, "ann", text)
        request = office.model.wait_for("[ann]", number + 1)
        assert f"| {text}" in request.said_by_user()[-1]
        office.say("set", "delivery", "interject")
        time.sleep(1 if number == 1 else 0)  # let the tool begin to run
    assert office.end(process)["output"] == "as you wish"
    assert office.model.requests["[ann]"][-1].text.count("| nor that") == 1


@every_client_and("qwen-acp")
def test_the_usage_of_turns_is_what_the_model_counted(office: Office) -> None:
    """The turns are counted apart, although some clients add up the tokens of a session when it is resumed."""
    office.model.script("[ann]", Run("teams announce 'reading'"), Say("forty-two"), Say("more"))
    office.run("[ann] what is it?")
    office.say("send-message", "ann", "go on")
    office.say("wait", "--agent", "ann", "--timeout", "150")
    requests = len(office.model.requests["[ann]"])
    found = json.loads(office.say("usage"))
    assert requests == 3 and found["total"]["turns"] == 2 and found["total"]["uncounted"] == 0
    said = {kind: found["total"][kind] for kind in ("input", "cached", "output")}
    assert said == {"input": requests * INPUT, "cached": requests * CACHED, "output": requests * OUTPUT}
