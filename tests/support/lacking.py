"""Skips what needs an extension that is not here: each can be deleted, and the rest stays green."""

from __future__ import annotations

import pytest

from teams_cli import extensions


def skip_without(extension: str) -> None:
    """Skip the test if the extension is not here."""
    if extension not in extensions.every():
        pytest.skip(f"the extension {extension} is not here")
