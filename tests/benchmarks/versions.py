"""Versions of the program to measure: what is here, and another commit of this repository.

The commands of that commit are installed as a user has them; workers and teams are made by the benchmarks that it has.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.benchmarks.throughput import WORKER

COMMIT = "37e616f"
"""The last commit before everyday commands, the engine and growth were worked on."""
_REPOSITORY = Path(__file__).resolve().parents[2]
_WORKERS_FROM = ("tests/benchmarks/throughput.py", "tests/bench/throughput.py", "tests/bench/__main__.py")
"""Where commits have, or had, what a worker does."""
_MAKE = """
import pathlib, sys
for name in ("tests.benchmarks.places", "tests.bench.places", "tests.bench.__main__"):
    try:
        Place = __import__(name, fromlist=["Place"]).Place
        break
    except ImportError:
        continue
Place(pathlib.Path(sys.argv[1]), int(sys.argv[2]))
"""


class Version:
    """A version of the program: the words of its command, where its sources and benchmarks are, what its worker does,
    and the variables with which its own modules are found.
    """

    def __init__(self, teams: list[str], sources: Path, worker: str, environ: dict[str, str]) -> None:
        self.teams = teams
        self.sources = sources
        self.worker = worker
        self.environ = environ

    def make_place(self, root: Path, tasks: int) -> None:
        """Make a team with so many tasks, its own benchmarks' way."""
        environ = {**self.environ, "PYTHONPATH": str(self.sources)}
        words = [sys.executable, "-c", _MAKE, str(root), str(tasks)]
        subprocess.run(words, cwd=self.sources, env=environ, check=True)


def here(teams: list[str]) -> Version:
    """What is here."""
    return Version(teams, _REPOSITORY, WORKER, dict(os.environ))


def at(commit: str, directory: Path) -> Version:
    """The program as it stood at a commit, installed below the directory.

    Raises:
        CalledProcessError: There is no such commit here, as in a shallow clone, or it can't be installed.
    """
    sources, installed = directory / "sources", directory / "installed"
    archived = subprocess.run(["git", "archive", commit], cwd=_REPOSITORY, capture_output=True, check=True)
    sources.mkdir(parents=True)
    subprocess.run(["tar", "-x", "-C", str(sources)], input=archived.stdout, capture_output=True, check=True)
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(installed), str(sources)]
    subprocess.run(pip, capture_output=True, check=True)
    subprocess.run([sys.executable, "-m", "compileall", "-q", str(installed)], check=False)
    environ = {**os.environ, "PYTHONPATH": str(installed)}
    return Version([str(installed / "bin/teams")], sources, _worker_of(sources), environ)


def _worker_of(sources: Path) -> str:
    texts = ((sources / name).read_text() for name in _WORKERS_FROM if (sources / name).exists())
    found = (re.search(r'^WORKER = """(.*?)"""', text, re.DOTALL | re.MULTILINE) for text in texts)
    return next(match[1] for match in found if match)
