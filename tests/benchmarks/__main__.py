"""What commands cost: `python tests/bench.py [--quick]` prints tables of times and ratios, all from one run.

A command is compared with `python -c pass` of the same interpreter, and a full team with a small one. The two
are run in turns, so that a busy machine slows both. The best of many runs is what the program costs, the median
what people see.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

from tests.benchmarks.commands import FEW, FURTHER, MANY, MOST, bench_growth, bench_start, bench_whole
from tests.benchmarks.engines import bench_engines
from tests.benchmarks.measuring import TRIES
from tests.benchmarks.places import Place
from tests.benchmarks.throughput import bench_throughput
from tests.benchmarks.waiting import bench_waiting

_LEAST = 15
"""Rounds of measurements that can fail: with fewer, the best time depends on the machine."""


def _is_editable() -> bool:
    """Whether this is an editable install, which slows every start of this interpreter."""
    return any(name.startswith("__editable__") for name in sys.modules)


def _measured(directory: Path, quick: bool) -> list[str]:
    """Print all tables, and return the names of what exceeds its limit."""
    rounds = 7 if quick else 40
    few, many = Place(directory / "few", FEW), Place(directory / "many", MANY)
    slower = bench_start(Place(directory / "start", 100), max(rounds, _LEAST))
    slower += bench_growth(few, many, rounds)
    bench_whole(many, 3)
    slower += [f"{name} on PostgreSQL" for name in bench_engines(directory, rounds)]
    if not quick:
        slower += bench_growth(many, Place(directory / "most", MOST), rounds, FURTHER)
        bench_waiting(directory)
    bench_throughput(directory, 50 if quick else 200, 1 if quick else 3)
    return slower


def main() -> None:
    parser = argparse.ArgumentParser("bench.py", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer rounds: for a look, not for a judgement")
    quick = parser.parse_args().quick
    print(f"Python {sys.version.split()[0]}, {os.cpu_count()} processors")
    if _is_editable():
        print("an editable install slows bare Python too: measure in an environment with a plain one")
    with tempfile.TemporaryDirectory(prefix="teams-bench-") as directory:
        slower = _measured(Path(directory), quick)
    if slower and not _is_editable():
        sys.exit(f"slower, or growing more, than they may, in {TRIES} tries: {', '.join(slower)}")


if __name__ == "__main__":
    main()
