"""Copying a whole team from one store to another, byte for byte, between files and a database."""

from __future__ import annotations

import os
from contextlib import suppress

from teams_cli import closing, errors, kinds
from teams_cli.agents import ending, sessions
from teams_cli.store.contract import Kind, Store, update
from teams_cli.store.documents import encode
from teams_cli.tasks.tasks import TASK
from teams_cli.teams import teams
from teams_cli.teams.permission import require
from teams_cli.teams.teams import TEAM, Team

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from teams_cli.teams.permission import Caller

_BATCH = 500
"""The number of messages, or of history entries, that are written in one change."""


def copy(store: Store, target: Store, team_name: str, caller: Caller | None) -> dict[str, int]:
    """Copy the team to another store: all its records, messages and history, byte for byte.

    The original is closed, so that nobody works in both teams; `restore-team` reopens the original, and warns that the
    copy may be open. If the command is interrupted, repeat it. Logs and worktrees stay on their machines.

    Raises:
        Conflict: A task is in progress, an agent runs, or another copy was started meanwhile.
        WrongState: The team was already copied to a third store, or the copy in the other store was copied on.
        AlreadyExists: The other store has a different team of that name.
        DamagedRecord: A record of the team is damaged; nothing was changed here.
    """
    team = require(store, team_name, caller, "copy-team").team
    if target.address == store.address:
        raise errors.InvalidValue(f"{team_name} is in {store.address} already", "Give another store with --to.")
    if team.state == "closed" and team.copied_to:
        if team.copied_to != target.address:
            raise errors.WrongState(f"{team.name} was copied to {team.copied_to}", _instead(team))
        if _is_finished(target, team):
            return {}
    existing = _refuse_to_overwrite(store, target, team)
    closing.refuse_busy(store, team)
    for kind in kinds.IN_A_TEAM:
        for _ in store.pack(team_name, kind):  # raises the error of a damaged record before anything is changed
            pass
    if existing:  # it is replaced, so no copy that was made from there is still to be finished
        update(target, team_name, TEAM.even_in_closed_team, team_name, lambda team: team.having(copy_=None))
    closed = _close_for_copy(store, team, target.address)
    if _is_finished(target, closed):  # another copy was, since the first look
        return {}
    counts = _copy_records(store, target, closed)
    counts["history"] = _copy_history(store, target, team_name)
    _refuse_overtaken(store, closed)
    for session in ending.all_of(target, team_name, []):  # so that this machine trusts the sessions in the copy
        sessions.note_started_here(target, team_name, session)
    state, closed_at = closed.state_before or ["active", None]
    copied = closed.uncopied().having(state=state, closed_at=closed_at)
    target.put(team_name, TEAM, team_name, encode(copied))
    _note_finished(store, closed)
    return {name: count for name, count in counts.items() if count}


def _instead(team: Team) -> str:
    """Return what can be done instead of copying the *team*, which was copied before."""
    return f"Copy it from there, or open it here again, to work in both: teams restore-team {team.name}"


def _is_finished(target: Store, closed: Team) -> bool:
    """Whether an earlier copy of the *closed* team to *target* was finished. The record of a team is written last.

    Raises:
        WrongState: The copy was finished, and was then itself copied on or back, so what is here is out of date.
    """
    try:
        existing = target.get(closed.name, TEAM, closed.name)[0]
    except errors.NotFound:
        return False
    if not existing.copied_to:
        return True
    # A copy begins by removing the note `copy_` from the record that it will replace.
    if closed.copy_ and not existing.copy_:
        return False
    raise errors.WrongState(
        f"{closed.name} was copied to {target.address}, and from there to {existing.copied_to}", _instead(closed)
    )


def _note_finished(store: Store, closed: Team) -> None:
    """Note in the original that this copy was finished, by removing the note `copy_`. Errors are ignored, because the
    copy was made.
    """

    def change(team: Team) -> Team:
        return team.having(copy_=None) if team.copy_ == closed.copy_ else team

    with suppress(errors.TeamsError):
        update(store, closed.name, TEAM.even_in_closed_team, closed.name, change)


