"""The team in which questions are asked, and the person's terminal."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.questions.asking import team_that_answers
from tests.support.cli import Cli
from tests.support.terminal import Terminal


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    return team_that_answers(tmp_path)


@pytest.fixture
def person(cli: Cli) -> Iterator[Terminal]:
    """A terminal in which the person runs `teams human`."""
    made = Terminal(cli, "human", agent="")
    yield made
    os.kill(made.pid, signal.SIGINT)
    made.end()
