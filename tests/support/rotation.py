"""Costly cases in turns: each commit has a share of them, which the hash of the commit chooses."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

IN_TURNS = bool(os.environ.get("IN_TURNS"))
"""Whether this run tries only the share of its commit, as `.ci/run` does."""
_REPOSITORY = Path(__file__).resolve().parents[2]
Case = TypeVar("Case")


def share_of_commit(cases: Sequence[Case], shares: int) -> Sequence[Case]:
    """Return one of so many *shares* of the *cases*: every n-th case. The hash of the commit decides
    with which case it begins.
    """
    asked = ["git", "rev-parse", "HEAD"]
    head = subprocess.run(asked, cwd=_REPOSITORY, check=True, capture_output=True, text=True).stdout
    return cases[int(head, 16) % shares :: shares]


def due_now(cases: Sequence[Case], shares: int) -> Sequence[Case]:
    """Return the share of the commit if cases are tried in turns, else all cases."""
    return share_of_commit(cases, shares) if IN_TURNS else cases
