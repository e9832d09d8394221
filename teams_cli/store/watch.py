"""What every look-out for changes promises: a type, which nobody needs while the program runs."""

from __future__ import annotations

from typing import Protocol


class Watch(Protocol):
    """A look-out for changes in one team, from the moment it is made."""

    slow: str
    """Why changes are seen late; empty where they wake at once."""

    @property
    def heard(self) -> frozenset[str]:
        """The topics of the changes that ended the last wait."""

    def wait(self, timeout: float) -> bool:
        """Block until anything on a topic may have changed since the last call; False when time ran out."""

    def fileno(self) -> int | None:
        """What `select` wakes on when something changed; None where there is no such thing."""

    def close(self) -> None:
        """Stop looking out."""
