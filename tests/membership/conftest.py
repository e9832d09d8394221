"""Rules are tried on the default engine."""

from tests.support.one_engine import store

__all__ = ["store"]
