"""Eight agents whose lander is killed, and pairs of agents whose changes conflict or not."""

from pathlib import Path

import pytest

from tests.extensions.landing import replay
from tests.extensions.landing.storm import PROMISES, Storm

pytestmark = pytest.mark.slow


def test_the_tip_is_never_red_and_nothing_is_lost(tmp_path: Path) -> None:
    outcome = Storm(tmp_path, 16, seed=3).run()
    assert [outcome[promise] for promise in PROMISES] == [0, 0, 0]


@pytest.mark.parametrize("part", range(2))
def test_conflicts_are_told_before_they_are_made(tmp_path: Path, part: int) -> None:
    for number, pair in enumerate(list(replay.pairs())[part::2]):
        place = tmp_path / str(number)
        place.mkdir()
        outcome = replay.play(pair, place)
        assert replay.wrong(outcome) == "", (pair.name, outcome)
