"""The engine for many machines: records in PostgreSQL as jsonb to read with SQL, beside their exact text.

Each operation is one transaction. Numbers are given under the lock of a row of the team, so that their order is that
of commitment; a revision is the transaction that wrote the record; the time is the server's. Nothing is kept in a
session of the server from one transaction to the next, so that a pooler may give each another; who waits is told of
changes by the watcher of its machine, see `watches.py`.
"""

from __future__ import annotations

import os

from teams_cli import errors
from teams_cli.names import is_name
from teams_cli.records.records import Record
from teams_cli.store import documents
from teams_cli.store.contract import Kind, Store
from teams_cli.store.documents import encode
from teams_cli.store.files import disk, root_directory
from teams_cli.store.files.message_log import check_addressees
from teams_cli.store.postgres import copies, counters, journal, marks, schema, together
from teams_cli.store.postgres.clock import ServerClock
from teams_cli.store.postgres.connections import Connection, Server, Taken, number_taken
from teams_cli.store.topics import EVERY_TOPIC, topics_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
    from typing import Any, TypeVar

    from teams_cli.clock import Clock
    from teams_cli.store.contract import Finding
    from teams_cli.store.postgres.line import Place
    from teams_cli.store.watch import Watch

    R = TypeVar("R", bound=Record)
    T = TypeVar("T")

_PAYLOAD = 7900
"""Bytes; a notification takes 8,000."""
_MADE = """WITH {before}made AS ({sql})
    INSERT INTO changes (id, team) SELECT %s, %s FROM made LIMIT 1 RETURNING xmin::text, {told}"""
_TOLD = "pg_notify(%s, %s)"
_INSERT = "INSERT INTO records (team, kind, key, label, body) VALUES (%s, %s, %s, %s, %s)"
_CREATE = f"{_INSERT} ON CONFLICT DO NOTHING RETURNING 1"
_CREATE_NEXT = f"{_INSERT} RETURNING 1"
_REPLACE = """UPDATE records SET label = %s, body = %s, changed_at = clock_timestamp()
    WHERE team = %s AND kind = %s AND key = %s AND xmin = %s::xid RETURNING 1"""
_APPEND = "INSERT INTO messages (team, number, uid, recipients, body) VALUES (%s, %s, %s, %s, %s) RETURNING 1"
_NEWS = """SELECT last, number, body FROM counters LEFT JOIN messages
    ON messages.team = counters.team AND number > %s AND %s = ANY (recipients)
    WHERE counters.team = %s AND kind = %s ORDER BY number"""


