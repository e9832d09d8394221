"""What all tests of agents stand on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.agents import end_all, team_of_agents
from tests.support.cli import Cli


@pytest.fixture
def cli(tmp_path: Path) -> Iterator[Cli]:
    """A team of the leader lea and the members bob and mia; afterwards nothing of it runs."""
    made = team_of_agents(tmp_path, "bob", "mia")
    yield made
    end_all(made.root)
