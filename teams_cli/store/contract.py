"""The contract of every engine.

Terms. A *record* is one JSON object of a *kind* (task, inbox, plan …) under a *key*, in a *team*. A *revision* is
opaque: it is compared for equality, and nothing else. *Numbered* kinds get their keys from the store: `task-1`,
`task-2`, … counting up in each team, never used again. The *log* holds messages: only appended to, numbered in commit
order. A *topic* is what a change is about: of a record its kind, `task`, and `task/task-7`, and `task:pending-high`
with its label of now, `task:` if none; of a message `message`, and `message/bob` of each recipient; `history`; or `*`,
every topic. A *label* is a word computed from a record (`in_progress`) by which its key is found without reading all.
*Durable* is what a power cut leaves. A team is *closed* when its own record says so, as its kind tells.

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
8. In a closed team nothing is changed but what is `also_closed`: when the change that closes the team returns, none
   that looked at the team before can follow it, however long it stood still in between.
"""

from __future__ import annotations

from teams_cli import errors
from teams_cli.names import is_number
from teams_cli.records.records import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
    from datetime import datetime
    from typing import Any, Generic, Protocol, TypeVar

    from teams_cli.clock import Clock

    R = TypeVar("R", bound=Record)
    Revision = Any
    Finding = dict[str, str]

else:
    R = None
    Protocol = object  # `typing` costs 10 ms to import

    class Generic:
        def __class_getitem__(cls, _parameter):
            return cls


class Watch(Protocol):
    """A look-out for changes in one team, from the moment it is made."""

    slow: str
    """Why changes are seen late; empty where they wake at once."""

    @property
    def heard(self) -> frozenset[str]:
        """The topics of the changes that ended the last wait."""

    def wait(self, timeout: float) -> bool:
        """Block until anything on a topic may have changed since the last call; False when time ran out."""

    def fileno(self) -> int | None:
        """The descriptor on which `select` wakes when something changed; None if there is none."""

    def close(self) -> None:
        """Stop looking out."""


