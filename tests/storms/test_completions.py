"""Agents that call done what is not: see `completions`."""

from pathlib import Path

import pytest

from tests.storms.completions import HONEST, planted


@pytest.mark.slow
def test_no_false_completion_is_accepted(tmp_path: Path) -> None:
    found = planted(tmp_path)
    assert found.pop(HONEST) == "completed"
    assert "completed" not in found.values(), found