def _refuse_overtaken(store: Store, closed: Team) -> None:
    """Raise Conflict if another copy was begun after this one, which may already have opened the team elsewhere; or if
    the team was opened here again.
    """
    now = store.get(closed.name, TEAM, closed.name)[0]
    if now.state != "closed":
        raise errors.Conflict(f"{closed.name} was opened here again, so the copy was not finished", "Repeat it.")
    if now.copy_ != closed.copy_:
        raise errors.Conflict(f"another copy of {closed.name} was begun", "Wait for it.")


def _copy_records(store: Store, target: Store, closed: Team) -> dict[str, int]:
    """Copy all records, and return how many there are of each kind. Changes may still finish after the team was closed,
    so repeat this until no record has to be written.
    """
    while True:
        counts, written = {}, 0
        for kind in kinds.IN_A_TEAM:
            counts[kind.name], written_of_kind = _copy_kind(store, target, closed, kind)
            if kind.numbered:
                target.reserve(closed.name, kind, store.last(closed.name, kind))
            written += written_of_kind
        if not written:
            return counts


def _refuse_to_overwrite(store: Store, target: Store, team: Team) -> Team | None:
    """Return the record in *target* of an earlier state of the *team*, which the copy replaces: the team was copied
    from there, perhaps by way of other stores. Return None if *target* has no team of that name.

    Raises:
        AlreadyExists: The store *target* has another team of that name, perhaps in another case; or a later state.
    """
    name, hint = team.name, "If it is an earlier copy of the team, use that copy."
    try:
        existing = target.get(name, TEAM, name)[0]
    except errors.NotFound:
        if name.lower() not in {existing_name.lower() for existing_name in target.teams()}:
            return None
    else:
        if existing.state == "closed" and existing.copied_to and existing.created_at == team.created_at:
            if target.last(name, TASK) <= store.last(name, TASK):
                return existing
            hint = f"It has tasks that this one lacks, and was copied to {existing.copied_to}: copy it from there."
    raise errors.AlreadyExists(f"there is a team {name} at {target.address} already", hint)


def _close_for_copy(store: Store, team: Team, target_address: str) -> Team:
    """Close the team, and note in its record where it is copied to, and its former state, which the copy will have."""
    copy_id = os.urandom(8).hex()

    def change(team: Team) -> Team:
        state_before: list[str | None] = [team.state, team.closed_at]
        if team.state == "closed" and team.state_before:  # an earlier copy, which was interrupted, closed it
            state_before = team.state_before
        closed = team.having(state="closed", closed_at=team.closed_at or teams.now(store))
        return closed.having(copied_to=target_address, state_before=state_before, copy_=copy_id)

    return update(store, team.name, TEAM.even_in_closed_team, team.name, change)[1]


def _copy_kind(store: Store, target: Store, closed: Team, kind: Kind[Any]) -> tuple[int, int]:
    """Copy the records of a kind. Return how many records there are, and how many of them had to be written, because
    *target* did not have them yet, or had an earlier state.
    """
    copied = dict(target.pack(closed.name, kind))
    # Stored messages never change, so many can be put together.
    batch_size = _BATCH if kind.name == "message" else 1
    batch: list[tuple[str, bytes]] = []
    count = written = 0
    for key, data in store.pack(closed.name, kind):
        count += 1
        if copied.get(key) != data:
            batch.append((key, data))
            written += 1
        if len(batch) == batch_size:
            _put(store, target, closed, kind, batch)
            batch = []
    if batch:
        _put(store, target, closed, kind, batch)
    return count, written


def _put(store: Store, target: Store, closed: Team, kind: Kind[Any], packed: list[tuple[str, bytes]]) -> None:
    """Write *packed*, which is several messages or one record of another kind, into *target*."""
    _refuse_overtaken(store, closed)
    if kind.name == "message":
        target.put_messages(closed.name, kind, packed)
    else:
        target.put(closed.name, kind, *packed[0])


def _copy_history(store: Store, target: Store, team: str) -> int:
    """Copy the entries that *target* lacks: the last ones, since a history only grows. Return its full length."""
    entries = [entry for _, entry in store.history(team)]
    copied_before = sum(1 for _ in target.history(team))
    for begin in range(copied_before, len(entries), _BATCH):
        target.put_history(team, entries[begin : begin + _BATCH])
    if sum(1 for _ in target.history(team)) < len(entries):
        raise errors.StorageFailed(
            f"the history could not be written to {target.address}", "Repeat the command; it continues."
        )
    return len(entries)
