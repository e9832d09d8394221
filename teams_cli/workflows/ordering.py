"""Sorting by dependencies, and finding a cycle."""

from __future__ import annotations

import heapq
from collections.abc import Collection, Mapping
from graphlib import CycleError, TopologicalSorter


def in_order(waits: Mapping[str, Collection[str]]) -> list[str]:
    """Return the keys, each after those that it *waits* for, and otherwise in their given order.

    Raises:
        CycleError: Some keys wait for each other.
    """
    place = {key: number for number, key in enumerate(waits)}
    sorter = TopologicalSorter({key: [each for each in wanted if each in place] for key, wanted in waits.items()})
    sorter.prepare()
    keys, order, ready = list(waits), list[str](), list[int]()
    while sorter.is_active():
        for key in sorter.get_ready():
            heapq.heappush(ready, place[key])
        order.append(keys[heapq.heappop(ready)])
        sorter.done(order[-1])
    return order


def circle(waits: Mapping[str, Collection[str]]) -> list[str]:
    """Return a cycle of keys that wait for each other, from the key that was given first back to itself; empty if there
    is none.
    """
    try:
        TopologicalSorter(waits).prepare()
    except CycleError as error:
        way: list[str] = error.args[1][:0:-1]
        start = min(map(list(waits).index, way))
        first = way.index(list(waits)[start])
        return [*way[first:], *way[: first + 1]]
    return []
