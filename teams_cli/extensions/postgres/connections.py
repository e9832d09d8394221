"""Connections to a PostgreSQL server: made when needed, lent to one user at a time, and replaced when they break.

Every change also writes a row with the id of the change into the table `changes`. If a connection breaks, the change
may be committed or not. Another connection then looks for the row. If the row is missing, that connection writes a row
with the id itself, but without a team. The ids are unique, so the first change can no longer be committed, and it is
safe to make the change again.
"""

from __future__ import annotations

import os
import time
from _thread import get_ident  # `threading` would take longer to import
from contextlib import suppress

import psycopg2
from psycopg2 import extensions as driver

from teams_cli import errors
from teams_cli.clock import jitter
from teams_cli.names import is_name
from teams_cli.store.documents import team_closed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    T = TypeVar("T")

SCHEMA = "teams"
_IDLE_SECONDS = 5.0
# The server's codes of errors. The first three characters of a code, or fewer, are its class.
_TEAM_CLOSED = "TC001"  # raised by our own triggers
_LOST = ("08", "57P", "25P03", "25P04")
_AGAIN = ("40001", "40P01", "53300", "57P03")
_NO_TABLES = ("42P01", "3F000")
_IN_USE = "23505"
_TIMED_OUT = ("55P03", "57014")
_NOT_ALLOWED = "42501"
_ERRORS_OF_CALLER = (psycopg2.ProgrammingError, psycopg2.DataError, psycopg2.NotSupportedError)
"""Errors that the client library raises without a code although the connection is intact."""
_PREVENT = "INSERT INTO changes (id, team) VALUES (%s, '') ON CONFLICT DO NOTHING"
_WRONG_ADDRESS = (
    "authentication",
    "does not exist",
    "pg_hba",
    "translate host name",
    "not permitted",
    "support SSL",
    "certificate",
)
"""Parts of the messages of errors after which another attempt to connect would be useless."""
_NO_NETWORK = "Temporary failure in name resolution"
"""The part of the message that shows that no server for names can be reached, such as while the network is down."""
_FULL = ("too many clients", "too many connections", "connection slots are reserved", "no more connections allowed")
_MAKE_ROOM = (
    "Nothing was changed: try again when others have ended. To make room raise max_connections of the server, or put "
    "PgBouncer before it: see docs/postgres.md."
)
_CHECK_FIRST = (
    "When the server is back, look before you repeat it: teams get-tasks, teams sent, or what shows the record."
)
SOCKET = {
    "connect_timeout": 5,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,  # milliseconds: a cable that is cut is noticed
    "target_session_attrs": "read-write",  # a standby may be behind, so reading needs the primary, too
    "application_name": "teams",
}


class Lost(Exception):
    """Raised when the connection breaks during a statement."""


class Again(Exception):
    """Raised when the server undid the statement for a temporary reason. Nothing was changed, so the statement can be
    repeated.
    """


class Missing(Exception):
    """Raised when the tables do not exist."""


class Taken(Exception):
    """Raised when a value that must be unique is already in use."""


