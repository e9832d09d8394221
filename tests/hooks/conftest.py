"""A team of lea, bob and mia, whose clients run hooks."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.cli import TEAMS, TIMEOUT, Cli, program

PLUGIN = Path(__file__).parents[2] / "teams_cli/clients/known/opencode.js"


@pytest.fixture
def in_opencode(cli: Cli, tmp_path: Path) -> Callable[[str], Any]:
    """A function that runs a script of node on OpenCode's plugin, and returns the JSON it printed."""

    def run(script: str) -> Any:
        (tmp_path / "plugin.mjs").write_text(PLUGIN.read_text())
        (tmp_path / "driver.mjs").write_text(script)
        program(tmp_path / "bin/teams", TEAMS)
        environ = cli.environ("bob", PATH=f"{tmp_path}/bin:{os.environ['PATH']}")
        words = ["node", str(tmp_path / "driver.mjs"), str(tmp_path / "plugin.mjs")]
        done = subprocess.run(words, env=environ, capture_output=True, timeout=TIMEOUT, cwd=tmp_path)
        assert done.returncode == 0, done
        return json.loads(done.stdout)

    return run
