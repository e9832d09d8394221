"""The contract of every storage engine, and functions that change a record and retry if another writer was first.

Terms:

* A *record* is one JSON object of a *kind* (task, inbox, plan …) under a *key*, in a *team*.
* A *revision* stands for the content of a record. Revisions are only compared for equality.
* *Numbered* kinds get their keys from the store: `task-1`, `task-2`, … Each team has its own numbers, and no number is
  given twice.
* The *log* holds the messages. They are only appended, and numbered in the order of their commits.
* A *label* is a word computed from a record, such as `in_progress`. Labels let the store find such records without
  reading all of them.
* A *topic* says what a change is about. A change of task-7 has the topics `task`, `task/task-7` and, if it has a label
  now, `task:` followed by this label; a message has `message`, and `message/bob` for each recipient. The topic of the
  history is `history`, and `*` stands for every topic.
* A change is *durable* if it survives a power cut.
* A record *owes a notice* until the message about its last change has been sent.
* A team is *closed* when the record of the team says that it is.

An engine promises:

1. Every change is one commit. A reader sees all of it or nothing, even after a crash.
2. When `create`, `replace` or `append` return, the change is durable. When they raise anything but `OutcomeUnknown`,
   nothing was changed. After `OutcomeUnknown`, the change may or may not have been made; repeating the call shows
   which.
3. `replace` changes a record only if it still has the revision that was read.
4. If several processes `create` the same key, one succeeds. Keys that differ only in case are the same key.
5. Records are checked when they are read. A record of the wrong shape raises `DamagedRecord`, which names the record
   and the field. A call that reads many records reports the error and still returns the good records. A damaged record
   is never overwritten.
6. Reading takes no lock and changes nothing; it does not even make missing directories.
7. A change that waits longer for its turn than `lock_timeout` raises `Busy`.
8. In a closed team, records can be changed only by `Kind.even_in_closed_team`; other changes raise `WrongState`. Once
   the change that closes the team has returned, no other change can follow, not even by a process that found the team
   open long before.

So every method that changes something may raise `OutcomeUnknown`, `StorageFailed`, `Busy` and `WrongState`, in addition
to the errors that it lists.
"""

from __future__ import annotations

import time
from _thread import _local  # `threading.local`, without the import of that

from teams_cli import errors
from teams_cli.clock import jitter
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

else:  # enough to run without `typing`, which takes 10 ms to import
    R = None
    Protocol = object

    class Generic:
        def __class_getitem__(cls, _parameter):
            return cls


class Watch(Protocol):
    """Notices changes in one team, from the moment the watch is made."""

    slow: str
    """The reason why changes are noticed late; empty if they are noticed at once."""

    @property
    def heard(self) -> frozenset[str]:
        """The topics of the changes that ended the last call of `wait`."""

    def wait(self, timeout: float) -> bool:
        """Block until something on a topic of the watch may have changed since the last call, and return True. Return
        False after *timeout* seconds without a change.
        """

    def fileno(self) -> int | None:
        """Return the descriptor that `select` reports as readable after a change; None if the watch has none."""

    def close(self) -> None:
        """Stop watching."""


class _Count(_local):
    """The number of changes that this thread has made, in all stores."""

    changes = 0


_by_this_thread = _Count()


def count_change() -> None:
    """Count a change that an engine has made."""
    _by_this_thread.changes += 1


