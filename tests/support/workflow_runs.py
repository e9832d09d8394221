"""Small git repositories, workflows written for a test, and `teams run` on them."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

from tests.support.cli import TIMEOUT, Answer, Cli
from tests.support.waits import until

GIT = ("git", "-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
LIMIT = float(TIMEOUT)
OF_THE_MACHINE = ("teams_cli.agents.waking", "teams_cli.extensions.postgres.watcher")


def git(directory: Path, *words: str) -> str:
    done = subprocess.run([*GIT, "-C", str(directory), *words], capture_output=True, check=True)
    return done.stdout.decode(errors="surrogateescape")


def make_repository(directory: Path, files: dict[str, str | bytes]) -> Path:
    """Make a git checkout with these files in one commit."""
    directory.mkdir()
    git(directory, "init", "-q", "-b", "main")
    commit(directory, files)
    return directory


def commit(directory: Path, files: dict[str, str | bytes]) -> None:
    put(directory, files)
    git(directory, "add", "-A")
    git(directory, "commit", "-q", "-m", "work")


def put(directory: Path, files: dict[str, str | bytes]) -> None:
    for name, content in files.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)


def write_workflow(directory: Path, front: str, name: str = "small") -> Path:
    """Write a workflow file. The name and the description are added if *front* lacks them."""
    directory.mkdir(exist_ok=True)
    path = directory / f"{name}.md"
    head = "" if front.lstrip().startswith("name:") else f"name: {name}\ndescription: Small.\n"
    path.write_text(f"---\n{head}{front}\n---\n# Small\n")
    return path


def run(cli: Cli, word: str | Path, *words: str, status: int = 0, directory: Path | None = None) -> dict[str, Any]:
    """Run a workflow to its end without warnings or processes left behind; return its document."""
    process = cli.start("run", str(word), "--json", *words, cwd=directory)
    out, err = process.communicate(timeout=LIMIT)
    answer = Answer(words, process.returncode, out, err)
    assert answer.status == status and answer.stderr == "", answer
    nothing_left(cli.root)
    found: dict[str, Any] = json.loads(answer.stdout)
    return found


def results(document: dict[str, Any]) -> dict[str, str]:
    """Return the outcome of each step."""
    return {task["step"]: task.get("result", "") for task in document["tasks"]}


def statuses(document: dict[str, Any]) -> dict[str, str]:
    return {task["step"]: task["status"] for task in document["tasks"]}


def left_running(root: Path) -> list[str]:
    """Return the command lines of the processes that were started on this root and still run, without those that serve
    the machine.
    """
    lines = [cmdline for pid, cmdline in processes_of(root).items() if pid != os.getpid()]
    return [line for line in lines if not any(name in line for name in OF_THE_MACHINE)]


def nothing_left(root: Path) -> None:
    """Whether nothing that was started on this root still runs. A process in its last write, or one just killed, gets a
    moment.
    """
    until(lambda: not left_running(root), "the end of all that was started")


def processes_of(root: Path) -> dict[int, str]:
    """Return the processes that have this root in their environment, with their command lines."""
    found = {}
    for place in Path("/proc").iterdir():
        try:
            if place.name.isdigit() and f"TEAMS_HOME={root}\0".encode() in (place / "environ").read_bytes():
                found[int(place.name)] = (place / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:  # it ended
            continue
    return {pid: line for pid, line in found.items() if line}
