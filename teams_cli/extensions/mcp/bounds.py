"""Bounds: no answer is longer than a model can bear unless it asked for more, and each says what it leaves out."""

from __future__ import annotations

import json

from teams_cli import text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

MOST = 8_000
"""Bytes of an answer."""
ROWS = 50
_ROOM = 300
"""Bytes for what stands beside the document: the count of unread messages, what was damaged, what was cut."""
_MOST_RESOURCE = 20_000
_MARK = 60
"""Bytes that a row grows by when it is marked as read."""
_TEXTS = (2_000, 500, 150)
_CUT_RESOURCE = "what is long was cut: the tools have all of it"
_CUT = "what is long was cut: ask again with full=true (messages that are handled: and all=true)"


def size(document: Any) -> int:
    """How many bytes the document has as text."""
    return len(text_of(document).encode(errors="replace"))


def text_of(document: Any) -> str:
    """The document as text, with no byte that says nothing."""
    return json.dumps(document, ensure_ascii=False, separators=(",", ":"))


def rows_that_fit(rows: Iterable[Any]) -> int:
    """How many of these rows one answer can have: one at least."""
    count = total = 0
    for row in rows:
        total += size(row) + _MARK
        if count == ROWS or (count and total > MOST - _ROOM):
            break
        count += 1
    return count


def listed(rows: Sequence[Any], gist: Sequence[str], most: int) -> dict[str, Any]:
    """At most so many rows, of each only the *gist*, if there is one; `more` says how many are left out."""
    short = [{key: row[key] for key in gist if row.get(key)} for row in rows[:most]] if gist else list(rows[:most])
    return {"result": short} | ({"more": len(rows) - most} if len(rows) > most else {})


def within(document: dict[str, Any], most: int = MOST - _ROOM, cut: str = _CUT) -> dict[str, Any]:
    """The document, if it is short enough; else without the ends of its long texts, and then of its long lists, and how
    to see what was *cut*.
    """

    def fits(found: Any) -> bool:
        return size(found) <= most

    if fits(document):
        return document
    short: dict[str, Any] = text.shortened(document, fits, _TEXTS, lambda _, left: f"({left} more characters)")
    return {**short, "cut": cut}


def resource(document: Any, gist: Sequence[str]) -> Any:
    """The document of a resource, if it is short enough; else as a tool would cut it."""
    if size(document) <= _MOST_RESOURCE:
        return document
    found = document if isinstance(document, dict) else listed(document, gist, len(document))
    return within(found, _MOST_RESOURCE, _CUT_RESOURCE)