class Store:
    """The records and the message log of all teams."""

    address: str
    """Where the records are stored, in a form to show to people: a directory, or a database without its password."""

    root: str
    """The directory for the files of this machine: configuration, logs, worktrees, files of runs."""

    clock: Clock

    variables: dict[str, str]
    """The environment variables by which other processes on this machine find the store at this address, with this
    root.
    """

    host: str
    """The name of this machine, if several machines use the store; else empty."""

    on_append: Callable[[str, Sequence[str], Any, str], None] | None = None
    """Called after a message was appended, with the team, the recipients, the message and the member who caused it."""

    lock_timeout = 10.0
    """The maximum number of seconds that a change waits for its turn."""

    @property
    def changed(self) -> int:
        """The number of changes that the calling thread has made. It shows whether a change was made before a failure;
        other threads of a server serve other requests.
        """
        return _by_this_thread.changes

    def teams(self) -> list[str]:
        """Return the names of all teams, sorted."""
        raise NotImplementedError

    def create(self, team: str, kind: Kind[R], key: str | None, record: R) -> tuple[R, Revision]:
        """Store a record under the new *key*, or under the next number of its kind if *key* is None.

        Returns the record as stored, with its number in it, and its revision.

        Raises:
            AlreadyExists: A record has this key, or one that differs only in case. The existing record with this key is
                durable.
        """
        raise NotImplementedError

    def create_all(self, team: str, kind: Kind[R], count: int, make: Callable[[list[str]], list[R]]) -> list[R]:
        """Store *count* records under the next numbers of their kind, in one commit. Returns the records as stored.

        *make* is called with a list of the new keys, and returns a record for each, in the same order. So one record
        can refer to another by its key. *make* may be called twice, for example if the connection to a database is
        lost.
        """
        raise NotImplementedError

    def get(self, team: str, kind: Kind[R], key: str) -> tuple[R, Revision]:
        """Return the record and its revision.

        Raises:
            NotFound: There is no record under the key, or no such team.
            DamagedRecord: The record has the wrong shape.
        """
        raise NotImplementedError

    def scan(
        self, team: str, kind: Kind[R], problems: list[errors.TeamsError], keys: Collection[str] | None = None
    ) -> Iterator[tuple[R, Revision]]:
        """Yield all records of a kind, or only the records under *keys*, each with its revision, ordered by number or
        name. The error of each damaged record is added to *problems*.
        """
        raise NotImplementedError

    def documents(self, team: str, kind: Kind[R], problems: list[errors.TeamsError]) -> Iterator[dict[str, Any]]:
        """Yield all records of a kind as JSON objects, with all fields that have a value. Callers may change these
        objects. The error of each damaged record is added to *problems*.
        """
        return (record.to_complete_json() for record, _ in self.scan(team, kind, problems))

    def labelled(self, team: str, kind: Kind[R], *labels: str) -> Iterator[str]:
        """Yield the keys of records that have one of these *labels*, lowest number first.

        The keys are hints. A yielded record may have lost the label meanwhile, so callers check each record. A record
        that was edited by hand may be missing, so callers read all records before they report that no record has the
        label. A caller that waits and asks again later need not read all.
        """
        raise NotImplementedError

    def by_label(self, team: str, kind: Kind[R]) -> Mapping[str, Collection[str]]:
        """Return the keys of all records, grouped by label. The group "" has the records without a label, and those
        whose label is unknown. The keys are hints, as in `labelled`.
        """
        raise NotImplementedError

    def holds(self, team: str, *kinds: str) -> set[str]:
        """Return the *kinds* of which the team may have records. It certainly has none of the other kinds."""
        raise NotImplementedError

    def owing(self, team: str) -> list[tuple[str, str]]:
        """Return the kind and key of each record that owes a notice: the message about its last change may not have
        been sent. A returned record may have nothing left to send. A record that is not returned certainly owes
        nothing.
        """
        raise NotImplementedError

    def correct_hints(self, team: str, kind: Kind[R], keys: Collection[str]) -> None:
        """Correct the hints that `labelled`, `by_label` and `owing` give about the records under *keys*. The records
        themselves stay as they are.

        Hints become wrong when a process is killed during a change. If another process has locked the records, their
        hints stay wrong for now.
        """
        return None

    def replace(
        self, team: str, kind: Kind[R], key: str, record: R, revision: Revision, lasting: bool = True
    ) -> Revision:
        """Replace the record, if it still has the given *revision*. Returns its new revision.

        If a change is not *lasting*, a power cut may undo it, until a lasting change follows. This is for changes that
        are safe to repeat, such as noting that a notice was sent.

        Raises:
            StaleRevision: The record has another revision by now.
            NotFound: There is no such record.
        """
        raise NotImplementedError

    def replace_all(self, team: str, kind: Kind[R], changed: Sequence[tuple[R, Revision]]) -> None:
        """Replace records of a numbered kind in one commit. Each of *changed* is a new record with its old revision.

        Raises:
            StaleRevision: A record has another revision by now; none is stored.
            NotFound: A record does not exist; none is stored.
        """
        raise NotImplementedError

    def confirm(self, team: str, kind: Kind[R], key: str) -> None:
        """Make the record under *key* durable, so that the caller can rely on what `get` returned. If the record is a
        message, all earlier messages become durable, too.
        """
        raise NotImplementedError

    def append(self, team: str, kind: Kind[R], to: Sequence[str], record: R, uid: str | None) -> tuple[R, bool]:
        """Append a message to the log. Either all agents in *to* get the message, or none does.

        Returns the message as stored, with its number, and True. But if the log already has a message with this *uid*,
        nothing is added, and the earlier message is returned with False. A uid consists of names with `~` between them.
        If *uid* is None, the store makes one.

        Raises:
            InvalidValue: A recipient or the uid is not valid.
        """
        raise NotImplementedError

    def read(
        self, team: str, kind: Kind[R], agent: str | None, after: int, problems: list[errors.TeamsError], limit: int = 0
    ) -> list[R]:
        """Return the messages with a number above *after*, in order: those to *agent*, or all if *agent* is None.
        *limit* is the most messages that are returned; 0 sets no limit.
        """
        raise NotImplementedError

    def news(
        self, team: str, kind: Kind[R], agent: str, after: int, problems: list[errors.TeamsError]
    ) -> tuple[list[R], int]:
        """Return the messages to *agent* with a number above *after*, in order. Also return the number up to which this
        list is complete. It is at least the last number that was given before the call, and never below *after*.
        """
        last = self.last(team, kind)
        messages = self.read(team, kind, agent, after, problems) if last > after else []
        # Among messages that came while these were read, some may be missing.
        return [each for each in messages if each.number <= last], max(last, after)  # type: ignore[attr-defined]

    def glance(self, team: str, kind: Kind[R], agent: str, after: int) -> int | None:
        """Check quickly whether the log may have a message for *agent* with a number above *after*. Return None if it
        may; the caller must then call `news`. Otherwise return the number of the newest message in the log.
        """
        return None

    def envelopes(self, team: str, kind: Kind[R], after: int) -> Iterator[tuple[int, str, Sequence[str]]]:
        """Yield the number, the uid and the recipients of each message with a number above *after*, in no particular
        order.

        A damaged message is skipped, unless the engine knows these three facts without reading it.
        """
        raise NotImplementedError

    def fetch(self, team: str, kind: Kind[R], numbers: Sequence[int], problems: list[errors.TeamsError]) -> list[R]:
        """Return the messages with these *numbers*, in order. Numbers without a message are skipped."""
        raise NotImplementedError

    def search(self, team: str, kind: Kind[R], words: Sequence[str], problems: list[errors.TeamsError]) -> Iterator[R]:
        """Yield the records or messages that may match all the *words*, highest number first.

        The *words* consist of lower-case letters and digits. A record matches if, for each of the words, one of its
        texts has a word that begins with it. Records that do not match may be yielded too, so callers check each
        record.
        """
        raise NotImplementedError

    def last(self, team: str, kind: Kind[R]) -> int:
        """Return the highest number that was given to a record or message of this numbered *kind*; 0 if no number was
        given yet.
        """
        raise NotImplementedError

    def reserve(self, team: str, kind: Kind[R], number: int) -> None:
        """From now on, give new records of the *kind* only numbers above *number*."""
        raise NotImplementedError

    def journal(self, team: str, entry: dict[str, Any]) -> None:
        """Add an entry to the team's history. A crash may lose the entry. No record is lost by this, because records
        are never read from the history.
        """
        raise NotImplementedError

    def put_history(self, team: str, entries: Sequence[dict[str, Any]]) -> None:
        """Add entries to the history of a team that is being copied to this store from another one."""
        for entry in entries:
            self.journal(team, entry)

    def history(self, team: str, after: int = 0, backwards: bool = False) -> Iterator[tuple[int, dict[str, Any]]]:
        """Yield the entries of the team's history after position *after*, each with the position that follows it. With
        *backwards*, the last entry comes first.
        """
        raise NotImplementedError

    def pack(self, team: str, kind: Kind[R]) -> Iterator[tuple[str, bytes]]:
        """Yield the key and the stored bytes of all records of a kind, ordered by number or name.

        The key of a message is `<number>.<recipient>.<uid>`. If there are several recipients, `@` stands for them.

        Raises:
            DamagedRecord: A record has the wrong shape, so another store could not keep the record.
        """
        raise NotImplementedError

    def put(self, team: str, kind: Kind[R], key: str, data: bytes) -> None:
        """Store a record that `pack` yielded. A record with the same key is replaced.

        The caller makes sure that nobody works in the team while this runs. The team may be open or closed. Later, new
        records get numbers above the highest one stored.

        Raises:
            DamagedRecord: The record has the wrong shape.
        """
        raise NotImplementedError

    def put_messages(self, team: str, kind: Kind[R], packed: Sequence[tuple[str, bytes]]) -> None:
        """Store messages that `pack` yielded, and skip those that are stored already. As with `put`, the caller makes
        sure that nobody works in the team while this runs.
        """
        raise NotImplementedError

    def drop(
        self, team: str, kind: Kind[R], revision: Revision, once_gone: Callable[[], object] = lambda: None
    ) -> None:
        """Delete a closed team with all its records. *kind* is the kind of team records. *once_gone* is called as soon
        as there may be a new team of that name; deleting the files of the old one may take longer.

        Raises:
            StaleRevision: The team's record no longer has that *revision*; nothing was deleted.
            NotFound: There is no such team.
        """
        raise NotImplementedError

    def watch(self, team: str, topics: Collection[str] | None = None) -> Watch:
        """Return a watch for changes in the team on the *topics*; None stands for all topics. Sometimes the watch also
        wakes for a change on another topic.
        """
        raise NotImplementedError

    def admit(self, team: str, agents: Mapping[str, str], kinds: Sequence[Kind[Any]]) -> dict[str, str]:
        """Give each agent of a team a login of its own, and return the addresses of new logins by agent.

        *agents* maps each name to `leads` if the agent leads the team, `manages` if it manages the tasks, or else "".
        The *kinds* declare the changes that a login may make; all other changes are refused.

        Raises:
            InvalidValue: The engine has no logins.
            NotAllowed: The login of this process may not make logins.
        """
        raise NotImplementedError

    def examine(self, kinds: Sequence[Kind[Any]], fix: bool, only: str = "") -> Iterable[Finding]:
        """Yield what is wrong with the files or tables of the engine, for all teams or only for the team *only*. With
        *fix*, repair what can be repaired without a loss.
        """
        raise NotImplementedError

    def now(self) -> datetime:
        """Return the time by the store's clock, aware, in UTC."""
        return self.clock.now()

    def steady(self) -> tuple[str, float]:
        """Return the time by the store's steady clock: the id of an epoch, and the seconds since this epoch began.
        Times of different epochs can't be compared. A new epoch begins when the machine restarts, for example.
        """
        return self.clock.steady()

    def close(self) -> None:
        """Release connections and files that the engine holds."""
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
        logins: str = "",
    ) -> None:
        self.name = name
        self.record = record
        self.key = key
        """The attribute of a record that holds its key."""
        self.closes = closes
        """For the kind of teams, a function that returns whether a team's record says that the team is closed. None for
        all other kinds.
        """
        self.while_closed = False
        """Whether records of this kind may be changed in a closed team."""
        self.logins = logins
        """Which records of this kind an agent's login may change: `own` (the one under the agent's name), the name of
        another rule of the engine, or "" for none.
        """
        self.prefix = prefix or name
        """The word before the number in the id of a numbered record."""
        self.numbered = numbered
        self.label = label
        """A function that returns the label of a record, or None if the record has no label. None if the kind has no
        labels.
        """

    @property
    def even_in_closed_team(self) -> Kind[R]:
        """Return a copy of this kind with which records can be changed even in a closed team. Use it for changes that
        must still be possible there, such as noting that an agent has ended.
        """
        kind: Kind[R] = Kind.__new__(Kind)
        kind.__dict__.update(self.__dict__, while_closed=True)
        return kind

    def with_number(self, record: R, number: int) -> R:
        """Return the record with its number set to *number*, and with the id made from it.

        Raises:
            StorageFailed: The number is too high, so the id would not be valid.
        """
        self.refuse_too_high(number)
        numbers: dict[str, Any] = {"id": f"{self.prefix}-{number}"}
        if "number" in self.record.fields:
            numbers["number"] = number
        return record.numbered(**numbers)

    def refuse_too_high(self, number: int) -> None:
        """Raise StorageFailed if the *number* is so high that a record with this number could not be read again."""
        if not is_number(str(number)):
            hint = "Look at the highest number that is there: `teams` did not give it."
            raise errors.StorageFailed(f"there can't be a {self.prefix}-{number}", hint)

    def with_numbers(self, first: int, count: int, make: Callable[[list[str]], list[R]]) -> list[R]:
        """Return the records that *make* returns for a list of *count* new keys, numbered from *first* on."""
        records = make([f"{self.prefix}-{number}" for number in range(first, first + count)])
        return [self.with_number(record, number) for number, record in enumerate(records, start=first)]

    def number_in(self, key: str) -> int:
        """Return the number in the id of a numbered record; 0 if the key is not such an id."""
        prefix, _, digits = key.rpartition("-")
        return int(digits) if prefix == self.prefix and is_number(digits) else 0


