"""Queues landings: checks that a task may land, and finds the checkout and the commit to land."""

from __future__ import annotations

from hashlib import md5

from teams_cli import errors
from teams_cli.agents import checking, checkouts, git, merging, work
from teams_cli.agents.checkouts import Checkout
from teams_cli.extensions.landing import outcomes
from teams_cli.names import HUMAN
from teams_cli.store.contract import Store
from teams_cli.store.files import disk
from teams_cli.store.retrying import update
from teams_cli.tasks import checks, landings, tasks
from teams_cli.tasks.assigning import state_of
from teams_cli.tasks.landings import LANDING, Landing
from teams_cli.tasks.tasks import IN_PROGRESS, Task
from teams_cli.teams import history, settings, teams
from teams_cli.teams.permission import Standing, require, standing_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from teams_cli.teams.permission import Caller
    from teams_cli.teams.teams import Team


def note(store: Store, team: str, place: str) -> None:
    """Record on this machine that *place* is trusted by the team. A place is a repository or a pull request's address.

    Raises:
        StorageFailed: The file cannot be written.
    """
    if store.host and not _is_known(store, team, place):
        disk.prepare_root(store.root)
        disk.make_directories(_directory(store, team), store.root)
        disk.commit(disk.write_temp(f"{store.root}/tmp", place.encode()), _path(store, team, place))


def check_asked_here(store: Store, team: str, landing: Landing) -> None:
    """Refuse a landing with an invalid commit or branch, or into a repository that is not trusted on this machine.

    Raises:
        NotAllowed: The landing is refused.
    """
    if not merging.is_commit(landing.head):
        raise errors.NotAllowed(f"{landing.head[:60]!r} is not a commit", "See who asked for it: teams history")
    if landing.branch is not None and (landing.branch == landing.onto or landing.branch.startswith("-")):
        raise errors.NotAllowed(
            f"{landing.branch!r} is not a branch that can land on {landing.onto}", "Land your own branch."
        )
    if store.host and not _is_known(store, team, landing.repository):
        refusal = f"nobody on this machine asked to land into {landing.repository}"
        raise errors.NotAllowed(refusal, f"If the repository is right, run there: teams land {landing.task}")


def has_opened(store: Store, team: str, landing: Landing) -> bool:
    """Return whether this machine recorded that it opened the landing's pull request. In a store of one machine, always
    return True.
    """
    return not store.host or _is_known(store, team, landing.url or "")


def trusted(store: Store, team: str, recorded: Sequence[str], directory: str) -> list[str]:
    """Return the places from which a landing may start, out of *recorded*, the places that records name.

    In a store of one machine all are trusted. In a shared store a place must belong to the repository of *directory*,
    or to a repository in which this machine queued a landing before.
    """
    if not (store.host and recorded):
        return list(recorded)
    here = checkouts.repository_of(directory)[1] if directory else ""
    common_of = {place: checkouts.repository_of(place)[1] for place in recorded}
    return [
        place
        for place, common in common_of.items()
        if common and (common == here or _is_known(store, team, common.removesuffix("/.git")))
    ]


def _is_known(store: Store, team: str, place: str) -> bool:
    try:
        return disk.read_file(_path(store, team, place)) == place.encode()
    except FileNotFoundError:
        return False


def _directory(store: Store, team: str) -> str:
    return f"{store.root}/landers/{team}"


def _path(store: Store, team: str, place: str) -> str:
    return f"{_directory(store, team)}/{md5(place.encode(), usedforsecurity=False).hexdigest()}"


WAYS = ("merge", "pr")
_STANDING = ("queued", "checking", "landed")


def land(
    store: Store,
    team_name: str,
    caller: Caller | None,
    task_id: str,
    onto: str | None,
    directory: str,
    via: str | None = None,
) -> Landing:
    """Put a task's commits into the merge queue. They are merged with the target branch and checked; the branch moves
    only if the check passes.

    The commits, up to the checked one, come from the owner's worktree, your checkout, or the checkout where the task
    was checked. The target is the branch of the repository's main checkout, or --onto. Repeating it while it is queued
    changes nothing.

    Raises:
        TaskNotFound: There is no such task.
        NotAllowed: The task belongs to another member, or the setting `landingVia` does not allow --via.
        WrongState: The task is neither completed nor in progress, or must be reviewed first.
        InvalidValue: No checkout has the commits of the task.
        Conflict: The worktree has uncommitted changes, or the target branch already has
            the task's commits.
    """
    standing = require(store, team_name, caller, "land", task_id)
    task = outcomes.up_to_date(store, standing.team, tasks.get(store, team_name, task_id))
    if task.owner != standing.name and not (standing.leads or standing.manages):
        raise errors.NotAllowed(
            f"{task.id} is {state_of(task)}, and not yours", "Only its owner and the leader may land it."
        )
    _refuse_unready(task)
    source = _source(store, standing, task, directory, onto)
    if source is None:
        raise errors.InvalidValue(
            f"{task.id} has no worktree, and {directory or 'here'} is in no git repository",
            "Run this in the checkout with its commits.",
        )
    return _queued(store, standing, task, source, onto, _way(standing, via))


