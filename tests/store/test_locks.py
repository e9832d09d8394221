"""The two ways of locking exclude each other, and a lock ends with the process that holds it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from teams_cli.errors import Busy, StorageFailed
from teams_cli.store.files.locks import Lock, PortableLock

WAYS = {"flock": Lock, "filelock": PortableLock}
HOLD = """
import os, sys, time
from teams_cli.store.files.locks import Lock, PortableLock

ways, directory = {"flock": Lock, "filelock": PortableLock}, sys.argv[2]

def move(event, arguments):
    if event == "fcntl.flock" and not os.path.exists(directory + "-moved"):
        os.rename(directory, directory + "-moved")
        os.mkdir(directory)
        os.close(os.open(directory + "/.lock", os.O_CREAT))

os.makedirs(directory, exist_ok=True)
if sys.argv[3:] == ["moved"]:
    sys.addaudithook(move)
with ways[sys.argv[1]](directory, 5):
    print("held", flush=True)
    time.sleep(3600)
"""


@contextmanager
def holder(*words: str) -> Iterator[subprocess.Popen[str]]:
    """Return another process that holds the lock."""
    with subprocess.Popen([sys.executable, "-c", HOLD, *words], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None and process.stdout.readline() == "held\n"
            yield process
        finally:
            process.kill()


def refused(way: str, directory: Path) -> str:
    with pytest.raises(Busy) as busy, WAYS[way](str(directory), 0.1):
        raise AssertionError("two have the lock")
    return busy.value.message


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_it_is_held_against_both_ways_until_its_holder_is_killed(way: str, how: int, tmp_path: Path) -> None:
    """A process that is stopped keeps its lock."""
    with holder(way, str(tmp_path)) as process:
        for stopped in (False, True):
            if stopped:
                process.send_signal(signal.SIGSTOP)
            for other in WAYS:
                message = refused(other, tmp_path)
                assert str(tmp_path / ".lock") in message and f"process {process.pid}" in message
        process.send_signal(signal.SIGCONT)
        process.send_signal(how)
        process.wait()
        for other in WAYS:
            with WAYS[other](str(tmp_path), 5):
                assert (tmp_path / ".lock").exists()


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
    with pytest.raises(StorageFailed) as refused, WAYS[way](str(tmp_path), 0.1):
        raise AssertionError("it was locked")
    assert str(path) in refused.value.message
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize("way", WAYS)
def test_a_directory_that_is_moved_away_while_it_is_locked_guards_nothing(way: str, tmp_path: Path) -> None:
    """A team that was removed and made again under its name has a lock of its own."""
    with holder(way, str(tmp_path / "place"), "moved"):
        assert (tmp_path / "place-moved").exists()
        for other in WAYS:
            refused(other, tmp_path / "place")
