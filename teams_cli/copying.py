"""Copying a whole team from one store to another, byte for byte: between files and a database, either way."""

from __future__ import annotations

from teams_cli import closing, kinds, teams
from teams_cli.errors import AlreadyExists, InvalidValue, NotFound, StorageFailed
from teams_cli.roles import require
from teams_cli.store.contract import update
from teams_cli.store.documents import encode
from teams_cli.teams import TEAM, Team

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from teams_cli.caller import Caller
    from teams_cli.store.contract import Kind, Store

_MARK = "copiedTo"
_STATE = "stateBefore"


def copy(store: Store, target: Store, team_name: str, caller: Caller | None) -> dict[str, int]:
    """Copy the team to another store: all its records, messages and history, to the byte.

    The team here is closed, so that nobody works in both; `restore-team` opens it again. What a copy that was broken
    off has put there already is no obstacle to the next. Logs and work trees stay on their machines.

    Raises:
        Conflict: A task is in progress, or an agent runs.
        AlreadyExists: There is a team of that name there, and it was not left behind by a copy.
        DamagedRecord: One of its records is damaged; nothing was changed here.
    """
    team = require(store, team_name, caller, "copy-team")
    if target.place == store.place:
        raise InvalidValue(f"{team_name} is in {store.place} already", "Say another store with --to.")
    _refuse_taken(target, team_name)
    closing.refuse_busy(store, team)
    for kind in kinds.IN_A_TEAM:
        for _ in store.pack(team_name, kind):  # raises what is damaged before anything is changed
            pass
    closed = _closed(store, team, target.place)
    counts = {kind.name: _copy_kind(store, target, team_name, kind) for kind in kinds.IN_A_TEAM}
    counts["history"] = _copy_history(store, target, team_name)
    target.put(team_name, TEAM, team_name, encode(_as_it_was(closed)))
    return {name: count for name, count in counts.items() if count}


def _refuse_taken(target: Store, name: str) -> None:
    """Leave alone a team that is at work there; one that was itself copied away may come back."""
    try:
        there = target.get(name, TEAM, name)[0]
    except NotFound:
        if name.lower() not in {known.lower() for known in target.teams()}:
            return
    else:
        if there.state == "closed" and _MARK in there.extra:
            return
    raise AlreadyExists(f"there is a team {name} at {target.place} already", "Copy to another store.")


def _closed(store: Store, team: Team, place: str) -> Team:
    """Close the team here, with where it went and what it was before."""

    def change(found: Team) -> Team:
        copied = found.state == "closed" and _STATE in found.extra
        before = found.extra[_STATE] if copied else [found.state, found.closed_at]
        changed = found.having(state="closed", closed_at=found.closed_at or teams.now(store))
        changed.extra = {**found.extra, _MARK: place, _STATE: before}
        return changed

    return update(store, team.name, TEAM, team.name, change)[1]


def _as_it_was(closed: Team) -> Team:
    state, closed_at = closed.extra[_STATE]
    team = closed.having(state=state, closed_at=closed_at)
    team.extra = {key: value for key, value in closed.extra.items() if key not in (_MARK, _STATE)}
    return team


def _copy_kind(store: Store, target: Store, team: str, kind: Kind[Any]) -> int:
    there = dict(target.pack(team, kind))
    count = 0
    for key, data in store.pack(team, kind):
        if there.get(key) != data:
            target.put(team, kind, key, data)
        count += 1
    return count


def _copy_history(store: Store, target: Store, team: str) -> int:
    """Add the entries that are not there yet: a history only grows."""
    entries = [entry for _, entry in store.history(team)]
    for entry in entries[sum(1 for _ in target.history(team)) :]:
        target.journal(team, entry)
    if sum(1 for _ in target.history(team)) < len(entries):
        raise StorageFailed(f"the history could not be written to {target.place}", "Copy again; it goes on there.")
    return len(entries)
