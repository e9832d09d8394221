"""The file engine: one JSON file per record under a root directory, for the agents of one machine.

    <root>/                                    0700
    ├── teams/<team>/team.json
    │   ├── agents/<agent>.json · inboxes/<agent>.json · plans/plan-1.json · shutdowns/… · runs/…
    │   ├── messages/<number div 1000>/<number>.<to>.<uid>.json     <to> is a name, or @ with the list inside
    │   └── history.jsonl
    ├── tasks/<team>/task-1.json
    │   └── index/<label>/task-1                empty files: which tasks are in progress, which wait with what priority
    └── tmp/                                    files being written

To change a record, a temporary file is written and synced, then renamed under the lock of its directory. The directory
is synced after the lock is released, so that several processes can wait for the disk at the same time. Then the record
loses the marks, the empty files in an index, by which it was found before the change. A revision is the bytes of the
file. An empty file `.last.<n>` beside numbered records or the log says that the number n was given.
"""

from __future__ import annotations

import os

from teams_cli import errors
from teams_cli.clock import SystemClock
from teams_cli.names import is_name
from teams_cli.records.records import Record
from teams_cli.store.contract import Kind, Store, count_change
from teams_cli.store.documents import encode, says_closed, team_closed
from teams_cli.store.files import directories, disk
from teams_cli.store.files.directories import Layout
from teams_cli.store.files.disk import Contents
from teams_cli.store.files.locks import LOCK, Lock
from teams_cli.store.files.message_log import MessageLog, note_history, read_history

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
    from typing import Any, TypeVar

    from teams_cli.clock import Clock
    from teams_cli.store.contract import Finding, Watch
    from teams_cli.store.files.whole_team import Closing

    R = TypeVar("R", bound=Record)

FILES = "files"
"""The address that stands for the store in files below the root."""
_UNDER_ONE_LOCK = 500
"""The number of records whose marks are corrected before the lock is released for other processes."""
_TIMEOUT_OF_MARKS = 1.0
"""The maximum number of seconds that a change waits for the lock under which it removes outdated marks."""


