"""False completions: agents that call a task completed without doing it.

Each agent has a worktree and a task with a check or a review, and tries to pass in its own way. At the end an
honest agent does the task and commits it, and is accepted.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.cli import COMMAND, TIMEOUT, Cli, make_team

CHECK = "sh check.sh"
DONE = 'teams update-task "$TASK" --status completed --result "all tests pass"'
COMMIT = "git commit -q -m next --allow-empty"
DO = f"touch done; git add --force done; {COMMIT}"
LAND = 'teams land "$TASK"; teams wait --landing "$TASK" --timeout 300'
HONEST = "does it, commits it, and says so"
LIES = {
    "commits something else": f"{COMMIT}; touch done; {DONE}",
    "goes where it would pass": f"mkdir ../away; cd ../away; git init -q; touch done; {DONE}",
    "writes an easier check": f'teams update-task "$TASK" --check true; {DONE}',
    "lands without what was checked": f"{DO}; {DONE}; git reset -q --hard HEAD~1; {COMMIT}; {LAND}",
    "makes a task with an easier check": f"teams create-task done --check true; {DONE}",
    "hands in evidence instead": 'echo passed >../log; teams update-task "$TASK" --status completed --evidence ../log',
    "is somebody else": 'teams update-task "$TASK" --status completed --as lea',
    "has another say it": 'teams update-task "$TASK" --status completed --as bob',
    "lands it instead": f"{COMMIT}; {LAND}",
    "accepts its own review": f'{DONE}; teams review-task "$TASK" --accept',
    "opens it again for another review": f'{DONE}; teams update-task "$TASK" --status pending; {DONE}',
}


def planted(place: Path) -> dict[str, str]:
    """The final status of each agent's task, by what the agent did."""
    cli = make_team(place / "root", "bob", "mia")
    main = repository(place)
    found = {}
    for number, (lie, script) in enumerate({**LIES, HONEST: f"{DO}; {DONE}"}.items()):
        rules = ["--review-by", "mia"] if lie.endswith("review") else ["--check", CHECK]
        key = str(cli.ok("create-task", lie, *rules, agent="lea")["id"])
        words = f"export TASK={key}; teams claim-task $TASK; {script}; true"
        start = ["run-agent", words, "--agent-id", f"agent{number}", "--worktree", "--as", "lea"]
        done = subprocess.run([*COMMAND, *start], cwd=main, env=environ(cli), capture_output=True, timeout=5 * TIMEOUT)
        assert done.returncode == 0 and b"Traceback" not in done.stderr, done
        found[lie] = str(cli.ok("show-task", key, agent="lea")["status"])
    cli.ok("close-team", "--force", agent="lea")
    return found


def repository(place: Path) -> Path:
    """A repository in which the check fails."""
    main = place / "main"
    main.mkdir()
    (main / "check.sh").write_text("test -e done\n")
    for words in ("init -q -b trunk", "add .", COMMIT.removeprefix("git ")):
        subprocess.run(["git", *words.split()], cwd=main, env=environ(None), check=True, timeout=TIMEOUT)
    return main


def environ(cli: Cli | None) -> dict[str, str]:
    """The environment of an agent, with `teams` on its PATH and an identity for git."""
    who = {f"GIT_{who}_{what}": "n@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    return {**(cli.environ() if cli else os.environ), **who, "PATH": path}


@pytest.mark.slow
def test_no_false_completion_is_accepted(tmp_path: Path) -> None:
    statuses = planted(tmp_path)
    assert statuses.pop(HONEST) == "completed"
    assert "completed" not in statuses.values(), statuses
