"""A team with a repository, in which branches are checked, reviewed and landed."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from teams_cli.agents.background import LANDER
from tests.support.cli import ALPHA, COMMAND, TIMEOUT, Cli, make_team

if TYPE_CHECKING:
    from teams_cli.store.contract import Store

CHECK = "test ! -e broken"


def git(where: Path, *words: str, ok: bool = True) -> str:
    """Return the output of git in the directory. Git may fail only if *ok* is not set."""
    identity = ["-c", "user.name=n", "-c", "user.email=e@example.org", "-c", "gc.auto=0"]
    command = ["git", "-C", str(where), *identity, *words]
    return subprocess.run(command, check=ok, capture_output=True, text=True, timeout=TIMEOUT).stdout.strip()


@contextmanager
def no_lander(store: Store) -> Iterator[None]:
    """Keep everybody from landing in the team for the length of a `with` block."""
    held = LANDER.hold(store, ALPHA)
    assert held is not None
    try:
        yield
    finally:
        os.close(held)


def teams_in(where: Path, cli: Cli, agent: str, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a command in the directory, to its end."""
    command, environ = [*COMMAND, *words], cli.environ(agent)
    done = subprocess.run(command, cwd=where, env=environ, capture_output=True, text=True, timeout=TIMEOUT)
    assert "Traceback" not in done.stderr, done
    return done


class Shop:
    """A team with a repository. It has `main` checked out; bob and mia have worktrees beside it."""

    def __init__(self, place: Path) -> None:
        self.cli = make_team(place / "root", "bob", "mia")
        self.main = place / "main"
        self.main.mkdir()
        git(self.main, "init", "-q", "-b", "trunk")
        self.write(self.main, "file", "1")
        self.trees = {name: place / name for name in ("bob", "mia")}
        for name, tree in self.trees.items():
            git(self.main, "worktree", "add", "-q", "-b", f"{name}s", str(tree))

    def write(self, where: Path, name: str, text: str) -> None:
        """Commit a file with the text."""
        (where / name).write_text(text)
        git(where, "add", name)
        git(where, "commit", "-q", "-m", name)

    def at(self, agent: str, *words: str, where: Path | None = None) -> Any:
        """Run a command in the agent's worktree, or in another directory."""
        return teams_in(where or self.trees[agent], self.cli, agent, *words)

    def ok(self, agent: str, *words: str) -> str:
        done = self.at(agent, *words)
        assert done.returncode == 0, done
        return str(done.stdout)

    def task(self, key: str = "1") -> Any:
        return self.cli.ok("show-task", key, agent="lea")

    def create(self, title: str, *words: str) -> None:
        self.cli.ok("create-task", title, *words, agent="lea")

    def set(self, key: str, value: str, agent: str = "lea") -> None:
        self.cli.ok("set", key, value, agent=agent)

    def claimed(self, agent: str, *words: str, key: str = "1") -> None:
        """Give the agent a new task in progress."""
        self.create("t", *words)
        self.ok(agent, "claim-task", key)

    def begin(self, agent: str, *words: str, key: str = "1", file: str = "new", text: str = "1") -> None:
        """Give the agent a new task in progress, with a commit of that file."""
        self.claimed(agent, *words, key=key)
        self.write(self.trees[agent], file, text)

    def complete(self, agent: str, key: str = "1") -> str:
        return self.ok(agent, "update-task", key, "--status", "completed")

    def told(self, agent: str) -> list[str]:
        """Return all messages that the agent ever received."""
        return [one["message"] for one in self.cli.ok("read-messages", "--all", agent=agent)]

    def tip(self) -> str:
        return git(self.main, "rev-parse", "trunk")

    def over(self, key: str) -> str:
        """Return the state of the landing once it has ended."""
        return str(self.cli.ok("wait", "--landing", key, "--timeout", "100", agent="lea")["landing"]["state"])

    def landed(self, agent: str, key: str) -> Any:
        """Land the task, and wait for the outcome."""
        self.ok(agent, "land", key, "--no-wait")
        newest = self.cli.ok("get-landings", agent="lea")[-1]["id"]
        return self.cli.ok("wait", "--landing", newest, "--timeout", "100", agent="lea")["landing"]


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path)
