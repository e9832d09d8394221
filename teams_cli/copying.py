"""Copying a whole team from one store to another, byte for byte, between files and a database."""

from __future__ import annotations

import os

from teams_cli import closing, errors, kinds
from teams_cli.agents import ending, sessions
from teams_cli.store.contract import Kind, Store
from teams_cli.store.documents import encode
from teams_cli.store.retrying import update
from teams_cli.teams import teams
from teams_cli.teams.permission import require
from teams_cli.teams.teams import TEAM, Team

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from teams_cli.teams.permission import Caller

_AT_ONCE = 500
"""The number of messages, or entries of the history, that are written in one change."""


def copy(store: Store, target: Store, team_name: str, caller: Caller | None) -> dict[str, int]:
    """Copy the team to another store: all its records, messages and history, byte for byte.

    The team here is closed, so that nobody works in both; `restore-team` reopens it. If the copy is
    interrupted, repeat it. Logs and worktrees stay on their machines.

    Raises:
        Conflict: A task is in progress, an agent runs, or another copy began meanwhile.
        WrongState: The team was already copied to a third store and is open there.
        AlreadyExists: The other store has a different team of that name.
        DamagedRecord: A record of the team is damaged; nothing was changed here.
    """
    team = require(store, team_name, caller, "copy-team").team
    if target.address == store.address:
        raise errors.InvalidValue(f"{team_name} is in {store.address} already", "Give another store with --to.")
    _refuse_gone(team, target)
    if _is_copied(team, target):
        return {}
    _refuse_taken(target, team_name)
    closing.refuse_busy(store, team)
    for kind in kinds.IN_A_TEAM:
        for _ in store.pack(team_name, kind):  # raises what is damaged before anything is changed
            pass
    closed = _closed(store, team, target.address)
    counts = _copy_records(store, target, closed)
    counts["history"] = _copy_history(store, target, team_name)
    _refuse_overtaken(store, closed)
    for session in ending.all_of(target, team_name, []):
        sessions.note_started_here(target, team_name, session)
    target.put(team_name, TEAM, team_name, encode(_as_it_was(closed)))
    return {name: count for name, count in counts.items() if count}


def _is_copied(team: Team, target: Store) -> bool:
    """Whether an earlier copy to that store was finished, and the team is open there: its record is written last."""
    if team.state != "closed" or team.copied_to != target.address:
        return False
    try:
        return not target.get(team.name, TEAM, team.name)[0].copied_to
    except errors.NotFound:
        return False


def _refuse_gone(team: Team, target: Store) -> None:
    """Refuse a team that was copied away and is open there."""
    went = team.copied_to if team.state == "closed" else None
    if went and went != target.address:
        remedy = f"Copy it from there, or open it here again, to work in both: teams restore-team {team.name}"
        raise errors.WrongState(f"{team.name} was copied to {went}", remedy)


def _refuse_overtaken(store: Store, closed: Team) -> None:
    """Refuse to go on if a later copy has begun: the team may be open there by now."""
    now = store.get(closed.name, TEAM, closed.name)[0]
    if now.copy_ != closed.copy_:
        raise errors.Conflict(f"another copy of {closed.name} was begun", "Wait for it.")


def _copy_records(store: Store, target: Store, closed: Team) -> dict[str, int]:
    """Copy until there is nothing new, since a change may have been under way when the team was closed."""
    while True:
        counts, changed = {}, 0
        for kind in kinds.IN_A_TEAM:
            counts[kind.name], put = _copy_kind(store, target, closed, kind)
            if kind.numbered:
                target.reserve(closed.name, kind, store.last(closed.name, kind))
            changed += put
        if not changed:
            return counts


def _refuse_taken(target: Store, name: str) -> None:
    """Refuse to overwrite an open team. One that was itself copied away may come back."""
    try:
        there = target.get(name, TEAM, name)[0]
    except errors.NotFound:
        if name.lower() not in {known.lower() for known in target.teams()}:
            return
    else:
        if there.state == "closed" and there.copied_to:
            return
    raise errors.AlreadyExists(
        f"there is a team {name} at {target.address} already", "If a copy created it, use it there."
    )


def _closed(store: Store, team: Team, place: str) -> Team:
    """Close the team here, and note where it is copied to and its state before."""
    copy = os.urandom(8).hex()

    def change(found: Team) -> Team:
        copied = found.state_before if found.state == "closed" else None
        before = copied or [found.state, found.closed_at]
        closed = found.having(state="closed", closed_at=found.closed_at or teams.now(store))
        return closed.having(copied_to=place, state_before=before, copy_=copy)

    return update(store, team.name, TEAM.also_closed, team.name, change)[1]


def _as_it_was(closed: Team) -> Team:
    state, closed_at = closed.state_before or ["active", None]
    return closed.uncopied().having(state=state, closed_at=closed_at)


def _copy_kind(store: Store, target: Store, closed: Team, kind: Kind[Any]) -> tuple[int, int]:
    """Copy the records of a kind. Return how many there are, and how many had to be written."""
    there = dict(target.pack(closed.name, kind))
    at_once = _AT_ONCE if kind.name == "message" else 1  # no message that is there is changed, so many go together
    count = put = 0
    missing: list[tuple[str, bytes]] = []
    for key, data in store.pack(closed.name, kind):
        count += 1
        if there.get(key) != data:
            missing.append((key, data))
            put += 1
        if len(missing) == at_once:
            _put(store, target, closed, kind, missing)
            missing = []
    _put(store, target, closed, kind, missing)
    return count, put


def _put(store: Store, target: Store, closed: Team, kind: Kind[Any], packed: list[tuple[str, bytes]]) -> None:
    if not packed:
        return
    _refuse_overtaken(store, closed)
    if kind.name == "message":
        target.put_messages(closed.name, kind, packed)
    else:
        target.put(closed.name, kind, *packed[0])


def _copy_history(store: Store, target: Store, team: str) -> int:
    """Add the missing entries of the history, which only grows."""
    entries = [entry for _, entry in store.history(team)]
    for begin in range(sum(1 for _ in target.history(team)), len(entries), _AT_ONCE):
        target.put_history(team, entries[begin : begin + _AT_ONCE])
    if sum(1 for _ in target.history(team)) < len(entries):
        raise errors.StorageFailed(
            f"the history could not be written to {target.address}", "Repeat the command; it continues."
        )
    return len(entries)
