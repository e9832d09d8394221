"""Each extension can be deleted: the core works, and the commands of the extension answer what is missing."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import teams_cli
from teams_cli import extensions
from tests.support.cli import TIMEOUT, make_team


def test_the_core_works_without_any_extension(tmp_path: Path) -> None:
    """The copy loses its extensions one by one, so that each is missing alone once, and all are at the end."""
    copy = tmp_path / "teams_cli"
    shutil.copytree(Path(teams_cli.__file__).parent, copy, ignore=shutil.ignore_patterns("__pycache__", "board"))
    cli = make_team(tmp_path / "root")
    environ = {**cli.environ("lea"), "PYTHONPATH": str(tmp_path)}

    def run(*words: str) -> tuple[int, str, str]:
        command = [sys.executable, "-m", "teams_cli", *words]
        done = subprocess.run(command, cwd=tmp_path, env=environ, capture_output=True, text=True, timeout=TIMEOUT)
        return done.returncode, done.stdout, done.stderr

    for name in extensions.every():
        shutil.rmtree(copy / "extensions" / name)
        for command in (command for command, extension in extensions.BROUGHT_BY.items() if extension == name):
            status, _, stderr = run(command, "--json")
            error = json.loads(stderr)["error"]
            assert (status, error["code"]) == (2, "extension_missing"), command
            assert f"the extension {name}," in error["message"] and "pip install" in error["hint"], command
    assert not [entry for entry in os.scandir(copy / "extensions") if entry.is_dir() and entry.name != "__pycache__"]
    subprocess.run(["git", "init", "-q", str(tmp_path / "repo")], check=True, timeout=TIMEOUT)
    review = Path(teams_cli.__file__).parents[1] / "workflows/code-review.md"
    for name, words in {
        "postgres": ["get-tasks", "--store", "postgresql://x/y"],
        "review": ["run", str(review), "--var", f"repo={tmp_path / 'repo'}"],
    }.items():
        status, _, stderr = run(*words)
        assert status == 2 and f"-m pip install '.[{name}]'" in stderr, (name, stderr)
    assert run("create-task", "t")[0] == 0
    status, tasks, _ = run("get-tasks", "--json")
    assert (status, [task["title"] for task in json.loads(tasks)]) == (0, ["t"])
    status, text, _ = run("--help")
    assert status == 0 and "create-task" in text and "get-landings" not in text
