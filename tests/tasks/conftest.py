"""The default engine for tests of tasks, and what agents are told."""

from __future__ import annotations

from tests.support.cli import Cli
from tests.support.one_engine import store

__all__ = ["store", "told"]


def told(cli: Cli, agent: str) -> list[str]:
    return [message["message"] for message in cli.ok("read-messages", agent=agent)]
