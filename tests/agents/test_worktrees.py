"""Agents in worktrees of their own."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from tests.support.agents import NEEDS_PROC, agent_row, place, run_agent
from tests.support.cli import ALPHA, Cli
from tests.support.shop import git

pytestmark = NEEDS_PROC


def test_a_worktree_of_ones_own(cli: Cli) -> None:
    """A worktree has its own branch, is shown to others, and outlives its agent."""
    checkout = place(cli)
    git(checkout, "init", "-q")
    git(checkout, "commit", "-q", "--allow-empty", "-m", "first")
    done = run_agent(cli, "pwd; git rev-parse --abbrev-ref HEAD; echo work >file", "--worktree")
    path = f"{cli.root}/worktrees/{ALPHA}/agentA"
    assert done["output"] == f"{path}\nteams/{ALPHA}/agentA\n"
    assert Path(path, "file").read_text() == "work\n" and not (checkout / "file").exists()
    assert agent_row(cli, "agentA")["session"]["worktree"] == path
    told = f"agentA finished; its work is on the branch teams/{ALPHA}/agentA ({path})"
    assert [m["message"] for m in cli.ok("read-messages", agent="bob") if m["type"] == "info"] == [told]
    assert cli.ok("attend", agent="bob")["state"]["output"]["agents"][-1]["worktree"] == path
    assert "works in" in cli("list-agents").stdout
    shutil.rmtree(path)
    assert "works in" not in cli("list-agents").stdout and "worktree" not in agent_row(cli, "agentA")["session"]
    (row,) = cli.ok("worktree", "list")
    assert (row["agent"], row["state"]) == ("agentA", "empty")  # its branch has no commit
    cli.ok("worktree", "remove", "agentA", agent="lea")
    assert cli.ok("worktree", "list") == []
    os.makedirs(f"{cli.root}/worktrees/{ALPHA}/agentB")
    words = ("run-agent", "true", "--worktree", "--cwd", str(checkout))
    assert cli.refused(*words, agent="lea") == (11, "already_exists")
    assert "teams worktree remove agentB" in cli(*words, agent="lea").stderr
    os.rmdir(f"{cli.root}/worktrees/{ALPHA}/agentB")
    git(checkout, "branch", f"teams/{ALPHA}/agentB")
    assert cli.refused(*words, agent="lea") == (11, "already_exists")


def test_no_worktree_outside_a_repository(cli: Cli) -> None:
    words = ("run-agent", "true", "--worktree", "--cwd", str(place(cli)))
    assert cli.refused(*words, agent="lea") == (2, "invalid_value")
    git(place(cli), "init", "-q")
    assert cli.refused(*words, agent="lea") == (2, "invalid_value")  # nothing was committed yet


def test_a_worktree_whose_hook_failed_is_not_left_behind(cli: Cli) -> None:
    """git makes the worktree before it runs the hook."""
    checkout = place(cli)
    git(checkout, "init", "-q")
    git(checkout, "commit", "-q", "--allow-empty", "-m", "first")
    hook = checkout / ".git/hooks/post-checkout"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\necho no tools >&2; exit 1\n")
    hook.chmod(0o755)
    words = ("run-agent", "true", "--agent-id", "ann", "--worktree", "--cwd", str(checkout))
    for _ in range(2):
        assert "post-checkout" in (told := cli(*words, agent="lea").stderr) and "no tools" in told
        assert cli.ok("worktree", "list") == [] and "ann" not in git(checkout, "branch")
    hook.unlink()
    assert cli(*words, agent="lea").status == 0
