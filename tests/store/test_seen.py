"""What seldom changes is looked at once, and again as soon as it was changed."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from teams_cli.store.files.seen import Seen


class Looks:
    """A look that is counted: the names in a directory, or the text of a file."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, path: str) -> str:
        self.count += 1
        return " ".join(sorted(os.listdir(path))) if os.path.isdir(path) else Path(path).read_text()


def later() -> float:
    """A clock by which all that is there has been so for long."""
    return time.time() + 60


@pytest.fixture
def looks() -> Looks:
    return Looks()


def test_what_was_not_changed_is_looked_at_once(looks: Looks, tmp_path: Path) -> None:
    seen = Seen(looks, later)
    (tmp_path / "one").touch()
    assert [seen.at(str(tmp_path)) for _ in range(5)] == ["one"] * 5
    assert looks.count == 1


def test_what_was_changed_a_moment_ago_may_be_changed_again_at_the_same_time(looks: Looks, tmp_path: Path) -> None:
    seen = Seen(looks)
    assert [seen.at(str(tmp_path)) for _ in range(3)] == [""] * 3
    assert looks.count == 3
    time.sleep(0.2)
    assert [seen.at(str(tmp_path)) for _ in range(3)] == [""] * 3
    assert looks.count == 4


def test_who_stands_still_behind_the_look_takes_it_for_no_older(looks: Looks, tmp_path: Path) -> None:
    """What is there may be changed at the same time as it was before, while it is looked at."""

    def slowly(path: str) -> str:
        found = looks(path)
        time.sleep(0.2)
        return found

    seen = Seen(slowly)
    (tmp_path / "one").touch()
    assert seen.at(str(tmp_path)) == "one"
    looks.count = 0
    assert seen.at(str(tmp_path)) == "one" and looks.count == 1


def test_each_change_is_seen(looks: Looks, tmp_path: Path) -> None:
    seen, path = Seen(looks, later), tmp_path / "file"
    for n in range(20):
        time.sleep(0.02)  # as long as a clock of the system may stand still
        path.write_text(f"{n:2}")
        assert seen.at(str(path)) == f"{n:2}"
    before = path.stat()
    path.write_text("!!")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert seen.at(str(path)) == "!!"
    path.rename(tmp_path / "other")
    with pytest.raises(FileNotFoundError):
        seen.at(str(path))


def test_many_paths_take_no_more_room(looks: Looks, tmp_path: Path) -> None:
    seen = Seen(looks, later)
    for n in range(300):
        (tmp_path / str(n)).mkdir()
        assert seen.at(str(tmp_path / str(n))) == ""
    assert seen.at(str(tmp_path / "299")) == "" and looks.count == 300