class Connection:
    """One connection to the server. A transaction is open only between `begin` and `commit`."""

    def __init__(self, link: Any, schema: str, lock_timeout: float) -> None:
        self.link = link
        self.used_at = 0.0
        self.sharer = 0
        """The id of the thread that listens on this connection, while the thread also uses it for other statements;
        otherwise 0.
        """
        link.autocommit = True
        self._set_path = f'SET LOCAL search_path TO "{schema}";'
        self._set_limits = f"{self._set_path} SET LOCAL lock_timeout TO {int(lock_timeout * 1000)};"
        self._set_also_closed = f"{self._set_limits} SET LOCAL teams.also_closed TO on;"

    def rows(self, sql: str, values: Any = (), begin: str = "") -> list[tuple[Any, ...]]:
        """Run the statements *begin*, then those in *sql*, and return the rows of the last statement.

        Raises:
            Lost, Again, Missing, Taken: See these classes.
            Busy, NotAllowed, StorageFailed: The server refused; nothing was changed.
        """
        try:
            with self.link.cursor() as cursor:
                cursor.execute(begin + sql, values or None)
                return list(cursor.fetchall()) if cursor.description else []
        except psycopg2.Error as error:
            raise self._translated(error) from None

    def look(self, sql: str, values: Any = ()) -> list[tuple[Any, ...]]:
        return self.rows(sql, values, self._set_path)

    def change(self, sql: str, values: Any = (), even_in_closed_team: bool = False) -> list[tuple[Any, ...]]:
        """Run a statement as a transaction of its own, and return its rows. With *even_in_closed_team*, the statement
        may change a closed team.
        """
        return self.rows(sql, values, self._set_also_closed if even_in_closed_team else self._set_limits)

    def begin(self, sql: str, values: Any = (), even_in_closed_team: bool = False) -> list[tuple[Any, ...]]:
        """Begin a transaction with a statement, and return its rows. If this process dies before the end of the
        transaction, the server undoes the transaction after five seconds.
        """
        settings = self._set_also_closed if even_in_closed_team else self._set_limits
        settings += " SET LOCAL idle_in_transaction_session_timeout TO 5000;"
        return self.rows(sql, values, f"BEGIN ISOLATION LEVEL READ COMMITTED; {settings}")

    def commit(self, sql: str, values: Any = ()) -> None:
        self.rows(f"{sql}; COMMIT", values)

    def roll_back(self) -> None:
        """Undo a transaction, if one is open."""
        if not self.link.closed and self.link.info.transaction_status != driver.TRANSACTION_STATUS_IDLE:
            self.rows("ROLLBACK")

    def close(self) -> None:
        with suppress(psycopg2.Error):  # it is broken already
            self.link.close()

    def _translated(self, error: psycopg2.Error) -> Exception:
        """Return the exception to raise for an error of the client library; close the connection if it is broken."""
        code, reason = error.pgcode or "", str(error).strip().partition("\n")[0]
        if code in _AGAIN:  # one of these codes would also match `_LOST`
            return Again(reason)
        is_broken_without_code = not code and not isinstance(error, _ERRORS_OF_CALLER)
        if self.link.closed or code.startswith(_LOST) or is_broken_without_code:
            self.close()  # its next answer may belong to another statement
            return Lost(reason)
        if code in _NO_TABLES:
            return Missing(reason)
        if code == _IN_USE:
            return Taken(reason)
        if code == _TEAM_CLOSED:
            return team_closed(error.diag.message_detail or "")
        if code in _TIMED_OUT:
            return errors.Busy(f"the database is busy: {reason}", "Try again.")
        if code == _NOT_ALLOWED:
            return errors.NotAllowed(
                f"the database does not allow it: {reason}", "Use another login, or ask its owner."
            )
        return errors.StorageFailed(f"the database refused: {reason}", "Check its log, then try again.")


