"""The default engine, for tests of teams."""

from tests.support.one_engine import store

__all__ = ["store"]
