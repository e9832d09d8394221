"""Branches of eight agents land while what lands them is killed."""

from pathlib import Path

import pytest

from tests.extensions.landing.storm import PROMISES, Storm


@pytest.mark.slow
def test_the_tip_is_never_red_and_nothing_is_lost(tmp_path: Path) -> None:
    outcome = Storm(tmp_path, 16, seed=3).run()
    assert [outcome[promise] for promise in PROMISES] == [0, 0, 0]
