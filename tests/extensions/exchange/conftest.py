"""A team that its leader imports tasks to."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.cli import Cli, make_team


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    made = make_team(tmp_path / "root", "bob")
    made.agent = "lea"
    return made
