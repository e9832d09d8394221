"""The in-memory engine: the contract without a disk, for one process; its records are gone with it."""

from __future__ import annotations

import json
import os
from threading import Condition, RLock

from teams_cli import errors
from teams_cli.clock import SystemClock
from teams_cli.records.records import Record
from teams_cli.store.contract import Kind, Store
from teams_cli.store.documents import encode, team_closed
from teams_cli.store.topics import concerns, topics_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
    from typing import Any, TypeVar

    from teams_cli.clock import Clock
    from teams_cli.store.contract import Finding
    from teams_cli.store.watch import Watch

    R = TypeVar("R", bound=Record)


class MemoryStore(Store):
    """Records in the memory of this process, safe for its threads."""

    host = ""

    def __init__(self, clock: Clock | None = None) -> None:
        self.address = self.root = "memory"
        self.variables: dict[str, str] = {}
        self.clock = clock or SystemClock()
        self._lock = RLock()
        self._changed = Condition(self._lock)
        self._changes: list[frozenset[str]] = []
        self._records: dict[tuple[str, str], dict[str, tuple[bytes, int]]] = {}
        self._logs: dict[str, dict[int, tuple[str, bytes]]] = {}
        self._histories: dict[str, list[str]] = {}
        self._given: dict[tuple[str, str], int] = {}
        self._closed: set[str] = set()

    def teams(self) -> list[str]:
        with self._lock:
            return sorted(team for (team, kind), found in self._records.items() if kind == "team" and found)

    def create(self, team: str, kind: Kind[R], key: str | None, record: R) -> tuple[R, int]:
        with self._lock:
            taken = self._of(team, kind)
            self._refuse_closed(team, kind)
            if key is None:
                record = kind.numbering(record, self.last(team, kind) + 1)
                key = getattr(record, kind.key)
            elif kind.name == "team" and any(name.lower() == team.lower() for name in self.teams()):
                raise errors.AlreadyExists(f"there is a team {team} already", "Choose another name, or join it.")
            elif any(name.lower() == key.lower() for name in taken):
                raise errors.AlreadyExists(f"there is a {kind.name} {key} already", "Choose another name.")
            return record, self._put(team, kind, key, record)

    def create_all(self, team: str, kind: Kind[R], count: int, make: Callable[[list[str]], list[R]]) -> list[R]:
        with self._lock:
            self._refuse_closed(team, kind)
            records = kind.numbering_all(self.last(team, kind) + 1, count, make)
            for record in records:
                encode(record)  # all are refused before one is stored
            for record in records:
                self._put(team, kind, getattr(record, kind.key), record)
            return records

    def _refuse_closed(self, team: str, kind: Kind[R]) -> None:
        if team in self._closed and not kind.while_closed:
            raise team_closed(team)

    def _put(self, team: str, kind: Kind[R], key: str, record: R) -> int:
        data = encode(record)
        self.changed += 1
        label = kind.label(record) if kind.label else None
        self._of(team, kind)[key] = (data, self._note(topics_of(kind, key, label)))
        if kind.numbered:
            self.reserve(team, kind, kind.number_in(key))
        if kind.closes:
            (self._closed.add if kind.closes(record) else self._closed.discard)(team)
        return len(self._changes)

    def _note(self, topics: frozenset[str]) -> int:
        """Wake who waits for changes on these topics; how many changes there were."""
        self._changes.append(topics)
        self._changed.notify_all()
        return len(self._changes)

    def get(self, team: str, kind: Kind[R], key: str) -> tuple[R, int]:
        with self._lock:
            if kind.name == "message":
                number = kind.number_in(key)
                if number not in (log := self._logs.get(team, {})):
                    raise errors.NotFound(f"there is no {kind.name} {key}")
                return _decode(kind, log[number][1]), 0
            if key not in (found := self._of(team, kind)):
                raise errors.NotFound(f"there is no {kind.name} {key}")
            data, revision = found[key]
        return _decode(kind, data), revision

    def scan(
        self, team: str, kind: Kind[R], problems: list[errors.TeamsError], keys: Collection[str] | None = None
    ) -> Iterator[tuple[R, int]]:
        with self._lock:
            found = [item for item in self._of(team, kind).items() if keys is None or item[0] in keys]
        found.sort(key=(lambda item: int(item[0].rpartition("-")[2])) if kind.numbered else (lambda item: item[0]))
        return iter([(_decode(kind, data), revision) for _, (data, revision) in found])

    def labelled(self, team: str, kind: Kind[R], *labels: str) -> Iterator[str]:
        of = kind.label or (lambda record: None)
        return iter([getattr(record, kind.key) for record, _ in self.scan(team, kind, []) if of(record) in labels])

    def by_label(self, team: str, kind: Kind[R]) -> Mapping[str, Collection[str]]:
        of = kind.label or (lambda record: None)
        found: dict[str, set[str]] = {}
        for record, _ in self.scan(team, kind, []):
            found.setdefault(of(record) or "", set()).add(getattr(record, kind.key))
        return found

    def holds(self, team: str, *kinds: str) -> set[str]:
        with self._lock:
            return {kind for kind in kinds if self._records.get((team, kind))}

    def owing(self, team: str) -> list[tuple[str, str]]:
        with self._lock:
            of_team = [(kind, found) for (name, kind), found in self._records.items() if name == team]
        return [
            (kind, key) for kind, found in of_team for key, (data, _) in found.items() if json.loads(data).get("owed")
        ]

    def replace(self, team: str, kind: Kind[R], key: str, record: R, revision: int, lasting: bool = True) -> int:
        with self._lock:
            if key not in (found := self._of(team, kind)):
                raise errors.NotFound(f"there is no {kind.name} {key}")
            if found[key][1] != revision:
                raise errors.StaleRevision(f"{kind.name} {key} was changed meanwhile", "Look at it again.")
            self._refuse_closed(team, kind)
            return self._put(team, kind, key, record)

    def confirm(self, team: str, kind: Kind[R], key: str) -> None:
        return None

    def append(self, team: str, kind: Kind[R], to: Sequence[str], record: R, uid: str | None) -> tuple[R, bool]:
        with self._lock:
            log = self._logs.setdefault(team, {})
            for used, data in log.values():
                if uid is not None and used == uid:
                    return _decode(kind, data), False
            self._refuse_closed(team, kind)
            number = self.last(team, kind) + 1
            record = kind.numbering(record, number)
            log[number] = (uid or os.urandom(8).hex(), encode(record))
            self.changed += 1
            self.reserve(team, kind, number)
            self._note(frozenset({"message", *(f"message/{name}" for name in to)}))
        return record, True

    def read(
        self, team: str, kind: Kind[R], agent: str | None, after: int, problems: list[errors.TeamsError], limit: int = 0
    ) -> list[R]:
        with self._lock:
            later = [data for number, (_, data) in sorted(self._logs.get(team, {}).items()) if number > after]
        found = []
        for message in (_decode(kind, data) for data in later):
            if agent is None or message.to == agent or agent in (message.recipients or ()):  # type: ignore[attr-defined]
                found.append(message)
        return found[:limit] if limit else found

    def envelopes(self, team: str, kind: Kind[R], after: int) -> Iterator[tuple[int, str, Sequence[str]]]:
        with self._lock:
            log = [(number, uid, data) for number, (uid, data) in self._logs.get(team, {}).items() if number > after]
        for number, uid, data in log:
            message: Any = _decode(kind, data)
            yield number, uid, message.recipients or [message.to]

    def fetch(self, team: str, kind: Kind[R], numbers: Sequence[int], problems: list[errors.TeamsError]) -> list[R]:
        return [message for message in self.read(team, kind, None, 0, problems) if message.number in numbers]  # type: ignore[attr-defined]

    def search(self, team: str, kind: Kind[R], words: Sequence[str], problems: list[errors.TeamsError]) -> Iterator[R]:
        if kind.name == "message":
            return reversed(self.read(team, kind, None, 0, problems))
        return reversed([record for record, _ in self.scan(team, kind, problems)])

    def last(self, team: str, kind: Kind[R]) -> int:
        with self._lock:
            return self._given.get((team, kind.name), 0)

    def reserve(self, team: str, kind: Kind[R], number: int) -> None:
        with self._lock:
            self._given[team, kind.name] = max(number, self.last(team, kind))

    def pack(self, team: str, kind: Kind[R]) -> Iterator[tuple[str, bytes]]:
        if kind.name == "message":
            for number, (uid, data) in sorted(self._logs.get(team, {}).items()):
                message = json.loads(data)
                yield f"{number}.{'@' if message.get('recipients') else message['to']}.{uid}", data
            return
        for record, _ in self.scan(team, kind, []):
            yield getattr(record, kind.key), encode(record)

    def put(self, team: str, kind: Kind[R], key: str, data: bytes) -> None:
        with self._lock:
            self._put(team, kind, key, _decode(kind, data))

    def put_messages(self, team: str, kind: Kind[R], packed: Sequence[tuple[str, bytes]]) -> None:
        with self._lock:
            for key, data in packed:
                number = int(key.partition(".")[0])
                self._logs.setdefault(team, {}).setdefault(number, (key.split(".")[2], data))
                self.reserve(team, kind, number)

    def drop(self, team: str, kind: Kind[R], revision: int) -> None:
        with self._lock:
            found = self._of(team, kind)
            if team not in found:
                raise errors.NotFound(f"there is no {kind.name} {team}")
            if found[team][1] != revision or team not in self._closed:
                raise errors.StaleRevision(f"{kind.name} {team} was changed meanwhile", "Look at it again.")
            for place in (self._records, self._given):
                for key in [key for key in place if key[0] == team]:
                    del place[key]
            self._logs.pop(team, None)
            self._histories.pop(team, None)
            self._closed.discard(team)
            self.changed += 1
            self._note(frozenset())

    def journal(self, team: str, entry: dict[str, Any]) -> None:
        with self._lock:
            self._histories.setdefault(team, []).append(json.dumps(entry))
            self._note(frozenset({"history"}))

    def history(self, team: str, after: int = 0, backwards: bool = False) -> Iterator[tuple[int, dict[str, Any]]]:
        with self._lock:
            noted = self._histories.get(team, [])[after:]
        found = [(position, json.loads(entry)) for position, entry in enumerate(noted, start=after + 1)]
        return reversed(found) if backwards else iter(found)

    def watch(self, team: str, topics: Collection[str] | None = None) -> Watch:
        return MemoryWatch(self, topics)

    def admit(self, team: str, agents: Mapping[str, str], kinds: Sequence[Kind[Any]]) -> dict[str, str]:
        raise errors.InvalidValue(
            f"{self.address} knows no logins", "Keep the team in a database: teams copy-team, --store."
        )

    def examine(self, kinds: Sequence[Kind[Any]], fix: bool, only: str = "") -> Iterable[Finding]:
        return []

    def changes(self) -> int:
        """How many changes there were so far."""
        return len(self._changes)

    def wait_for_more(self, seen: int, topics: Collection[str] | None, timeout: float) -> frozenset[str]:
        """Block until there were changes on these topics after the first *seen*; what they were on, nothing when
        *timeout* seconds ran out.
        """

        def heard() -> frozenset[str]:
            later = self._changes[seen:]
            return frozenset().union(*later) if any(concerns(topics, each) for each in later) else frozenset()

        with self._lock:
            return self._changed.wait_for(heard, timeout) or frozenset()

    def _of(self, team: str, kind: Kind[R]) -> dict[str, tuple[bytes, int]]:
        return self._records.setdefault((team, kind.name), {})


class MemoryWatch:
    """Wakes at every change in the store that is on one of the topics."""

    slow = ""
    heard: frozenset[str] = frozenset()

    def __init__(self, store: MemoryStore, topics: Collection[str] | None) -> None:
        self._store = store
        self._topics = topics
        self._seen = store.changes()

    def wait(self, timeout: float) -> bool:
        """Block until anything may have changed since the last call; False when *timeout* seconds ran out."""
        self.heard = self._store.wait_for_more(self._seen, self._topics, timeout)
        self._seen = self._store.changes()
        return bool(self.heard)

    def fileno(self) -> None:
        return None

    def close(self) -> None:
        return None


def _decode(kind: Kind[R], data: bytes) -> R:
    document = json.loads(data)
    del document["checksum"]
    return kind.record.from_json(document)
