"""Changing a record: read it, change it and store it, and start again if another writer stored it first. Also the
functions that are called around the sleeps of a command.
"""

from __future__ import annotations

import os
import time
from _thread import _local  # `threading.local`, without the import of that

from teams_cli import errors
from teams_cli.records.records import Record
from teams_cli.store.contract import Kind, Store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, TypeVar

    R = TypeVar("R", bound=Record)


_PATIENCE = 10.0
"""The least number of seconds for which a change is tried again because other writers are first."""


def update(
    store: Store,
    team: str,
    kind: Kind[R],
    key: str,
    change: Callable[[R], R],
    patience: float | None = None,
    lasting: bool = True,
) -> tuple[R, R]:
    """Replace a record with the one that *change* returns for it. If another writer was first, call *change* again with
    the new record.

    Returns the record before and after. If *change* returns its argument, nothing is written, but the record is made
    durable, so that the caller can rely on it. If the change is not *lasting*, a power cut may undo it, until a lasting
    change follows.

    Raises:
        Busy: Other writers were first again and again, for *patience* seconds. If *patience* is None, this is as long
            as the store waits for a lock, but at least 10 seconds.
    """
    patience = max(store.lock_timeout, _PATIENCE) if patience is None else patience
    give_up = 0.0  # not known before the first collision with another writer
    while True:
        record, revision = store.get(team, kind, key)
        changed = change(record)
        if changed is record:
            if lasting:
                store.confirm(team, kind, key)
            return record, record
        try:
            store.replace(team, kind, key, changed, revision, lasting)
            return record, changed
        except errors.StaleRevision:
            give_up = give_up or time.monotonic() + patience
            if time.monotonic() > give_up:
                what = f"{key} of team {team} kept changing for {patience:g} seconds"
                raise errors.Busy(what, "Try again.") from None
            time.sleep(jitter(0.002))


def upsert(store: Store, team: str, kind: Kind[R], key: str, fresh: R, change: Callable[[R], R]) -> tuple[R, R]:
    """Replace a record as `update` does, and return it before and after. If there is no record yet, call *change* with
    the record *fresh*, create the record that it returns, and return both.
    """
    try:
        return update(store, team, kind, key, change)
    except errors.NotFound:
        pass
    changed = change(fresh)
    if changed is fresh:
        return fresh, fresh
    try:
        store.create(team, kind, key, changed)
        return fresh, changed
    except errors.AlreadyExists:  # another process was first
        return update(store, team, kind, key, change)


def update_all(
    store: Store, team: str, kind: Kind[R], keys: Sequence[str], change: Callable[[R], R]
) -> list[tuple[R, R]]:
    """Replace several records of a numbered kind in one commit, each with the one that *change* returns for it. Records
    that *change* returns as they are become durable, as in `update`. If another writer was first, all is tried again.

    Returns each record before and after.
    """
    give_up = time.monotonic() + max(store.lock_timeout, _PATIENCE)
    while True:
        pairs: list[tuple[R, R]] = []
        changed: list[tuple[R, Any]] = []
        unchanged: list[str] = []
        for key in keys:
            record, revision = store.get(team, kind, key)
            new = change(record)
            pairs.append((record, new))
            if new is record:
                unchanged.append(key)
            else:
                changed.append((new, revision))
        try:
            if changed:
                store.replace_all(team, kind, changed)
            for key in unchanged:
                store.confirm(team, kind, key)
            return pairs
        except errors.StaleRevision:
            if time.monotonic() > give_up:
                raise errors.Busy(f"{keys[0]} and others of team {team} kept changing", "Try again.") from None
            time.sleep(jitter(0.002))


def jitter(seconds: float) -> float:
    """Return a random time of up to *seconds*. Processes that collided wait for different times, so that they do not
    collide again.
    """
    return seconds * os.urandom(1)[0] / 255


class _Meanwhile(_local):
    """The functions that are called before and after the sleeps of this thread."""

    act: Callable[[str], float] | None = None
    """Called with the name of the team before each sleep. Returns the seconds until the next call must come."""
    around_sleep: Callable[[bool], None] | None = None
    """Called with True before each sleep, and with False after it. Nothing is written during a sleep, so between the
    two calls a signal may raise `Ended`.
    """


class Ended(BaseException):
    """A signal asked the waiting command to end. *state* says how the work stands, and *hint* how to continue."""

    state = ""
    hint = "Wait longer, or look: teams brief"


meanwhile = _Meanwhile()
