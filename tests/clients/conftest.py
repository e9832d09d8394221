"""A home directory with settings of clients."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.clients.homes import Home


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)
