"""Changing a record: read, change, store, and again when another writer was first; and acting while a wait sleeps."""

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
    from typing import TypeVar

    R = TypeVar("R", bound=Record)


_PATIENCE = 10.0
"""Seconds for which others may be first at least."""


def update(
    store: Store,
    team: str,
    kind: Kind[R],
    key: str,
    change: Callable[[R], R],
    patience: float | None = None,
    lasting: bool = True,
) -> tuple[R, R]:
    """Replace a record by what *change* makes of it, anew when another writer was first; the old and the new one.

    *change* may be called several times. When it returns the record itself, nothing is written, but what was read is
    made durable, so that "already so" can be answered for. What need not be *lasting* a power cut may undo, as the
    contract says of `replace`.

    Raises:
        Busy: Other writers were first for *patience* seconds, by default as long as the store waits for a turn. They
            count from the first time: on a slow machine, a turn alone may take as long.
    """
    patience = max(store.lock_timeout, _PATIENCE) if patience is None else patience
    give_up = 0.0
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


def upsert(
    store: Store, team: str, kind: Kind[R], key: str, fresh: R, change: Callable[[R], R], patience: float | None = None
) -> tuple[R, R]:
    """Replace a record as `update` does, or where there is none yet, make one of *fresh*."""
    try:
        return update(store, team, kind, key, change, patience)
    except errors.NotFound:
        pass
    changed = change(fresh)
    if changed is fresh:
        return fresh, fresh
    try:
        store.create(team, kind, key, changed)
        return fresh, changed
    except errors.AlreadyExists:  # another process was first
        return update(store, team, kind, key, change, patience)


def update_all(
    store: Store, team: str, kind: Kind[R], keys: Sequence[str], change: Callable[[R], R]
) -> list[tuple[R, R]]:
    """Replace several records of a numbered kind by what *change* makes of each, in one commit, as `update` does one;
    the old and the new ones.

    Raises:
        Busy: Other writers were first all the time.
    """
    give_up = time.monotonic() + max(store.lock_timeout, _PATIENCE)
    while True:
        found = [store.get(team, kind, key) for key in keys]
        pairs = [(record, change(record)) for record, _ in found]
        changed = [(new, revision) for (old, new), (_, revision) in zip(pairs, found, strict=True) if new is not old]
        try:
            if changed:
                store.replace_all(team, kind, changed)
            for key, (old, new) in zip(keys, pairs, strict=True):
                if new is old:
                    store.confirm(team, kind, key)
            return pairs
        except errors.StaleRevision:
            if time.monotonic() > give_up:
                raise errors.Busy(f"{keys[0]} and others of team {team} kept changing", "Try again.") from None
            time.sleep(jitter(0.002))


def jitter(seconds: float) -> float:
    """A time between nothing and *seconds*, so that those who collided do not collide again."""
    return seconds * os.urandom(1)[0] / 255


class _Meanwhile(_local):
    """A function that is called with the team's name before each sleep of this thread. It returns the seconds until it
    must be called again.
    """

    act: Callable[[str], float] | None = None
    around_sleep: Callable[[bool], None] | None = None
    """Told True before each sleep proper, in which nothing is written, and False after it; it may have a signal raise
    `Ended` in between.
    """


class Ended(BaseException):
    """The sleeper was asked to end; *state* tells how the work stands, and *hint* also how to continue."""

    state = ""
    hint = "Wait longer, or look: teams brief"


meanwhile = _Meanwhile()
