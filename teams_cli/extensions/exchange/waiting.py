"""Dependencies among items, without cycles."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

    from teams_cli.extensions.exchange.items import Item


def of(items: Mapping[str, Item], there: Collection[str], leave: Callable[[str, str], object]) -> dict[str, list[str]]:
    """The keys that each item waits for, among them or *there* already: a parent for its children too, and these for
    what it waits for. What would close a circle, or is nowhere, is left out, and *leave* is told.
    """
    waits: dict[str, list[str]] = {key: [] for key in items}
    for key, item in items.items():
        for other in item.waits_for:
            if other not in items and other not in there:
                leave("waits for what was not imported", f"{key} ({other})")
            elif not _add(waits, key, other):
                leave("would wait for itself", f"{key} ({other})")
    for key, item in items.items():
        if item.parent and not (item.parent in items and _add(waits, item.parent, key)):
            leave("parent", f"{key} ({item.parent})")
    for key, item in items.items():
        for above in _above(items, item):
            for other in above.waits_for:
                if other in items or other in there:
                    _add(waits, key, other)
    return waits


def _above(items: Mapping[str, Item], item: Item) -> Iterator[Item]:
    """Its parent, the parent of that, and so on."""
    seen = {item.key}
    while item.parent and item.parent in items and item.parent not in seen:
        item = items[item.parent]
        seen.add(item.key)
        yield item


def _add(waits: dict[str, list[str]], key: str, other: str) -> bool:
    """Have the one wait for the other, unless that would close a circle."""
    ahead, seen = [other], {other}
    while ahead:
        reached = ahead.pop()
        if reached == key:
            return False
        further = [each for each in waits.get(reached, ()) if each not in seen]
        seen.update(further)
        ahead += further
    if other not in waits[key]:
        waits[key].append(other)
    return True
