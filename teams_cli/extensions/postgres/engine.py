"""The engine for many machines: keeps records in PostgreSQL as exact text, and also as jsonb for reading with SQL.

Each operation is one transaction. Numbers are given under the lock of a row of the team, so they are in the order of
the commits. A revision is the id of the transaction that wrote the record. The time is the server's. No transaction
relies on the session of an earlier one, so a pooler may change sessions between transactions. The watcher of each
machine notifies waiting processes of changes: see `watches.py`.
"""

from __future__ import annotations

import os

from teams_cli import errors
from teams_cli.extensions.postgres import schema
from teams_cli.extensions.postgres.connections import Connection, Missing, Server, Taken
from teams_cli.extensions.postgres.session import PASS, TAKE, Session
from teams_cli.names import is_name
from teams_cli.records.records import Record
from teams_cli.store.contract import Kind, Store, count_change, topics_of
from teams_cli.store.documents import dumps, encode, loads
from teams_cli.store.files import disk
from teams_cli.store.files.message_log import check_addressees

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
    from typing import Any, TypeVar

    from teams_cli.clock import Clock
    from teams_cli.extensions.postgres.line import Place
    from teams_cli.store.contract import Finding, Watch

    R = TypeVar("R", bound=Record)
    T = TypeVar("T")

_CREATE = """INSERT INTO records (team, kind, key, label, body) VALUES (%s, %s, %s, %s, %s)
    ON CONFLICT DO NOTHING RETURNING 1"""
_CREATE_ALL = """INSERT INTO records (team, kind, key, label, body)
    SELECT %s, %s, new.key, new.label, new.body
    FROM unnest(%s::text[], %s::text[], %s::text[]) AS new (key, label, body) RETURNING 1"""
_REPLACE = """UPDATE records SET label = %s, body = %s, changed_at = clock_timestamp()
    WHERE team = %s AND kind = %s AND key = %s AND xmin = %s::xid RETURNING 1"""
_LOCK_ALL = """SELECT 1 FROM records, unnest(%s::text[], %s::text[]) AS old (key, revision) WHERE team = %s
    AND kind = %s AND records.key = old.key AND records.xmin = old.revision::xid FOR UPDATE OF records"""
_REPLACE_ALL = """UPDATE records SET label = new.label, body = new.body, changed_at = clock_timestamp()
    FROM unnest(%s::text[], %s::text[], %s::text[]) AS new (key, label, body)
    WHERE team = %s AND kind = %s AND records.key = new.key RETURNING 1"""
_APPEND = "INSERT INTO messages (team, number, uid, recipients, body) VALUES (%s, %s, %s, %s, %s) RETURNING 1"
_NEWS = """SELECT last, number, body FROM counters LEFT JOIN messages
    ON messages.team = counters.team AND number > %s AND %s = ANY (recipients)
    WHERE counters.team = %s AND kind = %s ORDER BY number"""
_ASYNCHRONOUSLY = "SET LOCAL synchronous_commit TO off; "
_ADD_TO_HISTORY = f"""WITH next AS ({TAKE}), added AS (INSERT INTO history (team, position, entry)
        SELECT %s, last - %s + new.nth, new.entry::json
        FROM next, unnest(%s::text[]) WITH ORDINALITY AS new (entry, nth) RETURNING 1)
    INSERT INTO changes (id, team) SELECT %s, %s FROM added LIMIT 1 RETURNING pg_notify(%s, %s)"""
_BEYOND_ALL = 1 << 62
"""A number above the numbers of all messages and of all entries of the history."""
_PAGE = 500
_INDEXED_SINCE = 12
"""The first version of the tables that has an index of words."""
_FIRST = 64
"""The number of keys that the first query reads; most callers need no more."""
_LABELLED = """SELECT key FROM records WHERE team = %s AND kind = %s AND label = ANY (%s)
    AND (length(key), key) > (%s, %s) ORDER BY length(key), key LIMIT %s"""
_BY_LABEL = """SELECT coalesce(label, ''), array_agg(key) FROM records WHERE team = %s AND kind = %s
    GROUP BY coalesce(label, '')"""
