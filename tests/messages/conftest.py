"""The default engine, for tests of messages."""

from tests.support.one_engine import store

__all__ = ["store"]
