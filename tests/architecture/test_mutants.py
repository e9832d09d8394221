"""Mutants: each finds the text that it takes out."""

from __future__ import annotations

from pathlib import Path

from tests.store.mutants import MUTANTS, target

ROOT = Path(__file__).resolve().parents[2]


def test_each_mutant_finds_its_place() -> None:
    for mutant in MUTANTS:
        assert target(mutant, ROOT).read_text(encoding="utf-8").count(mutant.old) == 1, mutant.name
        assert (ROOT / mutant.tests.partition("::")[0]).exists(), mutant.name
