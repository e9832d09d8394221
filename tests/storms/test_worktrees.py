"""Random states of repositories, and commands on their worktrees: see `worktrees`."""

from pathlib import Path

import pytest

from tests.storms.worktrees import storm
from tests.support.agents import NEEDS_PROC


@pytest.mark.slow(first=True)
@NEEDS_PROC
def test_nothing_that_an_agent_made_is_lost(tmp_path: Path) -> None:
    assert storm(tmp_path, 40, seed=11) == {}
