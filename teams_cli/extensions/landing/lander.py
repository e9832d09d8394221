"""The lander: a small process that takes the landings of a team from the queue, one at a time, and ends when none is
left.

It may be killed at any moment. Nothing counts until the branch moves. The next lander repeats a landing whose branch
has not moved, and records a landing whose branch has moved. This is an entry point, so it reads the environment.
"""

from __future__ import annotations

import os
import sys
import time
from contextlib import ExitStack

from teams_cli import errors
from teams_cli.agents import checkouts, merging, overlaps, submodules
from teams_cli.agents.background import LANDER
from teams_cli.agents.regions import Snapshots
from teams_cli.clients import environments
from teams_cli.extensions.landing import outcomes, pull_requests, queueing, resolutions, trials, trust
from teams_cli.names import HUMAN
from teams_cli.store import opening
from teams_cli.store.contract import Store, update
from teams_cli.tasks import landings, tasks
from teams_cli.tasks.landings import LANDING, Landing
from teams_cli.teams import teams
from teams_cli.teams.teams import Team

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

_PAUSE = 0.5
"""Seconds until a landing is tried again if the store is busy."""


def start(store: Store, team: str, environ: Mapping[str, str]) -> None:
    """Start this machine's lander of the team, if the lander has work to do and is not running. In the sandbox of a
    client nothing is started, because the lander would end with the sandbox.
    """
    if not (_open_here(store, team) or pull_requests.to_comment(store, team)):
        return
    try:
        LANDER.start(store, team, environ, {**environments.clean(environ), **store.variables})
    except OSError as error:
        raise errors.StorageFailed(
            f"the merge queue can't be started: {error}", "The landing is queued: teams get-landings"
        ) from None


def main() -> None:
    """Run the lander: record how pull requests ended, land the queue of this machine, and comment on issues."""
    try:
        store, team = opening.from_environment(os.environ), os.environ["TEAMS_TEAM"]
        environ = environments.clean(os.environ)
        _end_requests(store, team, environ)
        # Several times: a landing may be queued when `work` is done, but the lock is still held.
        while _queued(store, team) and (lock := LANDER.hold(store, team)) is not None:
            try:
                if not work(store, team, environ):
                    return
            finally:
                os.close(lock)
        pull_requests.comment_on_issues(store, team, environ)
    except errors.TeamsError as problem:  # the next lander starts again
        sys.exit(problem.message)


def _end_requests(store: Store, team: str, environ: Mapping[str, str]) -> None:
    """Ask GitHub about the open pull requests of this machine, and end the landings whose pull request has an outcome.

    Landings and pull requests that this machine does not trust are skipped.
    """
    for landing in _open_here(store, team):
        if landing.over or not landing.url:
            continue
        try:
            trust.refuse_untrusted(store, team, landing)
            if not trust.is_trusted(store, team, landing.url):
                # This machine may have opened the request, and died before it recorded this.
                if not pull_requests.is_of(landing, environ):
                    raise errors.NotAllowed(
                        f"the pull request {landing.url} was not opened by this machine",
                        "See who recorded it: teams history",
                    )
                _trust_request(store, team, landing)
        except errors.NotAllowed as problem:
            sys.stderr.write(f"{landing.id}: {problem.message}\n")
            continue
        state, reason = pull_requests.outcome(landing, environ)
        if state:
            outcomes.end(store, teams.get(store, team), landing, state, reason=reason)


def _trust_request(store: Store, team: str, landing: Landing) -> None:
    """Record that this machine opened the landing's pull request. If the record can't be written, only log this."""
    try:
        trust.trust(store, team, landing.url or "")
    except errors.StorageFailed as problem:
        sys.stderr.write(f"{landing.id}: {problem.message}\n")


