"""Asking others: agents through their shadows, the human through the console, one prompt at a time."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from teams_cli.membership import joining
from teams_cli.teams.caller import Caller
from tests.support.cli import ALPHA, COMMAND, Cli, make_team
from tests.support.workflow_runs import processes_of


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    """lea leads; bob asks; ann, cid and dot answer by command; questions to agents are on."""
    made = make_team(tmp_path / "root", "bob")
    for name in ("ann", "cid", "dot"):
        joining.join(made.store(), ALPHA, Caller(name), answer=f"echo {name} says $(jq -r .question)")
    made.ok("set", "broadcast", "agents", agent="lea")
    return made


def ask(cli: Cli, *words: str, agent: str = "bob") -> dict[str, Any]:
    found: dict[str, Any] = cli.ok("ask-others", *words, agent=agent)
    return found


def by_responder(found: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {said["responder_id"]: said for said in found["responses"]}


class Person:
    """The person at `teams human`, on a pseudo-terminal."""

    def __init__(self, cli: Cli, *words: str) -> None:
        self.end, inside = pty.openpty()
        self.process = subprocess.Popen(
            [*COMMAND, "human", *words], env=cli.environ(), stdin=inside, stdout=inside, stderr=inside, close_fds=True
        )
        os.close(inside)
        self.shown = ""

    def sees(self, text: str, within: float = 15) -> None:
        """Wait until the console shows *text*, and forget what came before it."""
        give_up = time.monotonic() + within
        while text not in self.shown:
            ready = select.select([self.end], [], [], max(0.0, give_up - time.monotonic()))[0]
            assert ready, f"{text!r} was not shown: {self.shown!r}"
            self.shown += os.read(self.end, 4096).decode(errors="replace")
        self.shown = self.shown.partition(text)[2]

    def types(self, line: str) -> None:
        os.write(self.end, line.encode() + b"\n")

    def leave(self) -> None:
        self.process.send_signal(signal.SIGINT)
        self.process.wait(10)
        os.close(self.end)


@pytest.fixture
def person(cli: Cli) -> Iterator[Person]:
    made = Person(cli)
    yield made
    made.leave()


def test_off_is_the_default(tmp_path: Path) -> None:
    cli = make_team(tmp_path / "root", "bob")
    assert cli.refused("ask-others", "why?", agent="bob") == (13, "not_allowed")
    assert cli.refused("set", "broadcast", "everyone", agent="lea") == (2, "invalid_value")


def test_all_answer_in_parallel_through_shadows(cli: Cli) -> None:
    """The one who has no shadow is asked through its inbox, and answers from a shell."""
    asking = cli.start("ask-others", "why?", "--json", agent="bob")
    wait_for(lambda: cli.ok("get-questions", "--mine", agent="lea"))
    cli.ok("answer", "1", "because", agent="lea")
    found = json.loads(asking.communicate(timeout=30)[0])
    assert (found["requestId"], found["status"]) == ("ask-1", "complete")
    answers = by_responder(found)
    assert sorted(answers) == ["ann", "cid", "dot", "lea"]
    assert answers["ann"] == {"responder_id": "ann", "content": "ann says why?", "is_human": False}
    assert answers["lea"]["content"] == "because"


def wait_for(condition: Any, within: float = 15) -> Any:
    give_up = time.monotonic() + within
    while not (found := condition()):
        assert time.monotonic() < give_up, "did not come about"
        time.sleep(0.05)
    return found


def test_some_only_and_nobody(cli: Cli, tmp_path: Path) -> None:
    assert sorted(by_responder(ask(cli, "why?", "--to", "ann", "--to", "cid"))) == ["ann", "cid"]
    assert cli.refused("ask-others", "why?", "--to", "bob", agent="bob")[0] == 2
    assert cli.refused("ask-others", "why?", "--to", "zoe", agent="bob")[0] == 10
    assert cli.refused("ask-others", "  ", agent="bob")[0] == 2
    alone = make_team(tmp_path / "alone")
    alone.ok("set", "broadcast", "agents", agent="lea")
    found = alone.ok("ask-others", "why?", agent="lea")
    assert (found["status"], found["responses"]) == ("complete", []) and "nobody" in found["note"]


def test_polling(cli: Cli) -> None:
    """`waitingFor` shrinks to nothing."""
    asked = ask(cli, "why?", "--no-wait", "--to", "ann", "--to", "cid")
    assert (asked["status"], asked["responses"]) == ("pending", [])
    done = wait_for(lambda: (q := cli.ok("show-question", "1"))["status"] == "complete" and q)
    assert done["waitingFor"] == [] and len(done["responses"]) == 2


def test_the_parent_is_told_and_not_woken(cli: Cli) -> None:
    """What the shadow said comes as information: no unread mail that keeps an agent from finishing."""
    ask(cli, "why?", "--to", "ann")
    assert cli.ok("before-complete", agent="ann") == {"agent": "ann", "mayFinish": True}
    (told,) = cli.ok("read-messages", agent="ann")
    assert told["type"] == "info" and 'bob asked: "why?"' in told["message"] and "ann says why?" in told["message"]


def test_a_long_answer_is_cut_in_what_the_parent_is_told_only(cli: Cli) -> None:
    joining.join(cli.store(), ALPHA, Caller("eve"), answer="head -c 3000 /dev/zero | tr '\\0' x")
    assert len(by_responder(ask(cli, "why?", "--to", "eve"))["eve"]["content"]) == 3000
    assert "x" * 500 + "..." in cli.ok("read-messages", agent="eve")[0]["message"]


def test_shadows_that_fail_or_hang_are_reported_as_such(cli: Cli) -> None:
    joining.join(cli.store(), ALPHA, Caller("bad"), answer="echo no >&2; exit 4")
    joining.join(cli.store(), ALPHA, Caller("slow"), answer="sleep 300")
    found = ask(cli, "why?", "--to", "ann", "--to", "bad", "--to", "slow", "--timeout", "2")
    answers = by_responder(found)
    assert answers["ann"]["content"] == "ann says why?"
    assert answers["bad"]["failed"] and "exit status 4: no" in answers["bad"]["content"]
    assert "slow" not in answers or answers["slow"]["failed"]


def test_each_answers_once_and_a_late_answer_changes_nothing(cli: Cli) -> None:
    asked = ask(cli, "why?", "--no-wait", "--to", "lea", "--to", "ann", "--timeout", "1")["requestId"]
    wait_for(lambda: cli.ok("show-question", asked)["status"] == "timeout")
    late = cli.ok("answer", asked, "too late", agent="lea")
    assert late["status"] == "timeout" and late["answers"][-1]["late"] is True
    assert cli.refused("answer", asked, "again", agent="lea") == (11, "wrong_state")
    assert "lea" not in by_responder(cli.ok("show-question", asked))
    assert cli.refused("answer", asked, "I?", agent="cid") == (13, "not_allowed")
    assert cli.refused("answer", "99", "I?", agent="cid") == (10, "question_not_found")


def test_open_questions_are_limited_and_closed_ones_are_not_counted(cli: Cli) -> None:
    cli.ok("set", "max_broadcasts_per_agent", "1", agent="lea")
    ask(cli, "why?", "--no-wait", "--to", "lea", "--timeout", "2")
    assert cli("ask-others", "how?", agent="bob").status == 11
    wait_for(lambda: cli.ok("show-question", "1")["status"] == "timeout")
    assert ask(cli, "how?", "--to", "ann")["status"] == "complete"


def test_two_that_ask_each_other_both_get_an_answer(cli: Cli) -> None:
    first = cli.start("ask-others", "a?", "--to", "cid", "--json", agent="ann")
    second = cli.start("ask-others", "b?", "--to", "ann", "--json", agent="cid")
    for process in (first, second):
        assert json.loads(process.communicate(timeout=30)[0])["status"] == "complete"


def test_the_depth_reaches_the_shadow(cli: Cli) -> None:
    joining.join(cli.store(), ALPHA, Caller("eve"), answer="jq -r .depth")
    assert by_responder(ask(cli, "why?", "--to", "eve"))["eve"]["content"] == "medium"
    cli.ok("set", "response_depth", "low", agent="lea")
    assert by_responder(ask(cli, "why?", "--to", "eve"))["eve"]["content"] == "low"
    assert by_responder(ask(cli, "why?", "--to", "eve", "--depth", "high"))["eve"]["content"] == "high"


def test_a_command_reads_what_its_agent_printed(cli: Cli) -> None:
    """Also in the turn that is going on."""
    answer = "cat $TEAMS_TRANSCRIPT"
    cli.ok("run-agent", "echo so far; sleep 20", "--agent-id", "eve", "--answer", answer, "--detach", agent="lea")
    wait_for(lambda: list((cli.root / "logs" / ALPHA).glob("eve.1.out")))
    wait_for(lambda: (cli.root / "logs" / ALPHA / "eve.1.out").read_text() == "so far\n")
    assert by_responder(ask(cli, "where are you?", "--to", "eve", "--timeout", "20"))["eve"]["content"] == "so far"
    cli.ok("stop-agent", "eve", agent="lea")


def test_shadows_have_none_of_the_rights_of_their_agent(cli: Cli) -> None:
    joining.join(cli.store(), ALPHA, Caller("eve"), answer="env | grep -E '^TEAMS_(AGENT|TOKEN|TEAM)' || echo none")
    assert by_responder(ask(cli, "why?", "--to", "eve"))["eve"]["content"] == "none"


def test_the_human_is_asked_one_question_at_a_time(cli: Cli, person: Person) -> None:
    """First come, first served; who was waiting when another was answered is asked all the same."""
    cli.ok("set", "broadcast", "human", agent="lea")
    first = cli.start("ask-others", "which colour?", "--human", "--json", agent="bob")
    person.sees("BROADCAST FROM BOB")
    second = cli.start("ask-others", "which size?", "--human", "--json", agent="ann")
    wait_for(lambda: len(cli.ok("get-questions", "--open")) == 2)
    assert "ANN" not in person.shown
    person.types("blue")
    one = json.loads(first.communicate(timeout=30)[0])
    assert one["status"] == "complete"
    assert one["responses"] == [{"responder_id": "human", "content": "blue", "is_human": True}]
    person.sees("BROADCAST FROM ANN")
    person.types("small")
    two = json.loads(second.communicate(timeout=30)[0])
    assert (two["status"], by_responder(two)["human"]["content"]) == ("complete", "small")
    three = ask(cli, "which weight?", agent="cid")
    assert (three["status"], three["responses"]) == ("deferred", [])
    answers = [{"question": "which colour?", "answer": "blue"}, {"question": "which size?", "answer": "small"}]
    assert three["human_qa_history"] == answers
    assert three["human_qa_note"].startswith("The human has already answered")


def test_a_question_to_the_human_beside_those_to_agents_is_not_deferred(cli: Cli) -> None:
    """What the human has answered is told again only where the human is the one who is asked."""
    ask(cli, "which colour?", "--human", "--no-wait")
    cli.ok("answer", "1", "blue", agent="human")
    assert ask(cli, "which colour?", "--human", "--no-wait", agent="ann")["status"] == "pending"
    assert "human_qa_history" not in cli.ok("show-question", "1")


def test_a_question_that_nobody_waits_for_comes_last(cli: Cli) -> None:
    """And the person is told so."""
    gone = cli.start("ask-others", "which colour?", "--human", agent="bob")
    wait_for(lambda: cli.ok("get-questions", "--open"))
    gone.kill()
    gone.communicate()
    asking = cli.start("ask-others", "which size?", "--human", "--json", agent="ann")
    wait_for(lambda: len(cli.ok("get-questions", "--open")) == 2)
    assert [row.get("leftAlone", False) for row in cli.ok("get-questions")] == [True, False]
    first = cli("human", "--once", stdin=b"small\n").stdout
    assert "which size?" in first and "which colour?" not in first
    assert "bob does not wait" in cli("human", "--once", stdin=b"blue\n").stdout
    assert by_responder(json.loads(asking.communicate(timeout=30)[0]))["human"]["content"] == "small"
    assert cli.ok("show-question", "1")["answers"][0]["content"] == "blue"


def test_deferred_then_asked_when_the_question_is_another(cli: Cli, person: Person) -> None:
    cli.ok("set", "broadcast", "human", agent="lea")
    asking = cli.start("ask-others", "which colour?", "--human", "--json", agent="bob")
    person.sees("which colour?")
    person.types("blue")
    asking.communicate(timeout=30)
    assert ask(cli, "which size?", "--human", agent="ann")["status"] == "deferred"
    assert ask(cli, "which size?", "--human", agent="ann")["status"] == "deferred"
    asking = cli.start("ask-others", "which size exactly?", "--human", "--json", agent="ann")
    person.sees("which size exactly?")
    person.types("42")
    found = json.loads(asking.communicate(timeout=30)[0])
    assert by_responder(found)["human"]["content"] == "42" and len(found["human_qa_history"]) == 2


def test_enter_skips_at_once_and_is_no_answer(cli: Cli, person: Person) -> None:
    asking = cli.start("ask-others", "which colour?", "--human", "--json", agent="bob")
    person.sees("Enter to skip")
    began = time.monotonic()
    person.types("")
    found = json.loads(asking.communicate(timeout=30)[0])
    assert found["responses"] == [] and found["skipped"] is True and "human_qa_history" not in found
    assert time.monotonic() - began < 10
    again = cli.start("ask-others", "which colour?", "--human", "--json", agent="ann")
    person.sees("BROADCAST FROM ANN")
    person.types("red")
    assert json.loads(again.communicate(timeout=30)[0])["status"] == "complete"


def test_the_seconds_count_down_and_the_time_runs_out_once(cli: Cli, person: Person) -> None:
    asking = cli.start("ask-others", "quick?", "--human", "--timeout", "3", "--json", agent="bob")
    person.sees("You have 2 seconds")
    person.sees("You have 1 seconds")
    found = json.loads(asking.communicate(timeout=30)[0])
    assert (found["status"], found["responses"]) == ("timeout", [])
    person.sees("time is over")


def test_an_answer_from_any_shell_does_as_well(cli: Cli) -> None:
    asking = cli.start("ask-others", "which colour?", "--human", "--json", agent="bob")
    wait_for(lambda: cli.ok("get-questions", "--open"))
    cli.ok("answer", "1", "green", agent="human")
    assert by_responder(json.loads(asking.communicate(timeout=30)[0]))["human"]["content"] == "green"


def test_the_human_skips_from_any_shell_as_well(cli: Cli) -> None:
    asking = cli.start("ask-others", "which colour?", "--human", "--json", agent="bob")
    wait_for(lambda: cli.ok("get-questions", "--open"))
    assert cli.refused("skip-question", "1", agent="bob") == (13, "not_allowed")
    assert cli.refused("skip-question", "2", agent="human") == (10, "question_not_found")
    assert cli.ok("skip-question", "1", agent="human")["status"] == "complete"
    found = json.loads(asking.communicate(timeout=30)[0])
    assert found["responses"] == [] and found["skipped"] is True
    assert cli.refused("skip-question", "1", agent="human") == (11, "wrong_state")


def test_closed_standard_input_is_no_answer(cli: Cli) -> None:
    ask(cli, "which colour?", "--human", "--no-wait")
    assert cli("human", stdin=b"").status == 0
    assert cli.ok("show-question", "1")["status"] == "pending"


def test_what_is_to_be_asked_goes_through_the_same_queue(cli: Cli, person: Person) -> None:
    """Allowed once, it is asked again the next time; allowed always, it is not."""
    (cli.root / "config.json").write_text('{"permission": {"tool": {"announce": {"*": "ask"}}}}')
    for word, status in (("deny", 13), ("allow", 0), ("always", 0)):
        asking = cli.start("announce", "at work", agent="bob")
        person.sees("bob wants to announce")
        person.types(word)
        assert asking.wait(30) == status
        asking.communicate()
    assert cli("announce", "at work", agent="bob").status == 0
    assert cli.ok("ask-others", "x?", "--to", "ann", agent="bob")["status"] == "complete"


def test_old_prompts_are_told_that_nothing_is_to_be_done(cli: Cli) -> None:
    said = cli.ok("respond-to-broadcast", "my answer", agent="ann")
    assert said["status"] == "info" and "shadow" not in said["message"]


def test_after_a_kill_in_mid_question_nothing_hangs(cli: Cli) -> None:
    """The asker, its shadows' keeper and the console are killed; the question ends with its time, the next works."""
    joining.join(cli.store(), ALPHA, Caller("slow"), answer="sleep 30")
    asking = cli.start("ask-others", "why?", "--to", "slow", "--timeout", "2", agent="bob")
    wait_for(lambda: cli.ok("get-questions", "--open"))
    asking.kill()
    asking.communicate()
    for pid, line in processes_of(cli.root).items():
        if "teams_cli.shadows.collector" in line:
            os.kill(pid, signal.SIGKILL)
    wait_for(lambda: cli.ok("show-question", "1")["status"] == "timeout")
    console = Person(cli)
    waiting = cli.start("ask-others", "which?", "--human", "--timeout", "3", "--json", agent="bob")
    console.sees("which?")
    console.process.kill()
    assert json.loads(waiting.communicate(timeout=30)[0])["status"] == "timeout"
    console.process.wait()
    os.close(console.end)
    assert ask(cli, "why?", "--to", "ann")["status"] == "complete"


