"""Skips tests that need an extension whose folder was deleted, so that the other tests still pass."""

from __future__ import annotations

import pytest

from teams_cli import extensions


def skip_without(extension: str) -> None:
    """Skip the test if the folder of the extension is missing."""
    if extension not in extensions.every():
        pytest.skip(f"the extension {extension} is not here")
