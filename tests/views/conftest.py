"""The default engine, for tests of views."""

from __future__ import annotations

from tests.support.one_engine import store

__all__ = ["store"]
