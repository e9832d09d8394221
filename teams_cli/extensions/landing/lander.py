"""The lander: a small process that takes the landings of a team from the queue, one at a time, and ends with the last.

It may be killed at any moment. Nothing counts until the branch moves, and the next lander repeats an unfinished
landing or records a finished one. This is an entry point, so it reads the environment.
"""

from __future__ import annotations

import os
import sys
import time

from teams_cli import errors
from teams_cli.agents import checkouts, merging, overlaps
from teams_cli.agents.background import LANDER
from teams_cli.agents.regions import Snapshots
from teams_cli.clients import environments
from teams_cli.extensions.landing import outcomes, pull_requests, queueing, resolutions, trials
from teams_cli.store import opening
from teams_cli.store.contract import Store
from teams_cli.store.retrying import update
from teams_cli.tasks import landings, tasks
from teams_cli.tasks.landings import LANDING, Landing
from teams_cli.teams import teams
from teams_cli.teams.teams import Team

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_PAUSE = 0.5


def start(store: Store, team: str, environ: Mapping[str, str]) -> None:
    """Start this machine's lander of the team, if something is queued here and no lander runs. Inside a client's
    sandbox, which would end the lander, none is started.
    """
    if not (_queue(store, team) or _requested(store, team) or pull_requests.due_ones(store, team)):
        return
    try:
        LANDER.start(store, team, environ, {**environments.clean(environ), **store.variables})
    except OSError as error:
        raise errors.StorageFailed(
            f"the merge queue can't be started: {error}", "The landing is queued: teams get-landings"
        ) from None


def main() -> None:
    """Land the queued landings of this machine until the queue is empty or the store fails."""
    try:
        _land_all(opening.from_environment(os.environ), os.environ["TEAMS_TEAM"], environments.clean(os.environ))
    except errors.TeamsError as problem:  # the next lander starts again
        sys.exit(problem.message)


def _land_all(store: Store, team: str, environ: Mapping[str, str]) -> None:
    _look_after_requests(store, team, environ)
    while _queue(store, team) and (held := LANDER.hold(store, team)) is not None:
        try:
            if not work(store, team, environ):
                return
        finally:
            os.close(held)
    pull_requests.owed(store, team, environ)


def _look_after_requests(store: Store, team: str, environ: Mapping[str, str]) -> None:
    """End the landings whose pull requests were merged, closed or failed."""
    for landing in _requested(store, team):
        try:
            queueing.check_asked_here(store, team, landing)
            _refuse_foreign(store, team, landing, environ)
        except errors.NotAllowed as problem:
            sys.stderr.write(f"{landing.id}: {problem.message}\n")
            continue
        state, reason = pull_requests.outcome(landing, environ)
        if state:
            outcomes.end(store, teams.get(store, team), landing, state, reason=reason)


def _refuse_foreign(store: Store, team: str, landing: Landing, environ: Mapping[str, str]) -> None:
    """Refuse a landing whose pull request belongs to somebody else.

    A pull request that this machine did not open is accepted, and recorded as its own, if it is from the landing's
    branch and has the landing's commit.

    Raises:
        NotAllowed: The pull request is foreign.
    """
    if queueing.has_opened(store, team, landing):
        return
    if not pull_requests.is_of(landing, environ):
        raise errors.NotAllowed(
            f"the pull request {landing.url} was not opened by this machine", "See who recorded it: teams history"
        )
    _note(store, team, landing)


def _note(store: Store, team: str, landing: Landing) -> None:
    """Record that this machine opened the pull request. A failure is only logged."""
    try:
        queueing.note(store, team, landing.url or "")
    except errors.StorageFailed as problem:
        sys.stderr.write(f"{landing.id}: {problem.message}\n")


def work(store: Store, team: str, environ: Mapping[str, str]) -> bool:
    """Land the queue of this machine, best landing first. The caller holds the lander's lock.

    Returns False if an outcome cannot be recorded, for example because the login may not write it.
    """
    apart: set[str] = set()
    conflicting: dict[tuple[str, str], bool] = {}
    trials.clear_left(store, team)
    while queue := _queue(store, team):
        current = teams.get(store, team)
        try:
            for landing in reversed(queue):  # the first landing is checked last
                queueing.check_asked_here(store, team, landing)
                queueing.check(store, team, landing)
            if outcomes.forget_unmoved(store, current, queue):
                continue
            queue = trials.in_order(store, current, queue, conflicting)
            landing = queue[0]
            group = trials.group(current, queue, apart)
            if group and trials.step(store, current, group, environ):
                continue
            apart.update(one.id for one in group)
            step(store, current, landing, environ)
        except errors.Busy:  # let other processes finish
            time.sleep(_PAUSE)
        except errors.TeamsError as problem:
            sys.stderr.write(f"{landing.id}: {problem.message}\n")
            if not _give_up(store, team, landing, problem, environ):
                return False
    return True


def _queue(store: Store, team: str) -> list[Landing]:
    """Return the open landings of this machine, in order, except those that wait for a pull request."""
    open_ones = landings.open_ones(store, team)
    return [one for one in open_ones if (one.host or "") == store.host and (one.over or not one.url)]