EVERY_TOPIC = frozenset("*")
"""The topics of a change about which nothing is known: only `*`, because it may concern everybody."""


def topics_of(kind: Kind[Any], key: str, label: str | None) -> frozenset[str]:
    """Return the topics of a change of the record under *key*. The change wakes each watch for one of these topics.
    *label* is the record's label after the change; None if the record has no label.
    """
    labels = {f"{kind.name}:{label or ''}"} if kind.label else set()
    return frozenset({kind.name, f"{kind.name}/{key}", *labels})


def concerns(topics: Collection[str] | None, heard: frozenset[str]) -> bool:
    """Whether a change with the topics *heard* ends a wait for changes on *topics*. If *topics* is None, every change
    ends the wait.
    """
    return topics is None or "*" in heard or not heard.isdisjoint(topics)


_PATIENCE = 10.0
"""The minimum number of seconds for which a change is retried while other writers keep getting in first."""


def get_if_there(store: Store, team: str, kind: Kind[R], key: str) -> R | None:
    """Return the record of this kind with the *key*; None if there is none."""
    try:
        return store.get(team, kind, key)[0]
    except errors.NotFound:
        return None


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
    *fresh*, create the record that it returns, and return *fresh* and the new record.
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
    that *change* returns unchanged become durable, as in `update`. If another writer was first, all changes are
    retried.

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
