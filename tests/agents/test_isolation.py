"""Isolation: worktrees are set up for their agents, changed only by them, and have ports of their own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from teams_cli.agents import isolation
from teams_cli.agents.sessions import Session
from tests.support.cli import ALPHA, Cli
from tests.support.workflow_runs import git, make_repository


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    return make_repository(tmp_path / "repository", {".gitignore": ".env\nlocal/\nother\n", "a.py": "one\n"})


def start(cli: Cli, repository: Path, name: str, script: str, *more: str) -> Any:
    words = ["run-agent", script, "--worktree", "--agent-id", name, "--cwd", str(repository), *more]
    return cli(*words, agent="lea")


def test_a_worktree_is_furnished_before_its_agent_starts(cli: Cli, repository: Path) -> None:
    (repository / ".env").write_text("SECRET=1\n")
    (repository / "local/deep").mkdir(parents=True)
    (repository / "local/deep/x").write_text("x\n")
    (repository / "other").write_text("not asked for")
    cli.ok("set", "worktree.copy", ".env local/** a.py", agent="lea")
    cli.ok("set", "worktree.setup", 'echo "$TEAMS_AGENT_ID $TEAMS_PORT_BASE" > made; cat .env >> made', agent="lea")
    answer = start(cli, repository, "ann", 'cat made local/deep/x; ls other; echo "port $TEAMS_PORT_BASE"')
    port = next(line for line in answer.stdout.splitlines() if line.startswith("  port "))[7:]
    assert f"  ann {port}\n  SECRET=1\n  x" in answer.stdout and (repository / "other").exists()
    assert not (cli.root / "worktrees" / ALPHA / "ann" / "other").exists()
    again = start(cli, repository, "ben", 'echo "port $TEAMS_PORT_BASE"').stdout
    assert f"port {int(port) + 20}" in again


def test_where_the_setup_fails_nothing_is_started_and_nothing_is_left(cli: Cli, repository: Path) -> None:
    cli.ok("set", "worktree.setup", "echo no network >&2; exit 3", agent="lea")
    answer = start(cli, repository, "ann", "echo started", "--json")
    assert answer.status == 1 and answer.error["code"] == "setup_failed"
    assert "no network" in answer.error["message"] and "exit status 3" in answer.error["message"]
    assert not (cli.root / "worktrees" / ALPHA / "ann").exists()
    assert "teams/" not in git(repository, "branch", "--list", "--all")
    cli.ok("set", "worktree.setup", "true", agent="lea")
    assert "started" in start(cli, repository, "ann", "echo started").stdout


@pytest.fixture
def session(repository: Path, tmp_path: Path) -> Session:
    for name in ("ann", "bob"):
        git(repository, "worktree", "add", "--quiet", "-b", f"teams/alpha/{name}", str(tmp_path / name))
    return as_session(tmp_path, "ann")


def as_session(top: Path, name: str, **more: Any) -> Session:
    now = "2026-01-01T00:00:00Z"
    said: dict[str, Any] = {"agent": name, "caller": "lea", "run": "r", "depth": 1, "harness": "shell", "prompt": "p"}
    said |= {"description": "d", "directory": str(top / name), "session_id": "s", "created_at": now, "started_at": now}
    return Session(**said, worktree=str(top / name), branch=f"teams/alpha/{name}", **more)


def test_an_agent_writes_files_in_its_own_worktree_only(session: Session, tmp_path: Path) -> None:
    (tmp_path / "ann/link").symlink_to(tmp_path / "repository/a.py")
    for place, may in [
        ("ann/a.py", True),
        ("ann/new/deep.py", True),
        ("bob/a.py", False),
        ("repository/a.py", False),
        ("ann/../bob/a.py", False),
        ("ann/link", False),
        ("ann-else/a.py", False),
    ]:
        assert (isolation.of_write(session, str(tmp_path / place)) == "") == may


MAY = [
    "git commit -am x",
    "git -C ../bob log --oneline",
    "cd ../repository && git status && git diff main",
    "git stash list; git worktree list",
    "git branch -D teams/alpha/ann-try; git checkout -b teams/alpha/ann-try",
    "git merge main && git rebase main",
    "git branch -f teams/alpha/ann-try main; git branch -C main teams/alpha/ann-try",
    "git branch -vva --list 'd*'; git branch new main",
    "git push origin HEAD",
    "git push /elsewhere/x.git HEAD; git fetch . main; git fetch origin main:teams/alpha/ann-try",
    "echo 'git -C ../bob commit'",
    "cd /tmp && git init clone",
    "git log 'unclosed",
    "(cd ../bob && git log); git commit -am x",
    "git commit -am 'not a # comment' # git stash",
    "cat <<'END' > notes\ngit stash\nEND",
    "echo '<<END'\ngit log\nEND",
]
MAY_NOT = [
    "git -C ../bob commit -am x",
    "cd ../repository && git checkout -b other",
    "cd ../repository; git merge teams/alpha/ann",
    "git --git-dir=../repository/.git commit",
    "GIT_PAGER=cat git -C ../bob reset --hard",
    "bash -lc 'git -C ../bob reset --hard'",
    "make test | tee log && git worktree remove --force ../bob",
    "git branch -D teams/alpha/bob",
    "git branch -f main HEAD",
    "git update-ref refs/heads/main HEAD",
    "git stash pop",
    "git stash",
    "git push . HEAD:main",
    "git push ../repository HEAD:main",
    "git push file://$REPOSITORY HEAD:main",
    "git push ../repository/.git HEAD:main",
    "git fetch . HEAD:main",
    "git branch -fd teams/alpha/bob",
    "git branch -C main teams/alpha/bob",
    "git branch -cf main teams/alpha/bob",
    "git branch -c --force main teams/alpha/bob",
    "git branch --forc main HEAD",
    "git checkout -B main",
    "git checkout -Bmain",
    "# put it aside\ngit stash",
    "# don't lose it\ngit stash",
    "git commit -am x#1 && git stash",
    "cat > notes <<'END'\nit's mine\nEND\ngit stash",
    "cat > notes <<END && git stash\nit's mine\nEND",
    "git stash; echo 'unclosed",
    "git \\\n  stash",
    "true;(git stash)",
    "make |& tee log;(cd ../bob && git commit -am x)",
    "if ! git stash; then true; fi",
    "timeout 5 git stash",
    "eval 'git stash'",
    "bash -o pipefail -c 'git stash' name",
]


def test_git_changes_only_what_belongs_to_the_agent(session: Session, tmp_path: Path) -> None:
    for command in MAY:
        assert isolation.of_command(session, command, str(tmp_path / "ann")) == ""
    for command in MAY_NOT:
        command = command.replace("$REPOSITORY", str(tmp_path / "repository"))
        assert str(tmp_path / "ann") in isolation.of_command(session, command, str(tmp_path / "ann"))


def test_the_hook_refuses_changes_outside_the_worktree(cli: Cli, repository: Path) -> None:
    assert start(cli, repository, "ann", "sleep 600", "--detach").status == 0
    tree = cli.root / "worktrees" / ALPHA / "ann"

    def hook(agent: str, tool: str, **given: str) -> str:
        event = {"hook_event_name": "PreToolUse", "tool_name": tool, "cwd": str(tree), "tool_input": given}
        answer = cli("hook", "claude", agent=agent, stdin=json.dumps(event).encode())
        assert answer.status == 0 and answer.stderr == "", answer
        said = json.loads(answer.stdout or "{}").get("hookSpecificOutput", {})
        return str(said.get("permissionDecisionReason", ""))

    assert "outside your worktree" in hook("ann", "Write", file_path=str(repository / "a.py"))
    assert "outside" in hook("ann", "Edit", file_path=str(repository / "a.py"), old_string="Bash", new_string="x")
    assert "not yours" in hook("ann", "Bash", command="git branch -D main")
    assert hook("ann", "Write", file_path=str(tree / "a.py")) == hook("ann", "Bash", command="ls ..") == ""
    assert hook("bob", "Write", file_path=str(repository / "a.py")) == ""
    cli.ok("stop-agent", "ann", agent="lea")


def test_the_doctor_tells_of_isolation_that_does_not_hold(session: Session, tmp_path: Path) -> None:
    bob = as_session(tmp_path, "bob", port_base=10_000)
    assert list(isolation.broken([session, bob])) == []
    git(tmp_path / "bob", "checkout", "--quiet", "-b", "else")
    inside = tmp_path / "ann/inside"
    inside.mkdir()
    eve = as_session(tmp_path, "eve", port_base=10_000).having(worktree=str(inside))
    found = {each.agent: what for each, what in isolation.broken([session, bob, eve])}
    assert "has else checked out" in found["bob"] and "is inside the worktree of ann" in found["eve"]
    shared = {each.agent: what for each, what in isolation.broken([bob, eve.having(worktree=bob.worktree)])}
    assert "also belongs to eve" in shared["bob"] and "also belongs to bob" in shared["eve"]