class Store:
    """The records and the message log of all teams."""

    address: str
    """The place of the records, for people."""

    root: str
    """The directory for what belongs to this machine: configuration, logs, work trees, files of runs."""

    clock: Clock

    variables: dict[str, str]
    """The environment by which another process of this machine finds the same store and root."""

    host: str
    """The name of this machine in a store that several machines use; else empty."""

    on_append: Callable[[str, Sequence[str], Any, str], None] | None = None
    """Called with the team, the recipients, the message and who caused it once a message was appended."""

    lock_timeout = 10.0
    """The seconds that a change waits at most for its turn."""

    changed = 0
    """The number of changes made through it so far: it tells whether a failure followed a change."""

    def teams(self) -> list[str]:
        """The names of all teams, sorted; empty when there is none."""
        raise NotImplementedError

    def create(self, team: str, kind: Kind[R], key: str | None, record: R) -> tuple[R, Revision]:
        """Store a record under a new key, or under the next number of its kind when *key* is None.

        Returns the record as stored, with its number in it.

        Raises:
            AlreadyExists: The key is taken, also by one that differs only in case; what took it is durable.
            WrongState: The team is closed.
            Busy, OutcomeUnknown, StorageFailed: See the promises.
        """
        raise NotImplementedError

    def create_all(self, team: str, kind: Kind[R], count: int, make: Callable[[list[str]], list[R]]) -> list[R]:
        """Store so many records under the next numbers of their kind, in one commit; the records as stored.

        *make* is given their keys, since one may name another, and returns them in that order. It may run twice.

        Raises:
            WrongState: The team is closed.
            Busy, OutcomeUnknown, StorageFailed: See the promises.
        """
        raise NotImplementedError

    def get(self, team: str, kind: Kind[R], key: str) -> tuple[R, Revision]:
        """The record and its revision.

        Raises:
            NotFound: There is none under that key, or no such team.
            DamagedRecord: It has the wrong shape.
        """
        raise NotImplementedError

    def scan(
        self, team: str, kind: Kind[R], problems: list[errors.TeamsError], keys: Collection[str] | None = None
    ) -> Iterator[tuple[R, Revision]]:
        """All records of a kind, or those under *keys*, by number or name; damaged ones are added to *problems*."""
        raise NotImplementedError

    def documents(self, team: str, kind: Kind[R], problems: list[errors.TeamsError]) -> Iterator[dict[str, Any]]:
        """All records of a kind as `scan` has them, each as its JSON object with every field that has a value: for who
        only shows them, and may change what it gets.
        """
        return (record.having().to_json() for record, _ in self.scan(team, kind, problems))

    def labelled(self, team: str, kind: Kind[R], *labels: str) -> Iterator[str]:
        """The keys of records with one of these labels, lowest number first.

        A hint: a key may belong to a record that lost the label meanwhile, and a record that was edited by hand
        may be missing. Whoever uses it looks at each record, and reads all before saying for good that there is none:
        a wait, which looks again, need not.
        """
        raise NotImplementedError

    def by_label(self, team: str, kind: Kind[R]) -> Mapping[str, Collection[str]]:
        """The keys of all by their label, under "" where there is none or it is unknown: a hint, as for `labelled`."""
        raise NotImplementedError

    def holds(self, team: str, *kinds: str) -> set[str]:
        """The kinds, of those named, of which the team may have records. It may name too many, never too few."""
        raise NotImplementedError

    def owing(self, team: str) -> list[tuple[str, str]]:
        """The kind and key of each record that owes a notice: its `owed` is not empty.

        A hint, as for `labelled`: a record may be named that owes nothing any more, but none that owes is left out.
        """
        raise NotImplementedError

    def mark_anew(self, team: str, kind: Kind[R], keys: Collection[str]) -> None:
        """Have `labelled`, `by_label` and `owing` name these records where they belong, as far as can be done at once.

        For whoever found such a hint wrong, as a process that was killed leaves it. Nothing else is changed.
        """
        return None

    def replace(
        self, team: str, kind: Kind[R], key: str, record: R, revision: Revision, lasting: bool = True
    ) -> Revision:
        """Store the record in place of the one that has that revision. One that need not be *lasting* may be undone by
        a power cut until the next that is: that it owes nothing any more, where sending it again adds nothing.

        Raises:
            StaleRevision: It has another one by now.
            NotFound: There is none.
            WrongState: The team is closed.
            Busy, OutcomeUnknown, StorageFailed: See the promises.
        """
        raise NotImplementedError

    def replace_all(self, team: str, kind: Kind[R], changed: Sequence[tuple[R, Revision]]) -> None:
        """Store records of a numbered kind, each in place of the one that has that revision, in one commit.

        Raises:
            StaleRevision: One has another by now; none is stored.
            NotFound: There is none of one's key; none is stored.
            WrongState: The team is closed.
            Busy, OutcomeUnknown, StorageFailed: See the promises.
        """
        raise NotImplementedError

    def confirm(self, team: str, kind: Kind[R], key: str) -> None:
        """Make durable what `get` showed (of the log, all up to that message), before it is answered for."""
        raise NotImplementedError

    def append(self, team: str, kind: Kind[R], to: Sequence[str], record: R, uid: str | None) -> tuple[R, bool]:
        """Append a message to the log, for the agents in *to*: all of them or none.

        Returns the message as stored, with its number, and whether it is new: a *uid* that was used before in
        the team gives the message of that time and adds nothing. With None the store makes a uid that is new.
        A uid is made of names with `~` between them.

        Raises:
            InvalidValue: A recipient or the uid is of another form.
            WrongState: The team is closed.
            Busy, OutcomeUnknown, StorageFailed: See the promises.
        """
        raise NotImplementedError

    def read(
        self, team: str, kind: Kind[R], agent: str | None, after: int, problems: list[errors.TeamsError], limit: int = 0
    ) -> list[R]:
        """The messages to *agent* (None: all) with a number above *after*, in order; at most *limit* unless 0."""
        raise NotImplementedError

    def news(
        self, team: str, kind: Kind[R], agent: str, after: int, problems: list[errors.TeamsError]
    ) -> tuple[list[R], int]:
        """The messages to *agent* with a number above *after*, in order, and up to which number none is missing: the
        highest that was given when this began, or one above it; *after* where none was behind it.
        """
        last = self.last(team, kind)
        found = self.read(team, kind, agent, after, problems) if last > after else []
        return [message for message in found if message.number <= last], max(last, after)  # type: ignore[attr-defined]

    def glance(self, team: str, kind: Kind[R], agent: str, after: int) -> int | None:
        """The highest number that is noted, if that tells that none behind *after* is for *agent*; None if not."""
        return None

    def envelopes(self, team: str, kind: Kind[R], after: int) -> Iterator[tuple[int, str, Sequence[str]]]:
        """The number, uid and recipients of each message with a number above *after*, in no order.

        Where the engine knows these by themselves no message is read, so that damaged ones are among them.
        """
        raise NotImplementedError

    def fetch(self, team: str, kind: Kind[R], numbers: Sequence[int], problems: list[errors.TeamsError]) -> list[R]:
        """The messages with these numbers, in order; numbers that there are not are passed over."""
        raise NotImplementedError

    def search(self, team: str, kind: Kind[R], words: Sequence[str], problems: list[errors.TeamsError]) -> Iterator[R]:
        """The records or messages that may be meant by the words, those with the highest numbers first.

        A word is of letters and digits, in the form that `str.lower` gives. Each record is among these that has
        for every word a string in which a word begins so, of those in files also where the file leaves out what goes
        without saying; others may be, so whoever asks looks at each.
        """
        raise NotImplementedError

    def last(self, team: str, kind: Kind[R]) -> int:
        """The highest number that was given in a numbered kind or the log; 0 when none was."""
        raise NotImplementedError

    def reserve(self, team: str, kind: Kind[R], number: int) -> None:
        """Give only numbers above that one from now on.

        Raises:
            Busy, StorageFailed: See the promises.
        """
        raise NotImplementedError

    def journal(self, team: str, entry: dict[str, Any]) -> None:
        """Note a change in the team's history. The history is derived: losing an entry to a crash is allowed."""
        raise NotImplementedError

    def put_history(self, team: str, entries: Sequence[dict[str, Any]]) -> None:
        """Note changes as `journal` does, in a team that is copied here and of which nothing may be there yet."""
        for entry in entries:
            self.journal(team, entry)

    def history(self, team: str, after: int = 0, backwards: bool = False) -> Iterator[tuple[int, dict[str, Any]]]:
        """The noted changes from position *after* on, or *backwards* to it, each with the position behind it."""
        raise NotImplementedError

    def pack(self, team: str, kind: Kind[R]) -> Iterator[tuple[str, bytes]]:
        """All records of a kind as they are kept, to the byte, by number or name, each with its key.

        That of a message is `<number>.<recipient>.<uid>`, with `@` in the place of several recipients.

        Raises:
            DamagedRecord: One has the wrong shape, so that another store could not keep it.
        """
        raise NotImplementedError

    def put(self, team: str, kind: Kind[R], key: str, data: bytes) -> None:
        """Keep a record as `pack` gave it, in the place of one of that key.

        For a team that nobody works in, closed or not. Numbers go on behind the highest that was put.

        Raises:
            DamagedRecord: It has the wrong shape.
        """
        raise NotImplementedError

    def put_messages(self, team: str, kind: Kind[R], packed: Sequence[tuple[str, bytes]]) -> None:
        """Keep messages as `pack` gave them, each unless it is there; as `put`."""
        raise NotImplementedError

    def drop(self, team: str, kind: Kind[R], revision: Revision) -> None:
        """Remove a closed team, the record of which is of that kind, with all that it has: for ever.

        Raises:
            StaleRevision: The team was changed since that revision; all of it is there.
            NotFound: There is no such team.
        """
        raise NotImplementedError

    def watch(self, team: str, topics: Collection[str] | None = None) -> Watch:
        """Look out for changes in the team, at least for all on one of the *topics*; some on others may wake too."""
        raise NotImplementedError

    def admit(self, team: str, agents: Mapping[str, str], kinds: Sequence[Kind[Any]]) -> dict[str, str]:
        """Give each agent of a team a login of its own; the addresses of the new ones.

        An agent is one that `leads` the team, that `manages` its tasks, or another. Of the *kinds* they may change what
        each declares, and nothing of any other.

        Raises:
            InvalidValue: The engine knows no logins.
            NotAllowed: We may not make them.
        """
        raise NotImplementedError

    def examine(self, kinds: Sequence[Kind[Any]], fix: bool, only: str = "") -> Iterable[Finding]:
        """What is wrong with the engine's own things, or those of *only* one team; *fix* mends what loses nothing."""
        raise NotImplementedError

    def now(self) -> datetime:
        """The time by the store's clock, aware, UTC."""
        return self.clock.now()

    def steady(self) -> tuple[str, float]:
        """The store's steady clock: an epoch, and the seconds in it. Times of another epoch are past."""
        return self.clock.steady()

    def close(self) -> None:
        """Give back what the engine holds."""
        return None


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
        closes: Callable[[R], bool] | None = None,
        while_closed: bool = False,
        logins: str = "",
    ) -> None:
        self.name = name
        self.record = record
        self.key = key
        """The attribute that holds the key."""
        self.closes = closes
        """Tells of a team's own record whether the team is closed."""
        self.while_closed = while_closed
        """Whether what is done with it may be done in a closed team."""
        self.logins = logins
        """The rights of the agents' logins, if there are any: `own`, if the key is the agent's name, or a rule that the
        engine knows. The default is none.
        """
        self.prefix = prefix or name
        """The word before the number in the id of a numbered record."""
        self.numbered = numbered
        self.label = label
        """The label by which a record is found without reading all; None if nobody looks for it."""

    @property
    def also_closed(self) -> Kind[R]:
        """The kind for a change that may be made in a closed team: it brings what was begun there to its end."""
        made: Kind[R] = Kind.__new__(Kind)
        made.__dict__.update(self.__dict__, while_closed=True)
        return made

    def numbering(self, record: R, number: int) -> R:
        """The record with its number in it.

        Raises:
            StorageFailed: The number is too high to be read again.
        """
        self.refuse_too_high(number)
        numbers: dict[str, Any] = {"id": f"{self.prefix}-{number}"}
        if "number" in self.record.fields:
            numbers["number"] = number
        return record.numbered(**numbers)

    def refuse_too_high(self, number: int) -> None:
        """Raises StorageFailed: The number can't be read again."""
        if not is_number(str(number)):
            hint = "Look at the highest number that is there: `teams` did not give it."
            raise errors.StorageFailed(f"there can't be a {self.prefix}-{number}", hint)

    def numbering_all(self, first: int, count: int, make: Callable[[list[str]], list[R]]) -> list[R]:
        """So many records, numbered from *first* on, as *make* returns them for their keys."""
        records = make([f"{self.prefix}-{number}" for number in range(first, first + count)])
        return [self.numbering(record, number) for number, record in enumerate(records, start=first)]

    def number_in(self, key: str) -> int:
        """The number in the id of a numbered record; 0 if it is no such id."""
        before, _, digits = key.rpartition("-")
        return int(digits) if before == self.prefix and is_number(digits) else 0


EVERY_TOPIC = frozenset("*")
"""The topics of a change that may be about anything."""


def topics_of(kind: Kind[Any], key: str, label: str | None) -> frozenset[str]:
    """The topics of a change of that record, which has this label now."""
    labels = {f"{kind.name}:{label or ''}"} if kind.label else set()
    return frozenset({kind.name, f"{kind.name}/{key}", *labels})


def concerns(topics: Collection[str] | None, heard: frozenset[str]) -> bool:
    """Whether a change on the topics that were *heard* is one that was asked for (None: all are)."""
    return topics is None or "*" in heard or not heard.isdisjoint(topics)
