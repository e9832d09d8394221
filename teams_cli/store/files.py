"""The file engine: one JSON file a record under a root directory, for the agents of one machine.

    <root>/                                    0700
    ├── teams/<team>/team.json
    │   ├── agents/<agent>.json · inboxes/<agent>.json · plans/plan-1.json · shutdowns/… · runs/…
    │   ├── messages/<number div 1000>/<number>.<to>.<uid>.json     <to> is a name, or @ with the list inside
    │   └── history.jsonl
    ├── tasks/<team>/task-1.json
    │   └── index/<label>/task-1                empty files: which tasks are in progress, which wait with what priority
    └── tmp/                                    files being written

Changes are made in a temporary file, brought to the disk, and renamed under the lock of their directory; then the
directory is brought to the disk. A revision is the bytes that were read.
"""

from __future__ import annotations

import os

from teams_cli.clock import SystemClock
from teams_cli.errors import AlreadyExists, DamagedRecord, InvalidValue, NotFound, StaleRevision, TeamsError
from teams_cli.names import is_name
from teams_cli.store import disk, root_directory
from teams_cli.store.documents import decode, encode
from teams_cli.store.locks import Lock
from teams_cli.store.message_log import MessageLog

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from datetime import datetime
    from typing import Any, TypeVar

    from teams_cli.clock import Clock
    from teams_cli.records import Record
    from teams_cli.store.contract import Finding, Kind, Watch

    R = TypeVar("R", bound=Record)

FILES = "files"
"""The address of the store that is in files under the root."""

_PLURALS = {"inbox": "inboxes"}


