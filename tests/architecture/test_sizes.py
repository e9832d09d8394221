"""How large anything may be, and that what the mutants take out is still there."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.store.mutants import MUTANTS, Mutant, target

ROOT = Path(__file__).resolve().parents[2]
LINES_OF_A_FILE = 400
LINES_OF_A_FUNCTION = 40
FILES = sorted(path for top in ("teams_cli", "tests") for path in (ROOT / top).rglob("*.py"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_nothing_is_too_long_to_be_read_at_once(path: Path) -> None:
    source = path.read_text(encoding="utf-8")
    assert source.count("\n") <= LINES_OF_A_FILE, f"{path} has grown: give one of its nouns a file of its own"
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert node.end_lineno is not None
            long = node.end_lineno - node.lineno + 1
            assert long <= LINES_OF_A_FUNCTION, f"{path}:{node.lineno}: {node.name} has {long} lines"


def test_the_top_of_the_house_can_be_taken_in() -> None:
    found = [path for path in (ROOT / "teams_cli").iterdir() if not path.name.startswith("__")]
    assert len([path for path in found if path.suffix == ".py"]) <= 12
    assert len([path for path in found if path.is_dir()]) <= 20


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_each_mutant_finds_its_place(mutant: Mutant) -> None:
    assert target(mutant, ROOT).read_text(encoding="utf-8").count(mutant.old) == 1
    assert (ROOT / mutant.tests.partition("::")[0]).exists()
