"""Removing closed teams that nobody needs any more: the records, and what their agents and runs left beside them."""

from __future__ import annotations

import os
import shutil

from teams_cli import errors
from teams_cli.agents import worktrees
from teams_cli.clock import seconds_since
from teams_cli.names import HUMAN
from teams_cli.store.contract import Store
from teams_cli.teams import teams
from teams_cli.teams.caller import Caller
from teams_cli.teams.permission import require
from teams_cli.teams.teams import TEAM

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_BESIDE = ("runs", "logs", "started")
"""Where this machine keeps what belongs to a team and is in no store."""


def found(store: Store, caller: Caller | None, days: float, problems: list[errors.TeamsError]) -> list[dict[str, Any]]:
    """The teams that were closed longer than so many days ago; `kept` says why one is not removed all the same."""
    rows = []
    for team in teams.all_of(store, problems):
        closed = team.closed_at or team.created_at
        if team.state == "closed" and seconds_since(closed, store.now()) >= days * 86400:
            rows.append({"team": team.name, "closedAt": closed, "kept": _why_kept(store, team.name, caller)})
    return rows


def _why_kept(store: Store, name: str, caller: Caller | None) -> str | None:
    try:
        require(store, name, caller or Caller(HUMAN), "prune")
        held = [tree for tree in worktrees.all_of(store, name) if tree.state == "work"]
    except errors.TeamsError as problem:
        return problem.message
    if held:
        return f"{held[0].agent} has work in {held[0].path}: teams worktree merge {held[0].agent} --team {name}"
    return None


def remove(store: Store, name: str, caller: Caller | None) -> None:
    """Remove a closed team for ever, with its messages, tasks, worktrees, logs and reports.

    Raises:
        NotAllowed: The caller neither leads it nor is the human.
        StaleRevision: It was changed just now.
    """
    require(store, name, caller or Caller(HUMAN), "prune")
    _, revision = store.get(name, TEAM, name)
    for tree in worktrees.all_of(store, name):
        worktrees.drop(tree)
    store.drop(name, TEAM, revision)
    for part in (*_BESIDE, "worktrees"):
        shutil.rmtree(os.path.join(store.root, part, name), ignore_errors=True)
