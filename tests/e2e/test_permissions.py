"""What real clients do at each level of permissions, seen in the effects of their tools and the questions to
the person.
"""

from __future__ import annotations

import json
import subprocess
import time
from itertools import pairwise

import pytest

from tests.e2e.conftest import Office, every_client
from tests.e2e.model import Run, Say

OUTSIDE = 'python3 -c \'open("../outside", "w")\'; echo done'
INSIDE = 'python3 -c \'open("inside", "w")\''
SECOND = 'python3 -c \'open("second", "w")\''


@every_client
def test_at_edit_an_agent_works_in_the_team_and_nowhere_else(office: Office) -> None:
    """An agent at `edit` can't have another agent do what it may not do itself."""
    office.model.script(
        "[ann]",
        Run("teams announce 'here I am'"),
        Run(OUTSIDE),
        Run("teams spawn 'touch inside' --harness shell"),
        Run("teams set permissions all"),
        Run("teams whoami --as human"),
        Say("done"),
    )
    office.run("[ann] work")
    requests = office.model.requests["[ann]"]
    answers = [later.since(earlier) for earlier, later in pairwise(requests)]
    assert "here I am" in answers[0]
    for answer in answers[2:5]:
        assert "may not" in answer
    assert not (office.work / "inside").exists()
    assert office.client == "codex" or not (office.top / "outside").exists()


def test_the_sandbox_of_codex_ends_at_its_directory(office: Office) -> None:
    """An agent that was spawned in the sandbox runs outside of it, but at the same level."""
    if office.client != "codex":
        pytest.skip("it has no sandbox of its own")
    office.model.script(
        "[ann]",
        Run("touch inside && echo made"),
        Run("touch /usr/outside || echo refused"),
        Run("teams spawn '[ben] look' --agent-id ben"),
        Run("teams wait --agent ben --timeout 60"),
        Say("done"),
    )
    office.model.script("[ben]", Run("touch /usr/outside || echo refused"), Say("ben is done"))
    done = office.run("[ann] work")
    text = office.model.requests["[ann]"][-1].text
    assert "made" in text and "refused" in text
    assert [(row["name"], row["outcome"]) for row in done["agents"]] == [("ann", "completed"), ("ben", "completed")]
    assert "refused" in office.model.requests["[ben]"][-1].text


@pytest.mark.parametrize("office", ["claude", "codex", "gemini-acp", "opencode-acp", "qwen-acp"], indirect=True)
def test_at_ask_the_answer_of_the_person_decides(office: Office) -> None:
    office.say("set", "permissions", "ask")
    commands = [INSIDE, "teams announce 'unasked'", "teams answer 1 always --as human", SECOND]
    office.model.script("[ann]", *map(Run, commands), Say("done"), Say("done"))
    process = office.start("[ann] work")
    asked = answered(office, process, "allow", "not that one")
    office.end(process)
    assert len(asked) == 2 and INSIDE in asked[0] and SECOND in asked[1]
    assert (office.work / "inside").exists() and not (office.work / "second").exists()
    text = office.model.requests["[ann]"][-1].text
    assert "not that one" in text and "unasked" in text and "may not act as the person" in text


def answered(office: Office, process: subprocess.Popen[str], *answers: str) -> list[str]:
    """The questions that the person got until the process ended, and answered with *answers*."""
    asked: list[str] = []
    while process.poll() is None:
        for question in json.loads(office.say("get-questions", "--open")):
            office.say("answer", question["id"], answers[len(asked)], agent="human")
            asked.append(question["question"])
        time.sleep(0.1)
    return asked
