"""Home directories with settings of clients, and what those contain."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

from tests.support.cli import COMMAND, TIMEOUT, Answer, Cli, tree

SETTINGS = {
    "claude": ".claude/settings.json",
    "codex": ".codex/hooks.json",
    "gemini": ".gemini/settings.json",
    "qwen": ".qwen/settings.json",
}


class Home:
    """A home directory in which clients have their settings."""

    def __init__(self, top: Path) -> None:
        self.path = top / "home"
        self.path.mkdir()
        self.cli = Cli(top / "root", HOME=str(self.path), XDG_CONFIG_HOME="")

    def file(self, client: str, text: str | None = None) -> Path:
        """The client's settings file, with *text* written into it unless that is None."""
        path = self.path / SETTINGS[client]
        if text is not None:
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(text.encode())
        return path

    def change(self, *words: str) -> Any:
        answer = self.cli(*words, "--json")
        assert answer.status == 0, answer
        return answer.json


def hooks_in(path: Path) -> dict[str, list[str]]:
    hooks = json.loads(path.read_text())["hooks"]
    return {
        event: [h["command"] for e in found for h in e["hooks"]] for event, found in hooks.items() if found is not True
    }


def refused(home: Home, *words: str) -> Answer:
    before = tree(home.path)
    answer = home.cli(*words)
    assert answer.status != 0 and answer.stdout == "" and tree(home.path) == before, answer
    return answer


def in_project(home: Home, project: Path, *words: str, status: int = 0) -> str:
    environ = {**home.cli.environ(), "PYTHONPATH": os.getcwd()}
    command = [*COMMAND, *words, "--project"]
    done = subprocess.run(command, cwd=project, env=environ, capture_output=True, text=True, timeout=TIMEOUT)
    assert done.returncode == status, done
    return done.stderr