# A record that was changed since it was read has the label of that change.
_LABEL = """UPDATE records SET label = new.label
    FROM unnest(%s::text[], %s::text[], %s::text[]) AS new (key, label, revision)
    WHERE team = %s AND kind = %s AND records.key = new.key AND records.xmin = new.revision::xid
        AND records.label IS DISTINCT FROM new.label"""


_TO_SEVERAL = "@"
"""Takes the place of the recipient in the key of a packed message that has several recipients."""
_COUNTED = f"counted AS ({PASS}), "
_PUT = """INSERT INTO records (team, kind, key, label, body) VALUES (%s, %s, %s, %s, %s)
    ON CONFLICT (team, kind, key) DO UPDATE SET label = excluded.label, body = excluded.body,
    changed_at = clock_timestamp() RETURNING 1"""
_PUT_MESSAGES = """INSERT INTO messages (team, number, uid, recipients, body)
    SELECT %s, new.number, new.uid, string_to_array(new.recipients, ' '), new.body
    FROM unnest(%s::bigint[], %s::text[], %s::text[], %s::text[]) AS new (number, uid, recipients, body)
    ON CONFLICT DO NOTHING RETURNING 1"""
_IF_GONE = "team = %s AND EXISTS (SELECT 1 FROM gone)"
_DROP = f"""gone AS (DELETE FROM records WHERE team = %s AND kind = %s AND key = %s AND xmin = %s::xid
    AND record->>'state' = 'closed' RETURNING 1),
    no_records AS (DELETE FROM records WHERE kind <> 'team' AND {_IF_GONE}),
    no_messages AS (DELETE FROM messages WHERE {_IF_GONE}), no_history AS (DELETE FROM history WHERE {_IF_GONE}),
    no_counters AS (DELETE FROM counters WHERE {_IF_GONE}), no_logins AS (DELETE FROM logins WHERE {_IF_GONE}), """


