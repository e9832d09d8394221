"""The fixtures of a team and of a server for it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.agents.conftest import cli
from tests.support.cli import Cli
from tests.support.one_engine import store
from tests.support.serving import Server, serving

__all__ = ["cli", "store"]


@pytest.fixture
def server(cli: Cli) -> Iterator[Server]:
    with serving(cli) as server:
        yield server
