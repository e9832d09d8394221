"""Common mistakes: the error names what was probably meant."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import teams_cli
from teams_cli.cli.main import run
from tests.support.cli import ALPHA, TIMEOUT, Cli, make_team

MEANT = {
    "create-team x": "Write: teams spawn-team x",
    "task list": "Write: teams get-tasks\n",
    "claim": "Write: teams claim-task --next",
    "send lea hello there": "Write: teams send-message lea 'hello there'",
    "ask lea which": "Write: teams ask-others --to lea which",
    "claim-tsak 1": "Did you mean: teams claim-task 1?",
    "wait 60": "Write: teams wait --timeout 60\n",
    "update-task 1 completed --as bob": "Write: teams update-task ID --status completed",
    "update-task 1 --done": "Did you mean --status completed?",
    "get-tasks ready": "Write: teams get-tasks --ready",
    "update-task 7 --comment parser --as bob": "Write: teams update-task 7 --result parser --as bob\n",
    "create-task --title x": "Write: teams create-task [TITLE]",
    "propose-plan 2 so --as bob": 'Write: teams propose-plan "so" --task 2',
    "close-team alpha --as lea": "Write: teams close-team; a team is named with --team alpha",
    "show-task 1 two": "show-task got too many words: two",
    "frobnicate": "See: teams help --all",
    "create-task x --assign bob": "create-task … --for AGENT",
    "create-task Write the parser": 'teams create-task "Write the parser"',
    "create-task $HOME `id`": "teams create-task '$HOME `id`'",
    'announce say "hi"': "teams announce 'say \"hi\"'",
    "reply m$1 two$x three": "teams reply 'm$1' 'two$x three'",
    "send-message bob pay $5 now --as lea": "Quote it: teams send-message bob 'pay $5 now'",
    "send-message $HOME bob --as lea": "first: teams send-message bob '$HOME'",
    "create-task -$x": "teams create-task … -- '-$x'",
    "create-task -x": "teams create-task … -- -x",
    "read-messages --wait --peek": "--wait 60",
    "board": "teams serve",
    "update-task 1 --status done --as bob": "Did you mean completed?",
    "heartbeat 1 --as bob": "Write: teams heartbeat --task 1\n",
    "wait task-1 --as bob": "Write: teams wait --task task-1\n",
    "wait --task": "Write: --task ID",
    "get-tasks --json=1": "--json takes no value",
    "wait --timeout 5x --as bob": "Write: --timeout 60, or --timeout 5m",
    f"get-tasks --team {ALPHA.upper()}": f"Did you mean {ALPHA}?",
    "send-message Bob hello --as lea": "Did you mean bob?",
    "send-message hello bob --as lea": 'Write the recipient first: teams send-message bob "hello"',
    "set staleAfterSeconds 5y --as lea": "Give a number from 1 to 2592000 seconds, or one with its unit",
}


@pytest.fixture
def team(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEAMS_HOME", str(make_team(tmp_path / "root", "bob").root))


def test_what_was_meant_is_named(team: None, capsys: pytest.CaptureFixture[str]) -> None:
    for typed in MEANT:
        assert run(typed.split(" ")) in (2, 10)
        assert MEANT[typed] in capsys.readouterr().err


def test_help_fits_the_team_that_follows_its_option_without_a_space(
    team: None, capsys: pytest.CaptureFixture[str]
) -> None:
    """Bob is a member of one of the teams only, which is his team if none is named."""
    assert run(["spawn-team", "beta", "--as", "lea"]) == 0
    said = []
    for named in ([], ["-t", "beta"], ["-tbeta"]):
        capsys.readouterr()
        assert run(["--help", *named, "--as", "bob"]) == 0
        said.append(capsys.readouterr().out)
    assert said[0] != said[1] == said[2]


ELSEWHERE = "end-task list-ready view fail edit subtask listen get invite wait-task"


def test_no_word_leads_to_what_is_merely_spelt_alike(team: None, capsys: pytest.CaptureFixture[str]) -> None:
    for word in ELSEWHERE.split():
        assert run([word, "1"]) == 2
        said = capsys.readouterr().err
        wrong = ("land", "read-messages", "leave-team", "run-agent", "spawn-team", "--status failed --reason")
        assert not any(f"teams {name}" in said for name in wrong) and (word == "fail" or "failed" not in said)


def test_doctor_looks_only_at_the_team_that_is_named(team: None, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["spawn-team", "beta", "--as", "lea"]) == 0
    assert run(["create-task", "x", "--team", "beta", "--as", "lea"]) == 0
    path = Path(os.environ["TEAMS_HOME"], "tasks", "beta", "task-1.json")
    path.write_text("{")
    assert (run(["doctor", "--team", ALPHA]), run(["doctor", "--team", "beta"])) == (0, 1)
    assert "task-1.json" in capsys.readouterr().out


def test_a_module_that_is_gone_may_mean_that_the_program_was_updated_meanwhile(cli: Cli, tmp_path: Path) -> None:
    """Modules are loaded when they are needed, which may be after a long wait."""
    copy = tmp_path / "copy/teams_cli"
    shutil.copytree(Path(teams_cli.__file__).parent, copy, ignore=shutil.ignore_patterns("__pycache__"))
    (copy / "commands/declaration.py").write_text("")
    environ = {**os.environ, "PYTHONPATH": str(copy.parent), "TEAMS_HOME": str(cli.root), "TMPDIR": str(tmp_path)}
    words = [sys.executable, "-m", "teams_cli", "whoami"]
    done = subprocess.run(words, cwd=tmp_path, env=environ, capture_output=True, text=True, timeout=TIMEOUT)
    assert done.returncode == 3 and "a bug: ImportError" in done.stderr
    assert "If teams was updated while the command ran, repeat the command. Else: The details are in" in done.stderr
