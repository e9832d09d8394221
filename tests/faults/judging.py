"""The content of a store without times and chance, so that two states can be compared."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

from teams_cli import doctor, kinds
from teams_cli.errors import TeamsError
from teams_cli.messages.inboxes import INBOX
from teams_cli.messages.messages import MESSAGE
from teams_cli.store.contract import Store
from teams_cli.store.files.engine import FileStore
from teams_cli.teams import config
from teams_cli.teams.presence import AGENT

_CHANCE = {
    "at",
    "copy",
    "lastSeen",
    "leaseUntil",
    "leaseEpoch",
    "statusHistory",
    "checksum",
    "timestamp",
    "number",
    "seconds",
    "id",
    "owed",
    "uid",
}
State = dict[str, Any]


def state(*roots: Path) -> State:
    """Return everything in the teams of these roots. Messages are identified by their text, because their order may
    differ.
    """
    found: State = {}
    for root in roots:
        config_file = root / "config.json"
        found[f"{root.name}: config"] = config_file.read_text() if config_file.exists() else ""
        found |= {f"{root.name}: {key}": value for key, value in of_store(FileStore(str(root))).items()}
    return found


def of_store(store: Store) -> State:
    """Return everything in the teams of one store."""
    return {f"{team}: {key}": value for team in store.teams() for key, value in _team(store, team).items()}


def _team(store: Store, team: str) -> State:
    problems: list[TeamsError] = []
    said = {message.number: message for message in store.read(team, MESSAGE, None, 0, problems)}
    found: State = {"messages": sorted(_text(message) for message in said.values())}
    for kind in kinds.ALL:
        if kind.name == "team":
            found["team"] = _plain(store.get(team, kind, team)[0].to_json())
        elif kind.name not in ("message", INBOX.name, AGENT.name):
            for record, _ in store.scan(team, kind, problems):
                key = getattr(record, kind.key)
                found[key] = {"key": key, "kind": kind.name, **_plain(record.to_json())}
    for inbox, _ in store.scan(team, INBOX, problems):
        read = [_text(said[entry.number]) for entry in inbox.open if entry.read_at and entry.number in said]
        done = [_text(said[entry.number]) for entry in inbox.handled if entry.number in said]
        found[f"inbox of {inbox.agent}"] = {"read": sorted(read), "handled": sorted(done)}
    for agent, _ in store.scan(team, AGENT, problems):
        if agent.status:
            found[f"agent {agent.agent}"] = f"{agent.status} {agent.note or ''}".rstrip()
    found["problems"] = sorted(problem.message.rpartition(":")[2] for problem in problems)
    return found


def _text(message: Any) -> str:
    return f"{message.from_} to {message.addressed}: {message.message} ({message.type}, {message.about})"


def _plain(value: Any) -> Any:
    """Return the value without parts that time or chance decide. Of a time, only whether there is one is kept."""
    if isinstance(value, dict):
        return {key: _plain(found) for key, found in value.items() if key not in _CHANCE and not key.endswith("At")}
    return [_plain(found) for found in value] if isinstance(value, list) else value


def owing(root: Path) -> list[str]:
    """Return the records that owe a notice."""
    store = FileStore(str(root))
    found = []
    for team in store.teams():
        for kind in kinds.ALL:
            records = [store.get(team, kind, team)] if kind.name == "team" else store.scan(team, kind, [])
            if kind.name != "message":
                found += [getattr(record, kind.key) for record, _ in records if getattr(record, "owed", None)]
    return found


def ill(root: Path) -> list[str]:
    """Return the findings of the doctor. A mark too many is no fault."""
    found = doctor.examine(FileStore(str(root)), config.load(str(root), {}))
    return [row["what"] for row in found if row["level"] == "problem" or "not in the index" in row["what"]]


def difference(one: State, other: State, but: Collection[str] = ()) -> str:
    """Describe the differences between two states, *but* for the fields with these keys."""
    keys = [key for key in {**one, **other} if one.get(key) != other.get(key) and key.rpartition(": ")[2] not in but]
    return "\n".join(f"  {key}: {one.get(key)}\n     instead of {other.get(key)}" for key in keys)
