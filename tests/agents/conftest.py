"""The team that the tests of agents use."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.agents import end_all, team_of_agents
from tests.support.cli import Cli


@pytest.fixture
def cli(tmp_path: Path) -> Iterator[Cli]:
    """A team of the leader lea and the members bob and mia; its agents are ended after the test."""
    made = team_of_agents(tmp_path, "bob", "mia")
    yield made
    end_all(made.root)