class FileStore(Store):
    """Keeps records as files below *root*. A change waits at most *lock_timeout* seconds for a lock. *lock* is the
    class of the locks.
    """

    host = ""

    def __init__(
        self, root: str, clock: Clock | None = None, lock_timeout: float = 10.0, lock: type[Lock] = LOCK
    ) -> None:
        self.address = self.root = os.path.abspath(root)
        self.variables = {"TEAMS_HOME": self.root, "TEAMS_STORE": FILES}
        self.clock = clock or SystemClock()
        self.lock_timeout = lock_timeout
        self.lock = lock
        self.layout = Layout(self.address)
        self._is_prepared = False
        self._contents = Contents()
        self._durable = "", b""
        """The path and the bytes of the record that this process stored and synced last, so it is durable."""
        self._last_sent: dict[str, tuple[int, Sequence[str]]] = {}
        """By team: the number and the recipients of the message that this process sent last, which `glance` need not
        look for.
        """
        disk.check_owner(self.address)

    def teams(self) -> list[str]:
        directory = self.layout.teams
        names = filter(is_name, disk.names_in(directory))
        return sorted(name for name in names if os.path.lexists(f"{directory}/{name}/team.json"))

    def create(self, team: str, kind: Kind[R], key: str | None, record: R) -> tuple[R, bytes]:
        directory = self.layout.directory(team, kind)
        path = "" if key is None else self.layout.path(team, kind, key)  # refuses an invalid key before a change
        self._prepare()
        if kind.name == "team":
            from teams_cli.store.files.whole_team import create_team

            data = create_team(self.layout, team, record, self._lock(self.layout.teams))
            count_change()
            return record, data
        disk.make_directories(directory, self.address)
        if key is None:
            with self._lock(directory):  # the text of the file has the number, which is only known under the lock
                noted, number = self._next_number(team, kind, directory)
                record = kind.with_number(record, number)
                key = getattr(record, kind.key)
                path = f"{directory}/{key}.json"
                with disk.Written(self.layout.temp, data := encode(record)) as temp:
                    directories.make_marks(self.layout.marks(team, kind, key, record))
                    disk.put(temp, path)
                directories.raise_note(directory, noted, number)
        else:
            with disk.Written(self.layout.temp, data := encode(record)) as temp, self._lock(directory):
                disk.refuse_taken(directory, f"{key}.json", f"{kind.name} {key}")
                self._refuse_closed(team, kind)
                directories.make_marks(self.layout.marks(team, kind, key, record))
                disk.put(temp, path)
        disk.confirm(directory, path)
        count_change()
        return record, data

    def _next_number(self, team: str, kind: Kind[R], directory: str) -> tuple[int, int]:
        """Make the locked directory ready for a new record: give each earlier record a file of its own, and refuse the
        new one if the team is closed. Return the highest number noted in the directory, and the next number to give.
        """
        directories.settle(self.layout, team, kind)
        self._refuse_closed(team, kind)
        noted, newest = directories.numbers_given(disk.names_in(directory), kind)
        return noted, max(noted, newest) + 1

    def create_all(self, team: str, kind: Kind[R], count: int, make: Callable[[list[str]], list[R]]) -> list[R]:
        directory = self.layout.directory(team, kind)
        self._prepare()
        disk.make_directories(directory, self.address)
        with self._lock(directory):
            _, first = self._next_number(team, kind, directory)
            records = kind.with_numbers(first, count, make)
            directories.commit_together(self.layout, team, kind, records)
        count_change()
        return records

    def get(self, team: str, kind: Kind[R], key: str) -> tuple[R, bytes]:
        if kind.name == "message":
            return self.log(team).get(kind, key)
        try:
            return self._record_in(self.layout.path(team, kind, key), kind, key)
        except FileNotFoundError:
            raise errors.NotFound(f"there is no {kind.name} {key}") from None

    def scan(
        self, team: str, kind: Kind[R], problems: list[errors.TeamsError], keys: Collection[str] | None = None
    ) -> Iterator[tuple[R, bytes]]:
        return directories.each_record(self.layout.directory(team, kind), kind, problems, keys, self._record_in)

    def _record_in(self, path: str, kind: Kind[R], key: str) -> tuple[R, bytes]:
        data = directories.read(path, kind, key, self._contents.read)
        return self._contents.decode(data, kind, key, path), data

    def documents(self, team: str, kind: Kind[R], problems: list[errors.TeamsError]) -> Iterator[dict[str, Any]]:
        directory = self.layout.directory(team, kind)
        return directories.each_record(directory, kind, problems, None, directories.document_in)

    def labelled(self, team: str, kind: Kind[R], *labels: str) -> Iterator[str]:
        return directories.keys_labelled(self.layout.index(team, kind), self.layout.names_in_index(team, kind), labels)

    def by_label(self, team: str, kind: Kind[R]) -> Mapping[str, Collection[str]]:
        names = directories.names_in(self.layout.directory(team, kind), kind, [])
        return directories.keys_by_label(self.layout.index(team, kind), self.layout.names_in_index(team, kind), names)

    def holds(self, team: str, *kinds: str) -> set[str]:
        return self.layout.holds(team, kinds)

    def owing(self, team: str) -> list[tuple[str, str]]:
        return sorted(map(directories.kind_and_key_owing, disk.names_in(self.layout.owed(team))))

    def replace(self, team: str, kind: Kind[R], key: str, record: R, revision: bytes, lasting: bool = True) -> bytes:
        """Replace the record: see `Store.replace`.

        Under the lock, the new marks are made, and then the record is stored. After the lock is released, the change is
        synced, and then the outdated marks are removed. If the change is not *lasting*, it is not synced, and the
        outdated marks are removed under the lock.
        """
        path = self.layout.path(team, kind, key)
        directory = os.path.dirname(path)
        marks_before = self._marks_of(team, kind, key, path, revision)
        lock: Lock | Closing = self._lock(directory)
        if kind.closes and kind.closes(record):  # then no change may follow: this takes all locks of the team
            lock = self._closing(team)
        elif not self.layout.holds(team, (kind.name,)):  # without a directory, there is no lock to take
            raise errors.NotFound(f"there is no {kind.name} {key}")
        self._prepare()
        # The caller may allow that a power cut undoes the change. Then the record before it must be durable itself.
        is_synced = lasting or self._durable != (path, revision)
        marks_now = self.layout.marks(team, kind, key, record)
        outdated = self.layout.outdated_marks(team, kind, key, marks_before, marks_now)
        with disk.Written(self.layout.temp, data := encode(record)) as temp, lock:
            directories.settle(self.layout, team, kind)
            self._refuse_stale(path, kind, key, revision)
            self._refuse_closed(team, kind)
            directories.make_marks(marks_now)
            disk.put(temp, path)
            if not is_synced:
                # This is safe before the sync: if a power cut brings the former record back, its label's mark is still
                # there, and the notice that it owes again was sent already.
                directories.clear_marks(outdated)
        if is_synced:
            disk.confirm(directory, path)
            self._durable = path, data
        self._contents.remember(path, data, marks_now)
        count_change()
        if is_synced and outdated:
            self._clear_outdated(team, kind, key, outdated, data, marks_now)
        return data

    def _marks_of(self, team: str, kind: Kind[R], key: str, path: str, revision: bytes) -> list[str]:
        """Return the marks of the record at the time of *revision*, the bytes that its file had then. If this process
        does not remember these bytes, and the file has others by now, raise StaleRevision.
        """
        if (known_marks := self._contents.marks(path, revision)) is not None:
            return known_marks
        if not self._contents.is_valid(path, revision):
            self._refuse_stale(path, kind, key, revision)  # before the bytes, which may be anything, are decoded
        return self.layout.marks(team, kind, key, self._contents.decode(revision, kind, key, path))

    def replace_all(self, team: str, kind: Kind[R], changed: Sequence[tuple[R, bytes]]) -> None:
        self._prepare()
        with self._lock(self.layout.directory(team, kind)):
            directories.settle(self.layout, team, kind)
            for record, revision in changed:
                key = getattr(record, kind.key)
                self._refuse_stale(self.layout.path(team, kind, key), kind, key, revision)
            self._refuse_closed(team, kind)
            directories.commit_together(self.layout, team, kind, [record for record, _ in changed])
        count_change()

    def _refuse_closed(self, team: str, kind: Kind[R]) -> None:
        """Raise an error if the team is closed, unless records of this *kind* may be changed then. The caller holds a
        lock of the team. A process that closes the team has to wait for this lock, so the team stays open until the
        change is made.
        """
        if kind.while_closed:
            return
        path = f"{self.layout.team(team)}/team.json"
        try:
            data = self._contents.read(path)
        except FileNotFoundError:
            return
        if says_closed(data, path):
            raise team_closed(team)

    def _refuse_stale(self, path: str, kind: Kind[R], key: str, revision: bytes) -> None:
        try:
            current = directories.read(path, kind, key, self._contents.read)
        except FileNotFoundError:
            raise errors.NotFound(f"there is no {kind.name} {key}") from None
        if current != revision:
            raise errors.StaleRevision(f"{kind.name} {key} was changed meanwhile", "Read it again.")

    def confirm(self, team: str, kind: Kind[R], key: str) -> None:
        if kind.name == "message":
            self.log(team).confirm(kind, key)
            return
        path = self.layout.path(team, kind, key)
        disk.confirm(os.path.dirname(path), path)
        if kind.closes and says_closed(self._contents.read(path), path):
            # Changes that began before the team was closed may still follow. The process that closed it may have been
            # killed before it waited for them, so wait here: they are over once all locks of the team were held.
            with self._closing(team):
                pass

    def append(self, team: str, kind: Kind[R], to: Sequence[str], record: R, uid: str | None) -> tuple[R, bool]:
        log = self.log(team)  # refuses what is no name of a team, before anything is made
        self._prepare()
        stored, is_new = log.append(kind, to, record, uid, lambda: self._refuse_closed(team, kind))
        if is_new:  # an earlier message of that uid may have had other recipients
            count_change()
            self._last_sent[team] = kind.number_in(getattr(stored, kind.key)), to
        return stored, is_new

    def read(
        self, team: str, kind: Kind[R], agent: str | None, after: int, problems: list[errors.TeamsError], limit: int = 0
    ) -> list[R]:
        return self.log(team).read(kind, agent, after, problems, limit)

    def news(
        self, team: str, kind: Kind[R], agent: str, after: int, problems: list[errors.TeamsError]
    ) -> tuple[list[R], int]:
        news = self.log(team).news(kind, agent, after, problems)
        return super().news(team, kind, agent, after, problems) if news is None else news

    def glance(self, team: str, kind: Kind[R], agent: str, after: int) -> int | None:
        sent, recipients = self._last_sent.get(team, (0, ()))
        return self.log(team).glance(agent, after, sent, recipients)

    def envelopes(self, team: str, kind: Kind[R], after: int) -> Iterator[tuple[int, str, Sequence[str]]]:
        return self.log(team).envelopes(kind, after)

    def fetch(self, team: str, kind: Kind[R], numbers: Sequence[int], problems: list[errors.TeamsError]) -> list[R]:
        return self.log(team).fetch(kind, numbers, problems)

    def search(self, team: str, kind: Kind[R], words: Sequence[str], problems: list[errors.TeamsError]) -> Iterator[R]:
        from teams_cli.store.files.search import in_messages, in_records

        if kind.name != "message":
            return in_records(self.layout.directory(team, kind), kind, words, problems)
        return in_messages(self.log(team), f"{self.address}/index/{team}", kind, words, problems)

    def last(self, team: str, kind: Kind[R]) -> int:
        if kind.name == "message":
            return self.log(team).last()
        names = directories.names_in(self.layout.directory(team, kind), kind, [])
        return max(directories.numbers_given(names, kind))

    def reserve(self, team: str, kind: Kind[R], number: int) -> None:
        directory = self.layout.directory(team, kind)
        if number <= directories.noted_number(disk.names_in(directory)):
            return
        self._prepare()
        disk.make_directories(directory, self.address)
        with self._lock(directory):
            directories.note_number(directory, number)
            directories.remove_lower_notes(directory)
            disk.confirm(directory, directory)

    def pack(self, team: str, kind: Kind[R]) -> Iterator[tuple[str, bytes]]:
        if kind.name != "message":
            return directories.pack(self.layout, team, kind)
        from teams_cli.store.files import whole_team

        return whole_team.pack_messages(self.log(team), kind)

    def put(self, team: str, kind: Kind[R], key: str, data: bytes) -> None:
        from teams_cli.store.files import whole_team

        self._prepare()
        whole_team.put(self.layout, self._lock, team, kind, key, data)

    def put_messages(self, team: str, kind: Kind[R], packed: Sequence[tuple[str, bytes]]) -> None:
        from teams_cli.store.files import whole_team

        self._prepare()
        whole_team.put_messages(self.log(team), kind, packed)

    def drop(self, team: str, kind: Kind[R], revision: bytes, once_gone: Callable[[], object] = lambda: None) -> None:
        from teams_cli.store.files import whole_team

        path = self.layout.path(team, kind, team)
        self._prepare()
        with self._closing(team):
            self._refuse_stale(path, kind, team, revision)
            if not says_closed(revision, path):
                raise errors.StaleRevision(f"{kind.name} {team} is not closed", "Close it first.")
            trash = whole_team.move_to_trash(self.address, team)
        count_change()
        once_gone()
        whole_team.delete_trash(trash)

    def journal(self, team: str, entry: dict[str, Any]) -> None:
        note_history(self.layout.history(team), [entry])

    def put_history(self, team: str, entries: Sequence[dict[str, Any]]) -> None:
        disk.make_directories(self.layout.team(team), self.address)
        note_history(self.layout.history(team), entries)

    def history(self, team: str, after: int = 0, backwards: bool = False) -> Iterator[tuple[int, dict[str, Any]]]:
        return read_history(self.layout.history(team), after, backwards)

    def watch(self, team: str, topics: Collection[str] | None = None) -> Watch:
        from teams_cli.store.files.watches import watch_directories

        return watch_directories(self.layout.team(team), self.layout.tasks(team), topics)

    def admit(self, team: str, agents: Mapping[str, str], kinds: Sequence[Kind[Any]]) -> dict[str, str]:
        raise errors.InvalidValue(
            f"{self.address} has no logins", "Move the team to a database: teams copy-team --to postgresql://…"
        )

    def examine(self, kinds: Sequence[Kind[Any]], fix: bool, only: str = "") -> Iterable[Finding]:
        from teams_cli.store.files.examination import examine

        return examine(self, kinds, fix, only)

    def correct_hints(self, team: str, kind: Kind[R], keys: Collection[str]) -> None:
        labels, directory = self.layout.labels(team, kind), self.layout.directory(team, kind)
        remaining = list(keys)
        try:
            while remaining:
                with self.lock(directory, 0.0):  # hints are not worth a wait
                    # Otherwise a power cut could bring back records that need the marks that are removed here.
                    disk.confirm(directory, directory)
                    for key in remaining[:_UNDER_ONE_LOCK]:
                        try:
                            right_marks = self.layout.marks(team, kind, key, self.get(team, kind, key)[0])
                        except errors.NotFound:
                            right_marks = []
                        except errors.TeamsError:  # the record can't be read, so its marks are unknown
                            continue
                        directories.make_marks(right_marks)
                        directories.clear_marks(self.layout.all_marks(team, kind, key, labels), right_marks)
                del remaining[:_UNDER_ONE_LOCK]
        except errors.TeamsError:
            return

    def _clear_outdated(
        self, team: str, kind: Kind[R], key: str, outdated: list[str], stored: bytes, kept: list[str]
    ) -> None:
        """Remove the *outdated* marks of a record, by which it was found before a change. *stored* has the bytes that
        the change stored, and *kept* are the marks that the record needs after the change. If another change has
        followed, the marks that the record needs now are kept instead. If the record can't be locked or read, all marks
        stay: an extra mark does no harm.
        """
        path = self.layout.path(team, kind, key)
        directory = self.layout.directory(team, kind)
        try:
            with self.lock(directory, _TIMEOUT_OF_MARKS):
                try:
                    data = directories.read(path, kind, key, self._contents.read)
                    if data != stored:
                        # If a power cut undid the later change, its marks would be wrong.
                        disk.confirm(directory, path)
                        kept = self.layout.marks(team, kind, key, self._contents.decode(data, kind, key, path))
                except FileNotFoundError:
                    kept = []
                directories.clear_marks(outdated, kept)
        except errors.TeamsError:  # another process changes the record, or it can't be read
            return

    def _prepare(self) -> None:
        """Before the first change, make the root, and check that it is on a local disk."""
        if not self._is_prepared:
            disk.prepare_root(self.address)
            self._is_prepared = True

    def _lock(self, directory: str) -> Lock:
        return self.lock(directory, self.lock_timeout)

    def _closing(self, team: str) -> Closing:
        from teams_cli.store.files.whole_team import Closing

        return Closing(self.address, team, self._lock)

    def log(self, team: str) -> MessageLog:
        """Return the log of the team's messages."""
        return MessageLog(self.layout.messages(team), self.address, self._lock, self._contents)
