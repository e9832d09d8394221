"""The installed files: everything in the package and nothing else."""

from __future__ import annotations

import tomllib
from pathlib import Path

from teams_cli import extensions

ROOT = Path(__file__).resolve().parents[2]


def test_every_file_of_the_package_is_installed() -> None:
    """Packages bring the code, patterns bring all other files, and no pattern is without a file."""
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["package-data"]["teams_cli"]
    package = ROOT / "teams_cli"
    given = {
        pattern: set(package.glob(pattern))
        for pattern in declared
        if not pattern.startswith("extensions/") or pattern.split("/")[1] in extensions.every()
    }
    for path in package.rglob("*"):
        if path.is_file() and "__pycache__" not in path.parts:
            if path.suffix == ".py":
                assert (path.parent / "__init__.py").exists(), f"{path} is in no package"
            else:
                assert any(path in found for found in given.values()), f"{path} is not installed"
    assert [pattern for pattern, found in given.items() if not found] == []
