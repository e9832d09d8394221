"""The two ways of locking: each excludes the other, and neither outlives who holds it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from teams_cli.errors import Busy, StorageFailed
from teams_cli.store.files.locks import Lock, PortableLock, holder_of

WAYS = {"flock": Lock, "filelock": PortableLock}
HOLD = """
import sys, time
from teams_cli.store.files.locks import Lock, PortableLock
with {"flock": Lock, "filelock": PortableLock}[sys.argv[1]](sys.argv[2], 5):
    print("held", flush=True)
    time.sleep(60)
"""


@pytest.fixture(params=WAYS)
def holder(request: pytest.FixtureRequest, tmp_path: Path) -> subprocess.Popen[str]:
    """Another process that holds the lock, by each way."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, request.param, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None and process.stdout.readline() == "held\n"
    request.addfinalizer(lambda: (process.kill(), process.wait(), process.stdout.close()))  # type: ignore[union-attr]
    return process


@pytest.mark.parametrize("way", WAYS)
def test_each_excludes_the_other_and_itself(way: str, holder: subprocess.Popen[str], tmp_path: Path) -> None:
    with pytest.raises(Busy) as busy, WAYS[way](str(tmp_path), 0.1):
        raise AssertionError("two have the lock")
    assert str(tmp_path / ".lock") in busy.value.message and f"process {holder.pid}" in busy.value.message


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_it_is_free_when_its_holder_was_killed(
    way: str, how: int, holder: subprocess.Popen[str], tmp_path: Path
) -> None:
    holder.send_signal(how)
    holder.wait()
    with WAYS[way](str(tmp_path), 5):
        assert (tmp_path / ".lock").exists()


@pytest.mark.parametrize("way", WAYS)
def test_a_stopped_holder_has_it_still(way: str, holder: subprocess.Popen[str], tmp_path: Path) -> None:
    holder.send_signal(signal.SIGSTOP)
    with pytest.raises(Busy), WAYS[way](str(tmp_path), 0.1):
        raise AssertionError("two have the lock")
    holder.send_signal(signal.SIGCONT)


@pytest.mark.parametrize("way", WAYS)
def test_it_is_given_back(way: str, tmp_path: Path) -> None:
    """Each time, to whoever comes next, which is no other process."""
    for _ in range(3):
        for taken in (WAYS[way], *WAYS.values()):
            with taken(str(tmp_path), 1):
                assert holder_of(str(tmp_path / ".lock")) == os.getpid()
            assert holder_of(str(tmp_path / ".lock")) is None


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("what", ["link", "directory", "fifo"])
def test_what_is_no_lock_file_is_refused(way: str, what: str, tmp_path: Path) -> None:
    path = tmp_path / ".lock"
    if what == "link":
        path.symlink_to(tmp_path / "elsewhere")
    elif what == "directory":
        path.mkdir()
    else:
        os.mkfifo(path)
    with pytest.raises(StorageFailed, match="lock"), WAYS[way](str(tmp_path), 0.1):
        raise AssertionError("it was locked")
    assert not (tmp_path / "elsewhere").exists()


MOVED = """
import os, sys
from teams_cli.store.files.locks import Lock, PortableLock
ways, directory = {"flock": Lock, "filelock": PortableLock}, sys.argv[2]

def move(event, arguments):
    if event == "fcntl.flock" and not os.path.exists(directory + "-moved"):
        os.rename(directory, directory + "-moved")
        os.mkdir(directory)
        os.close(os.open(directory + "/.lock", os.O_CREAT))

os.mkdir(directory)
sys.addaudithook(move)
with ways[sys.argv[1]](directory, 5):
    assert os.path.exists(directory + "-moved")
    with ways[sys.argv[3]](directory, 0.1):
        pass
"""


@pytest.mark.parametrize("other", WAYS)
@pytest.mark.parametrize("way", WAYS)
def test_a_directory_that_is_moved_away_while_it_is_locked_guards_nothing(way: str, other: str, tmp_path: Path) -> None:
    """As a team that is removed, and made again under the same name: the lock is that of the new one."""
    words = [sys.executable, "-c", MOVED, way, str(tmp_path / "place"), other]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120)
    assert "Busy" in done.stderr, done
