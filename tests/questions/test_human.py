"""Questions to the person: one at a time, at a console, in any shell, or at another command's terminal."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from teams_cli.clock import parse_rfc3339
from tests.questions.asking import ask, by_responder, wait_for
from tests.support.agents import end_all, team_of_agents
from tests.support.cli import ALPHA, TIMEOUT, Cli, make_team
from tests.support.terminal import Terminal


def test_the_human_is_asked_one_question_at_a_time(cli: Cli, person: Terminal) -> None:
    """A question that waited while another was answered ends with that answer, and may be asked again."""
    cli.ok("set", "broadcast", "human", agent="lea")
    first = cli.start("ask-others", "which colour?", "--human", "--json", agent="bob")
    person.sees("BROADCAST FROM BOB")
    second = cli.start("ask-others", "which size?", "--human", "--json", agent="ann")
    wait_for(lambda: len(cli.ok("get-questions", "--open")) == 2)
    assert "ANN" not in person.text
    person.type("blue\n")
    one = json.loads(first.communicate(timeout=TIMEOUT)[0])
    assert one["status"] == "complete"
    assert one["responses"] == [{"responder_id": "human", "content": "blue", "is_human": True}]
    assert "human_qa_note" not in one
    two = json.loads(second.communicate(timeout=TIMEOUT)[0])
    assert (two["status"], two["responses"]) == ("deferred", [])
    assert two["human_qa_history"] == [{"question": "which colour?", "answer": "blue"}]
    assert two["human_qa_note"].startswith("The human has already answered")
    third = cli.start("ask-others", "which size exactly?", "--json", agent="ann")
    person.sees("BROADCAST FROM ANN")
    person.type("small\n")
    assert json.loads(third.communicate(timeout=TIMEOUT)[0])["status"] == "complete"
    answers = [*two["human_qa_history"], {"question": "which size exactly?", "answer": "small"}]
    assert ask(cli, "which weight?", agent="cid")["human_qa_history"] == answers


def test_the_time_of_a_question_runs_from_when_it_is_shown(cli: Cli) -> None:
    """A question that waits for another still has its whole time afterwards."""
    ask(cli, "which colour?", "--human", "--no-wait")
    ask(cli, "which size?", "--human", "--no-wait", "--timeout", "77", agent="ann")
    first, second = (parse_rfc3339(row["expiresAt"]) for row in cli.ok("get-questions"))
    assert (second - first).total_seconds() == 77
    assert 77 < seconds_shown(cli) <= 300
    assert parse_rfc3339(cli.ok("show-question", "2")["expiresAt"]) < first
    assert 0 < seconds_shown(cli) <= 77


def seconds_shown(cli: Cli) -> int:
    """Skip the next question, and return how many seconds it said that there were."""
    shown = re.search(r"You have (\d+) seconds", cli("human", "--once", stdin=b"\n").stdout)
    assert shown
    return int(shown[1])


def test_a_question_gives_way_when_its_asker_is_killed(cli: Cli, person: Terminal) -> None:
    """A question without its asker gives way, even if the person sees it, and comes again later. What was typed
    before does not answer the next one.
    """
    gone = cli.start("ask-others", "which colour?", "--human", agent="bob")
    person.sees("Enter to skip")
    person.type("half an ans")
    asking = cli.start("ask-others", "which size?", "--human", "--json", agent="ann")
    wait_for(lambda: len(cli.ok("get-questions", "--open")) == 2)
    gone.kill()
    gone.communicate()
    person.sees("which size?")
    person.type("small\n")
    assert by_responder(json.loads(asking.communicate(timeout=TIMEOUT)[0]))["human"]["content"] == "small"
    person.sees("bob no longer waits for the answer")


def test_enter_skips_at_once_and_is_no_answer(cli: Cli, person: Terminal) -> None:
    asking = cli.start("ask-others", "which colour?", "--human", "--json", agent="bob")
    person.sees("Enter to skip")
    person.type("\n")
    found = json.loads(asking.communicate(timeout=TIMEOUT)[0])
    assert found["responses"] == [] and found["skipped"] is True and "human_qa_history" not in found
    assert "human: skipped" in cli("show-question", "1").stdout.splitlines()
    again = cli.start("ask-others", "which colour?", "--human", "--json", agent="ann")
    person.sees("BROADCAST FROM ANN")
    person.type("red\n")
    assert json.loads(again.communicate(timeout=TIMEOUT)[0])["status"] == "complete"


def test_requests_for_permission_go_through_the_same_queue(cli: Cli, person: Terminal) -> None:
    """`allow` holds once and `always` for good; any other answer is passed on as a refusal."""
    (cli.root / "config.json").write_text('{"permission": {"tool": {"announce": {"*": "ask"}}}}')
    for word, status in (("no, not now", 13), ("allow", 0), ("always", 0)):
        asking = cli.start("announce", "at work", agent="bob")
        person.sees("bob wants to announce")
        person.type(f"{word}\n")
        refused = "the human said: no, not now" in asking.communicate(timeout=TIMEOUT)[1].decode()
        assert (asking.returncode, refused) == (status, status == 13)
    assert cli("announce", "at work", agent="bob").status == 0
    assert cli.ok("ask-others", "x?", "--to", "ann", agent="bob")["status"] == "complete"


def test_old_prompts_are_told_that_nothing_is_to_be_done(cli: Cli) -> None:
    said = cli.ok("respond-to-broadcast", "my answer", agent="ann")
    assert said["status"] == "info" and "shadow" not in said["message"]


def test_the_human_is_asked_alone(cli: Cli) -> None:
    """A question can't go to the person and to agents, or to agents if only the person may be asked."""
    for words in (["--to", "human", "--to", "ann"], ["--human", "--to", "ann"]):
        assert cli.refused("ask-others", "why?", *words, agent="bob") == (2, "invalid_value")
    cli.ok("set", "broadcast", "human", agent="lea")
    assert cli.refused("ask-others", "why?", "--to", "ann", agent="bob") == (2, "invalid_value")
    assert cli.refused("ask-others", "why?", agent="human") == (2, "invalid_value")
    asked = ask(cli, "why?", "--to", "human", "--no-wait")["requestId"]
    found = cli.ok("show-question", asked)
    assert (found["mode"], found["to"]) == ("human", ["human"])


