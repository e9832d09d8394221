"""For pairs of features on one repository, each conflict is told to both agents, nothing else is, and no tip is red."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.extensions.landing import replay


@pytest.mark.slow(first=True)
@pytest.mark.parametrize("part", range(4))
def test_agents_are_told_of_conflicts_before_they_land(tmp_path: Path, part: int) -> None:
    for name in [*replay.PAIRS][part::4]:
        place = tmp_path / name
        place.mkdir()
        outcome = replay.play(replay.PAIRS[name], place)
        assert replay.wrong(outcome) == "", (name, outcome)


@pytest.mark.slow
def test_pairs_are_read_from_a_folder(tmp_path: Path) -> None:
    main, folder, place = tmp_path / "main", tmp_path / "pairs" / "one", tmp_path / "place"
    for each in (main, folder, place):
        each.mkdir(parents=True)
    replay.git(main, "init", "-q", "-b", "main")
    (main / "file").write_text("1\n2\n3\n")
    replay.git(main, "add", ".")
    replay.git(main, "commit", "-q", "-m", "base")
    replay.git(main, "bundle", "create", "-q", str(folder / "base.bundle"), "main")
    for name, text in (("a", "ann\n2\n3\n"), ("b", "bob\n2\n3\n")):
        (main / "file").write_text(text)
        (folder / f"{name}.patch").write_text(replay.git(main, "diff") + "\n")
    (folder / "check").write_text("test -s file\n")
    outcome = replay.play_patches(folder, place)
    assert outcome.conflicts and replay.wrong(outcome) == "" and outcome.landed == 2
