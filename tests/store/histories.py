"""A list of changes, the state after each, and what must hold after an interruption."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from teams_cli.errors import AlreadyExists
from teams_cli.store.files.engine import FileStore
from tests.store.kinds import TASK, Task, make_team, seen, send
from tests.support.stores import new_store

if TYPE_CHECKING:
    from teams_cli.store.contract import Store

    Change = Callable[[Store], Any]


def stages(changes: Sequence[Change]) -> list[dict[str, Any]]:
    """Return the state before the first change and after each change, by the engine that knows no crashes."""
    store = new_store()
    found = [seen(store)]
    for change in changes:
        change(store)
        found.append(seen(store))
    return found


def check(root: Path, done: int, expected: list[dict[str, Any]], changes: Sequence[Change]) -> None:
    """Check the state after a crash: the *done* acknowledged changes are there, the next is there wholly or not at all,
    and work goes on.
    """
    store = FileStore(str(root), lock_timeout=0.5)
    state = seen(store)
    assert state in expected[done : done + 2]
    with cheap_fsync():
        for change in changes[done : done + 1]:
            try:
                change(store)
            except AlreadyExists:
                assert state == expected[done + 1]
        work_goes_on(store)


def work_goes_on(store: Store) -> None:
    make_team(store, "omega")
    assert store.create("omega", TASK, None, Task(title="t"))[0].id == "task-1"
    assert send(store, "bob", "hello", team="omega").number == 1
    if "alpha" in store.teams():
        assert send(store, "eve", "new").message == "new"
        assert store.create("alpha", TASK, None, Task(title="new"))[0].title == "new"


@contextmanager
def cheap_fsync() -> Iterator[None]:
    """Replace fsync by nothing for the length of a `with` block."""
    real, os.fsync = os.fsync, lambda descriptor: None
    try:
        yield
    finally:
        os.fsync = real


@contextmanager
def explained(what: str) -> Iterator[None]:
    """Say at which point a check failed."""
    try:
        yield
    except Exception as error:
        error.add_note(what)
        raise