def test_the_console_of_a_secure_team_asks_for_the_token_of_the_human(tmp_path: Path) -> None:
    cli = Cli(tmp_path / "root", team=ALPHA)
    made = cli.ok("spawn-team", ALPHA, "--secure", agent="lea")
    assert cli("ask-others", "which?", "--human", "--no-wait", agent="lea", TEAMS_TOKEN=made["token"]).status == 0
    for token in ("", made["token"]):
        answer = cli("human", "--once", agent="", stdin=b"mine\n", TEAMS_TOKEN=token)
        assert answer.status == 13 and "token" in answer.stderr
    assert cli.ok("show-question", "1", agent="")["answers"] == []
    assert cli("human", "--once", agent="", stdin=b"that\n", TEAMS_TOKEN=made["humanToken"]).status == 0
    assert cli.ok("show-question", "1", agent="")["answers"][0]["content"] == "that"


def test_a_question_waits_for_nobody_that_has_left(tmp_path: Path) -> None:
    """The asker gets the answers so far when the last one who has not answered leaves."""
    cli = make_team(tmp_path / "root", "bob", "ann")
    cli.ok("set", "broadcast", "agents", agent="lea")
    words = ("ask-others", "which?", "--to", "bob", "--to", "ann", "--timeout", "1000", "--json")
    waiting = cli.start(*words, agent="lea")
    wait_for(lambda: cli.ok("get-questions", "--open"))
    cli.ok("answer", "1", "the second", agent="bob")
    assert waiting.poll() is None
    cli.ok("leave-team", agent="ann")
    found = json.loads(waiting.communicate(timeout=TIMEOUT)[0])
    assert [each["content"] for each in found["responses"]] == ["the second"]


def test_a_question_ends_with_its_team(tmp_path: Path) -> None:
    """Nobody can answer in a closed team, so nobody waits for answers there; those that came stay readable."""
    cli = make_team(tmp_path / "root", "bob", "ann")
    cli.ok("set", "broadcast", "agents", agent="lea")
    (cli.root / "config.json").write_text('{"permission": {"tool": {"announce": {"*": "ask"}}}}')
    words = ("ask-others", "which?", "--timeout", "1000")
    asking = [
        cli.start(*words, "--to", "bob", "--to", "ann", agent="lea"),
        cli.start(*words, "--human", agent="bob"),
        cli.start("announce", "at work", agent="ann"),
    ]
    wait_for(lambda: len(cli.ok("get-questions", "--open")) == len(asking))
    (of_lea,) = (each["id"] for each in cli.ok("get-questions") if each["from"] == "lea")
    cli.ok("answer", of_lea, "the second", agent="bob")
    cli.ok("close-team", agent="lea")
    for process in asking:
        refusal = process.communicate(timeout=TIMEOUT)[1].decode()
        assert process.returncode == 11 and f"team {ALPHA} is closed" in refusal
        assert (f"teams show-question {of_lea}." in refusal) == (process is asking[0])
    assert "bob: the second" in cli("show-question", of_lea, agent="lea").stdout
    assert all(each["leftAlone"] for each in cli.ok("get-questions", "--open"))


