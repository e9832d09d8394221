"""Shadows, which are copies of agents' sessions, answer questions while the agents work."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from teams_cli.membership import joining
from teams_cli.teams.permission import Caller
from tests.questions.asking import ask, by_responder, team_that_answers, wait_for
from tests.support.cli import ALPHA, COMMAND, TIMEOUT, Cli


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    return team_that_answers(tmp_path)


HEADLESS = "import subprocess, sys; sys.exit(subprocess.run(sys.argv[2:]).returncode)"
"""Runs a hook as a client with a single turn does: its arguments say that it is not in a terminal."""


@pytest.mark.slow
def test_shadows_that_fail_or_hang_are_reported_as_such(cli: Cli) -> None:
    joining.join(cli.store(), ALPHA, Caller("bad"), answer="echo no >&2; exit 4")
    joining.join(cli.store(), ALPHA, Caller("slow"), answer="sleep 300")
    answers = by_responder(ask(cli, "why?", "--to", "ann", "--to", "bad"))
    assert answers["ann"]["content"] == "ann says why?"
    assert answers["bad"]["failed"] and "exit status 4: no" in answers["bad"]["content"]
    assert "bad (failed): the fork failed" in cli("show-question", "1", agent="bob").stdout
    answers = by_responder(ask(cli, "why?", "--to", "slow", "--timeout", "1"))
    assert "slow" not in answers or answers["slow"]["failed"]


def test_an_agent_whose_directory_is_gone_is_asked_itself(cli: Cli, tmp_path: Path) -> None:
    """It begins a turn, which says what is missing to the one who started it."""
    gone = tmp_path / "gone"
    gone.mkdir()
    words = ("--harness", "shell", "--agent-id", "eve", "--answer", "echo yes", "--cwd", str(gone))
    cli.ok("run-agent", "true", *words, "--detach", agent="lea")
    cli.ok("wait", "--agent", "eve", agent="lea")
    gone.rmdir()
    ask(cli, "why?", "--to", "eve", "--no-wait")
    wait_for(lambda: [m for m in cli.ok("read-messages", "--all", agent="eve") if m["type"] == "question"])
    assert cli.ok("show-question", "1")["answers"] == []
    cli.ok("stop-agent", "eve", agent="lea")


def test_the_depth_reaches_the_shadow_and_the_rights_of_its_agent_do_not(cli: Cli) -> None:
    joining.join(cli.store(), ALPHA, Caller("eve"), answer="jq -r .depth; env | grep -E '^TEAMS_(AG|TO|TEAM)'; true")
    assert by_responder(ask(cli, "why?", "--to", "eve"))["eve"]["content"] == "medium"
    cli.ok("set", "response_depth", "low", agent="lea")
    assert by_responder(ask(cli, "why?", "--to", "eve"))["eve"]["content"] == "low"
    assert by_responder(ask(cli, "why?", "--to", "eve", "--depth", "high"))["eve"]["content"] == "high"


@pytest.mark.slow
def test_a_copy_can_be_made_of_the_file_that_the_client_keeps(cli: Cli, tmp_path: Path) -> None:
    """An agent whose client has not written the file of its session yet is asked itself."""
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
    assert by_responder(json.loads(asking.communicate(timeout=TIMEOUT)[0]))["fay"]["content"] == "zither"


ANSWERS = {
    "one": ("sleep 300 & echo at once", "at once", "at once"),
    "two": ("head -c 1000000 /dev/zero | tr '\\0' a", "aaa", "bytes]"),
    "three": ('echo "${PYTHONPATH:-nothing of ours}"', "nothing", "ours"),
    "four": ("cat >/dev/null; printf '\\377\\000x'", "\ufffd", "x"),
}
"""Commands that answer, and how their answers begin and end."""


@pytest.mark.slow
def test_an_answer_is_what_the_command_printed_until_it_ended(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process left in the background does not hold it up; a long answer is cut."""
    monkeypatch.delenv("PYTHONPATH", raising=False)  # one answer is what the program itself sets there: nothing
    for name, (command, _, _) in ANSWERS.items():
        cli.ok("join-team", "--answer", command, agent=name)
    everybody = [word for name in ANSWERS for word in ("--to", name)]
    said = by_responder(ask(cli, "which?", *everybody, "--timeout", "100"))
    for name, (_, begins, ends) in ANSWERS.items():
        content = said[name]["content"]
        assert content.startswith(begins) and content.endswith(ends), name
        assert len(content.encode()) <= 64 * 1024


def test_a_copy_knows_what_was_said_in_the_turn_that_goes_on(cli: Cli, tmp_path: Path) -> None:
    going = 'echo half of it; touch "$TOP/kept-$0.log"; sleep 100'
    profile = {
        "start": ["sh", "-c", going, "{session_id}"],
        "resume": ["true"],
        "fork": ["cat"],
        "sessionFile": "{TOP}/kept-{session_id}.log",
    }
    (cli.root / "config.json").write_text(json.dumps({"harness": {"slow": profile}}))
    cli.more["TOP"] = str(tmp_path)
    cli.ok("spawn", "go", "--agent-id", "eve", "--harness", "slow", agent="bob")
    wait_for(lambda: list(tmp_path.glob("kept-*.log")))
    said = by_responder(ask(cli, "where are you?", "--to", "eve"))["eve"]["content"]
    assert "in the present turn:\n\nhalf of it" in said and "where are you?" in said
    cli.ok("stop-agent", "eve", agent="lea")


@pytest.mark.slow
def test_a_client_outside_a_terminal_is_copied_by_its_session(cli: Cli) -> None:
    """It is asked itself, at its next tool call, only if the copy fails."""
    fork = ["sh", "-c", 'test "$0" = s-1 && echo I know', "{session_id}"]
    profile = {"fork": fork, "output": {"from": "stdout"}, "failed": {}}
    (cli.root / "config.json").write_text(json.dumps({"harness": {"claude": profile}}))
    for agent, session in (("eve", "s-1"), ("fay", "s-2")):
        cli.ok("join-team", agent=agent)
        event = json.dumps({"hook_event_name": "UserPromptSubmit", "session_id": session, "prompt": "go"})
        words = [sys.executable, "-c", HEADLESS, "-p", *COMMAND, "hook", "claude"]
        subprocess.run(words, env=cli.environ(agent), input=event.encode(), check=True, timeout=TIMEOUT)
    assert by_responder(ask(cli, "which?", "--to", "eve"))["eve"]["content"] == "I know"
    found = ask(cli, "which?", "--to", "fay", "--no-wait")
    wait_for(lambda: [row for row in cli.ok("read-messages", "--all", agent="fay") if row["type"] == "question"])
    cli.ok("answer", found["requestId"], "that one", agent="fay")
