"""The default engine, for tests of members."""

from tests.support.one_engine import store

__all__ = ["store"]
