"""Branches of several agents land while agents and landers are killed."""

from pathlib import Path

import pytest

from tests.extensions.landing.many import Many
from tests.extensions.landing.storm import PROMISES, Storm


@pytest.mark.slow(first=True)
def test_the_tip_is_never_red_and_nothing_is_lost(tmp_path: Path) -> None:
    outcome = Storm(tmp_path, 12, seed=3).run()
    assert [outcome[promise] for promise in PROMISES] == [0, 0, 0]


@pytest.mark.slow(first=True)
def test_what_agents_were_told_has_landed_though_they_are_killed(tmp_path: Path) -> None:
    outcome = Many(tmp_path, agents=3, tasks=9, kills=2, seed=1).run()
    assert (outcome["landed"], outcome["lost"], outcome["red tips"]) == (9, 0, 0), outcome
