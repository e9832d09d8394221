"""Every call to the system that touches the store fails once, or is where the process is killed. Needs strace."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.store.driver import CHANGES
from tests.store.histories import check, explained, stages

pytestmark = pytest.mark.slow

TOP = Path(__file__).parents[2]
LINKS = ("link", "linkat", "unlink", "unlinkat")
PATHS = ("mkdir", "mkdirat", "open", "openat", "rename", "renameat", "renameat2", *LINKS)
LOOKS = ("stat", "lstat", "newfstatat", "statx")
FILES = ("write", "fsync", "close", "flock", "read", "pread64", "lseek", "fstat", "getdents64")
ERRORS = {
    "ENOSPC": {*PATHS, "write", "fsync"} - {"unlink", "unlinkat"},
    "EACCES": {"unlink", "unlinkat", *LOOKS},
    "EIO": {*FILES} - {"write", "fsync"},
}
"""What each call fails with: one error a call, as none of them is taken differently from another."""
TRIES = 5
"""What is swept at random, or loaded to wait for a lock, moves the count of the calls in some runs."""
CHANGING = {*PATHS, "write", "fsync", "flock", "close"}


class Point(NamedTuple):
    """The *nth* call of that name, counted from the start of the process."""

    call: str
    nth: int


def strace(root: Path, log: Path, *injection: str) -> subprocess.CompletedProcess[str]:
    """Run the driver on a fresh root, with the calls to the system listed in *log*."""
    root.parent.mkdir()
    names = ",".join(f"?{name}" for name in (*PATHS, *LOOKS, *FILES))
    quick = [] if any("KILL" in word for word in injection) else ["--seccomp-bpf"]  # with which it sends no signals
    command = ["strace", *quick, "-f", "-y", "-o", str(log), "-e", f"trace={names}", *injection]
    return subprocess.run(
        [*command, sys.executable, "-B", "-m", "tests.store.driver", str(root)],
        cwd=TOP,
        env={**os.environ, "PYTHONHASHSEED": "0", "TMPDIR": str(log.parent)},
        capture_output=True,
        text=True,
        timeout=60,
    )


def points(log: Path, top: Path) -> list[tuple[Point, str]]:
    """The calls of the log that touch what is below *top*, each with its line."""
    counts: Counter[str] = Counter()
    found = []
    for line in log.read_text(errors="replace").splitlines():
        if match := re.match(r"\d+ +(\w+)\(", line):
            counts[match[1]] += 1
            if str(top) in line and "resumed>" not in line:
                found.append((Point(match[1], counts[match[1]]), line))
    return found


@pytest.fixture(scope="module")
def touching(tmp_path_factory):
    """All calls of the driver that touch the store, each with its line in the log."""
    if not shutil.which("strace"):
        pytest.skip("strace is not installed")
    before = None
    for _ in range(TRIES):
        top = tmp_path_factory.mktemp("plain")
        run = strace(top / "place" / "root", top / "log")
        if run.returncode and "ptrace" in run.stderr:
            pytest.skip(f"strace may not trace here: {run.stderr.strip()}")
        assert run.returncode == 0, run.stderr
        assert acknowledged(run) == len(CHANGES)
        found = points(top / "log", top / "place")
        if before == [point for point, _ in found]:
            return found
        before = [point for point, _ in found]
    raise AssertionError("no two runs made the same calls")


def acknowledged(run) -> int:
    return max((line["done"] for line in answers(run) if "done" in line), default=0)


def answers(run) -> list[dict[str, object]]:
    return [json.loads(line) for line in run.stdout.splitlines()]


def in_two_workers(job, jobs):
    """What each job returned, in order; two at a time."""
    with ThreadPoolExecutor(2) as workers:
        yield from workers.map(lambda arguments: job(*arguments), jobs)


def fail(place: Path, point: Point, error: str) -> str:
    """Let the call fail; what is wrong with how the client took it."""
    what = f"{error} at {point.call} number {point.nth}"
    injection = f"inject={point.call}:error={error}:when={point.nth}"
    for _ in range(TRIES):
        shutil.rmtree(place / "top", ignore_errors=True)
        run = strace(place / "top" / "root", place / "log", "-e", injection)
        hit = [line for line in (place / "log").read_text(errors="replace").splitlines() if "(INJECTED)" in line]
        if hit and str(place / "top") in hit[0]:
            break
    else:
        return f"{what}: hit something else: {hit}"
    if run.returncode or acknowledged(run) < len(CHANGES):
        return f"{what}: {hit[0]}\n{run.stderr}"
    for answer in answers(run):
        if "refused" in answer and not (answer["right"] and str(place) in str(answer["message"])):
            return f"{what}: {hit[0]}\n{answer}"
    shutil.rmtree(place)
    return ""


def kill(place: Path, point: Point) -> tuple[Path, str, int, int]:
    """Kill the client before the call: where, its exit status, and how much it had acknowledged."""
    injection = f"inject={point.call}:signal=KILL:when={point.nth}"
    run = strace(place / "top" / "root", place / "log", "-e", injection)
    return place, f"killed at {point.call} number {point.nth}", run.returncode, acknowledged(run)


def places(top: Path, names):
    for number, name in enumerate(names):
        place = top / str(number)
        place.mkdir()
        yield (place, *name)


def test_a_call_that_fails_is_a_clear_refusal_and_a_retry_succeeds(touching, tmp_path):
    """The refusal names a path; nothing was changed, or it said that it doesn't know."""
    # Other than the system, strace leaves a file open whose close it makes fail: a lock would never be given back.
    calls = [point for point, line in touching if not (point.call == "close" and "/.lock>" in line)]
    jobs = [(point, error) for error, failing in ERRORS.items() for point in calls if point.call in failing]
    assert len(jobs) > 150
    assert [wrong for wrong in in_two_workers(fail, places(tmp_path, jobs)) if wrong] == []


def test_a_kill_at_a_call_loses_nothing_acknowledged_and_needs_no_repair(touching, tmp_path):
    expected = stages(CHANGES)
    jobs = [(point,) for point, _ in touching if point.call in CHANGING]
    assert len(jobs) > 50
    for place, what, status, done in in_two_workers(kill, places(tmp_path, jobs)):
        with explained(what):
            assert status != 0
            check(place / "top" / "root", done, expected, CHANGES)
        shutil.rmtree(place)
