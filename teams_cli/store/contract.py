"""What every engine promises, and the retry loop that all changes go through.

Terms. A *record* is one JSON object of a *kind* (task, inbox, plan …) under a *key*, in a *team*. A *revision* is
opaque: it can be compared for equality and nothing else. *Numbered* kinds get their keys from the store: `task-1`,
`task-2`, … counting up in each team and never used again. The *log* holds messages: only appended to, numbered in the
order of commitment. A *label* is a word computed from a record (`in_progress`) by which its key can be found without
reading all records. *Durable* means: still there after the power failed.

What an engine promises:

1. Every change is one commit: a reader sees all of it or nothing, and so does whoever comes after a crash.
2. When `create`, `replace` or `append` return, the change is durable. When they raise anything but `OutcomeUnknown`,
   nothing was changed. After `OutcomeUnknown` the change is there or not; asking again tells.
3. `replace` changes a record only if it still has the revision that was read.
4. Of several that `create` one key, one wins. Keys that differ only in case are one key.
5. What is read was checked: a record of the wrong shape raises `DamagedRecord` naming place and field, or, where
   many are read, is reported beside the others. It is never overwritten.
6. Reading takes no lock and changes nothing, not even where nothing is there yet.
7. A change that can't have its turn within the time allowed raises `Busy`.
"""

from __future__ import annotations

import os
import time

from teams_cli.errors import AlreadyExists, Busy, NotFound, StaleRevision, StorageFailed
from teams_cli.names import is_number
from teams_cli.records import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from datetime import datetime
    from typing import Any, Generic, Protocol, TypeVar

    from teams_cli.errors import TeamsError

    R = TypeVar("R", bound=Record)
    Revision = Any
    Finding = dict[str, str]

    class Watch(Protocol):
        """A look-out for changes in one team, from the moment it is made."""

        def wait(self, timeout: float) -> bool:
            """Block until anything in the team may have changed since the last call; False when time ran out."""

        def fileno(self) -> int | None:
            """What `select` wakes on when something changed; None where there is no such thing."""

        def close(self) -> None:
            """Stop looking out."""

    class Store(Protocol):
        """The records and the message log of all teams."""

        place: str
        """Where the records are, for people."""

        root: str
        """The directory for what belongs to this machine: configuration, logs, work trees, files of runs."""

        variables: dict[str, str]
        """The environment by which another process of this machine finds the same store and root."""

        host: str
        """What this machine is called where others use the store too; empty where none can."""

        def teams(self) -> list[str]:
            """The names of all teams, sorted; empty when there is none."""

        def create(self, team: str, kind: Kind[R], key: str | None, record: R) -> tuple[R, Revision]:
            """Store a record under a new key, or under the next number of its kind when *key* is None.

            Returns the record as stored, with its number in it.

            Raises:
                AlreadyExists: The key is taken, also by one that differs only in case; what took it is durable.
                Busy, OutcomeUnknown, StorageFailed: See the promises.
            """

        def get(self, team: str, kind: Kind[R], key: str) -> tuple[R, Revision]:
            """The record and its revision.

            Raises:
                NotFound: There is none under that key, or no such team.
                DamagedRecord: It has the wrong shape.
            """

        def scan(self, team: str, kind: Kind[R], problems: list[TeamsError]) -> Iterator[tuple[R, Revision]]:
            """All records of a kind, by number or name; damaged ones are added to *problems* instead."""

        def labelled(self, team: str, kind: Kind[R], label: str) -> list[str]:
            """The keys of records with that label, lowest number first.

            A hint: a key may belong to a record that lost the label meanwhile, and a record that was edited by hand
            may be missing. Whoever uses it looks at each record, and reads all before saying that there is none.
            """

        def replace(self, team: str, kind: Kind[R], key: str, record: R, revision: Revision) -> Revision:
            """Store the record in place of the one that has that revision.

            Raises:
                StaleRevision: It has another one by now.
                NotFound: There is none.
                Busy, OutcomeUnknown, StorageFailed: See the promises.
            """

        def confirm(self, team: str, kind: Kind[R], key: str) -> None:
            """Make durable what `get` showed (of the log, all up to that message), before it is answered for."""

        def append(self, team: str, kind: Kind[R], to: Sequence[str], record: R, uid: str | None) -> tuple[R, bool]:
            """Append a message to the log, for the agents in *to*: all of them or none.

            Returns the message as stored, with its number, and whether it is new: a *uid* that was used before in
            the team gives the message of that time and adds nothing. With None the store makes a uid that is new.
            A uid is made of names with `~` between them.

            Raises:
                InvalidValue: A recipient or the uid is of another form.
                Busy, OutcomeUnknown, StorageFailed: See the promises.
            """

        def read(
            self, team: str, kind: Kind[R], agent: str | None, after: int, problems: list[TeamsError], limit: int = 0
        ) -> list[R]:
            """The messages to *agent* (None: all) with a number above *after*, in order; at most *limit* unless 0."""

        def fetch(self, team: str, kind: Kind[R], numbers: Sequence[int], problems: list[TeamsError]) -> list[R]:
            """The messages with these numbers, in order; numbers that there are not are passed over."""

        def last(self, team: str, kind: Kind[R]) -> int:
            """The number of the newest message; 0 when there is none."""

        def journal(self, team: str, entry: dict[str, Any]) -> None:
            """Note a change in the team's history. The history is derived: losing an entry to a crash is allowed."""

        def history(self, team: str, after: int = 0) -> Iterator[tuple[int, dict[str, Any]]]:
            """The noted changes from position *after* on, each with the position behind it."""

        def pack(self, team: str, kind: Kind[R]) -> Iterator[tuple[str, bytes]]:
            """All records of a kind as they are kept, to the byte, by number or name, each with its key.

            That of a message is `<number>.<recipient>.<uid>`, with `@` in the place of several recipients.

            Raises:
                DamagedRecord: One has the wrong shape, so that another store could not keep it.
            """

        def put(self, team: str, kind: Kind[R], key: str, data: bytes) -> None:
            """Keep what `pack` gave: in the place of a record of that key; of a message, unless it is there.

            For a team that nobody works in. Numbers go on behind the highest that was put.

            Raises:
                DamagedRecord: It has the wrong shape.
            """

        def watch(self, team: str) -> Watch:
            """Look out for changes in the team."""

        def admit(self, team: str, agents: Mapping[str, bool]) -> dict[str, str]:
            """Give each agent of a team a login of its own, True for one that leads; the addresses of the new ones.

            Raises:
                InvalidValue: The engine knows no logins.
                NotAllowed: We may not make them.
            """

        def examine(self, kinds: Sequence[Kind[Any]], fix: bool) -> Iterable[Finding]:
            """What is wrong with the engine's own things; with *fix*, mend what loses nothing."""

        def now(self) -> datetime:
            """The time by the store's clock, aware, UTC."""

        def steady(self) -> tuple[str, float]:
            """The store's steady clock: an epoch, and the seconds in it. Times of another epoch are past."""

        def close(self) -> None:
            """Give back what the engine holds."""

