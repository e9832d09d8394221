"""What the tests of the contract share."""

from __future__ import annotations

import pytest

from tests.store.kinds import (
    make_team,
)


@pytest.fixture(autouse=True)
def team(store):
    assert store.teams() == []
    make_team(store)
