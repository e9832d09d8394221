"""The figures: `python tests/bench.py [--quick]` prints what commands, the engine and the faces cost in one run, beside
bare Python, and exits with 1 where a command became slower than it may be; see `tests/benchmarks`.
"""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parent.parent)
    runpy.run_module("tests.benchmarks", run_name="__main__", alter_sys=True)
