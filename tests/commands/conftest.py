"""Copies of the program with changes."""

from __future__ import annotations

import shutil
from pathlib import Path

import teams_cli
from teams_cli import extensions
from tests.support.cli import ALPHA, Cli, make_team

Edits = list[tuple[str, str]]


def changed_program(top: Path, added: dict[str, str], changed: dict[str, Edits]) -> Cli:
    """A team of lea and bob, and a copy of the program with files added and texts in other files replaced."""
    package = top / "program" / "teams_cli"
    shutil.copytree(Path(teams_cli.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    for path, text in added.items():
        assert not (package / path).exists()
        (package / path).parent.mkdir(exist_ok=True)
        (package / path).write_text(text)
    for path, edits in changed.items():
        if path.startswith("extensions/http") and "http" not in extensions.every():
            continue
        text = (package / path).read_text()
        for old, new in edits:
            assert text.count(old) == 1, f"{path}: {old!r} is there {text.count(old)} times"
            text = text.replace(old, new)
        (package / path).write_text(text)
    root = make_team(top / "root", "bob").root
    return Cli(root, "lea", ALPHA, PYTHONPATH=str(package.parent), PYTHONSAFEPATH="1")