class PostgresStore(Store):
    """Keeps records in the database at *address*. The files of this machine are in *root*; *host* is the machine's
    name.

    A change waits at most *lock_timeout* seconds for locks, and every operation waits at most *patience* seconds for
    the server. *environ* is the environment for the watcher of this machine; without it no watcher is started.
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
        host = host or os.uname().nodename
        # The name is reduced to the characters and the length that records allow.
        characters = [char if char.isascii() and (char.isalnum() or char in "-_.") else "-" for char in host]
        self.host = "".join(characters)[:64]
        self.variables = {"TEAMS_HOME": self.root, "TEAMS_STORE": address, "TEAMS_HOST": self.host}
        disk.check_owner(self.root)
        self.lock_timeout = lock_timeout
        self.server = Server(address, patience, lock_timeout)
        self.address = self.server.name
        self.session = Session(self.server, self.root)
        self._look = self.session.look
        """A function that runs a statement which only reads, and returns its rows."""
        self.clock = clock or self.session.clock
        self.environ = environ or {}
        self.place: Place | None = None
        """The place of this machine's watcher; None until it is first needed."""

    def teams(self) -> list[str]:
        return sorted(name for (name,) in self._look("SELECT team FROM records WHERE kind = 'team'"))

    def create(self, team: str, kind: Kind[R], key: str | None, record: R) -> tuple[R, str]:
        if key is None:
            encode(kind.with_number(record, 1))  # refuses an invalid record before it gets a number
            records, revision = self._create_numbered(team, kind, 1, lambda keys: [record])
            return records[0], revision
        label, body = _label(kind, record), encode(record).decode()
        values = [_checked(team), kind.name, _checked(key), label, body]
        new_revision = self.session.change(team, kind, _CREATE, values, topics=topics_of(kind, key, label))
        if new_revision is None:
            if kind.closes:  # a team, whose name may differ in case
                existing = next((name for name in self.teams() if name.lower() == key.lower()), key)
                raise errors.AlreadyExists(f"there is a team {existing} already", "Choose another name, or join it.")
            raise errors.AlreadyExists(f"there is a {kind.name} {key} already", "Choose another name.")
        return record, new_revision

    def create_all(self, team: str, kind: Kind[R], count: int, make: Callable[[list[str]], list[R]]) -> list[R]:
        return self._create_numbered(team, kind, count, make)[0]

    def _create_numbered(
        self, team: str, kind: Kind[R], count: int, make: Callable[[list[str]], list[R]]
    ) -> tuple[list[R], str]:
        """Store *count* new records, as `create_all` does, and return them with their common revision."""
        _checked(team)

        def job(
            connection: Connection, change_id: str, note_answer: Callable[[tuple[list[R], str]], None]
        ) -> tuple[list[R], str]:
            take = f"{TAKE}, pg_current_xact_id()::xid::text"
            counter = [team, kind.name, count]
            [(last, revision)] = connection.begin(take, counter, even_in_closed_team=kind.while_closed)
            records = kind.with_numbers(last - count + 1, count, make)
            keys, labels, bodies, topics = _columns(kind, records)
            note_answer((records, revision))  # the commit may succeed although its reply is lost
            values = [team, kind.name, keys, labels, bodies]
            connection.commit(*self.session.as_change(_CREATE_ALL, values, change_id, team, topics))
            return records, revision

        def job_of_login(
            connection: Connection, change_id: str, note_answer: Callable[[tuple[list[R], str]], None]
        ) -> tuple[list[R], str]:
            """Store the records as `job` does, but take each number just before its record, as logins must."""
            take, counter = f"{TAKE}, pg_current_xact_id()::xid::text", [team, kind.name, 1]
            [(first, revision)] = connection.begin(take, counter, even_in_closed_team=kind.while_closed)
            records = kind.with_numbers(first, count, make)
            *columns, topics = _columns(kind, records)
            rows = [[team, kind.name, *([value] for value in row)] for row in zip(*columns, strict=True)]
            for row in rows[:-1]:
                connection.rows(f"{_CREATE_ALL}; {TAKE}", [*row, *counter])
            note_answer((records, revision))
            connection.commit(*self.session.as_change(_CREATE_ALL, rows[-1], change_id, team, topics))
            return records, revision

        try:
            try:
                created = self.session.do_once(job)
            except errors.NotAllowed:
                if count == 1:
                    raise
                created = self.session.do_once(job_of_login)
        except Taken:
            problem = f"the next number of {kind.name} is taken"
            raise errors.StorageFailed(problem, "Check the table counters.") from None
        count_change()
        return created

    def get(self, team: str, kind: Kind[R], key: str) -> tuple[R, str]:
        if kind.name == "message":
            sql = "SELECT body, '' FROM messages WHERE team = %s AND number = %s"  # messages need no revision
            rows = self._look(sql, [_checked(team), kind.number_in(key)])
        else:
            sql = "SELECT body, xmin::text FROM records WHERE team = %s AND kind = %s AND key = %s"
            rows = self._look(sql, [_checked(team), kind.name, _checked(key)])
        if not rows:
            raise errors.NotFound(f"there is no {kind.name} {key}")
        return self.session.decode(team, kind, key, rows[0][0]), rows[0][1]

    def scan(
        self, team: str, kind: Kind[R], problems: list[errors.TeamsError], keys: Collection[str] | None = None
    ) -> Iterator[tuple[R, str]]:
        sql = "SELECT key, body, xmin::text FROM records WHERE team = %s AND kind = %s"
        values: list[Any] = [_checked(team), kind.name]
        if keys is not None:
            sql += " AND key = ANY (%s)"
            values.append(list(keys))
        rows = sorted(self._look(sql, values), key=lambda row: (kind.number_in(row[0]), row[0]))
        yield from self._decoded(team, kind, rows, problems)

    def labelled(self, team: str, kind: Kind[R], *labels: str) -> Iterator[str]:
        values = [_checked(team), kind.name, list(labels)]
        first = self._look(_LABELLED, [*values, 0, "", _FIRST])
        yield from (key for (key,) in first)
        if len(first) == _FIRST:
            last_key = first[-1][0]
            others = self._look(_LABELLED, [*values, len(last_key), last_key, None])
            yield from (key for (key,) in others)

    def by_label(self, team: str, kind: Kind[R]) -> Mapping[str, Collection[str]]:
        return dict(self._look(_BY_LABEL, [_checked(team), kind.name]))

    def correct_hints(self, team: str, kind: Kind[R], keys: Collection[str]) -> None:
        """Write the labels of records that an older version stored without labels, because records are searched by
        their labels. If the login of this process may not write them, do nothing.
        """
        if kind.label is None:
            return
        records = list(self.scan(team, kind, [], keys))
        if not records:
            return
        keys_of_records = [getattr(record, kind.key) for record, _ in records]
        labels = [kind.label(record) for record, _ in records]
        values = [keys_of_records, labels, [revision for _, revision in records], _checked(team), kind.name]
        try:
            self.server.do(lambda connection: connection.change(_LABEL, values, even_in_closed_team=True))
        except (errors.TeamsError, Missing):  # an agent's login may not, or a record is being changed
            return

    def holds(self, team: str, *kinds: str) -> set[str]:
        sql = """SELECT asked FROM unnest(%s::text[]) AS asked
            WHERE EXISTS (SELECT FROM records WHERE team = %s AND kind = asked)"""
        return {kind for (kind,) in self._look(sql, [[*kinds], _checked(team)])}

    def owing(self, team: str) -> list[tuple[str, str]]:
        sql = "SELECT kind, key FROM records WHERE team = %s AND record ? 'owed' ORDER BY kind, length(key), key"
        return list(self._look(sql, [_checked(team)]))

    def replace(self, team: str, kind: Kind[R], key: str, record: R, revision: str, lasting: bool = True) -> str:
        body, label = encode(record).decode(), _label(kind, record)  # the server makes every change *lasting*
        where = [_checked(team), kind.name, _checked(key)]
        topics = topics_of(kind, key, label)
        new_revision = self.session.change(team, kind, _REPLACE, [label, body, *where, revision], topics=topics)
        if new_revision is not None:
            return new_revision
        rows = self._look("SELECT xmin::text FROM records WHERE team = %s AND kind = %s AND key = %s", where)
        if not rows:
            raise errors.NotFound(f"there is no {kind.name} {key}")
        if rows == [(revision,)]:  # row-level security shows the record, and does not let it be changed
            raise errors.NotAllowed(
                f"the database does not let you change {kind.name} {key}",
                "Your login may change only what is yours. Ask the leader: teams send-message leader TEXT. After a"
                " hand-over, whoever makes the logins must first repeat: teams set-up-roles",
            )
        raise errors.StaleRevision(f"{kind.name} {key} was changed meanwhile", "Read it again.")

    def replace_all(self, team: str, kind: Kind[R], changed: Sequence[tuple[R, str]]) -> None:
        _checked(team)
        keys, labels, bodies, topics = _columns(kind, [record for record, _ in changed])

        def job(connection: Connection, change_id: str, note_answer: Callable[[None], None]) -> None:
            revisions = [revision for _, revision in changed]
            to_lock = [keys, revisions, team, kind.name]
            locked = connection.begin(_LOCK_ALL, to_lock, even_in_closed_team=kind.while_closed)
            if len(locked) < len(keys):  # only records that still have their revision were locked
                connection.roll_back()
                raise errors.StaleRevision(f"one {kind.name} was changed meanwhile", "Read it again.")
            note_answer(None)  # this job answers nothing; from here on, the change may be committed
            values = [keys, labels, bodies, team, kind.name]
            connection.commit(*self.session.as_change(_REPLACE_ALL, values, change_id, team, topics))

        self.session.do_once(job)
        count_change()

    def confirm(self, team: str, kind: Kind[R], key: str) -> None:
        """Do nothing: every record that a server shows is durable, unless the server is configured otherwise."""

    def append(self, team: str, kind: Kind[R], to: Sequence[str], record: R, uid: str | None) -> tuple[R, bool]:
        check_addressees(to, uid)
        encode(kind.with_number(record, 1))  # refuses an invalid record before it gets a number
        earlier = self._message_with_uid(team, kind, uid) if uid is not None else None
        if earlier is None:
            try:
                return self._append_numbered(team, kind, to, record, uid or os.urandom(8).hex()), True
            except Taken:  # another process stored the same uid meanwhile
                earlier = self._message_with_uid(team, kind, str(uid))
        if earlier is None:
            raise errors.Busy(f"a message with the uid {uid} was being stored", "Try again.")
        return earlier, False

    def _append_numbered(self, team: str, kind: Kind[R], to: Sequence[str], record: R, uid: str) -> R:
        """Store a message under the next number, and return it. Raise Taken if a message has this uid already."""

        def job(connection: Connection, change_id: str, note_answer: Callable[[R], None]) -> R:
            counter = [_checked(team), kind.name, 1]
            [(number,)] = connection.begin(TAKE, counter, even_in_closed_team=kind.while_closed)
            message = kind.with_number(record, number)
            values = [team, number, uid, list(to), encode(message).decode()]
            note_answer(message)  # the commit may succeed although its reply is lost
            topics = {"message", *(f"message/{name}" for name in to)}
            connection.commit(*self.session.as_change(_APPEND, values, change_id, team, topics))
            return message

        message = self.session.do_once(job)
        count_change()
        return message

    def _message_with_uid(self, team: str, kind: Kind[R], uid: str) -> R | None:
        rows = self._look("SELECT number, body FROM messages WHERE team = %s AND uid = %s", [_checked(team), uid])
        return self.session.decode(team, kind, f"{kind.prefix}-{rows[0][0]}", rows[0][1]) if rows else None

    def read(
        self, team: str, kind: Kind[R], agent: str | None, after: int, problems: list[errors.TeamsError], limit: int = 0
    ) -> list[R]:
        where, values = "number > %s", [_checked(team), after]
        if agent is not None:
            where += " AND %s = ANY (recipients)"
            values.append(agent)
        return self._messages(team, kind, f"{where} ORDER BY number LIMIT %s", [*values, limit or None], problems)

    def news(
        self, team: str, kind: Kind[R], agent: str, after: int, problems: list[errors.TeamsError]
    ) -> tuple[list[R], int]:
        """Return new messages and the last number: see `Store.news`. One statement reads both, so that they agree."""
        rows = self._look(_NEWS, [after, agent, _checked(team), kind.name])
        last = max(after, int(rows[0][0])) if rows else after  # each row has the last number
        rows = [(f"{kind.prefix}-{number}", body, "") for _, number, body in rows if number is not None]
        return [message for message, _ in self._decoded(team, kind, rows, problems)], last

    def envelopes(self, team: str, kind: Kind[R], after: int) -> Iterator[tuple[int, str, Sequence[str]]]:
        where = "team = %s AND number > %s"
        yield from self._look(f"SELECT number, uid, recipients FROM messages WHERE {where}", [_checked(team), after])

    def fetch(self, team: str, kind: Kind[R], numbers: Sequence[int], problems: list[errors.TeamsError]) -> list[R]:
        return self._messages(team, kind, "number = ANY (%s) ORDER BY number", [team, list(numbers)], problems)

    def _messages(
        self, team: str, kind: Kind[R], where: str, values: Sequence[object], problems: list[errors.TeamsError]
    ) -> list[R]:
        rows = self._look(f"SELECT number, body FROM messages WHERE team = %s AND {where}", values)
        rows = [(f"{kind.prefix}-{number}", body, "") for number, body in rows]
        return [message for message, _ in self._decoded(team, kind, rows, problems)]

    def _decoded(
        self, team: str, kind: Kind[R], rows: Iterable[tuple[Any, ...]], problems: list[errors.TeamsError]
    ) -> Iterator[tuple[R, str]]:
        """Decode rows with the key, the text and the revision of a record. Yield each record with its revision."""
        for key, body, revision in rows:
            try:
                yield self.session.decode(team, kind, key, body), revision
            except errors.TeamsError as problem:
                problems.append(problem)

    def search(self, team: str, kind: Kind[R], words: Sequence[str], problems: list[errors.TeamsError]) -> Iterator[R]:
        # Without a query, every record may match: the tables are older than the index, or it leaves out these words.
        query = None
        if schema.check(self.server) >= _INDEXED_SINCE:
            query = self._look("SELECT wanted(%s)::text", [list(words)])[0][0] or None
        rows_of = self._messages_having if kind.name == "message" else self._records_having
        rows = ((key, body, "") for key, body in rows_of(_checked(team), kind, query))
        yield from (record for record, _ in self._decoded(team, kind, rows, problems))

    def _records_having(self, team: str, kind: Kind[R], query: str | None) -> Iterator[tuple[str, str]]:
        """Yield the key and the text of each record that may match *query*, highest number first. None matches all."""
        sql, values = "SELECT key, body FROM records WHERE team = %s AND kind = %s", [team, kind.name]
        if query is not None:
            sql += " AND key = ANY (ARRAY (SELECT found_records(%s, %s, %s::tsquery)))"
            values += [team, kind.name, query]
        yield from sorted(self._look(sql, values), key=lambda row: (kind.number_in(row[0]), row[0]), reverse=True)

    def _messages_having(self, team: str, kind: Kind[R], query: str | None) -> Iterator[tuple[str, str]]:
        """Yield messages as `_records_having` yields records. They are read a page at a time, as there may be many."""
        sql = "SELECT number, body FROM messages WHERE team = %s AND number < %s"
        if query is not None:
            sql += " AND number = ANY (ARRAY (SELECT found_messages(%s, %s, %s::tsquery)))"
        sql += f" ORDER BY number DESC LIMIT {_PAGE}"
        before = _BEYOND_ALL
        while True:
            values = [team, before] if query is None else [team, before, team, before, query]
            rows = self._look(sql, values)
            if not rows:
                return
            yield from ((f"{kind.prefix}-{number}", body) for number, body in rows)
            before = rows[-1][0]

    def last(self, team: str, kind: Kind[R]) -> int:
        rows = self._look("SELECT last FROM counters WHERE team = %s AND kind = %s", [_checked(team), kind.name])
        return int(rows[0][0]) if rows else 0

    def reserve(self, team: str, kind: Kind[R], number: int) -> None:
        if number > self.last(team, kind):
            self.session.prepared().do(lambda connection: connection.change(PASS, [_checked(team), kind.name, number]))

    def pack(self, team: str, kind: Kind[R]) -> Iterator[tuple[str, bytes]]:
        if kind.name == "message":  # its key has the number, the recipient and the uid
            sql = "SELECT number, uid, body FROM messages WHERE team = %s ORDER BY number"
            rows = self._look(sql, [_checked(team)])
            for number, uid, body in rows:
                message = self.session.decode(team, kind, f"{kind.prefix}-{number}", body)
                to = _TO_SEVERAL if message.recipients else message.to  # type: ignore[attr-defined]
                yield f"{number}.{to}.{uid}", body.encode()
            return
        rows = self._look("SELECT key, body FROM records WHERE team = %s AND kind = %s", [_checked(team), kind.name])
        for key, body in sorted(rows, key=lambda row: (kind.number_in(row[0]), row[0])):
            self.session.decode(team, kind, key, body)  # refuses a damaged record
            yield key, body.encode()

    def put(self, team: str, kind: Kind[R], key: str, data: bytes) -> None:
        body = data.decode()
        record = self.session.decode(team, kind, key, body)
        values = [_checked(team), kind.name, key, _label(kind, record), body]
        if kind.numbered:  # also count the number as used
            to_count = [team, kind.name, kind.number_in(key)]
            self.session.change(team, kind.even_in_closed_team, _PUT, [*to_count, *values], _COUNTED)
        else:
            self.session.change(team, kind.even_in_closed_team, _PUT, values)

    def put_messages(self, team: str, kind: Kind[R], packed: Sequence[tuple[str, bytes]]) -> None:
        numbers, uids, recipients, bodies = [], [], [], []
        for key, data in packed:
            number, _, recipient_and_uid = key.partition(".")
            uid = recipient_and_uid.partition(".")[2]
            body = data.decode()
            message = self.session.decode(team, kind, f"{kind.prefix}-{number}", body)
            if not uid:
                what = f"{self.address}: {key!r}: no message has that name"
                raise errors.DamagedRecord(what, "Look where it comes from.")
            numbers.append(int(number))
            uids.append(uid)
            recipients.append(" ".join(message.recipients or [message.to]))  # type: ignore[attr-defined]
            bodies.append(body)
        values = [_checked(team), kind.name, max(numbers), team, numbers, uids, recipients, bodies]
        self.session.change(team, kind.even_in_closed_team, _PUT_MESSAGES, values, _COUNTED)

    def drop(self, team: str, kind: Kind[R], revision: str, once_gone: Callable[[], object] = lambda: None) -> None:
        where = [_checked(team), kind.name, team]  # the key of a team's own record is its name
        for_conditions = [team] * _DROP.count(_IF_GONE)
        if self.session.change(team, kind, "SELECT 1 FROM gone", [*where, revision, *for_conditions], _DROP) is None:
            if not self._look("SELECT 1 FROM records WHERE team = %s AND kind = %s AND key = %s", where):
                raise errors.NotFound(f"there is no {kind.name} {team}")
            raise errors.StaleRevision(f"{kind.name} {team} was changed meanwhile", "Read it again.")
        once_gone()

    def journal(self, team: str, entry: dict[str, Any]) -> None:
        try:
            self.put_history(team, [entry])
        except (errors.TeamsError, Taken):  # the change that the entry reports is already made
            return

    def put_history(self, team: str, entries: Sequence[dict[str, Any]]) -> None:
        to_count = [_checked(team), "history", len(entries)]
        to_insert = [team, len(entries), [dumps(entry) for entry in entries]]
        to_notify = [self.session.channel(team, "h"), "history"]

        def job(connection: Connection, change_id: str, note_answer: Callable[[None], None]) -> None:
            note_answer(None)  # the commit may succeed although its reply is lost; this job has no other answer
            connection.change(_ASYNCHRONOUSLY + _ADD_TO_HISTORY, [*to_count, *to_insert, change_id, team, *to_notify])

        self.session.do_once(job)

    def history(self, team: str, after: int = 0, backwards: bool = False) -> Iterator[tuple[int, dict[str, Any]]]:
        entries = "SELECT position, entry::text FROM history WHERE team = %s AND position > %s"
        if not backwards:
            for position, entry in self._look(f"{entries} ORDER BY position", [_checked(team), after]):
                yield position, loads(entry)
            return
        page = f"{entries} AND position < %s ORDER BY position DESC LIMIT %s"  # such readers stop early
        before = _BEYOND_ALL
        while rows := self._look(page, [_checked(team), after, before, _PAGE]):
            for position, entry in rows:
                yield position, loads(entry)
            before = rows[-1][0]

    def watch(self, team: str, topics: Collection[str] | None = None) -> Watch:
        from teams_cli.extensions.postgres.line import Place, name_of
        from teams_cli.extensions.postgres.watches import HostWatch

        if self.place is None:
            name = name_of(self.server.whereabouts())
            self.place = Place(self.root, name, self.variables, self.environ)
        channels = [self.session.channel(_checked(team))]
        if topics is None or "history" in topics:
            channels.append(self.session.channel(team, "h"))
        return HostWatch(self.server, self.place, team, channels, topics)

    def admit(self, team: str, agents: Mapping[str, str], kinds: Sequence[Kind[Any]]) -> dict[str, str]:
        return schema.admit(self.session.prepared(), _checked(team), agents, kinds)

    def examine(self, kinds: Sequence[Kind[Any]], fix: bool, only: str = "") -> Iterable[Finding]:
        from teams_cli.extensions.postgres.examination import examine

        return examine(self.session, self, kinds, only)

    def close(self) -> None:
        self.server.close()


def _label(kind: Kind[R], record: R) -> str | None:
    return kind.label(record) if kind.label else None


def _columns(kind: Kind[R], records: Sequence[R]) -> tuple[list[str], list[str | None], list[str], frozenset[str]]:
    """Return the keys, the labels and the texts of the records, and the topics of the change that stores them."""
    keys = [getattr(record, kind.key) for record in records]
    labels = [_label(kind, record) for record in records]
    topics_of_each = [topics_of(kind, key, label) for key, label in zip(keys, labels, strict=True)]
    bodies = [encode(record).decode() for record in records]
    return keys, labels, bodies, frozenset().union(*topics_of_each)


def _checked(name: str) -> str:
    if not is_name(name):
        raise errors.NotFound(f"there is nothing called {name!r}")
    return name
