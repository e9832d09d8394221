"""Sorting by dependencies, and finding a cycle."""

from __future__ import annotations

import heapq
from collections.abc import Collection, Mapping
from graphlib import CycleError, TopologicalSorter


def in_order(waits: Mapping[str, Collection[str]]) -> list[str]:
    """Return the keys of *waits*, each after the keys that it waits for. Otherwise their order stays the same.

    Raises:
        CycleError: Some keys wait for each other.
    """
    keys = list(waits)
    number_of = {key: number for number, key in enumerate(keys)}
    sorter = TopologicalSorter({key: [blocker for blocker in waits[key] if blocker in number_of] for key in keys})
    sorter.prepare()
    ordered, ready = list[str](), list[int]()
    while sorter.is_active():
        for key in sorter.get_ready():
            heapq.heappush(ready, number_of[key])
        first = keys[heapq.heappop(ready)]
        ordered.append(first)
        sorter.done(first)
    return ordered


def circle(waits: Mapping[str, Collection[str]]) -> list[str]:
    """Return a cycle of keys that wait for each other. The returned list begins and ends with the same key, the key of
    the cycle that is first in *waits*. Return an empty list if there is no cycle.
    """
    try:
        TopologicalSorter(waits).prepare()
    except CycleError as error:
        cycle: list[str] = error.args[1][:0:-1]  # the error names each key before the one that waits for it
        first = next(key for key in waits if key in cycle)
        start = cycle.index(first)
        return [*cycle[start:], *cycle[:start], first]
    return []
