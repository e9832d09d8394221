"""The shipped workflows with real clients: models do the tasks, and one sums up what they found, or can't."""

from __future__ import annotations

import json
import re
import subprocess
from typing import Any

import pytest

from tests.e2e.conftest import Office
from tests.e2e.model import Run, Say, Step
from tests.support.workflow_runs import commit, make_repository

TIMEOUT = 240.0
FOUND = "SERIOUS a.py:2: it calls eval on what the user typed"
MEMBERS = {
    "code-review": ("security", "correctness", "performance", "style"),
    "parallel-refactor": ("worker-1", "worker-2", "worker-3", "worker-4"),
    "feature-factory": ("analyst", "developer", "tester", "writer"),
    "council": ("churn", "size", "todo", "tests"),
}
LEADER = "You take the last turn of leader"

some_clients = pytest.mark.parametrize("office", ("claude", "codex"), indirect=True)


class Working(list[Step]):
    """The steps of a model that claims what is ready and completes it with *result*, until nothing is; before, where it
    *answers*, it replies to what the leader asked all.
    """

    def __init__(self, office: Office, word: str, result: str, answers: bool) -> None:
        super().__init__()
        self.office = office
        self.word = word
        self.result = result
        self.done: set[str] = set()
        self.claiming = False
        self.answers = answers

    def __bool__(self) -> bool:
        return True

    def pop(self, _: Any = 0) -> Step:
        shown = self.office.model.requests[self.word][-1].text
        if self.answers and "msg-1 is handled" not in shown:
            asked = re.search(r"From agent \W*leader", shown)
            return Run(f"teams reply 1 '{self.result}'" if asked else "teams read-messages --wait 60")
        self.claiming = not self.claiming
        if self.claiming:
            return Run("teams claim-task --next --json")
        claimed = [key for key in re.findall(r"\bid\W+(task-\d+)", shown) if key not in self.done]
        if not claimed:
            return Say("nothing is ready for me")
        self.done.add(claimed[-1])
        return Run(f"teams update-task {claimed[-1]} --status completed --result '{self.result}'")


def play(office: Office, name: str, result: str, *says: str) -> None:
    """Have the members of that workflow work, and the leader say these things, a turn each."""
    for member in MEMBERS[name]:
        word = f"You are {member} ("
        office.model.script(word)
        office.model.scripts[word] = Working(office, word, result, name == "council")
    office.model.script(LEADER, *(Say(text) for text in says))


def run(office: Office, name: str, *words: str, status: int = 0) -> dict[str, Any]:
    """Run the workflow on a small repository with the client of the office; its document."""
    repository = office.work / "repo"
    if not repository.exists():
        make_repository(repository, {"a.py": "x = 1  \n", "b.py": "y = 2  \n"})
        commit(repository, {"a.py": "x = 1  \nprint(eval(input()))\n"})
    command = [str(office.bin / "teams"), "run", name, "--json", "--harness", office.client, *words]
    command += ["--var", f"repo={repository}"]
    done = subprocess.run(
        command, env=office.environ(), cwd=repository, capture_output=True, text=True, timeout=TIMEOUT
    )
    assert done.returncode == status, done
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@some_clients
def test_a_review_with_findings(office: Office) -> None:
    play(office, "code-review", FOUND, "Verdict: changes are needed\n\n* a.py:2: eval of what the user typed")
    document = run(office, "code-review")
    assert document["status"] == "completed" and document["verdict"] == "changes are needed"
    assert "eval of what the user typed" in document["text"]
    asked = office.model.requests[LEADER][0].text
    assert asked.count(FOUND) >= 10 and "Begin with one line" in asked


@some_clients
def test_a_review_with_a_member_that_fails(office: Office) -> None:
    """What only that one can do is left, and the run says so, whatever the leader says."""
    play(office, "code-review", FOUND, "Verdict: changes are needed, and style was not reviewed")
    office.model.refuse("You are style (")
    document = run(office, "code-review", status=1)
    assert document["status"] == "incomplete" and document["verdict"].startswith("changes are needed")
    assert "style died" in document["text"] and "## Not run" in document["text"]
    assert ", pending, by nobody" in office.model.requests[LEADER][0].text


@some_clients
@pytest.mark.parametrize("name", ["parallel-refactor", "feature-factory", "council"])
def test_the_other_workflows(office: Office, name: str) -> None:
    """Their reports are the leader's words, and no script's."""
    play(office, name, "a.py: done as asked", "## This is what came of it\n\nAll as asked.")
    document = run(office, name)
    assert document["status"] == "completed"
    assert "## This is what came of it" in document["text"] and "is delivered" not in document["text"]
    asked = office.model.requests[LEADER][0].text
    assert "done as asked" in asked
    assert asked.count(" replied:\na.py: done as asked") == (4 if name == "council" else 0), {
        word: [request.text[-700:] for request in requests[:4]] for word, requests in office.model.requests.items()
    }


@some_clients
def test_the_model_is_chosen(office: Office) -> None:
    play(office, "parallel-refactor", "done", "so it is")
    run(office, "parallel-refactor", "--model", "m7-large")
    bodies = [request.body for word in office.model.requests for request in office.model.requests[word]]
    assert bodies and {body["model"] for body in bodies} == {"m7-large"}
