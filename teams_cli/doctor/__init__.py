"""Finds damage in the data of `teams`, and fixes what can be fixed."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from teams_cli.store.contract import Finding


def finding(where: str, level: str, what: str, remedy: str = "") -> Finding:
    """Return a finding. *level* is `problem`, `warning`, `fixed` or `good`; *where* and *what* say what was found, and
    *remedy* what to do about it.
    """
    return {"level": level, "where": where, "what": what, "remedy": remedy}