class Server:
    """The database of one store. If an operation has not succeeded after *patience* seconds, Busy is raised."""

    def __init__(self, address: str, patience: float, lock_timeout: float) -> None:
        self.schema, self.options, self._options_to_listen = _parse_address(address)
        self.reached: tuple[str, ...] = ()
        """The host, the port and the database of the last connection; empty before the first one."""
        self.patience = patience
        self.lock_timeout = lock_timeout
        self._idle: list[Connection] = []
        self._shared: dict[int, Connection] = {}
        """The connections on which threads listen and which they also use for their statements, by the thread's id."""

    @property
    def name(self) -> str:
        """The address of the store without its password."""
        options = self.options
        user = f"{options['user']}@" if "user" in options else ""
        port = f":{options['port']}" if "port" in options else ""
        schema = "" if self.schema == SCHEMA else f"?schema={self.schema}"
        return f"postgresql://{user}{options.get('host', '')}{port}/{options.get('dbname', '')}{schema}"

    @property
    def listens_elsewhere(self) -> bool:
        """Whether the address has a part `listen=`. This part leads to the server itself; the rest of the address leads
        to a pooler, such as PgBouncer.
        """
        return bool(self._options_to_listen)

    def direct(self) -> Server:
        """Return a copy of this object for listening. Its connections lead to the server itself and not to a pooler,
        because they use the host and port in the part `listen=` of the address.
        """
        import copy

        server = copy.copy(self)
        server.options = {**self.options, **self._options_to_listen}
        server._idle, server._shared = [], {}
        return server

    def whereabouts(self) -> tuple[str, ...]:
        """Return the identity of the store: host, port, database, schema, and the address for listening."""
        if not self.reached:
            self.do(lambda connection: None)  # connects
        return (*self.reached, self.schema, *map(str, self._options_to_listen.values()))

    def look(self, sql: str, values: Any = ()) -> list[tuple[Any, ...]]:
        """Return the rows of a statement that only reads; no rows if the tables do not exist."""
        try:
            return self.do(lambda connection: connection.look(sql, values))
        except Missing:
            return []

    def do(self, job: Callable[[Connection], T]) -> T:
        """Run *job* on a connection, and return its result. If the connection breaks, or if the server undoes the job
        for a temporary reason, run the job again.
        """
        give_up = time.monotonic() + self.patience
        while True:
            connection = self._take_shared() or self._take_idle(give_up)
            try:
                return job(connection)
            except (Lost, Again) as problem:
                self._pause(give_up, str(problem))
            finally:
                self.give_back(connection)

    def do_once(self, job: Callable[[Connection, str, Callable[[T], None]], T]) -> T:
        """Run *job*, which makes a change, and return the job's answer. The change is made exactly once, however often
        the connection breaks.

        *job* gets a connection, an id, and a function `note_answer`. It must commit the id together with the change.
        Just before the statement that may commit the change, it must call `note_answer` with its answer: if the
        connection breaks in that statement, and the change was committed, this answer is returned.
        """
        give_up = time.monotonic() + self.patience
        doubt: tuple[str, T] | None = None  # the id and the answer of a change that may have been committed
        while True:
            change_id = f"change-{os.urandom(12).hex()}"
            answers: list[T] = []
            try:
                connection = self._take_shared() or self._take_idle(give_up)
                try:
                    if doubt and _find_or_prevent(connection, doubt[0]):
                        return doubt[1]
                    doubt = None  # the earlier change was not committed, and never will be
                    return job(connection, change_id, answers.append)
                except Lost as problem:
                    if answers:  # the statement that may commit the change was begun
                        doubt = change_id, answers[-1]
                    self._pause(give_up, str(problem))
                except Again as problem:  # the server refused the change, so it was not committed
                    self._pause(give_up, str(problem))
                finally:
                    self.give_back(connection)
            except errors.TeamsError as refusal:
                if doubt:
                    raise errors.OutcomeUnknown(f"the outcome is unknown: {refusal.message}", _CHECK_FIRST) from None
                raise

    def _pause(self, give_up: float, problem: str) -> None:
        """Wait a moment before another attempt. Busy is raised after the time *give_up*."""
        if time.monotonic() > give_up:
            if any(part in problem for part in _FULL):
                raise errors.Busy(f"{self.name} has no connection free: {problem}", _MAKE_ROOM)
            raise errors.Busy(f"{self.name} can't be reached: {problem}", "Try again when the server is back.")
        time.sleep(0.02 + jitter(0.1))

    def _take_idle(self, give_up: float) -> Connection:
        """Return an idle connection or, if there is none, a new one. Busy is raised after the time *give_up*."""
        while True:
            with suppress(IndexError):  # no connection is idle
                return self._idle.pop()
            try:
                return self._connect()
            except (Lost, Again) as problem:
                self._pause(give_up, str(problem))

    def share(self, connection: Connection | None) -> None:
        """Let this thread use *connection*, on which it listens, for all its statements. If *connection* is None, the
        thread goes back to the connections that all threads share.
        """
        if connection is None:
            self._shared.pop(get_ident(), None)
        else:
            self._shared.setdefault(get_ident(), connection)

    def _take_shared(self) -> Connection | None:
        """Return the connection on which this thread listens; None without one, or if it is in use or broken."""
        connection = self._shared.pop(get_ident(), None)
        if connection is None or connection.link.closed:
            return None
        connection.sharer = get_ident()
        return connection

    def borrow(self, job: Callable[[Connection], T]) -> tuple[Connection, T]:
        """Run *job* on a connection. Return the connection, and what *job* returned. The caller must return the
        connection with `give_back`.
        """
        give_up = time.monotonic() + self.patience
        while True:
            connection = self._take_idle(give_up)
            try:
                return connection, job(connection)
            except (Lost, Again) as problem:
                self.give_back(connection)
                self._pause(give_up, str(problem))

    def give_back(self, connection: Connection) -> None:
        """Undo the connection's transaction if it is still open, and keep the connection for its next user."""
        try:
            connection.roll_back()
        except Exception:  # then the server undoes the transaction
            connection.close()
        if connection.link.closed:
            return
        if connection.sharer:
            self._shared[connection.sharer] = connection
            connection.sharer = 0
        else:
            connection.used_at = time.monotonic()
            self._idle.append(connection)

    def close_idle(self) -> None:
        """Close connections that were idle for some seconds. Other processes may need them while this process waits for
        long.
        """
        for connection in list(self._idle):
            if time.monotonic() - connection.used_at >= _IDLE_SECONDS:
                with suppress(ValueError):  # another thread has taken it
                    self._idle.remove(connection)
                    connection.close()

    def close(self) -> None:
        while self._idle:
            self._idle.pop().close()

    def _connect(self) -> Connection:
        try:
            link = psycopg2.connect(**self.options)
        except psycopg2.OperationalError as error:
            reason = " ".join(str(error).split())
            if any(part in reason for part in _WRONG_ADDRESS) and _NO_NETWORK not in reason:
                raise errors.StorageFailed(f"{self.name}: {reason}", "Correct the address of the store.") from None
            raise Lost(reason) from None
        except psycopg2.Error as error:  # its text may contain the password
            raise errors.StorageFailed(
                f"{self.name}: {type(error).__name__}", "Correct the address of the store."
            ) from None
        self.reached = (link.info.host or "", str(link.info.port), link.info.dbname)
        return Connection(link, self.schema, self.lock_timeout)