@pytest.mark.parametrize("seconds", ["0", "0.01", "86401", "1e11", "1e30", "inf", "nan"])
def test_a_time_out_of_bounds_is_refused(cli: Cli, seconds: str) -> None:
    assert cli.refused("ask-others", "why?", "--to", "ann", "--timeout", seconds, agent="bob") == (2, "invalid_value")


def test_the_human_is_asked_alone(cli: Cli) -> None:
    """Whoever names others besides is not left waiting for them, nor is the human asked in their place."""
    for words in (["--to", "human", "--to", "ann"], ["--human", "--to", "ann"]):
        assert cli.refused("ask-others", "why?", *words, agent="bob") == (2, "invalid_value")
    cli.ok("set", "broadcast", "human", agent="lea")
    assert cli.refused("ask-others", "why?", "--to", "ann", agent="bob") == (2, "invalid_value")
    assert cli.refused("ask-others", "why?", agent="human") == (2, "invalid_value")
    asked = ask(cli, "why?", "--to", "human", "--no-wait")["requestId"]
    found = cli.ok("show-question", asked)
    assert (found["mode"], found["to"]) == ("human", ["human"])


@pytest.mark.parametrize("said", [b"caf\xe9", b"x" * 70_000])
def test_the_console_asks_again_for_what_it_cannot_take(cli: Cli, said: bytes) -> None:
    asked = ask(cli, "which colour?", "--human", "--no-wait")["requestId"]
    assert cli("human", "--once", stdin=said + b"\nblue\n").status == 0
    (given,) = cli.ok("show-question", asked)["answers"]
    assert given["content"] == "blue"