def _way(standing: Standing, via: str | None) -> str:
    """Return how to land: *via* if given, else the setting `landingVia`. Only the user may deviate from the setting.

    Raises:
        NotAllowed: An agent asks for another way.
    """
    wanted = str(settings.value(standing.team, "landingVia"))
    if via not in (None, wanted) and not standing.caller.is_human:
        raise _not_wanted(wanted)
    return via or wanted


def refuse_unwanted(team: Team, landing: Landing) -> None:
    """Refuse to open a pull request that the user did not want, even if the record of the landing demands one.

    Raises:
        NotAllowed: The user did not queue this landing, and `landingVia` is not `pr`.
    """
    wanted = str(settings.value(team, "landingVia"))
    if landing.by != HUMAN and wanted != "pr":
        raise _not_wanted(wanted)


def _not_wanted(wanted: str) -> errors.NotAllowed:
    return errors.NotAllowed(
        f"the person set landingVia to `{wanted}`", f"To change it, as the person: teams set landingVia pr --as {HUMAN}"
    )


def by_itself(store: Store, team: str, caller: Caller | None, task: Task, directory: str) -> Landing | None:
    """Queue a landing of the task, which was just completed. Return None if its owner has nothing to land.

    The owner has something to land if the checkout's own branch has new commits, or if the owner's worktree has
    uncommitted changes. The changes are then refused with an error.
    """
    standing = standing_of(teams.get(store, team), caller)
    if standing is None:
        return None
    worktree = checkouts.worktree_of(store, team, task.owner or "")
    source = _source(store, standing, task, directory if task.owner == standing.name else "", None)
    if source is None or not (_has_news(source) or (worktree and work.uncommitted(source))):
        return None
    return _queued(store, standing, task, source, None, _way(standing, None))


def _has_news(source: Checkout) -> bool:
    """Return whether the checkout is on a branch other than the main checkout's, with commits that the main checkout's
    branch lacks.
    """
    target = checkouts.branch_of(source.main)
    tip = merging.tip_of(source.main, target) if target else ""
    return bool(tip) and source.branch != target and not merging.holds(source.main, tip, source.head)


def _queued(store: Store, standing: Standing, task: Task, source: Checkout, onto: str | None, via: str) -> Landing:
    _refuse_unseen(store, task)
    team = standing.team.name
    target = onto or _target(source)
    head = _head(source, task)
    last = landings.last_of(store, team, task.id)
    if last and (last.head, last.onto, last.claim) == (head, target, task.claim) and last.state in _STANDING:
        return last
    _refuse_senseless(source, task, head, target)
    draft = _draft(store, standing, task, source).having(
        head=head, onto=target, base=merging.tip_of(source.main, target)
    )
    draft = draft if via == WAYS[0] else draft.having(via=via)
    note(store, team, source.main)
    landing, _ = store.create(team, LANDING, None, draft)
    history.note(store, team, standing.name, "landing asked for", landing=landing.id, task=task.id, head=head)
    return landing


def _refuse_unready(task: Task) -> None:
    if task.status not in ("completed", IN_PROGRESS):
        raise errors.WrongState(
            f"{task.id} is {state_of(task)}", f"Complete it first: teams update-task {task.id} --status completed"
        )
    if task.review_by and task.status != "completed":
        raise errors.WrongState(
            f"{task.id} must be accepted by {task.review_by} before it lands",
            f"Complete it: teams update-task {task.id} --status completed",
        )


def _refuse_unseen(store: Store, task: Task) -> None:
    """In a shared store, refuse a task with a reviewer if no commit was submitted for review."""
    if store.host and task.review_by and not task.submitted:
        refusal = f"no commit of {task.id} was submitted for review"
        raise errors.Conflict(
            refusal, f"Have it completed again in its checkout: teams update-task {task.id} --status pending"
        )