class FileStore:
    """Records as files under *root*. A change waits at most *lock_timeout* seconds for its turn."""

    host = ""

    def __init__(self, root: str, clock: Clock | None = None, lock_timeout: float = 10.0) -> None:
        self.place = self.root = os.path.abspath(root)
        self.variables = {"TEAMS_HOME": self.root, "TEAMS_STORE": FILES}
        self.clock = clock or SystemClock()
        self.lock_timeout = lock_timeout
        self._temp = f"{self.place}/tmp"
        self._writable = False
        root_directory.check_owner(self.place)

    def teams(self) -> list[str]:
        names = disk.names_in(f"{self.place}/teams")
        return sorted(n for n in names if is_name(n) and os.path.lexists(f"{self.place}/teams/{n}/team.json"))

    def create(self, team: str, kind: Kind[R], key: str | None, record: R) -> tuple[R, bytes]:
        directory = self._directory(team, kind)
        path = self._path(team, kind, key) if key is not None else ""
        self._prepare()
        if kind.name == "team":
            return self._create_team(team, kind, record)
        disk.make_directories(directory, self.place)
        if key is None:
            return self._create_numbered(directory, kind, record)
        temp = disk.write_temp(self._temp, data := encode(record))
        try:
            with self._lock(directory):
                _refuse_taken(directory, f"{key}.json", f"{kind.name} {key}")
                self._mark(directory, kind, key, record)
                disk.commit(temp, path)
        except BaseException:
            disk.discard(temp)
            raise
        return record, data

    def _create_team(self, team: str, kind: Kind[R], record: R) -> tuple[R, bytes]:
        """A team is there when its `team.json` is; an empty directory of a crashed creation is taken over."""
        parent, directory = f"{self.place}/teams", self._directory(team, kind)
        disk.make_directories(parent, self.place)
        temp = disk.write_temp(self._temp, data := encode(record))
        try:
            with self._lock(parent):
                for name in disk.names_in(parent):
                    if name.lower() == team.lower() and "team.json" in disk.names_in(f"{parent}/{name}"):
                        disk.confirm(f"{parent}/{name}", f"{parent}/{name}/team.json")
                        raise AlreadyExists(f"there is a team {name} already", "Choose another name, or join it.")
                disk.make_directories(directory, self.place)
                disk.make_directories(f"{self.place}/tasks/{team}", self.place)
                disk.commit(temp, f"{directory}/team.json")
        except BaseException:
            disk.discard(temp)
            raise
        return record, data

    def remains(self, team: str) -> str:
        """What there is of a team that has no `team.json`; empty if nothing, as after a crash while it was created."""
        own = [f"{self.place}/teams/{team}/{name}" for name in disk.names_in(f"{self.place}/teams/{team}")]
        tasks = f"{self.place}/tasks/{team}"
        own += [f"{tasks}/{name}" for name in disk.names_in(tasks) if name.endswith(".json")]
        return min(own, default="")

    def _create_numbered(self, directory: str, kind: Kind[R], record: R) -> tuple[R, bytes]:
        with self._lock(directory):
            taken = [_number(name, kind) for name in disk.names_in(directory)]
            record = kind.numbering(record, max(taken, default=0) + 1)
            key = getattr(record, kind.key)
            temp = disk.write_temp(self._temp, data := encode(record))
            try:
                self._mark(directory, kind, key, record)
                disk.commit(temp, f"{directory}/{key}.json")
            except BaseException:
                disk.discard(temp)
                raise
        return record, data

    def get(self, team: str, kind: Kind[R], key: str) -> tuple[R, bytes]:
        if kind.name == "message":
            return self._log(team).get(kind, key)
        path = self._path(team, kind, key)
        try:
            data = disk.read_file(path)
        except FileNotFoundError:
            raise NotFound(f"there is no {kind.name} {key}") from None
        return decode(data, kind, key, path), data

    def scan(self, team: str, kind: Kind[R], problems: list[TeamsError]) -> Iterator[tuple[R, bytes]]:
        directory = self._directory(team, kind)
        for key in self._keys(directory, kind, problems):
            path = f"{directory}/{key}.json"
            try:
                data = disk.read_file(path)
                yield decode(data, kind, key, path), data
            except FileNotFoundError:
                continue
            except TeamsError as problem:
                problems.append(problem)

    def _keys(self, directory: str, kind: Kind[R], problems: list[TeamsError]) -> list[str]:
        """The keys that files stand for, by number or name."""
        keys = []
        for name in disk.names_in(directory):
            if name.endswith(".json"):
                key = name[:-5]
                if _number(name, kind) if kind.numbered else is_name(key):
                    keys.append(key)
                else:
                    problems.append(DamagedRecord(f"{directory}/{name!r}: no {kind.name} is called that", "Remove it."))
        return sorted(keys, key=lambda key: int(key.rpartition("-")[2])) if kind.numbered else sorted(keys)

    def labelled(self, team: str, kind: Kind[R], label: str) -> list[str]:
        names = disk.names_in(f"{self._directory(team, kind)}/index/{label}")
        names.sort()
        names.sort(key=len)  # without leading zeros this is the order of the numbers, and no name has to be looked into
        return names

    def replace(self, team: str, kind: Kind[R], key: str, record: R, revision: bytes) -> bytes:
        path = self._path(team, kind, key)
        self._refuse_stale(path, f"{kind.name} {key}", revision)  # early; under the lock is what counts
        self._prepare()
        directory = os.path.dirname(path)
        temp = disk.write_temp(self._temp, data := encode(record))
        try:
            with self._lock(directory):
                self._refuse_stale(path, f"{kind.name} {key}", revision)
                self._mark(directory, kind, key, record)
                disk.commit(temp, path)
                self._unmark(directory, kind, key, record, decode(revision, kind, key, path))
        except BaseException:
            disk.discard(temp)
            raise
        return data

    def _refuse_stale(self, path: str, what: str, revision: bytes) -> None:
        try:
            current = disk.read_file(path)
        except FileNotFoundError:
            raise NotFound(f"there is no {what}") from None
        if current != revision:
            raise StaleRevision(f"{what} was changed meanwhile", "Look at it again.")

    def _mark(self, directory: str, kind: Kind[R], key: str, record: R) -> None:
        """Make the label findable before the record says it: a mark too many does no harm, one too few might."""
        if kind.label and (label := kind.label(record)):
            try:
                for made in (f"{directory}/index", f"{directory}/index/{label}"):
                    if not os.path.isdir(made):
                        os.mkdir(made, 0o700)
                os.close(os.open(f"{directory}/index/{label}/{key}", os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o600))
            except OSError as error:
                raise disk.failed("write", f"{directory}/index/{label}/{key}", error) from None

    def _unmark(self, directory: str, kind: Kind[R], key: str, record: R, before: R) -> None:
        if kind.label and (old := kind.label(before)) and old != kind.label(record):
            disk.discard(f"{directory}/index/{old}/{key}")

    def confirm(self, team: str, kind: Kind[R], key: str) -> None:
        if kind.name == "message":
            self._log(team).confirm(kind, key)
        else:
            path = self._path(team, kind, key)
            disk.confirm(os.path.dirname(path), path)

    def append(self, team: str, kind: Kind[R], to: Sequence[str], record: R, uid: str | None) -> tuple[R, bool]:
        log = self._log(team)
        self._prepare()
        return log.append(kind, to, record, uid)

    def read(
        self, team: str, kind: Kind[R], agent: str | None, after: int, problems: list[TeamsError], limit: int = 0
    ) -> list[R]:
        return self._log(team).read(kind, agent, after, problems, limit)

    def fetch(self, team: str, kind: Kind[R], numbers: Sequence[int], problems: list[TeamsError]) -> list[R]:
        return self._log(team).fetch(kind, numbers, problems)

    def last(self, team: str, kind: Kind[R]) -> int:
        return self._log(team).last()

    def pack(self, team: str, kind: Kind[R]) -> Iterator[tuple[str, bytes]]:
        if kind.name == "message":
            yield from self._log(team).pack(kind)
            return
        problems: list[TeamsError] = []
        directory = self._directory(team, kind)
        for key in [team] if kind.name == "team" else self._keys(directory, kind, problems):
            path = self._path(team, kind, key)
            data = disk.read_file(path)
            decode(data, kind, key, path)
            yield key, data
        for problem in problems:
            raise problem

    def put(self, team: str, kind: Kind[R], key: str, data: bytes) -> None:
        self._prepare()
        if kind.name == "message":
            self._log(team).put(kind, key, data)
            return
        path = self._path(team, kind, key)
        record, directory = decode(data, kind, key, path), os.path.dirname(path)
        disk.make_directories(directory, self.place)
        with self._lock(directory):
            self._mark(directory, kind, key, record)
            disk.commit(disk.write_temp(self._temp, data), path)

    def journal(self, team: str, entry: dict[str, Any]) -> None:
        from teams_cli.store.journal import note

        note(f"{self.place}/teams/{_checked(team)}/history.jsonl", entry)

    def history(self, team: str, after: int = 0) -> Iterator[tuple[int, dict[str, Any]]]:
        from teams_cli.store.journal import entries

        return entries(f"{self.place}/teams/{_checked(team)}/history.jsonl", after)

    def watch(self, team: str) -> Watch:
        from teams_cli.store.watches import watch_directories

        return watch_directories(f"{self.place}/teams/{_checked(team)}", f"{self.place}/tasks/{team}")

    def admit(self, team: str, agents: Mapping[str, bool]) -> dict[str, str]:
        raise InvalidValue(f"{self.place} knows no logins", "Keep the team in a database: teams copy-team, --store.")

    def examine(self, kinds: Sequence[Kind[Any]], fix: bool) -> Iterable[Finding]:
        from teams_cli.store.examination import examine

        return examine(self, kinds, fix)

    def mark_path(self, team: str, kind: Kind[R], label: str, key: str) -> str:
        """Where the mark is by which a record of that label is found."""
        return f"{self._directory(team, kind)}/index/{label}/{key}"

    def mark(self, team: str, kind: Kind[R], key: str, record: R) -> None:
        """Make the record findable by its label."""
        self._mark(self._directory(team, kind), kind, key, record)

    def now(self) -> datetime:
        return self.clock.now()

    def steady(self) -> tuple[str, float]:
        return self.clock.steady()

    def close(self) -> None:
        return None

    def _prepare(self) -> None:
        """Before the first change: a root of our own on a disk that keeps its promises."""
        if not self._writable:
            root_directory.prepare(self.place)
            self._writable = True

    def _lock(self, directory: str) -> Lock:
        return Lock(directory, self.lock_timeout)

    def _log(self, team: str) -> MessageLog:
        return MessageLog(f"{self.place}/teams/{_checked(team)}/messages", self.place, self.lock_timeout)

    def _directory(self, team: str, kind: Kind[R]) -> str:
        if kind.name == "task":
            return f"{self.place}/tasks/{_checked(team)}"
        if kind.name == "team":
            return f"{self.place}/teams/{_checked(team)}"
        return f"{self.place}/teams/{_checked(team)}/{_PLURALS.get(kind.name) or kind.name + 's'}"

    def _path(self, team: str, kind: Kind[R], key: str) -> str:
        directory = self._directory(team, kind)
        if kind.name == "team":
            if os.path.islink(directory):
                raise DamagedRecord(f"{directory}: is a symbolic link, not a directory", "Remove the link.")
            return f"{directory}/team.json"
        return f"{directory}/{_checked(key)}.json"


def _checked(name: str) -> str:
    """The name, which becomes a part of a path."""
    if not is_name(name):
        raise NotFound(f"there is nothing called {name!r}")
    return name


def _number(file_name: str, kind: Kind[R]) -> int:
    """The number in the file name of a numbered record; 0 if it is not one."""
    return kind.number_in(file_name[:-5]) if file_name.endswith(".json") else 0


def _refuse_taken(directory: str, file_name: str, what: str) -> None:
    if any(name.lower() == file_name.lower() for name in disk.names_in(directory)):
        disk.confirm(directory, f"{directory}/{file_name}")
        raise AlreadyExists(f"there is a {what} already", "Choose another name.")
