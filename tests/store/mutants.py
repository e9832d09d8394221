"""Show that the tests have teeth: take one safeguard out of a copy of the package, and see that a test fails.

Run with `python -m tests.store.mutants`; ends with 1 if a mutant survives. Each is tried on a copy, never here. Some
are caught by races, which a busy machine may have none of: what survived is tried three times more, alone.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.conftest import UNTIL
from tests.store import safeguards, safeguards_of_agents
from tests.store.safeguards import LOGINS, Mutant

MUTANTS = [*safeguards.MUTANTS, *safeguards_of_agents.MUTANTS]
HERE = Path(__file__).resolve().parents[2]
_TRIES = 3


def main() -> int:
    """Try the package as it is, unless `--tested` says that its tests were run, and each mutant; print a table."""
    print(f"{'mutant':46} {'caught by':66} seconds")
    together = (os.cpu_count() or 1) + 2  # they wait more than they work
    mutants = random.sample(MUTANTS, len(MUTANTS))  # where the time is over before all were tried, others are next time
    tried = [*([] if "--tested" in sys.argv[1:] else [None]), *mutants]
    with ThreadPoolExecutor(together) as pool:
        survived = [mutant for mutant, lives in zip(tried, pool.map(_survives, tried), strict=True) if lives]
    if survived:
        print("\n!!! Once more, alone:", flush=True)
    return 1 if any([all(_survives(mutant) for _ in range(_TRIES)) for mutant in survived]) else 0


def _survives(mutant: Mutant | None) -> bool:
    """Whether the tests find nothing wrong with the mutant, or something with the package as it is; says so."""
    if time.time() > UNTIL:
        print(f"{mutant.name if mutant else 'none':46} NOT SHOWN: the time of this run is over", flush=True)
        return False
    with tempfile.TemporaryDirectory() as place:
        copy = copied(Path(place))
        tests = [mutant.tests] if mutant else list(dict.fromkeys(m.tests for m in MUTANTS))
        if mutant:
            apply(mutant, copy)
        began = time.monotonic()
        caught = failing_test(copy, tests)
    said = caught or ("SURVIVED" if mutant else "-")
    print(f"{mutant.name if mutant else 'none':46} {said:66} {time.monotonic() - began:7.1f}", flush=True)
    return not caught if mutant else bool(caught)


def copied(place: Path) -> Path:
    """A fresh copy of the package and its tests."""
    copy = place / "copy"
    shutil.rmtree(copy, ignore_errors=True)
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(HERE / "teams_cli", copy / "teams_cli", ignore=ignored)
    shutil.copytree(HERE / "tests", copy / "tests", ignore=ignored)
    shutil.copy(HERE / "pyproject.toml", copy / "pyproject.toml")
    return copy


def target(mutant: Mutant, copy: Path) -> Path:
    """The file that the mutant changes."""
    return copy / "teams_cli/store" / (mutant.module if "." in mutant.module[2:] else f"{mutant.module}.py")


def apply(mutant: Mutant, copy: Path) -> None:
    path = target(mutant, copy)
    text = path.read_text()
    assert text.count(mutant.old) == 1, f"{mutant.name}: the text to replace is {text.count(mutant.old)} times there"
    path.write_text(text.replace(mutant.old, mutant.new))


def failing_test(copy: Path, tests: list[str]) -> str:
    """The name of the first test that fails on the copy; empty if all pass."""
    run = subprocess.run(
        [
            sys.executable,
            *["-m", "pytest", "-n0", "-q", "-x", "--tb=no", "-p", "no:cacheprovider", "-m"],
            "not browser",
            *(["-k", "not postgres"] if not any(name in " ".join(tests) for name in ("postgres", LOGINS)) else []),
            *tests,
        ],
        cwd=copy,
        env={**os.environ, "PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1", "TESTS_UNTIL": ""},
        capture_output=True,
        text=True,
        timeout=2400,
    )
    if run.returncode not in (0, 1):
        raise SystemExit(f"the tests could not run:\n{run.stdout}{run.stderr}")
    names = [
        line.split(" ", 1)[1].split(" - ")[0]
        for line in run.stdout.splitlines()
        if line.startswith(("FAILED", "ERROR"))
    ]
    return names[0].removeprefix("tests/store/") if names else ""


if __name__ == "__main__":
    sys.exit(main())
