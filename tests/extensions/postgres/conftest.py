"""A store in PostgreSQL for the tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from teams_cli.extensions.postgres.engine import PostgresStore
from tests.conftest import new_address
from tests.extensions.postgres.test_logins import office as office


@pytest.fixture
def address() -> str:
    return new_address()


@pytest.fixture
def store(address: str, tmp_path: Path) -> Iterator[PostgresStore]:
    made = PostgresStore(address, str(tmp_path / "root"), patience=60)
    yield made
    made.close()
