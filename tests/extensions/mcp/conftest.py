"""A team whose agents have the MCP server."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.cli import Cli, make_team


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    return make_team(tmp_path / "root", "bob", "mia", roles={"mia": "task-manager"})
