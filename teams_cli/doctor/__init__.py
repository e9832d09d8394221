"""Finds damage and fixes it."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from teams_cli.store.contract import Finding


def finding(where: str, level: str, what: str, remedy: str = "") -> Finding:
    """Return a finding of the level `problem`, `warning`, `fixed` or `good`."""
    return {"level": level, "where": where, "what": what, "remedy": remedy}