def test_the_human_alone_skips_from_any_shell(cli: Cli) -> None:
    asking = cli.start("ask-others", "which colour?", "--human", "--json", agent="bob")
    wait_for(lambda: cli.ok("get-questions", "--open"))
    assert cli("skip-question", "1", agent="bob").status == 13
    assert cli.ok("skip-question", "1", agent="human")["status"] == "complete"
    found = json.loads(asking.communicate(timeout=TIMEOUT)[0])
    assert found["responses"] == [] and found["skipped"] is True
    assert cli.refused("skip-question", "1", agent="human") == (11, "wrong_state")


@pytest.fixture
def agents(tmp_path: Path) -> Iterator[Cli]:
    cli = team_of_agents(tmp_path, "bob")
    yield cli
    end_all(cli.root)


def test_the_person_in_front_of_run_agent_is_asked_there(agents: Cli, tmp_path: Path) -> None:
    asks = "teams ask-others 'Which colour?' --human --json"
    words = ["run-agent", asks, "--agent-id", "kim", "--cwd", str(tmp_path), "--as", "human"]
    terminal = Terminal(agents, *words)
    terminal.until("BROADCAST FROM KIM")
    terminal.until("Enter to skip): ")
    terminal.type("blue\n")
    terminal.until("ask-1: answered")
    assert terminal.end() == 0
    assert '"content": "blue"' in terminal.text


def test_the_person_in_front_of_run_agent_hears_of_an_answer_that_is_not_stored(agents: Cli, tmp_path: Path) -> None:
    """And is asked again, as is a question that could not be shown."""
    agents.ok("ask-others", "Which colour?", "--human", "--no-wait", agent="bob")
    lock = agents.root / f"teams/{ALPHA}/questions/.lock"

    def refuse() -> None:
        lock.unlink()
        lock.mkdir()

    refuse()
    until_told = "until test -e told; do sleep 0.1; done"
    terminal = Terminal(agents, "run-agent", until_told, "--agent-id", "kim", "--cwd", str(tmp_path), "--as", "human")
    terminal.sees("no question can be shown here now")
    lock.rmdir()
    terminal.sees("Enter to skip): ")
    refuse()
    terminal.type("blue\n")
    terminal.sees("is not a lock file")
    lock.rmdir()
    terminal.sees("Enter to skip): ")
    terminal.type("blue\n")
    terminal.sees("ask-1: answered")
    (tmp_path / "told").touch()
    assert terminal.end() == 0
    assert agents.ok("show-question", "1")["answers"][0]["content"] == "blue"


def test_the_person_in_front_of_watch_answers_there(tmp_path: Path) -> None:
    cli = make_team(tmp_path / "root", "bob")
    cli.ok("ask-others", "Which colour?", "--human", "--no-wait", agent="bob")
    terminal = Terminal(cli, "watch")
    terminal.until("Which colour?")
    terminal.type("abluu\x7fe")
    terminal.until("blue")
    terminal.type("\r")
    terminal.until("ask-1: answered")
    terminal.type("q")
    assert terminal.end() == 0
    assert cli.ok("show-question", "1")["answers"][0]["content"] == "blue"


@pytest.mark.slow
def test_who_types_at_a_terminal_is_the_human(tmp_path: Path) -> None:
    cli = make_team(tmp_path / "root", "bob")
    cli.ok("propose-plan", "First this.", agent="bob")
    cli.ok("ask-others", "Which?", "--human", "--no-wait", agent="bob")
    cli.ok("ask-others", "What?", "--human", "--no-wait", agent="bob")
    for words in (
        ["set", "broadcast", "human"],
        ["create-task", "Work"],
        ["approve-plan", "1"],
        ["answer", "1", "this"],
        ["skip-question", "2"],
    ):
        assert cli(*words).status == 2
        terminal = Terminal(cli, *words, agent="")
        assert terminal.end() == 0, terminal.text
    assert cli.ok("show-task", "1")["createdBy"] == "human"
    assert cli.ok("get-plans")[0]["status"] == "approved"
    assert cli.ok("show-question", "1")["answers"][0]["responder"] == "human"
    assert Terminal(cli, "answer", "1", "that", agent="bob").end() == 13
