"""The in-memory engine: the contract without a disk, for one process; its records are gone with it."""

from __future__ import annotations

import json
import os
from threading import Condition, RLock

from teams_cli.clock import SystemClock
from teams_cli.errors import AlreadyExists, InvalidValue, NotFound, StaleRevision
from teams_cli.store.documents import encode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from datetime import datetime
    from typing import Any, TypeVar

    from teams_cli.clock import Clock
    from teams_cli.errors import TeamsError
    from teams_cli.records import Record
    from teams_cli.store.contract import Finding, Kind, Watch

    R = TypeVar("R", bound=Record)


class MemoryStore:
    """Records in the memory of this process, safe for its threads."""

    host = ""

    def __init__(self, clock: Clock | None = None) -> None:
        self.place = self.root = "memory"
        self.variables: dict[str, str] = {}
        self.clock = clock or SystemClock()
        self._lock = RLock()
        self._changed = Condition(self._lock)
        self._changes = 0
        self._records: dict[tuple[str, str], dict[str, tuple[bytes, int]]] = {}
        self._logs: dict[str, list[tuple[str, bytes]]] = {}
        self._histories: dict[str, list[str]] = {}

    def teams(self) -> list[str]:
        with self._lock:
            return sorted(team for (team, kind), found in self._records.items() if kind == "team" and found)

    def create(self, team: str, kind: Kind[R], key: str | None, record: R) -> tuple[R, int]:
        with self._lock:
            taken = self._of(team, kind)
            if key is None:
                record = kind.numbering(record, len(taken) + 1)
                key = getattr(record, kind.key)
            elif kind.name == "team" and any(name.lower() == team.lower() for name in self.teams()):
                raise AlreadyExists(f"there is a team {team} already", "Choose another name, or join it.")
            elif any(name.lower() == key.lower() for name in taken):
                raise AlreadyExists(f"there is a {kind.name} {key} already", "Choose another name.")
            return record, self._put(taken, key, record)

    def _put(self, records: dict[str, tuple[bytes, int]], key: str, record: R) -> int:
        data = encode(record)
        self._changes += 1
        records[key] = (data, self._changes)
        self._changed.notify_all()
        return self._changes

    def get(self, team: str, kind: Kind[R], key: str) -> tuple[R, int]:
        with self._lock:
            if kind.name == "message":
                number = kind.number_in(key)
                log = self._logs.get(team, [])
                if not 1 <= number <= len(log):
                    raise NotFound(f"there is no {kind.name} {key}")
                return _decode(kind, log[number - 1][1]), 0
            if key not in (found := self._of(team, kind)):
                raise NotFound(f"there is no {kind.name} {key}")
            data, revision = found[key]
        return _decode(kind, data), revision

    def scan(self, team: str, kind: Kind[R], problems: list[TeamsError]) -> Iterator[tuple[R, int]]:
        with self._lock:
            found = list(self._of(team, kind).items())
        found.sort(key=(lambda item: int(item[0].rpartition("-")[2])) if kind.numbered else (lambda item: item[0]))
        return iter([(_decode(kind, data), revision) for _, (data, revision) in found])

    def labelled(self, team: str, kind: Kind[R], label: str) -> list[str]:
        of = kind.label or (lambda record: None)
        return [getattr(record, kind.key) for record, _ in self.scan(team, kind, []) if of(record) == label]

    def replace(self, team: str, kind: Kind[R], key: str, record: R, revision: int) -> int:
        with self._lock:
            if key not in (found := self._of(team, kind)):
                raise NotFound(f"there is no {kind.name} {key}")
            if found[key][1] != revision:
                raise StaleRevision(f"{kind.name} {key} was changed meanwhile", "Look at it again.")
            return self._put(found, key, record)

    def confirm(self, team: str, kind: Kind[R], key: str) -> None:
        return None

    def append(self, team: str, kind: Kind[R], to: Sequence[str], record: R, uid: str | None) -> tuple[R, bool]:
        with self._lock:
            log = self._logs.setdefault(team, [])
            for used, data in log:
                if uid is not None and used == uid:
                    return _decode(kind, data), False
            record = kind.numbering(record, len(log) + 1)
            log.append((uid or os.urandom(8).hex(), encode(record)))
            self._changes += 1
            self._changed.notify_all()
        return record, True

    def read(
        self, team: str, kind: Kind[R], agent: str | None, after: int, problems: list[TeamsError], limit: int = 0
    ) -> list[R]:
        with self._lock:
            later = [data for _, data in self._logs.get(team, [])[after:]]
        found = []
        for message in (_decode(kind, data) for data in later):
            if agent is None or message.to == agent or agent in (message.recipients or ()):  # type: ignore[attr-defined]
                found.append(message)
        return found[:limit] if limit else found

    def fetch(self, team: str, kind: Kind[R], numbers: Sequence[int], problems: list[TeamsError]) -> list[R]:
        return [message for message in self.read(team, kind, None, 0, problems) if message.number in numbers]  # type: ignore[attr-defined]

    def last(self, team: str, kind: Kind[R]) -> int:
        with self._lock:
            return len(self._logs.get(team, []))

    def pack(self, team: str, kind: Kind[R]) -> Iterator[tuple[str, bytes]]:
        if kind.name == "message":
            for number, (uid, data) in enumerate(self._logs.get(team, []), start=1):
                message = json.loads(data)
                yield f"{number}.{'@' if message.get('recipients') else message['to']}.{uid}", data
            return
        for record, _ in self.scan(team, kind, []):
            yield getattr(record, kind.key), encode(record)

    def put(self, team: str, kind: Kind[R], key: str, data: bytes) -> None:
        with self._lock:
            if kind.name != "message":
                self._put(self._of(team, kind), key, _decode(kind, data))
            elif int(key.partition(".")[0]) > len(log := self._logs.setdefault(team, [])):
                log.append((key.split(".")[2], data))

    def journal(self, team: str, entry: dict[str, Any]) -> None:
        with self._lock:
            self._histories.setdefault(team, []).append(json.dumps(entry))
            self._changes += 1
            self._changed.notify_all()

    def history(self, team: str, after: int = 0) -> Iterator[tuple[int, dict[str, Any]]]:
        with self._lock:
            noted = self._histories.get(team, [])[after:]
        return iter([(position, json.loads(entry)) for position, entry in enumerate(noted, start=after + 1)])

    def watch(self, team: str) -> Watch:
        return MemoryWatch(self)

    def admit(self, team: str, agents: Mapping[str, bool]) -> dict[str, str]:
        raise InvalidValue(f"{self.place} knows no logins", "Keep the team in a database: teams copy-team, --store.")

    def examine(self, kinds: Sequence[Kind[Any]], fix: bool) -> Iterable[Finding]:
        return []

    def now(self) -> datetime:
        return self.clock.now()

    def steady(self) -> tuple[str, float]:
        return self.clock.steady()

    def close(self) -> None:
        return None

    def changes(self) -> int:
        """How many changes there were so far."""
        return self._changes

    def wait_for_more(self, seen: int, timeout: float) -> bool:
        """Block until there were more than *seen* changes; False when *timeout* seconds ran out."""
        with self._lock:
            return self._changed.wait_for(lambda: self._changes > seen, timeout)

    def _of(self, team: str, kind: Kind[R]) -> dict[str, tuple[bytes, int]]:
        return self._records.setdefault((team, kind.name), {})


class MemoryWatch:
    """Wakes at every change in the store."""

    def __init__(self, store: MemoryStore) -> None:
        self._store = store
        self._seen = store.changes()

    def wait(self, timeout: float) -> bool:
        """Block until anything may have changed since the last call; False when *timeout* seconds ran out."""
        woken = self._store.wait_for_more(self._seen, timeout)
        self._seen = self._store.changes()
        return woken

    def fileno(self) -> None:
        return None

    def close(self) -> None:
        return None


def _decode(kind: Kind[R], data: bytes) -> R:
    document = json.loads(data)
    del document["checksum"]
    return kind.record.from_json(document)
