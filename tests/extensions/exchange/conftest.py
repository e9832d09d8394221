"""A team whose leader imports tasks."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.cli import Cli, make_team


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    made = make_team(tmp_path / "root", "bob")
    made.agent = "lea"
    return made
