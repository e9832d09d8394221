"""`teams` as a real process, as the shell of an agent runs it, and teams to run it on."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from teams_cli.errors import WaitRanOut
from teams_cli.membership import joining
from teams_cli.store import opening
from teams_cli.store.files.engine import FILES
from teams_cli.tasks import tasks
from teams_cli.tasks.tasks import Task
from teams_cli.teams.permission import Caller
from tests.support import forks

if TYPE_CHECKING:
    from teams_cli.store.contract import Store

TIMEOUT = 120
COMMAND = [sys.executable, "-m", "teams_cli"]
ALPHA = "alpha"


def lapse(store: Store, key: str = "task-1", team: str = ALPHA) -> None:
    """Have the lease of a task in progress be over, and the grace period in which its owner was asked."""
    task, revision = store.get(team, tasks.TASK, key)
    store.replace(team, tasks.TASK, key, task.having(lease_until=0.5, grace_until=0.5), revision)


class Answer:
    """What one command said, and its exit status."""

    def __init__(self, words: tuple[str | bytes, ...], status: int, stdout: bytes, stderr: bytes) -> None:
        self.words = words
        self.status = status
        self.stdout = stdout.decode()
        self.stderr = stderr.decode()

    @property
    def json(self) -> Any:
        """The document on standard output, which must be all of it, on one line, in ASCII."""
        assert self.status == 0, self
        assert self.stdout.isascii() and self.stdout.count("\n") == 1 and self.stdout.endswith("\n"), self
        return json.loads(self.stdout)

    @property
    def error(self) -> dict[str, str]:
        """The one object on standard error with which `--json` refuses; nothing may be on standard output."""
        assert self.stdout == "", self
        assert self.stderr.isascii() and self.stderr.count("\n") == 1, self
        document = json.loads(self.stderr)
        assert list(document) == ["error"] and sorted(document["error"]) == ["code", "hint", "message"], self
        error: dict[str, str] = document["error"]
        return error

    def __repr__(self) -> str:
        return f"{self.words} -> {self.status}\n--- stdout\n{self.stdout}--- stderr\n{self.stderr}"


class Cli:
    """Runs `teams` on one root, as one agent in one team unless a call says otherwise."""

    def __init__(self, root: Path, agent: str = "", team: str = "", **environ: str) -> None:
        self.root = root
        self.agent = agent
        self.team = team
        self.more = environ

    def environ(self, agent: str | None = None, team: str | None = None, **more: str) -> dict[str, str]:
        """The environment of a call; a variable given as "" is not set."""
        said = {"TEAMS_HOME": str(self.root), "TEAMS_AGENT_ID": self.agent if agent is None else agent}
        said["TEAMS_TEAM"] = self.team if team is None else team
        return {key: value for key, value in {**os.environ, **said, **self.more, **more}.items() if value}

    def __call__(
        self,
        *words: str | bytes,
        agent: str | None = None,
        team: str | None = None,
        stdin: bytes | None = None,
        **environ: str,
    ) -> Answer:
        """Run one command to its end."""
        surroundings, given = self.environ(agent, team, **environ), stdin or b""
        if forks.can_run(surroundings, given):
            answer = Answer(words, *forks.run([os.fsdecode(word) for word in words], surroundings, given, TIMEOUT))
        else:
            done = subprocess.run(
                [*COMMAND, *words], env=surroundings, input=given, capture_output=True, timeout=TIMEOUT
            )
            answer = Answer(words, done.returncode, done.stdout, done.stderr)
        assert "Traceback" not in answer.stdout + answer.stderr, answer
        return answer

    def ok(self, *words: str, agent: str | None = None, team: str | None = None, stdin: bytes | None = None) -> Any:
        """Run a command that succeeds and has nothing to complain of; its JSON document."""
        answer = self(*words, "--json", agent=agent, team=team, stdin=stdin)
        assert answer.status == 0 and answer.stderr == "", answer
        return answer.json

    def refused(self, *words: str | bytes, agent: str | None = None, stdin: bytes | None = None) -> tuple[int, str]:
        """Run a command that is refused and leaves every file as it was; its exit status and code.

        Who waited in vain was seen, though, and who listens to a server on this machine may have begun meanwhile.
        No other command may be at work: what it still writes would be taken for a change of this one.
        """
        before = but(tree(self.root), "watchers")
        answer = self(*words, "--json", agent=agent, stdin=stdin)
        error, after = answer.error, but(tree(self.root), "watchers")
        assert error["message"] and error["hint"], answer
        if answer.status == WaitRanOut.status:
            before, after = but(before, "agents"), but(after, "agents")
        assert after == before, answer
        return answer.status, error["code"]

    def start(self, *words: str, agent: str | None = None, team: str | None = None, **options: Any) -> Any:
        """Start a command and don't wait for it."""
        pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
        return subprocess.Popen([*COMMAND, *words], env=self.environ(agent, team), **pipes)

    def store(self) -> Store:
        """The store that the commands work on: files, unless the environment of the test names another."""
        return opening.open_store(str(self.root), os.environ.get("TEAMS_STORE") or FILES)


def but(files: dict[str, bytes | str] | None, name: str) -> dict[str, bytes | str] | None:
    """A tree without the directories of that name: `agents` has what is noted of each."""
    if files is None:
        return None
    return {path: text for path, text in files.items() if name not in path.split(os.sep)}


def tree(top: Path) -> dict[str, bytes | str] | None:
    """Every path below *top* with its bytes (or what else it is); None when there is no *top*."""
    if not os.path.lexists(top):
        return None
    found: dict[str, bytes | str] = {}
    for directory, names, files in os.walk(top):
        for name in names:
            found[os.path.relpath(os.path.join(directory, name), top)] = "directory"
        for name in files:
            path = Path(directory, name)
            found[str(path.relative_to(top))] = path.read_bytes() if path.is_file() else "no file"
    return found


def make_team(root: Path, *members: str, leader: str = "lea", roles: dict[str, str] | None = None) -> Cli:
    """A team `alpha` with a leader and members, made without processes, and a way to run commands in it."""
    cli = Cli(root, team=ALPHA)
    store = cli.store()
    joining.spawn_team(store, ALPHA, Caller(leader))
    for name in members:
        joining.join(store, ALPHA, Caller(name), (roles or {}).get(name))
    return cli


def add_tasks(cli: Cli, *titles: str, **fields: Any) -> None:
    """Add tasks to the team, made without processes."""
    for title in titles:
        draft = Task(team_name=ALPHA, title=title, created_at="", **fields)
        tasks.create(cli.store(), ALPHA, Caller("lea"), draft)


def in_progress(cli: Cli, agent: str, title: str) -> None:
    """Add the first task of the team, and have the agent claim it."""
    add_tasks(cli, title)
    cli.ok("claim-task", "1", agent=agent)


def complete(cli: Cli, agent: str, task: str, *words: str) -> None:
    """Have the agent claim the task and complete it."""
    cli.ok("claim-task", task, agent=agent)
    cli.ok("update-task", task, "--status", "completed", *words, agent=agent)


def program(path: Path, text: str) -> Path:
    """A program of that text, a script for the shell unless it says for what."""
    path.parent.mkdir(exist_ok=True)
    path.write_text(text if text.startswith("#!") else f"#!/bin/sh\n{text}")
    path.chmod(0o755)
    return path


TEAMS = f'exec "{sys.executable}" -m teams_cli "$@"\n'
"""The text of a program that is ours."""