def _requested(store: Store, team: str) -> list[Landing]:
    """Return the open landings of this machine that wait for the merge of a pull request."""
    open_ones = landings.open_ones(store, team)
    return [one for one in open_ones if (one.host or "") == store.host and one.url and not one.over]


def _give_up(store: Store, team: str, landing: Landing, problem: errors.TeamsError, environ: Mapping[str, str]) -> bool:
    """Refuse a landing that failed with *problem*, so that it does not hold up the queue, or record that it landed.

    Returns False if the outcome cannot be recorded. The next lander then does it.
    """
    try:
        now = landings.get(store, team, landing.id)
        if now.over or not _has_happened(store, team, now, environ):
            outcomes.end(store, teams.get(store, team), now, "refused", reason=problem.message)
        elif now.via == "pr" or isinstance(problem, errors.StorageFailed):
            return False
        else:
            _record_landed(store, teams.get(store, team), now)
    except errors.TeamsError as worse:
        sys.stderr.write(f"{landing.id}: {worse.message}\n")
        return False
    return True


def _record_landed(store: Store, team: Team, landing: Landing) -> Landing:
    checkout = merging.checked_out(landing.repository, landing.onto)
    return outcomes.landed(store, team, landing, merging.tip_of(landing.repository, landing.onto), checkout)


def _has_happened(store: Store, team: str, landing: Landing, environ: Mapping[str, str]) -> bool:
    """Return whether the branch contains the landing's commit, or its pull request exists."""
    try:
        queueing.check_asked_here(store, team, landing)
    except errors.NotAllowed:  # no git command runs in a repository that is not trusted
        return False
    if landing.via == "pr":
        return bool(pull_requests.found(landing, environ))
    return merging.is_on_branch(landing.repository, landing.onto, landing.head)


def step(store: Store, team: Team, landing: Landing, environ: Mapping[str, str]) -> Landing:
    """Check and merge one landing, record its outcome, and return it. It stays open if others moved the branch
    meanwhile.
    """
    if landing.over:
        return outcomes.give_back(store, team, landing)
    if landing.via == "pr":
        return _request(store, team, landing, environ)
    base = merging.tip_of(landing.repository, landing.onto)
    if not base:
        return outcomes.end(store, team, landing, "refused", reason=f"there is no branch {landing.onto} any more")
    checkout = merging.checked_out(landing.repository, landing.onto)
    if merging.holds(landing.repository, base, landing.head):
        return outcomes.landed(store, team, landing, base, checkout)
    message = landing.words(team.name)
    try:
        commit = merging.merged(landing.repository, base, landing.head, message)
    except merging.Clash as clash:
        is_reviewed = bool(tasks.get(store, team.name, landing.task).review_by)
        commit = resolutions.merged(landing, base, message, is_reviewed)
        files = clash.files
    if not commit:
        with Snapshots(checkouts.repository_of(landing.repository)[1]) as shot:
            more = overlaps.with_tip(shot, store, team.name, landing.repository, landing.head, landing.onto, base)
        return outcomes.end(store, team, landing, "conflict", base=base, merge=None, files=files, **more)
    if why := merging.in_the_way(checkout, base, commit) if checkout else "":
        return outcomes.end(store, team, landing, "refused", base=base, merge=None, reason=f"{checkout}: {why}")
    wanted = trials.trial_commands(store, team, landing)
    landing = outcomes.begun(store, team, landing, base, wanted)
    check = next(reversed(trials.tried(store, team, landing, commit, wanted, environ)), None)
    if check and not check.passed:
        repair = trials.repair_of_tip(store, team, landing, base, check.command, environ)
        reason = f"{landing.onto} itself is red, and {repair} is to repair it: then repeat this" if repair else None
        return outcomes.end(store, team, landing, "red", checked=check.to_json(), reason=reason)
    if (
        why := merging.in_the_way(checkout, base, commit) if checkout and wanted else ""
    ):  # the checkout may have changed during the check
        return outcomes.end(store, team, landing, "refused", reason=f"{checkout}: {why}")
    landing = outcomes.about_to_move(store, team, landing, commit, check.to_json() if check else None)
    if not merging.move(landing.repository, landing.onto, base, commit, f"teams: {landing.id}"):
        return landing  # the branch moved meanwhile, so the landing is tried again on its new tip
    return outcomes.landed(store, team, landing, commit, checkout)


def _request(store: Store, team: Team, landing: Landing, environ: Mapping[str, str]) -> Landing:
    """Open the pull request of a landing. People check and merge it on GitHub."""
    queueing.refuse_unwanted(team, landing)
    try:
        earlier = (one for one in landings.all_of(store, team.name, []) if one.task == landing.task)
        heads = [one.head for one in earlier if one.url and one.id != landing.id]
        url = pull_requests.opened(landing, tasks.get(store, team.name, landing.task), heads, environ)
    except errors.Conflict as problem:
        return outcomes.end(store, team, landing, "refused", reason=f"{problem.message}. {problem.hint}")

    def change(current: Landing) -> Landing:
        outcomes.refuse_over(current)
        return current.having(state="checking", url=url, updated_at=teams.now(store))

    asked = update(store, team.name, LANDING, landing.id, change)[1]
    _note(store, team.name, asked)
    return asked


if __name__ == "__main__":
    main()
