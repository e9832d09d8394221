"""A team in which copies of agents answer."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.questions.asking import team_that_answers
from tests.support.cli import Cli


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    return team_that_answers(tmp_path)
