"""The fixtures of a team and of a server for it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.agents import end_all, team_of_agents
from tests.support.cli import Cli
from tests.support.one_engine import store
from tests.support.serving import Server, serving

__all__ = ["store"]


@pytest.fixture
def cli(tmp_path: Path) -> Iterator[Cli]:
    cli = team_of_agents(tmp_path, "bob", "mia")
    yield cli
    end_all(cli.root)


@pytest.fixture
def server(cli: Cli) -> Iterator[Server]:
    with serving(cli) as server:
        yield server