def work(store: Store, team_name: str, environ: Mapping[str, str]) -> bool:
    """Land the queue of this machine, in the order of `trials.in_order`. The caller holds the lander's lock.

    Return False if an outcome cannot be recorded, for example because this login may not write it. Return False also if
    the team was closed. The landings of a closed team wait until it is restored, except those that have begun to move
    their branch.
    """
    tried_in_group: set[str] = set()
    known_conflicts: dict[tuple[str, str], bool] = {}
    trials.remove_leftovers(store, team_name)
    while queue := _queued(store, team_name):
        team = teams.get(store, team_name)
        was_begun = queue[0].over or queue[0].merge  # such landings are at the head of the queue
        if team.state == "closed" and not was_begun:
            return False
        try:  # if a step fails, the present `landing` is given up
            for landing in reversed(queue):  # afterwards `landing` is the first of the queue
                trust.refuse_untrusted(store, team_name, landing)
                queueing.refuse_unreviewed(store, team_name, landing)
            if outcomes.forget_unmoved(store, team, queue):
                continue  # with the changed queue
            queue = trials.in_order(store, team, queue, known_conflicts)
            landing = queue[0]
            group = trials.group(team, queue, tried_in_group)
            if group and trials.land_together(store, team, group, environ):
                continue
            tried_in_group.update(member.id for member in group)
            step(store, team, landing, environ)
        except errors.Busy:  # let other processes finish
            time.sleep(_PAUSE)
        except errors.TeamsError as problem:
            sys.stderr.write(f"{landing.id}: {problem.message}\n")
            if not _give_up(store, team_name, landing, problem, environ):
                return False
    trials.remove_leftovers(store, team_name)  # the end of a trial may have failed to remove its checkout
    return True


def _queued(store: Store, team: str) -> list[Landing]:
    """Return the open landings of this machine in their order, except those whose pull request has no outcome yet."""
    return [landing for landing in _open_here(store, team) if landing.over or not landing.url]


def _open_here(store: Store, team: str) -> list[Landing]:
    return [landing for landing in landings.open_ones(store, team) if outcomes.is_of_this_machine(store, landing)]


def _give_up(store: Store, team: str, landing: Landing, problem: errors.TeamsError, environ: Mapping[str, str]) -> bool:
    """Record a landing that failed with *problem* as refused, so that it does not hold up the queue. If its commit is
    in the target branch nevertheless, record that it landed.

    Return False if the outcome cannot be recorded now. The next lander then records it.
    """
    try:
        current = landings.get(store, team, landing.id)
        if current.over or not _has_happened(store, team, current, environ):
            outcomes.end(store, teams.get(store, team), current, "refused", reason=problem.message)
        elif current.via == queueing.PULL_REQUEST or isinstance(problem, errors.StorageFailed):
            return False  # the next lander records the pull request, or the end
        else:
            tip = merging.tip_of(current.repository, current.onto)
            checkout = merging.checked_out(current.repository, current.onto)
            outcomes.end_landed(store, teams.get(store, team), current, tip, checkout)
    except errors.TeamsError as second_problem:
        sys.stderr.write(f"{landing.id}: {second_problem.message}\n")
        return False
    return True


def _has_happened(store: Store, team: str, landing: Landing, environ: Mapping[str, str]) -> bool:
    """Return whether the target branch contains the landing's commit, or its pull request is open or merged."""
    try:
        trust.refuse_untrusted(store, team, landing)
    except errors.NotAllowed:  # no git command runs in a repository that is not trusted
        return False
    if landing.via == queueing.PULL_REQUEST:
        return bool(pull_requests.find(landing, environ))
    return merging.is_on_branch(landing.repository, landing.onto, landing.head)


class _Failed(Exception):
    """Raised when a landing can't succeed. The landing ends in *state*, and its record gets *fields*."""

    def __init__(self, state: str, **fields: Any) -> None:
        super().__init__(state)
        self.state = state
        self.fields = fields


def _refused(problem: errors.Conflict) -> _Failed:
    return _Failed("refused", reason=f"{problem.message}. {problem.hint}")


def step(store: Store, team: Team, landing: Landing, environ: Mapping[str, str]) -> None:
    """Merge the commit of a landing into the target branch, and record the outcome. If the landing lands by pull
    request, only open the pull request. If the landing has ended before, only update its task.
    """
    if landing.over:
        outcomes.update_task(store, team, landing)
        return
    try:
        if landing.via == queueing.PULL_REQUEST:
            _request(store, team, landing, environ)
        else:
            _land(store, team, landing, environ)
    except _Failed as failure:
        outcomes.end(store, team, landing, failure.state, **failure.fields)


