"""What commands cost: `python tests/bench.py [--quick]` prints a table of times and ratios, all from one run.

One command is compared with `python -c pass` of the same interpreter, and a full team with a small one, in turns, so
that a busy machine slows both; the best of many is what the program costs, the median what one sees.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
from pathlib import Path

from tests.benchmarks.commands import (
    FEW,
    FURTHER,
    LEAST,
    MANY,
    MOST,
    TEAMS,
    bench_doctor,
    bench_growth,
    bench_listing,
    bench_start,
    show,
)
from tests.benchmarks.completing import bench_completion
from tests.benchmarks.crowds import bench_crowds
from tests.benchmarks.engines import bench_engines
from tests.benchmarks.hooks import bench_hook
from tests.benchmarks.limits import TRIES, against
from tests.benchmarks.mcp import bench_mcp
from tests.benchmarks.places import Place
from tests.benchmarks.searching import bench_board, bench_searching
from tests.benchmarks.serving import bench_serving
from tests.benchmarks.throughput import bench_postgres, bench_throughput
from tests.benchmarks.waiting import bench_waiting
from tests.benchmarks.wrapping import bench_wrapping


def _is_editable() -> bool:
    """Whether the program is imported through a finder, which slows every start of this interpreter."""
    return any(name.startswith("__editable__") for name in sys.modules)


def bench_large(directory: Path, many: Place, rounds: int) -> list[str]:
    """What takes minutes to make: the names of what grew too much among ten times as many."""
    grown = bench_growth(many, Place(directory / "most", MOST), rounds, FURTHER)
    bench_doctor(Place(directory / "doctored", MANY // 2), 3)
    bench_crowds(directory, TEAMS, 3, show, against)
    return [f"{name} among {MOST:,}" for name in grown]


def main() -> None:
    """Measure everything and print it."""
    parser = argparse.ArgumentParser("bench.py", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer rounds: for a look, not for a judgement")
    parser.add_argument("--directory", help="where to keep the teams meanwhile; the disk matters")
    said = parser.parse_args()
    rounds = 7 if said.quick else 40
    directory = Path(tempfile.mkdtemp(prefix="teams-bench-", dir=said.directory))
    try:
        few, many = Place(directory / "few", FEW), Place(directory / "many", MANY)
        print(f"Python {sys.version.split()[0]}, {os.cpu_count()} processors")
        if _is_editable():
            print("an editable install slows bare Python too: measure in an environment with a plain one")
        slower = bench_start(Place(directory / "start", 100), max(rounds, LEAST))
        slower += bench_hook(few.root, rounds, show)
        slower += [f"completion of {name}" for name in bench_completion(few.root, TEAMS, rounds, show)]
        bench_wrapping(directory / "wrapped", show, against)
        slower += [f"{name} among {MANY:,}" for name in bench_growth(few, many, rounds)]
        bench_listing(Place(directory / "hundred", 100), many, 3 if said.quick else 7)
        bench_serving(directory / "served", rounds)
        slower += [f"{name} on PostgreSQL" for name in bench_engines(directory, TEAMS, rounds, show)]
        if not said.quick:
            slower += bench_large(directory, many, rounds)
            bench_waiting(directory, show)
        bench_board(Place(directory / "board", 2000).root, rounds)
        bench_searching(directory, rounds)
        bench_mcp(Place(directory / "mcp", 400).root, TEAMS, 50 if said.quick else 200, show)
        bench_throughput(directory, 50 if said.quick else 200, 1 if said.quick else 3, show)
        bench_postgres(directory, 50 if said.quick else 200, 1 if said.quick else 3, show)
    finally:
        shutil.rmtree(directory)
    if slower and not _is_editable():
        sys.exit(f"slower, or growing more, than they may, in {TRIES} tries: {', '.join(slower)}")


if __name__ == "__main__":
    main()
