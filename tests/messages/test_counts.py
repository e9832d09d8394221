"""Counting the unread mail of many at once tells of each what counting its own tells."""

from __future__ import annotations

from pathlib import Path

from teams_cli.errors import TeamsError
from teams_cli.membership import joining
from teams_cli.messages import inboxes, messages, reading
from teams_cli.messages.reading import Selection
from teams_cli.store.files.engine import FileStore
from teams_cli.teams.permission import Caller
from tests.support.waits import at_once

LEA, BOB, MIA = Caller("lea"), Caller("bob"), Caller("mia")
NAMES = ["lea", "bob", "mia"]


def counted(store: FileStore) -> dict[str, int]:
    """The counts, which are those of each by itself."""
    found = inboxes.unread_counts(store, "alpha", NAMES)
    assert found == {name: len(inboxes.unread(store, "alpha", name)) for name in NAMES}
    return found


def read(store: FileStore, caller: Caller, limit: int = 0) -> None:
    problems: list[TeamsError] = []
    reading.read(store, "alpha", caller, Selection(limit=limit), problems, at_once)


def made(tmp_path: Path) -> FileStore:
    store = FileStore(str(tmp_path / "root"))
    joining.spawn_team(store, "alpha", LEA)
    for caller in (BOB, MIA):
        joining.join(store, "alpha", caller)
    for caller in (LEA, BOB, MIA):
        read(store, caller)
        reading.handle(store, "alpha", caller, [])
    assert counted(store) == dict.fromkeys(NAMES, 0)
    return store


def test_of_each_what_it_has_not_read(tmp_path: Path) -> None:
    """A notice counts, unless it only informs."""
    store = made(tmp_path)
    for n in range(5):
        messages.send(store, "alpha", LEA, "bob", f"m{n}")
    messages.broadcast(store, "alpha", BOB, "to all")
    messages.send(store, "alpha", LEA, ["bob", "mia"], "to two", uid="two")
    assert counted(store) == {"lea": 1, "bob": 6, "mia": 2}
    read(store, BOB, limit=2)
    assert counted(store) == {"lea": 1, "bob": 4, "mia": 2}
    messages.notify(store, "alpha", "bob", "something happened", "event-1")
    messages.notify(store, "alpha", "bob", "by the way", "event-2", "info")
    assert counted(store) == {"lea": 1, "bob": 5, "mia": 2}
    reading.handle(store, "alpha", BOB, [])
    assert counted(store)["bob"] == 5
