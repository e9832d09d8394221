"""Each mutant finds the text that it takes out, and leaves a module that can be imported."""

from __future__ import annotations

from pathlib import Path

from tests.store.mutants import MUTANTS, target

ROOT = Path(__file__).resolve().parents[2]


def test_each_mutant_finds_its_place() -> None:
    for mutant in MUTANTS:
        path = target(mutant, ROOT)
        text = path.read_text(encoding="utf-8")
        assert text.count(mutant.old) == 1, mutant.name
        assert (ROOT / mutant.tests.partition("::")[0]).exists(), mutant.name
        if path.suffix == ".py":  # a module that does not compile fails any test, which shows nothing
            compile(text.replace(mutant.old, mutant.new), mutant.name, "exec")
