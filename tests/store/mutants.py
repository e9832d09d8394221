"""Show that the tests notice missing safeguards: take one out of a copy of the package, and see a test fail.

python -m tests.store.mutants [--all] [NAME ...]

This tries an eighth of the mutants, which the hash of the commit chooses; with `--all` all of them; else those whose
names contain one of the words. It exits with 1 if a mutant survives, or if the tests that should catch it fail without
it. Each mutant is tried on a copy.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from teams_cli import extensions
from tests.store import safeguards, safeguards_of_agents
from tests.store.safeguards import Mutant
from tests.support.rotation import share_of_commit

HERE = Path(__file__).resolve().parents[2]
EXTENSION = re.compile(r"\bextensions/(\w+)/?")
# Those of an extension that is not here are left out.
MUTANTS = [
    mutant
    for mutant in [*safeguards.MUTANTS, *safeguards_of_agents.MUTANTS]
    if {*EXTENSION.findall(f"{mutant.module} {mutant.tests}")} <= extensions.every().keys()
]
SHARES = 8


def main(words: list[str]) -> int:
    """Try the mutants that the words choose; print a row for each as it ends, and their number."""
    mutants = chosen(words)
    print(f"{'mutant':46} {'caught by':66} seconds")
    together = (os.cpu_count() or 1) + 2  # they wait more than they work
    with ThreadPoolExecutor(together) as pool:
        caught = sum(pool.map(_is_caught, mutants))
    print(f"{caught} caught, {len(mutants) - caught} survived, of {len(MUTANTS)}")
    return 0 if mutants and caught == len(mutants) else 1


def chosen(words: list[str]) -> list[Mutant]:
    """Return all mutants, those whose names contain one of the words, or the eighth that belongs to this commit."""
    if "--all" in words:
        return MUTANTS
    if words:
        return [mutant for mutant in MUTANTS if any(word in mutant.name for word in words)]
    return list(share_of_commit(MUTANTS, SHARES))


def _is_caught(mutant: Mutant) -> bool:
    """Whether a test fails with the mutant and passes without it. Print which test."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as place:
        copy = copied(Path(place))
        original = apply(mutant, copy)
        test = failing_test(copy, mutant.tests)
        target(mutant, copy).write_text(original)
        fails_anyway = test and failing_test(copy, test)
    found = f"FAILS WITHOUT THE MUTANT TOO: {test}" if fails_anyway else test.removeprefix("tests/store/")
    print(f"{mutant.name:46} {found or 'SURVIVED':66} {time.monotonic() - began:7.1f}", flush=True)
    return bool(test) and not fails_anyway


def copied(place: Path) -> Path:
    """Make a fresh copy of the package, its workflows and its tests."""
    copy = place / "copy"
    shutil.rmtree(copy, ignore_errors=True)
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(HERE / "teams_cli", copy / "teams_cli", ignore=ignored)
    shutil.copytree(HERE / "workflows", copy / "workflows")
    shutil.copytree(HERE / "tests", copy / "tests", ignore=ignored)
    shutil.copy(HERE / "pyproject.toml", copy / "pyproject.toml")
    return copy


def target(mutant: Mutant, copy: Path) -> Path:
    return copy / "teams_cli/store" / (mutant.module if "." in mutant.module[2:] else f"{mutant.module}.py")


def apply(mutant: Mutant, copy: Path) -> str:
    """Change the file; return its earlier text."""
    path = target(mutant, copy)
    text = path.read_text()
    assert text.count(mutant.old) == 1, f"{mutant.name}: the text to replace is {text.count(mutant.old)} times there"
    path.write_text(text.replace(mutant.old, mutant.new))
    return text


def failing_test(copy: Path, tests: str) -> str:
    """Return the name of the first test that fails on the copy; "" if all pass."""
    run = subprocess.run(
        [
            sys.executable,
            *["-m", "pytest", "-n0", "-q", "-x", "--tb=no", "-p", "no:cacheprovider", "-m"],
            "not browser and not client",
            *(["-k", "not postgres"] if "postgres" not in tests else []),
            tests,
        ],
        cwd=copy,
        env={**os.environ, "PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1", "IN_TURNS": ""},
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
    return names[0] if names else ""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