class PostgresStore(Store):
    """Records in the database at *address*; *root* is for what belongs to this machine, which is called *host*.

    A change waits at most *lock_timeout* seconds for its turn, and everything *patience* seconds for the server. With
    *environ*, what it inherits, it may start the watcher of this machine, which is woken for all who wait here.
    """

    def __init__(
        self,
        address: str,
        root: str,
        clock: Clock | None = None,
        host: str = "",
        patience: float = 10.0,
        lock_timeout: float = 10.0,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        self.root = os.path.abspath(root)
        self.host = _host(host or os.uname().nodename)
        self.variables = {"TEAMS_HOME": self.root, "TEAMS_STORE": address, "TEAMS_HOST": self.host}
        root_directory.check_owner(self.root)
        self.lock_timeout = lock_timeout
        self.server = Server(address, patience, lock_timeout)
        self.address = self.server.name
        self._server_clock = ServerClock(self.server)
        self.clock = clock or self._server_clock
        self._made = False
        self.environ = environ or {}
        self.place: Place | None = None
        """Where the watcher of this machine is, once it was looked for."""

    def teams(self) -> list[str]:
        return sorted(name for (name,) in self.look("SELECT team FROM records WHERE kind = 'team'"))

    def create(self, team: str, kind: Kind[R], key: str | None, record: R) -> tuple[R, str]:
        body = encode(record)
        if key is None:
            return self._numbered(team, kind, record, None)
        values = [_checked(team), kind.name, _checked(key), label := _label(kind, record), body.decode()]
        revision = self.change(team, kind, _CREATE, values, topics=topics_of(kind, key, label))
        if revision is None:
            raise errors.AlreadyExists(f"there is a {kind.name} {key} already", "Choose another name.")
        return record, revision

    def change(
        self,
        team: str,
        kind: Kind[R],
        sql: str,
        values: Sequence[object],
        before: str = "",
        topics: Collection[str] = EVERY_TOPIC,
    ) -> str | None:
        """Carry out a statement that is the whole change; the revision that it makes, None if it changes nothing.

        *before* is what is to be done with it, as a `name AS (…), ` of its WITH.
        """

        def job(connection: Connection, change_id: str, sending: Callable[[str], None]) -> str | None:
            sending(change_id)
            made = connection.change(*self.as_change(sql, values, change_id, team, topics, before), kind.while_closed)
            return str(made[0][0]) if made else None

        revision = self._prepared().do_once(job)
        self.changed += revision is not None
        if revision is None or revision.isdigit():
            return revision
        return str(self.look("SELECT xmin::text FROM changes WHERE id = %s", [revision])[0][0])  # the connection broke

    def as_change(
        self, sql: str, values: Sequence[object], change_id: str, team: str, topics: Collection[str], before: str = ""
    ) -> tuple[str, list[object]]:
        """The statement with which the change also gets its row, and those are told who wait for it; its values."""
        noted = [change_id, team, self.channel(team), told(topics)]
        return _MADE.format(before=before, sql=sql, told=_TOLD), [*values, *noted]

    def _numbered(
        self, team: str, kind: Kind[R], record: R, message: tuple[Sequence[str], str] | None
    ) -> tuple[R, str]:
        """Create a record or append a message under the next number of its kind."""

        def job(connection: Connection, change_id: str, sending: Callable[[tuple[R, str]], None]) -> tuple[R, str]:
            bump = f"{counters.TAKE}, pg_current_xact_id()::xid::text"
            number, revision = connection.begin(bump, [_checked(team), kind.name, 1], kind.while_closed)[0]
            numbered = kind.numbering(record, number)
            body = encode(numbered).decode()
            key, label = getattr(numbered, kind.key), _label(kind, numbered)
            values, topics = [team, kind.name, key, label, body], topics_of(kind, key, label)
            if message is not None:
                values = [team, number, message[1], list(message[0]), body]
                topics = frozenset({"message", *(f"message/{name}" for name in message[0])})
            sending((numbered, revision))
            connection.commit(*self.as_change(_APPEND if message else _CREATE_NEXT, values, change_id, team, topics))
            return numbered, revision

        try:
            made = self._prepared().do_once(job)
            self.changed += 1
            return made
        except Taken:
            if message is not None:
                raise
            raise number_taken(kind.name) from None

    def create_all(self, team: str, kind: Kind[R], count: int, make: Callable[[list[str]], list[R]]) -> list[R]:
        return together.create_all(self, self._prepared(), _checked(team), kind, count, make)

    def get(self, team: str, kind: Kind[R], key: str) -> tuple[R, str]:
        if kind.name == "message":
            sql = "SELECT body, '' FROM messages WHERE team = %s AND number = %s"
            found = self.look(sql, [_checked(team), kind.number_in(key)])
        else:
            sql = "SELECT body, xmin::text FROM records WHERE team = %s AND kind = %s AND key = %s"
            found = self.look(sql, [_checked(team), kind.name, _checked(key)])
        if not found:
            raise errors.NotFound(f"there is no {kind.name} {key}")
        return self.decode(team, kind, key, found[0][0]), found[0][1]

    def scan(
        self, team: str, kind: Kind[R], problems: list[errors.TeamsError], keys: Collection[str] | None = None
    ) -> Iterator[tuple[R, str]]:
        sql, these = "SELECT key, body, xmin::text FROM records WHERE team = %s AND kind = %s", []
        if keys is not None:
            sql, these = f"{sql} AND key = ANY (%s)", [list(keys)]
        found = self.look(sql, [_checked(team), kind.name, *these])
        for key, body, revision in sorted(found, key=lambda row: (kind.number_in(row[0]), row[0])):
            try:
                yield self.decode(team, kind, key, body), revision
            except errors.TeamsError as problem:
                problems.append(problem)

    def labelled(self, team: str, kind: Kind[R], *labels: str) -> Iterator[str]:
        return marks.labelled(self, _checked(team), kind, labels)

    def by_label(self, team: str, kind: Kind[R]) -> Mapping[str, Collection[str]]:
        return marks.by_label(self, _checked(team), kind)

    def mark_anew(self, team: str, kind: Kind[R], keys: Collection[str]) -> None:
        marks.mark_anew(self, _checked(team), kind, keys)

    def holds(self, team: str, *kinds: str) -> set[str]:
        sql = """SELECT asked FROM unnest(%s::text[]) AS asked
            WHERE EXISTS (SELECT FROM records WHERE team = %s AND kind = asked)"""
        return {kind for (kind,) in self.look(sql, [[*kinds], _checked(team)])}

    def owing(self, team: str) -> list[tuple[str, str]]:
        sql = "SELECT kind, key FROM records WHERE team = %s AND record ? 'owed' ORDER BY kind, length(key), key"
        return list(self.look(sql, [_checked(team)]))

    def replace(self, team: str, kind: Kind[R], key: str, record: R, revision: str, lasting: bool = True) -> str:
        body, label = encode(record).decode(), _label(kind, record)
        where = [_checked(team), kind.name, _checked(key)]
        topics = topics_of(kind, key, label)
        made = self.change(team, kind, _REPLACE, [label, body, *where, revision], topics=topics)
        if made is None:
            found = self.look("SELECT xmin::text FROM records WHERE team = %s AND kind = %s AND key = %s", where)
            if not found:
                raise errors.NotFound(f"there is no {kind.name} {key}")
            if found == [(revision,)]:  # seen, and not to be changed: row-level security
                raise errors.NotAllowed(f"the database does not let you change {kind.name} {key}", "It is another's.")
            raise errors.StaleRevision(f"{kind.name} {key} was changed meanwhile", "Look at it again.")
        return made

    def confirm(self, team: str, kind: Kind[R], key: str) -> None:
        """Do nothing: a server that was not told otherwise shows nothing before it is durable."""

    def append(self, team: str, kind: Kind[R], to: Sequence[str], record: R, uid: str | None) -> tuple[R, bool]:
        check_addressees(to, uid)
        encode(record)
        earlier = self._with_uid(team, kind, uid) if uid is not None else None
        if earlier is None:
            try:
                return self._numbered(team, kind, record, (to, uid or os.urandom(8).hex()))[0], True
            except Taken:
                earlier = self._with_uid(team, kind, str(uid))
        if earlier is None:
            raise errors.Busy(f"a message with the uid {uid} was being stored", "Try again.")
        return earlier, False

    def _with_uid(self, team: str, kind: Kind[R], uid: str) -> R | None:
        found = self.look("SELECT number, body FROM messages WHERE team = %s AND uid = %s", [_checked(team), uid])
        return self.decode(team, kind, f"{kind.prefix}-{found[0][0]}", found[0][1]) if found else None

    def read(
        self, team: str, kind: Kind[R], agent: str | None, after: int, problems: list[errors.TeamsError], limit: int = 0
    ) -> list[R]:
        mine = "" if agent is None else " AND %s = ANY (recipients)"
        values = [_checked(team), after, *([] if agent is None else [agent]), limit or None]
        return self._messages(team, kind, f"number > %s{mine} ORDER BY number LIMIT %s", values, problems)

    def news(
        self, team: str, kind: Kind[R], agent: str, after: int, problems: list[errors.TeamsError]
    ) -> tuple[list[R], int]:
        """See the contract. Both are of one moment, so they take one round trip."""
        rows = self.look(_NEWS, [after, agent, _checked(team), kind.name])
        last = max([after, *(int(row[0]) for row in rows[:1])])
        found = [(number, body) for _, number, body in rows if number is not None]
        return self._decoded(team, kind, found, problems), last

    def envelopes(self, team: str, kind: Kind[R], after: int) -> Iterator[tuple[int, str, Sequence[str]]]:
        where = "team = %s AND number > %s"
        yield from self.look(f"SELECT number, uid, recipients FROM messages WHERE {where}", [_checked(team), after])

    def fetch(self, team: str, kind: Kind[R], numbers: Sequence[int], problems: list[errors.TeamsError]) -> list[R]:
        return self._messages(team, kind, "number = ANY (%s) ORDER BY number", [team, list(numbers)], problems)

    def _messages(
        self, team: str, kind: Kind[R], where: str, values: Sequence[object], problems: list[errors.TeamsError]
    ) -> list[R]:
        rows = self.look(f"SELECT number, body FROM messages WHERE team = %s AND {where}", values)
        return self._decoded(team, kind, rows, problems)

    def _decoded(
        self, team: str, kind: Kind[R], rows: Iterable[tuple[Any, ...]], problems: list[errors.TeamsError]
    ) -> list[R]:
        found = []
        for number, body in rows:
            try:
                found.append(self.decode(team, kind, f"{kind.prefix}-{number}", body))
            except errors.TeamsError as problem:
                problems.append(problem)
        return found

    def search(self, team: str, kind: Kind[R], words: Sequence[str], problems: list[errors.TeamsError]) -> Iterator[R]:
        from teams_cli.store.postgres.search import search

        return search(self, _checked(team), kind, words, problems)

    def last(self, team: str, kind: Kind[R]) -> int:
        found = self.look("SELECT last FROM counters WHERE team = %s AND kind = %s", [_checked(team), kind.name])
        return int(found[0][0]) if found else 0

    def reserve(self, team: str, kind: Kind[R], number: int) -> None:
        if number > self.last(team, kind):
            self._prepared().do(
                lambda connection: connection.change(counters.PASS, [_checked(team), kind.name, number])
            )

    def pack(self, team: str, kind: Kind[R]) -> Iterator[tuple[str, bytes]]:
        return copies.pack(self, _checked(team), kind)

    def put(self, team: str, kind: Kind[R], key: str, data: bytes) -> None:
        copies.put(self, _checked(team), kind, key, data)

    def put_messages(self, team: str, kind: Kind[R], packed: Sequence[tuple[str, bytes]]) -> None:
        copies.put_messages(self, _checked(team), kind, packed)

    def drop(self, team: str, kind: Kind[R], revision: str) -> None:
        from teams_cli.store.postgres.dropping import drop

        drop(self, _checked(team), kind, revision)

    def journal(self, team: str, entry: dict[str, Any]) -> None:
        """Note it; the change that it tells of is made already, so a server that refuses is no reason to fail."""
        try:
            self.put_history(team, [entry])
        except (errors.TeamsError, Taken):
            return

    def put_history(self, team: str, entries: Sequence[dict[str, Any]]) -> None:
        journal.note(self._prepared(), _checked(team), entries, self.channel(team, "h"))

    def history(self, team: str, after: int = 0, backwards: bool = False) -> Iterator[tuple[int, dict[str, Any]]]:
        return journal.entries(self.look, _checked(team), after, backwards)

    def watch(self, team: str, topics: Collection[str] | None = None) -> Watch:
        from teams_cli.store.postgres.watches import watch

        return watch(self, _checked(team), topics)

    def admit(self, team: str, agents: Mapping[str, str], kinds: Sequence[Kind[Any]]) -> dict[str, str]:
        from teams_cli.store.postgres.logins import admit

        return admit(self._prepared(), _checked(team), agents, kinds)

    def examine(self, kinds: Sequence[Kind[Any]], fix: bool, only: str = "") -> Iterable[Finding]:
        from teams_cli.store.postgres.examination import examine

        return examine(self, kinds, only)

    def close(self) -> None:
        self.server.close()

    def channel(self, team: str, suffix: str = "") -> str:
        """What is notified of every change in the team; with the suffix `h`, of notes in its history."""
        try:
            from _md5 import md5  # type: ignore[import-not-found]  # as `hashlib` has it, at a tenth of the cost
        except ImportError:
            from hashlib import md5
        return f"teams{suffix}_{md5(f'{self.server.schema} {team}'.encode(), usedforsecurity=False).hexdigest()}"

    def _prepared(self) -> Server:
        """The server, with tables as this version needs them."""
        if not self._made:
            disk.make_directories(f"{self.root}/tmp", self.root)
            schema.prepare(self.server)
            self._made = True
        return self.server

    def look(self, sql: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        if not self._made:
            self._made = self._server_clock.begin() == schema.VERSION
        return self.server.look(sql, values)

    def decode(self, team: str, kind: Kind[R], key: str, body: str) -> R:
        return documents.decode(body.encode(), kind, key, f"{self.address}: {team}/{kind.name}/{key}")


def _host(name: str) -> str:
    """The name without what would not fit into a record."""
    return "".join(c if c.isascii() and (c.isalnum() or c in "-_.") else "-" for c in name)[:64]


def told(topics: Collection[str]) -> str:
    """What those who listen are told of a change: its topics, as far as a notification holds them."""
    said = " ".join(sorted(topics))
    return said if len(said) < _PAYLOAD else "*"


def _label(kind: Kind[R], record: R) -> str | None:
    return kind.label(record) if kind.label else None


def _checked(name: str) -> str:
    """The name; what is none, nothing is called."""
    if not is_name(name):
        raise errors.NotFound(f"there is nothing called {name!r}")
    return name
