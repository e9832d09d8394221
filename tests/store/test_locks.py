"""The two ways of locking: each excludes the other, and neither outlives who holds it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from teams_cli.errors import Busy, StorageFailed
from teams_cli.store.files.locks import Lock, PortableLock
from teams_cli.store.files.queueing import holder_of
from tests.support.cli import TIMEOUT
from tests.support.waits import until

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


def queued(path: Path) -> int:
    """How many stand in the system's queue for the lock."""
    inode = f":{path.stat().st_ino} "
    return sum("->" in line and inode in line for line in Path("/proc/locks").read_text().splitlines())


WAIT = """
import _thread, os, sys, time
from teams_cli.errors import Busy
from teams_cli.store.files.locks import Lock
for _ in range(40 if "often" in sys.argv else 0):
    try:
        with Lock(sys.argv[1], 0.03):
            pass
    except Busy:
        print(len(os.listdir("/proc/self/task")), len(os.listdir("/proc/self/fd")), flush=True)
if "without threads" in sys.argv:
    _thread.stack_size(1 << 46)
try:
    with Lock(sys.argv[1], float(sys.argv[2])):
        print("held", flush=True)
except BaseException as problem:
    print(type(problem).__name__, flush=True)
sys.stdin.read()
"""


@pytest.fixture
def waiting(tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Starts others that want the lock, say what came of it, and stay until their standard input ends."""
    started = []

    def start(seconds: float, *words: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", WAIT, str(tmp_path), str(seconds), *words]
        started.append(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
        return started[-1]

    yield start
    for process in started:
        process.communicate()


def said_by(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def test_who_waits_stands_in_the_queue_of_the_system(
    holder: subprocess.Popen[str], waiting: Callable[..., subprocess.Popen[str]], tmp_path: Path
) -> None:
    """Where one is woken when it is free, instead of looking at the wrong time again and again."""
    first = waiting(TIMEOUT)
    until(lambda: queued(tmp_path / ".lock") == 1)
    second = waiting(TIMEOUT)
    until(lambda: queued(tmp_path / ".lock") == 2)
    holder.kill()
    assert [said_by(first), said_by(second)] == ["held", "held"]


@pytest.mark.parametrize("how", ["in vain", "interrupted"])
def test_who_waits_no_more_does_not_get_it(
    how: str, holder: subprocess.Popen[str], waiting: Callable[..., subprocess.Popen[str]], tmp_path: Path
) -> None:
    """Though it goes on with something else, its turn is given back when it comes."""
    other = waiting(0.2 if how == "in vain" else TIMEOUT)
    until(lambda: queued(tmp_path / ".lock") == 1)
    if how == "interrupted":
        other.send_signal(signal.SIGINT)
    assert said_by(other) == {"in vain": "Busy", "interrupted": "KeyboardInterrupt"}[how]
    holder.kill()
    with Lock(str(tmp_path), 20):
        assert other.poll() is None
    until(lambda: holder_of(str(tmp_path / ".lock")) is None)


def test_who_waits_in_vain_again_and_again_does_not_run_out_of_files(
    holder: subprocess.Popen[str], waiting: Callable[..., subprocess.Popen[str]]
) -> None:
    """As a server does, while somebody that stands still has the lock."""
    server = waiting(TIMEOUT, "often")
    for _ in range(40):
        threads, files = map(int, said_by(server).split())
        assert threads <= 20 and files <= 30
    holder.kill()
    assert said_by(server) == "held"


def test_who_can_t_stand_in_the_queue_looks_again_and_again(
    holder: subprocess.Popen[str], waiting: Callable[..., subprocess.Popen[str]]
) -> None:
    in_vain, in_time = waiting(0.2, "without threads"), waiting(TIMEOUT, "without threads")
    assert said_by(in_vain) == "Busy"
    holder.kill()
    assert said_by(in_time) == "held"
