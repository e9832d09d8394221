"""Fixtures with the default engine, for tests of rules. The tests of `tests/store` show that every engine keeps
them.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from teams_cli.store.files.engine import FileStore

if TYPE_CHECKING:
    from teams_cli.store.contract import Store
    from tests.conftest import FakeClock


@pytest.fixture
def store(tmp_path: Path, clock: FakeClock) -> Store:
    return FileStore(str(tmp_path / "root"), clock, lock_timeout=2.0)