def test_lines_that_come_at_once_answer_one_question_each(cli: Cli) -> None:
    ask(cli, "which colour?", "--human", "--no-wait")
    ask(cli, "which size?", "--human", "--no-wait")
    process = cli.start("human", stdin=subprocess.PIPE)
    process.stdin.write(b"blue\n42\n")
    process.stdin.flush()
    wait_for(lambda: not cli.ok("get-questions", "--open"))
    process.terminate()
    process.communicate(timeout=30)
    answers = [row["answers"][0]["content"] for row in cli.ok("get-questions")]
    assert answers == ["blue", "42"]


def test_what_was_typed_before_a_question_does_not_answer_it(cli: Cli, person: Person) -> None:
    """Also what was typed for one whose time was over just then."""
    first = cli.start("ask-others", "quick?", "--human", "--timeout", "2", "--json", agent="bob")
    person.sees("quick?")
    os.write(person.end, b"half an ans")
    first.communicate(timeout=30)
    person.sees("time is over")
    asking = cli.start("ask-others", "which colour?", "--human", "--json", agent="bob")
    person.sees("which colour?")
    person.types("blue")
    assert by_responder(json.loads(asking.communicate(timeout=30)[0]))["human"]["content"] == "blue"


def test_a_copy_can_be_made_of_the_file_that_the_client_keeps(cli: Cli, tmp_path: Path) -> None:
    """By the pattern of the profile; an agent whose client has not written it yet is asked itself."""
    keeps = 'test -e "$TOP/off" || cat > "$TOP/kept-$0.log"; echo done'
    profile = {
        "start": ["sh", "-c", keeps, "{session_id}"],
        "resume": ["sh", "-c", "cat", "{session_id}"],
        "fork": ["sh", "-c", 'tail -n 1 "$0"', "{session_file}"],
        "sessionFile": "{TOP}/kept-{session_id:.8}*.log",
    }
    (cli.root / "config.json").write_text(json.dumps({"harness": {"keeping": profile}}))
    cli.more["TOP"] = str(tmp_path)
    words = ["the word is xylophone", "--agent-id", "eve", "--harness", "keeping"]
    assert cli("run-agent", *words, agent="lea").status == 0
    assert by_responder(ask(cli, "which?", "--to", "eve"))["eve"]["content"] == "the word is xylophone"
    (tmp_path / "off").touch()
    words = ["the word is zither", "--agent-id", "fay", "--harness", "keeping"]
    assert cli("run-agent", *words, agent="lea").status == 0
    asking = cli.start("ask-others", "which?", "--to", "fay", "--json", agent="bob")
    wait_for(lambda: [row for row in cli.ok("read-messages", "--all", agent="fay") if row["type"] == "question"])
    cli.ok("answer", "2", "zither", agent="fay")
    assert by_responder(json.loads(asking.communicate(timeout=30)[0]))["fay"]["content"] == "zither"


