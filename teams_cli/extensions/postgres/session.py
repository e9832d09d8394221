"""A session with one store in PostgreSQL: reads, changes and decodes records, and knows the server's time."""

from __future__ import annotations

from teams_cli import errors
from teams_cli.clock import SystemClock, of_epoch
from teams_cli.extensions.postgres import schema
from teams_cli.extensions.postgres.connections import Connection, Missing, Server
from teams_cli.store import documents
from teams_cli.store.contract import EVERY_TOPIC, count_change
from teams_cli.store.files import disk

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence
    from datetime import datetime
    from typing import Any, TypeVar

    from teams_cli.records.records import Record
    from teams_cli.store.contract import Kind

    R = TypeVar("R", bound=Record)
    T = TypeVar("T")

_PUT = """INSERT INTO counters (team, kind, last) VALUES (%s, %s, %s)
    ON CONFLICT (team, kind) DO UPDATE SET last = """
TAKE = f"{_PUT}counters.last + excluded.last RETURNING last"
"""SQL that takes the next numbers of a kind in a team, as many as given, and returns the last of them."""
PASS = f"{_PUT}greatest(counters.last, excluded.last)"
"""SQL that marks all numbers of a kind in a team as used, up to a given number."""
_LONGEST_PAYLOAD = 7900
"""The maximum size of a notification's payload, in bytes; the server limits it to 8,000."""
_CHANGE = """WITH {before}made AS ({sql})
    INSERT INTO changes (id, team) SELECT %s, %s FROM made LIMIT 1 RETURNING xmin::text, pg_notify(%s, %s)"""
_ASK_AGAIN = 30.0
"""Seconds after which the server is asked for its time again."""
_NO_REVISION = "0"
"""A revision that no record has: who changes the record next has to read it first."""
_TIME = "extract(epoch FROM clock_timestamp())::float8"


class Session:
    """Reads and changes one store; *root* has the files of this machine."""

    def __init__(self, server: Server, root: str) -> None:
        self.server = server
        self.address = server.name
        """The address of the store without its password."""
        self.clock = ServerClock(server)
        self._root = root
        self._is_prepared = False
        """Whether the tables are known to be of this version."""

    def prepared(self) -> Server:
        """Return the server, to change it. On the first call, update its tables to the version of this program."""
        if not self._is_prepared:
            disk.make_directories(f"{self._root}/tmp", self._root)
            schema.prepare(self.server)
            self._is_prepared = True
        return self.server

    def do_once(self, job: Callable[[Connection, str, Callable[[T], None]], T]) -> T:
        """Run *job*, which makes a change exactly once: see `Server.do_once`.

        Raises:
            Busy: The tables were removed since this process last used them. The next change makes them again.
        """
        try:
            return self.prepared().do_once(job)
        except Missing:
            self._is_prepared = False
            hint = "Nothing was changed. Restore them from a backup, or try again: new tables are made then."
            raise errors.Busy(f"the tables at {self.address} were removed meanwhile", hint) from None

    def look(self, sql: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """Return the rows of a statement that only reads. Unless the tables are known to be up to date, check them."""
        if not self._is_prepared:
            self._is_prepared = self.clock.begin() == schema.VERSION
        return self.server.look(sql, values)

    def decode(self, team: str, kind: Kind[R], key: str, body: str) -> R:
        """Return the record whose text is *body*."""
        return documents.decode(body.encode(), kind, key, f"{self.address}: {team}/{kind.name}/{key}")

    def change(
        self,
        team: str,
        kind: Kind[R],
        sql: str,
        values: Sequence[object],
        before: str = "",
        topics: Collection[str] = EVERY_TOPIC,
    ) -> str | None:
        """Run *sql*, a statement that makes the whole change. Return the change's revision, or None if nothing was
        changed.

        *before* has further statements for the WITH of this statement, in the form `name AS (…), `. *topics* say what
        the change concerns, so that it wakes the processes that wait for one of them.
        """

        def job(connection: Connection, change_id: str, note_answer: Callable[[str], None]) -> str | None:
            note_answer(change_id)  # instead of the revision, which is not known before the commit
            rows = connection.change(*self.as_change(sql, values, change_id, team, topics, before), kind.while_closed)
            return str(rows[0][0]) if rows else None

        revision = self.do_once(job)
        if revision is None:
            return None
        count_change()
        if revision.isdigit():
            return revision
        # The connection broke after the commit, so `job` could only answer with the id of the change.
        try:
            return str(self.look("SELECT xmin::text FROM changes WHERE id = %s", [revision])[0][0])
        except errors.TeamsError:  # the change is made all the same
            return _NO_REVISION

    def as_change(
        self, sql: str, values: Sequence[object], change_id: str, team: str, topics: Collection[str], before: str = ""
    ) -> tuple[str, list[object]]:
        """Return a statement that makes the change *sql*, stores *change_id* with it and notifies waiting processes.
        Also return the values for that statement.
        """
        payload = " ".join(sorted(topics))
        if len(payload) >= _LONGEST_PAYLOAD:
            payload = "*"  # stands for every topic
        return _CHANGE.format(before=before, sql=sql), [*values, change_id, team, self.channel(team), payload]

    def channel(self, team: str, suffix: str = "") -> str:
        """Return the channel on which the server announces changes of a team. With the *suffix* `h`, return the channel
        for changes of the team's history.
        """
        try:
            from _md5 import md5  # type: ignore[import-not-found]  # `hashlib` takes ten times as long to import
        except ImportError:
            from hashlib import md5
        return f"teams{suffix}_{md5(f'{self.server.schema} {team}'.encode(), usedforsecurity=False).hexdigest()}"


class ServerClock:
    """The clock of the server. The server is asked for the time now and then; in between, this machine's monotonic
    clock is used.
    """

    def __init__(self, server: Server) -> None:
        self._server = server
        self._local = SystemClock()
        self._asked_at = -_ASK_AGAIN
        self._offset = 0.0
        """The server's time minus the time of the local clock, in seconds."""
        self._store_id = ""
        """The identity of the store; "" while the store has no tables."""

    def begin(self) -> int:
        """Ask the server for its time and for the version of the tables, in one query. Set the clock, and return the
        version; it is 0 if there are no tables.
        """
        self._server.whereabouts()  # connects first, so that the measured time is only that of the question
        return schema.checked_version(self._server, self._ask(f"SELECT {_TIME}, store, version FROM format"))

    def now(self) -> datetime:
        """Return the server's time in UTC. It is off by the time of one round trip at most."""
        return of_epoch(self.steady()[1])

    def steady(self) -> tuple[str, float]:
        """Return the identity of the store, and the server's time in seconds, which all machines share."""
        seconds = self._local.steady()[1]
        if seconds - self._asked_at >= _ASK_AGAIN:
            if not self._ask(f"SELECT {_TIME}, store FROM format"):  # no tables yet
                self._ask(f"SELECT {_TIME}, ''")
            seconds = self._local.steady()[1]
        return self._store_id, seconds + self._offset

    def _ask(self, sql: str) -> list[tuple[Any, ...]]:
        """Run *sql*, a query for the server's time and the store's identity. Set the clock, and return the rows."""
        before = self._local.steady()[1]
        rows = self._server.look(sql)
        after = self._local.steady()[1]
        if rows:
            seconds, self._store_id = rows[0][:2]
            self._offset = seconds - (before + after) / 2  # the server looked at its clock about in the middle
            if self._store_id:  # without tables, ask again each time
                self._asked_at = after
        return rows
