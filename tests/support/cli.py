"""Running `teams` as a real process, as the shell of an agent runs it, and making teams for it."""

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
    """End the lease of a task in progress, and also the grace period that follows the lease."""
    task, revision = store.get(team, tasks.TASK, key)
    store.replace(team, tasks.TASK, key, task.having(lease_until=0.5, grace_until=0.5), revision)


class Answer:
    """The output and the exit status of one command."""

    def __init__(self, words: tuple[str | bytes, ...], status: int, stdout: bytes, stderr: bytes) -> None:
        self.words = words
        self.status = status
        self.stdout = stdout.decode()
        self.stderr = stderr.decode()

    @property
    def json(self) -> Any:
        """Return the document on standard output. The output must be one line of ASCII with nothing else."""
        assert self.status == 0, self
        assert self.stdout.isascii() and self.stdout.count("\n") == 1 and self.stdout.endswith("\n"), self
        return json.loads(self.stdout)

    @property
    def error(self) -> dict[str, str]:
        """Return the object that `--json` writes to standard error for a refusal. Standard output must be empty."""
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
        """Return the environment of a call, without the variables whose value would be ""."""
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
        """Run a command that must succeed without warnings; return its JSON document."""
        answer = self(*words, "--json", agent=agent, team=team, stdin=stdin)
        assert answer.status == 0 and answer.stderr == "", answer
        return answer.json

    def refused(self, *words: str | bytes, agent: str | None = None, stdin: bytes | None = None) -> tuple[int, str]:
        """Run a command that must be refused and leave every file as it was; return its exit status and code.

        Two changes are allowed: the presence of a caller that waited in vain, and of one that listens to a server on
        this machine. No other command may run meanwhile, since its writes would count as those of this command.
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
        """Start a command without waiting for it."""
        pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
        return subprocess.Popen([*COMMAND, *words], env=self.environ(agent, team), **pipes)

    def store(self) -> Store:
        """Return the store that the commands use: files, unless the environment of the test names another."""
        return opening.open_store(str(self.root), os.environ.get("TEAMS_STORE") or FILES)


def but(files: dict[str, bytes | str] | None, name: str) -> dict[str, bytes | str] | None:
    """Return a tree without the directories called *name*, such as `agents`, which has the records of the agents."""
    if files is None:
        return None
    return {path: text for path, text in files.items() if name not in path.split(os.sep)}


def tree(top: Path) -> dict[str, bytes | str] | None:
    """Return every path below *top* with its bytes, or with its type if it is no file; None if *top* does not exist."""
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
    """Make a team `alpha` with a leader and members, without processes, and return a `Cli` for it."""
    cli = Cli(root, team=ALPHA)
    store = cli.store()
    joining.spawn_team(store, ALPHA, Caller(leader))
    for name in members:
        joining.join(store, ALPHA, Caller(name), (roles or {}).get(name))
    return cli


def add_tasks(cli: Cli, *titles: str, **fields: Any) -> None:
    """Add tasks to the team, without processes."""
    for title in titles:
        draft = Task(team_name=ALPHA, title=title, created_at="", **fields)
        tasks.create(cli.store(), ALPHA, Caller("lea"), draft)


def in_progress(cli: Cli, agent: str, title: str) -> None:
    """Add the first task of the team, and claim it for the agent."""
    add_tasks(cli, title)
    cli.ok("claim-task", "1", agent=agent)


def complete(cli: Cli, agent: str, task: str, *words: str) -> None:
    """Claim the task for the agent, and complete it."""
    cli.ok("claim-task", task, agent=agent)
    cli.ok("update-task", task, "--status", "completed", *words, agent=agent)


def program(path: Path, text: str) -> Path:
    """Write an executable file with the *text*, which is a shell script unless it begins with `#!`. Return its path."""
    path.parent.mkdir(exist_ok=True)
    path.write_text(text if text.startswith("#!") else f"#!/bin/sh\n{text}")
    path.chmod(0o755)
    return path


TEAMS = f'exec "{sys.executable}" -m teams_cli "$@"\n'
"""The text of a program that runs `teams`."""