def test_an_agent_whose_client_just_starts_is_copied_once_it_can_be(cli: Cli, tmp_path: Path) -> None:
    """Asked itself, it would not hear of the question before its turn is over."""
    slowly = 'while ! test -e "$TOP/go"; do sleep 0.1; done; cat > "$TOP/kept-$0.log"; sleep 100'
    profile = {
        "start": ["sh", "-c", slowly, "{session_id}"],
        "resume": ["true"],
        "fork": ["cat", "{session_file}"],
        "sessionFile": "{TOP}/kept-{session_id}.log",
    }
    (cli.root / "config.json").write_text(json.dumps({"harness": {"slow": profile}}))
    cli.more["TOP"] = str(tmp_path)
    cli.ok("spawn", "the word is xylophone", "--agent-id", "eve", "--harness", "slow", agent="bob")
    asking = cli.start("ask-others", "which?", "--to", "eve", "--json", agent="bob")
    wait_for(lambda: cli.ok("get-questions", "--open"))
    (tmp_path / "go").touch()
    (answer,) = json.loads(asking.communicate(timeout=60)[0])["responses"]
    assert answer["content"] == "the word is xylophone"
    cli.ok("stop-agent", "eve", agent="lea")


@pytest.mark.parametrize(
    ("command", "begins", "ends"),
    [
        ("sleep 300 & echo at once", "at once", "at once"),
        ("head -c 100000000 /dev/zero | tr '\\0' a", "aaa", "bytes]"),
        ('echo "${PYTHONPATH:-nothing of ours}"', "nothing", "ours"),
        ("cat >/dev/null; printf '\\377\\000x'", "\ufffd", "x"),
    ],
)
def test_an_answer_is_what_the_command_printed_until_it_ended(cli: Cli, command: str, begins: str, ends: str) -> None:
    """Whatever it leaves in the background, and however much it is."""
    cli.ok("join-team", "--answer", command, agent="zed")
    (said,) = ask(cli, "which?", "--to", "zed", "--timeout", "30")["responses"]
    assert said["content"].startswith(begins) and said["content"].endswith(ends)
    assert len(said["content"].encode()) <= 64 * 1024


