"""Remove closed teams that nobody needs any more: their records, and the files of their agents and runs."""

from __future__ import annotations

import os
import shutil
from typing import Any

from teams_cli import errors, text
from teams_cli.agents import keeping, worktrees
from teams_cli.agents.keeping import Kept
from teams_cli.clock import seconds_since
from teams_cli.names import HUMAN
from teams_cli.store.contract import Store
from teams_cli.teams import settings, teams
from teams_cli.teams.config import Config
from teams_cli.teams.permission import Caller, require
from teams_cli.teams.teams import TEAM

_KEPT_FOR = settings.SETTINGS[settings.WORKTREE_KEPT].default
_DIRECTORIES = ("runs", "logs", "started", "worktrees")
"""The directories below the root, besides the store, with data of a team on this machine."""


def closed_teams(
    store: Store, caller: Caller | None, days: float, problems: list[errors.TeamsError]
) -> list[dict[str, Any]]:
    """Return a row for each team that was closed at least *days* ago. `kept` in the row says why the team can't be
    removed, or is None.
    """
    rows = []
    for team in teams.all_of(store, problems):
        closed_at = team.closed_at or team.created_at
        if team.state == "closed" and seconds_since(closed_at, store.now()) >= days * 86400:
            rows.append({"team": team.name, "closedAt": closed_at, "kept": _why_kept(store, team.name, caller)})
    return rows


def _why_kept(store: Store, name: str, caller: Caller | None) -> str | None:
    """Return why the team can't be removed: the caller may not remove it, or it may hold work. None if it can."""
    try:
        require(store, name, caller or Caller(HUMAN), "prune")
        for tree in worktrees.all_of(store, name):
            if tree.has_record and tree.state != "empty":  # those without a record are unknown, see below
                work = " and ".join(tree.work.phrases())
                return f"{tree.agent} has work in {tree.path}, {work}: teams worktree merge {tree.agent} --team {name}"
            worktrees.refuse_occupied(store, name, tree.path)
        if unknown := worktrees.unknown_in(store, name):
            return f"{text.listed(unknown, 3)}: unknown, may hold work; check it, and move it away"
    except errors.TeamsError as problem:
        return problem.message
    return None


def remove(store: Store, name: str, caller: Caller | None) -> None:
    """Remove a closed team permanently, with its messages, tasks, worktrees, logs and reports.

    Raises:
        NotAllowed: The caller is neither the team's leader nor the human.
        StaleRevision: The team was changed just now.
        Conflict: Something in the team may hold work.
    """
    require(store, name, caller or Caller(HUMAN), "prune")
    _, revision = store.get(name, TEAM, name)
    if why := _why_kept(store, name, caller):
        raise errors.Conflict(f"{name} is kept: {why}", "Check that directory, and repeat the command.")
    for tree in worktrees.all_of(store, name):
        worktrees.drop(store, name, tree)
    store.drop(name, TEAM, revision)
    for directory in _DIRECTORIES:
        shutil.rmtree(os.path.join(store.root, directory, name), ignore_errors=True)


def expired(store: Store, caller: Caller | None, config: Config) -> list[Kept]:
    """Return the kept work that is older than its team's setting `worktree.keptFor` allows. If the team is gone, the
    setting in the user's *config* counts.
    """
    expired_work: list[Kept] = []
    teams_of_store = set(store.teams())
    for kept in keeping.all_of(store):
        try:
            if kept.team in teams_of_store:
                team = require(store, kept.team, caller or Caller(HUMAN), "prune").team
                seconds = settings.value(team, settings.WORKTREE_KEPT)
            elif caller is None or caller.is_human:
                seconds = settings.of_user(config).get(settings.WORKTREE_KEPT, _KEPT_FOR)
            else:  # only the human may remove the work of a team that is gone
                continue
        except errors.TeamsError:  # the caller may not remove it, or the team is damaged
            continue
        if store.now().timestamp() - kept.at >= float(seconds):
            expired_work.append(kept)
    return expired_work
