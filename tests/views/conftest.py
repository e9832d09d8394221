"""The default engine, and a team of lea, bob and mia."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.cli import Cli, make_team
from tests.support.one_engine import store

__all__ = ["store"]


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    return make_team(tmp_path / "root", "bob", "mia")
