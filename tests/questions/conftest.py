"""A team in which questions are asked."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.questions.asking import Person, team_that_answers
from tests.support.cli import Cli


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    return team_that_answers(tmp_path)


@pytest.fixture
def person(cli: Cli) -> Iterator[Person]:
    made = Person(cli)
    yield made
    made.leave()