def _find_or_prevent(connection: Connection, change_id: str) -> bool:
    """Return whether the change with this id is committed. If it is not, make sure that it never will be: store a row
    with the same id but no team, so that the change can't store its own row.

    If another connection is committing the change right now, wait until the commit has ended.
    """
    try:
        rows = connection.change(f"{_PREVENT}; SELECT team FROM changes WHERE id = %s", [change_id, change_id])
    except Missing:
        return False
    return rows != [("",)]


def _parse_address(address: str) -> tuple[str, dict[str, Any], dict[str, Any]]:
    """Return three parts of the address of a store: its schema, the options for the client library, and the options
    that replace some of these for listening. If the address has no part `listen=`, nothing is replaced.
    """
    from urllib.parse import unquote

    place, _, query = address.partition("?")
    schema: str = SCHEMA
    listening: dict[str, Any] = {}
    other_parts = []
    for part in query.split("&") if query else ():
        if part.startswith("schema="):
            schema = part.removeprefix("schema=")
        elif part.startswith("listen="):
            host, _, port_and_database = unquote(part.removeprefix("listen=")).rpartition(":")
            port, _, database = port_and_database.partition("/")
            if not host or not port.isdecimal():
                raise errors.InvalidValue(
                    "listen= in the address of the store names no server", "Write listen=HOST:PORT."
                )
            listening = {"host": host, "port": port, **({"dbname": database} if database else {})}
        else:
            other_parts.append(part)
    if not is_name(schema) or len(schema) > 48:
        raise errors.InvalidValue(
            "the schema in the address of the store is not valid", "Use letters, digits, '-' and '_'."
        )
    try:
        options = driver.parse_dsn(f"{place}?{'&'.join(other_parts)}" if other_parts else place)
    except psycopg2.Error:  # its text contains the password
        raise errors.InvalidValue("not a valid store address", "Write postgresql://USER@HOST:PORT/DATABASE.") from None
    return schema, {**SOCKET, **options}, listening