def test_a_question_is_skipped_from_any_shell(cli: Cli) -> None:
    """Once, and while it waits."""
    ask(cli, "which colour?", "--human", "--no-wait")
    answer = cli("skip-question", "1", agent="human")
    assert (answer.status, answer.stdout) == (0, "ask-1: complete, from bob: which colour?\n")
    assert cli.refused("skip-question", "1", agent="human") == (11, "wrong_state")
    ask(cli, "which size?", "--human", "--timeout", "0.1")
    assert cli.refused("skip-question", "2", agent="human") == (11, "wrong_state")


def test_the_console_of_a_secure_team_asks_for_the_token_of_the_human(tmp_path: Path) -> None:
    """Else every agent could answer, and allow itself, in the name of the person."""
    cli = Cli(tmp_path / "root", team=ALPHA)
    made = cli.ok("spawn-team", ALPHA, "--secure", agent="lea")
    assert cli("ask-others", "which?", "--human", "--no-wait", agent="lea", TEAMS_TOKEN=made["token"]).status == 0
    for token in ("", made["token"]):
        answer = cli("human", "--once", agent="", stdin=b"mine\n", TEAMS_TOKEN=token)
        assert answer.status == 13 and "token" in answer.stderr
    assert cli.ok("show-question", "1", agent="")["answers"] == []
    assert cli("human", "--once", agent="", stdin=b"that\n", TEAMS_TOKEN=made["humanToken"]).status == 0
    assert cli.ok("show-question", "1", agent="")["answers"][0]["content"] == "that"


def test_the_console_does_not_answer_in_a_closed_team(cli: Cli) -> None:
    ask(cli, "which?", "--human", "--no-wait")
    cli.ok("close-team", agent="lea")
    answer = cli("human", "--once", stdin=b"that\n")
    assert answer.status == 11 and "closed" in answer.stderr
    assert [row["answers"] for row in cli.ok("get-questions")] == [[]]
