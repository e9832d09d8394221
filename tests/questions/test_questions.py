"""Questions to agents: who is asked, who answers, and what the asker gets."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

from teams_cli.membership import joining
from teams_cli.teams.permission import Caller
from tests.questions.asking import ask, by_responder, wait_for
from tests.support.cli import ALPHA, TIMEOUT, Cli, make_team
from tests.support.terminal import Terminal
from tests.support.workflow_runs import processes_of


def test_all_answer_in_parallel_through_copies(cli: Cli) -> None:
    """A member that can't be copied is asked through its inbox, and answers by a command."""
    asking = cli.start("ask-others", "why?", "--json", agent="bob")
    wait_for(lambda: cli.ok("get-questions", "--mine", agent="lea"))
    cli.ok("answer", "1", "because", agent="lea")
    found = json.loads(asking.communicate(timeout=TIMEOUT)[0])
    assert (found["requestId"], found["status"]) == ("ask-1", "complete")
    answers = by_responder(found)
    assert sorted(answers) == ["ann", "cid", "dot", "lea"]
    assert answers["ann"] == {"responder_id": "ann", "content": "ann says why?", "is_human": False}
    assert answers["lea"]["content"] == "because"


def test_some_only_and_nobody(cli: Cli, tmp_path: Path) -> None:
    assert sorted(by_responder(ask(cli, "why?", "--to", "ann", "--to", "cid"))) == ["ann", "cid"]
    assert cli.refused("ask-others", "why?", "--to", "bob", agent="bob")[0] == 2
    assert cli.refused("ask-others", "why?", "--to", "zoe", agent="bob")[0] == 10
    assert cli.refused("ask-others", "  ", agent="bob")[0] == 2
    alone = make_team(tmp_path / "alone")
    assert alone.refused("ask-others", "why?", agent="lea") == (13, "not_allowed")  # questions are off
    assert alone.refused("set", "broadcast", "everyone", agent="lea") == (2, "invalid_value")
    alone.ok("set", "broadcast", "agents", agent="lea")
    found = alone.ok("ask-others", "why?", agent="lea")
    assert (found["status"], found["responses"]) == ("complete", []) and "nobody" in found["note"]


def test_an_agent_is_told_of_the_answer_of_its_copy_and_not_woken(cli: Cli) -> None:
    """The agent learns what its copy answered, but not as mail that keeps it from finishing."""
    ask(cli, "why?", "--to", "ann")
    assert cli.ok("before-complete", agent="ann") == {"agent": "ann", "mayFinish": True}
    (told,) = cli.ok("read-messages", agent="ann")
    assert told["type"] == "info" and 'bob asked: "why?"' in told["message"] and "ann says why?" in told["message"]


def test_each_answers_once_and_a_late_answer_changes_nothing(cli: Cli) -> None:
    asked = ask(cli, "why?", "--no-wait", "--to", "lea", "--to", "ann", "--timeout", "0.5")["requestId"]
    wait_for(lambda: cli.ok("show-question", asked)["status"] == "timeout")
    late = cli.ok("answer", asked, "too late", agent="lea")
    assert late["status"] == "timeout" and late["answers"][-1]["late"] is True
    wait_for(
        lambda: not collectors(cli)
    )  # ann's copy may answer late, too, which would look like a change by the refusal
    assert cli.refused("answer", asked, "again", agent="lea") == (11, "wrong_state")
    assert "lea" not in by_responder(cli.ok("show-question", asked))
    assert cli.refused("answer", asked, "I?", agent="cid") == (13, "not_allowed")
    assert cli.refused("answer", "99", "I?", agent="cid") == (10, "question_not_found")


def test_open_questions_are_limited_and_closed_ones_are_not_counted(cli: Cli) -> None:
    cli.ok("set", "max_broadcasts_per_agent", "1", agent="lea")
    ask(cli, "why?", "--no-wait", "--to", "lea", "--timeout", "600")
    assert cli("ask-others", "how?", agent="bob").status == 11
    assert cli.ok("answer", "1", "so", agent="lea")["status"] == "complete"
    assert ask(cli, "how?", "--to", "ann")["status"] == "complete"


def collectors(cli: Cli) -> list[int]:
    return [pid for pid, line in processes_of(cli.root).items() if "teams_cli.agents.answering" in line]


@pytest.mark.slow
def test_after_a_kill_in_mid_question_nothing_hangs(cli: Cli) -> None:
    """After a kill of asker and collector the question times out, and after one of the console another may answer."""
    joining.join(cli.store(), ALPHA, Caller("slow"), answer="sleep 30")
    asking = cli.start("ask-others", "why?", "--to", "slow", "--timeout", "2", agent="bob")
    wait_for(lambda: cli.ok("get-questions"))
    asking.kill()
    asking.communicate()
    for pid in collectors(cli):
        os.kill(pid, signal.SIGKILL)
    wait_for(lambda: cli.ok("show-question", "1")["status"] == "timeout")
    console = Terminal(cli, "human", agent="")
    waiting = cli.start("ask-others", "which?", "--human", "--json", agent="bob")
    console.sees("which?")
    os.kill(console.pid, signal.SIGKILL)
    console.end()
    cli.ok("answer", "2", "this", agent="human")
    assert json.loads(waiting.communicate(timeout=TIMEOUT)[0])["status"] == "complete"
    assert ask(cli, "why?", "--to", "ann")["status"] == "complete"


@pytest.mark.slow
def test_the_collector_of_answers_is_started_again_when_it_is_killed(cli: Cli, tmp_path: Path) -> None:
    """The answers that were collected are kept, and only the others are asked for again."""
    answer = f"echo >>{tmp_path}/asked; test -e {tmp_path}/again || sleep 30; echo yes"
    joining.join(cli.store(), ALPHA, Caller("slow"), answer=answer)
    asking = cli.start("ask-others", "why?", "--to", "slow", "--to", "ann", "--json", agent="bob")
    wait_for(lambda: (tmp_path / "asked").exists() and cli.ok("show-question", "1")["answers"])
    (tmp_path / "again").touch()
    for pid in collectors(cli):
        os.kill(pid, signal.SIGKILL)
    found = json.loads(asking.communicate(timeout=TIMEOUT)[0])
    assert found["status"] == "complete" and by_responder(found)["slow"]["content"] == "yes"
    assert (tmp_path / "asked").read_text().count("\n") == 2
    assert len(cli.ok("show-question", "1")["answers"]) == 2
