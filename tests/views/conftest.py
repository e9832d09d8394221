"""Rules are tried on the default engine."""

from __future__ import annotations

from tests.support.one_engine import store

__all__ = ["store"]