def _source(store: Store, standing: Standing, task: Task, directory: str, onto: str | None) -> Checkout | None:
    """Return the checkout to land the task from, or None if no candidate exists.

    Candidates that are not on the target branch go first.
    """
    check, owner, team = checks.of(task), task.owner or "", standing.team.name
    recorded = [place for place in (checkouts.seen_in(store, team, owner), check.directory if check else None) if place]
    places = [
        checkouts.worktree_of(store, team, owner),
        directory if owner == standing.name else None,
        *trusted(store, team, recorded, directory),
        directory,
    ]
    candidates = [checkout for place in dict.fromkeys(places) if place and (checkout := checkouts.at(place))]
    for checkout in candidates:
        if checkout.branch != (onto or checkouts.branch_of(checkout.main)):
            return checkout
    return candidates[0] if candidates else None


def _target(source: Checkout) -> str:
    """Return the branch of the main checkout.

    Raises:
        InvalidValue: The main checkout has no branch checked out.
    """
    branch = checkouts.branch_of(source.main)
    if not branch:
        raise errors.InvalidValue(f"{source.main} has no branch checked out", "Give the target: --onto BRANCH")
    return branch


def _head(source: Checkout, task: Task) -> str:
    """Return the commit to land.

    For a reviewed task this is the submitted commit, or the checkout's commit if its changes are the same. For another
    completed task it is the commit that passed the check, if the branch still contains it. Otherwise it is the
    checkout's commit.
    """
    if task.review_by and task.submitted and task.status == "completed":
        return _reviewed(source, task, task.submitted)
    check = checks.of(task)
    commit = check.commit if check and check.passed and task.status == "completed" else None
    return commit if commit and merging.holds(source.main, source.head, commit) else source.head


def _reviewed(source: Checkout, task: Task, submitted: str) -> str:
    if merging.holds(source.main, source.head, submitted):
        return submitted
    if merging.is_same(source.main, submitted, source.head):
        return source.head
    raise errors.Conflict(
        f"{task.id} was reviewed at {submitted[:10]}, which is not in {source.branch or source.top}",
        f"Change to a checkout that has it, or have it reviewed again: teams update-task {task.id} --status pending",
    )


def check(store: Store, team: str, landing: Landing) -> None:
    """Refuse a landing whose commit was not reviewed, unless the target branch already contains the commit.

    Raises:
        NotAllowed: The commit differs from the reviewed one.
        Conflict: The task has a reviewer, but no commit was submitted for review in a shared store.
    """
    task = tasks.get(store, team, landing.task)
    if landing.over:
        return
    _refuse_unseen(store, task)
    if not (task.review_by and task.submitted):
        return
    same = merging.is_commit(task.submitted) and landing.head == task.submitted
    same = same or merging.is_same(landing.repository, task.submitted, landing.head)
    if not same and not merging.is_on_branch(landing.repository, landing.onto, landing.head):
        refusal = f"{landing.head[:10]} was not reviewed: {task.id} was, at {task.submitted[:10]}"
        raise errors.NotAllowed(refusal, f"Land the reviewed commit: teams land {task.id}")


def _refuse_senseless(source: Checkout, task: Task, head: str, target: str) -> None:
    last = checks.of(task)
    checking.refuse_dirty(task, work.uncommitted(source, last.left if last else None), source.top)
    if source.branch == target:
        raise errors.Conflict(
            f"{source.top} is on {target} itself, so there is nothing to land",
            "Create a branch: git switch -c NAME; or give another target: --onto BRANCH",
        )
    base = merging.tip_of(source.main, target)
    if not base:
        raise errors.InvalidValue(f"{source.main} has no branch {target!r}", "Choose one: git branch --list")
    if merging.holds(source.main, base, head):
        raise errors.Conflict(
            f"{target} has {head[:10]} already, so there is nothing to land",
            f"Commit the work of {task.id} and repeat this, unless it landed with another task.",
        )
    if git.run(source.main, "merge-base", base, head).returncode:
        raise errors.Conflict(
            f"{head[:10]} and {target} have no common commit", "Check that this is the right repository."
        )


def _draft(store: Store, standing: Standing, task: Task, source: Checkout) -> Landing:
    return Landing(
        team_name=standing.team.name,
        task=task.id,
        title=task.title,
        owner=task.owner,
        by=standing.name,
        claim=task.claim,
        priority=task.priority,
        repository=source.main,
        host=store.host or None,
        branch=source.branch or None,
        onto="",
        head="",
        created_at=teams.now(store),
    )


def refuse_all(store: Store, team: str, why: str) -> list[str]:
    """Refuse the open landings of a closed team, except those about to move their branch. Return the refused ids."""
    refused = []

    def change(landing: Landing) -> Landing:
        if landing.over or landing.merge:
            return landing
        now = teams.now(store)
        return landing.having(state="refused", reason=why, ended_at=now, updated_at=now, returned=True)

    for landing in landings.open_ones(store, team):
        before, after = update(store, team, LANDING.also_closed, landing.id, change)
        if before is not after:
            refused.append(landing.id)
    return refused
