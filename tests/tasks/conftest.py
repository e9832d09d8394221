"""The default engine, and a team of lea, bob and ann."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.cli import Cli, make_team
from tests.support.one_engine import store

__all__ = ["store", "told"]


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    return make_team(tmp_path / "root", "bob", "ann")


def told(cli: Cli, agent: str) -> list[str]:
    """The texts of the agent's new messages."""
    return [message["message"] for message in cli.ok("read-messages", agent=agent)]
