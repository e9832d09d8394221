"""Bounds: no answer is longer than a model can bear unless it asked for more, and each says what it leaves out."""

from __future__ import annotations

import json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

MOST = 8_000
"""Bytes of an answer."""
ROWS = 50
_ROOM = 300
"""Bytes for what stands beside the document: the count of unread messages, what was damaged, what was cut."""
_MARK = 60
"""Bytes that a row grows by when it is marked as read."""
_TEXTS = (2_000, 500, 150)
_NEWEST_LAST = ("notes", "statusHistory")
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


def within(document: dict[str, Any]) -> dict[str, Any]:
    """The document, if it is short enough; else without the ends of its long texts, and then of its long lists."""
    if size(document) <= MOST - _ROOM:
        return document
    for length in _TEXTS:
        short: dict[str, Any] = _cut_texts(document, length)
        if size(short) <= MOST - _ROOM:
            return {**short, "cut": _CUT}
    while size(short) > MOST - _ROOM and (found := _longest(short)):
        holder, key = found
        rows = holder[key]
        keep = len(rows) // 2
        holder[key] = rows[-keep:] if key in _NEWEST_LAST and keep else rows[:keep]
        if holder is short:
            short["more"] = short.get("more", 0) + len(rows) - keep
    return {**short, "cut": _CUT}


def _cut_texts(value: Any, length: int) -> Any:
    """A copy in which no text is longer than that, but for the words that say how much is missing."""
    if isinstance(value, dict):
        return {key: _cut_texts(inner, length) for key, inner in value.items()}
    if isinstance(value, list):
        return [_cut_texts(inner, length) for inner in value]
    if isinstance(value, str) and len(value) > length:
        return f"{value[:length]}… ({len(value) - length} more characters)"
    return value


def _longest(document: dict[str, Any]) -> tuple[dict[str, Any], str] | None:
    """Where the list with the most bytes is; None if there is none that could be shorter."""
    found: list[tuple[int, dict[str, Any], str]] = []
    waiting: list[Any] = [document]
    while waiting:
        value = waiting.pop()
        if isinstance(value, list):
            waiting += value
        elif isinstance(value, dict):
            waiting += value.values()
            found += [(size(inner), value, key) for key, inner in value.items() if isinstance(inner, list) and inner]
    if not found:
        return None
    _, holder, key = max(found, key=lambda each: each[0])
    return holder, key
