"""Comments at issues whose work has landed, where the person wants them."""

from __future__ import annotations

import os
import sys

from teams_cli import errors
from teams_cli.agents.lone_processes import LANDER
from teams_cli.extensions.landing import known_here, pull_requests
from teams_cli.store.contract import Store
from teams_cli.store.retrying import update
from teams_cli.tasks import landings, tasks
from teams_cli.tasks.landings import LANDING, Landing
from teams_cli.teams import settings, teams

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


def owed(store: Store, team: str, environ: Mapping[str, str]) -> None:
    """Comment at the issue of each landing of this machine that has landed and is not commented on yet. What fails is
    tried again by whoever comes next, and who was killed behind the comment finds it there.
    """
    if not (due := due_ones(store, team)) or (held := LANDER.hold(store, team)) is None:
        return
    try:
        for landing in due:
            _comment(store, team, landing, environ)
    finally:
        os.close(held)


def due_ones(store: Store, team: str) -> list[Landing]:
    """The landings of this machine that have landed, and of which no issue was told."""
    if settings.value(teams.get(store, team), "landingComments") != "on":
        return []
    landed = (one for one in landings.all_of(store, team, []) if one.state == "landed" and not one.commented)
    return [one for one in landed if (one.host or "") == store.host]


def _comment(store: Store, team: str, landing: Landing, environ: Mapping[str, str]) -> None:
    try:
        known_here.check(store, team, landing)
        issue = pull_requests.issue_of(tasks.get(store, team, landing.task))
    except errors.TeamsError:
        return
    if not issue or _commented(landing, issue, environ):
        update(store, team, LANDING, landing.id, lambda found: found.having(commented=True))


def _commented(landing: Landing, issue: str, environ: Mapping[str, str]) -> bool:
    """Whether the issue has the comment, by now."""
    repository, _, number = issue.rpartition("#")
    mark = f"({landing.id} of {landing.team_name})"
    place = ["--repo", repository, number]
    there = pull_requests.gh(
        landing, ["issue", "view", *place, "--json", "comments", "--jq", ".comments[].body"], environ
    )
    if there.returncode == 0 and mark in there.stdout:
        return True
    where = f"{landing.url} was merged" if landing.url else f"{landing.onto} is {(landing.merge or landing.head)[:10]}"
    done = there
    if there.returncode == 0:
        done = pull_requests.gh(landing, ["issue", "comment", *place, "--body", f"Done: {where} {mark}"], environ)
    if done.returncode:
        sys.stderr.write(f"{landing.id}: no comment at {issue}: {' '.join(done.stderr.split())}\n")
    return done.returncode == 0
