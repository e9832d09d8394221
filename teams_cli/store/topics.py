"""Topics: what a change is about, by which those who wait are woken. The contract says what there is."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection
    from typing import Any

    from teams_cli.store.contract import Kind

EVERY_TOPIC = frozenset("*")


def topics_of(kind: Kind[Any], key: str, label: str | None) -> frozenset[str]:
    """The topics of a change of that record, which has this label now."""
    labels = {f"{kind.name}:{label or ''}"} if kind.label else set()
    return frozenset({kind.name, f"{kind.name}/{key}", *labels})


def concerns(topics: Collection[str] | None, heard: frozenset[str]) -> bool:
    """Whether a change on the topics that were *heard* is one that was asked for (None: all are)."""
    return topics is None or "*" in heard or not heard.isdisjoint(topics)