else:
    R = None

    class Generic:
        """Stands in for `typing.Generic`, which costs 10 ms to import."""

        def __class_getitem__(cls, _parameter):
            return cls


class Kind(Generic[R]):
    """One kind of record."""

    def __init__(
        self,
        name: str,
        record: type[R],
        *,
        key: str = "id",
        prefix: str = "",
        numbered: bool = False,
        label: Callable[[R], str | None] | None = None,
    ) -> None:
        self.name = name
        self.record = record
        self.key = key
        """The attribute that holds the key."""
        self.prefix = prefix or name
        """What the number follows in the id of a numbered record."""
        self.numbered = numbered
        self.label = label
        """What finds a record without reading all; None for one that nobody looks for."""

    def numbering(self, record: R, number: int) -> R:
        """The record with its number in it.

        Raises:
            StorageFailed: The number is too high to be read again.
        """
        if not is_number(str(number)):
            raise StorageFailed(f"there can't be a {self.prefix}-{number}", "Look for the one before: it is foreign.")
        numbers: dict[str, Any] = {"id": f"{self.prefix}-{number}"}
        if "number" in self.record.fields:
            numbers["number"] = number
        return record.having(**numbers)

    def number_in(self, key: str) -> int:
        """The number in the id of a numbered record; 0 if it is no such id."""
        digits = key.removeprefix(f"{self.prefix}-")
        return int(digits) if digits != key and is_number(digits) else 0


def update(
    store: Store, team: str, kind: Kind[R], key: str, change: Callable[[R], R], patience: float = 10.0
) -> tuple[R, R]:
    """Replace a record by what *change* makes of it, anew when another writer was first; the old and the new one.

    *change* may be called several times. When it returns the record itself, nothing is written, but what was read is
    made durable, so that "already so" can be answered for.

    Raises:
        Busy: Other writers were first for *patience* seconds.
    """
    give_up = time.monotonic() + patience
    while True:
        record, revision = store.get(team, kind, key)
        changed = change(record)
        if changed is record:
            store.confirm(team, kind, key)
            return record, record
        try:
            store.replace(team, kind, key, changed, revision)
            return record, changed
        except StaleRevision:
            if time.monotonic() > give_up:
                raise Busy(f"{key} of team {team} kept changing for {patience:g} seconds", "Try again.") from None
            time.sleep(jitter(0.002))


def upsert(
    store: Store, team: str, kind: Kind[R], key: str, fresh: R, change: Callable[[R], R], patience: float = 10.0
) -> tuple[R, R]:
    """As `update`, but where there is no record yet, one is made of *fresh*."""
    try:
        return update(store, team, kind, key, change, patience)
    except NotFound:
        pass
    changed = change(fresh)
    if changed is fresh:
        return fresh, fresh
    try:
        store.create(team, kind, key, changed)
        return fresh, changed
    except AlreadyExists:  # another process was first
        return update(store, team, kind, key, change, patience)


def jitter(seconds: float) -> float:
    """A time between nothing and *seconds*, so that those who collided do not collide again."""
    return seconds * os.urandom(1)[0] / 255