def _land(store: Store, team: Team, landing: Landing, environ: Mapping[str, str]) -> None:
    """Merge the landing's commit with the target branch, check the merge commit, and move the branch to the merge
    commit. Everything that can refuse the landing quickly is tested before the checks run. If somebody else moved the
    branch meanwhile, the landing stays open, and is tried again later.

    Raises:
        _Failed: The landing is refused, conflicts, or is red. The branch was not moved.
    """
    repository, onto = landing.repository, landing.onto
    base = merging.tip_of(repository, onto)
    if not base:
        raise _Failed("refused", reason=f"there is no branch {onto} any more")
    checkout = merging.checked_out(repository, onto)
    if merging.holds(repository, base, landing.head):  # it is merged already
        outcomes.end_landed(store, team, landing, base, checkout)
        return
    try:
        merging.refuse_unfollowed(repository, onto)
    except errors.Conflict as problem:
        raise _refused(problem) from None
    commit = _merge(store, team, landing, base)
    _refuse_in_the_way(checkout, base, commit)
    commands = trials.commands_of(store, team, landing)
    landing = outcomes.record_begin(store, team, landing, base, commands)
    results = trials.run_checks(store, team, landing, commit, commands, environ)
    check = results[-1] if results else None  # no command runs after one that fails
    if check and not check.passed:
        repair = trials.repair_of_tip(store, team, landing, base, check.command, environ)
        reason = f"{onto} itself is red, and {repair} is to repair it: then repeat this" if repair else None
        raise _Failed("red", checked=check.to_json(), reason=reason)
    if commands:  # during the checks, files may have changed, or the branch may have been switched
        checkout = merging.checked_out(repository, onto)
        _refuse_in_the_way(checkout, base, commit)
    with ExitStack() as undone_if_refused:
        try:
            undone_if_refused.enter_context(submodules.carried(repository, base, commit, landing.branch or landing.id))
        except errors.Conflict as problem:
            raise _refused(problem) from None
        landing = outcomes.record_merge(store, team, landing, commit, check)
        if not merging.move(repository, onto, base, commit, f"teams: {landing.id}"):
            return  # somebody else moved the branch
    outcomes.end_landed(store, team, landing, commit, checkout)


def _merge(store: Store, team: Team, landing: Landing, base: str) -> str:
    """Merge *base* and the landing's commit, and return the merge commit. A conflict that the owner resolved before is
    resolved in the same way.
    """
    repository, onto = landing.repository, landing.onto
    message = landing.words(team.name)
    try:
        return merging.make_merge(repository, base, landing.head, message)
    except merging.Clash as clash:
        files = clash.files
    is_reviewed = bool(tasks.get(store, team.name, landing.task).review_by)
    if commit := resolutions.merged(landing, base, message, is_reviewed):
        return commit
    with Snapshots(checkouts.repository_of(repository)[1]) as snapshots:
        details = overlaps.with_tip(snapshots, store, team.name, repository, landing.head, onto, base)
    raise _Failed("conflict", base=base, merge=None, files=files, **details)


def _refuse_in_the_way(checkout: str, base: str, commit: str) -> None:
    """Raise `_Failed` if the files of *checkout* can't be updated from *base* to *commit* now."""
    if checkout and (obstacle := merging.in_the_way(checkout, base, commit)):
        raise _Failed("refused", base=base, merge=None, reason=f"{checkout}: {obstacle}")


def _request(store: Store, team: Team, landing: Landing, environ: Mapping[str, str]) -> None:
    """Open the pull request of a landing, and record its address. People check and merge it on GitHub."""
    if landing.by != HUMAN:  # in a store of several machines, any member may have written the record of the landing
        queueing.refuse_way(queueing.PULL_REQUEST, team)
    try:
        pushed_before = [
            earlier.head
            for earlier in landings.all_of(store, team.name, [])
            if earlier.task == landing.task and earlier.url and earlier.id != landing.id
        ]
        task = tasks.get(store, team.name, landing.task)
        url = pull_requests.open_request(landing, task, pushed_before, environ)
    except errors.Conflict as problem:
        raise _refused(problem) from None

    def with_url(current: Landing) -> Landing:
        outcomes.refuse_ended(current)
        return current.having(state="checking", url=url, updated_at=teams.now(store))

    _, requested = update(store, team.name, LANDING, landing.id, with_url)
    _trust_request(store, team.name, requested)


if __name__ == "__main__":
    main()
