"""Queues landings: checks that a task may land, and finds the checkout and the commit to land."""

from __future__ import annotations

from teams_cli import errors
from teams_cli.agents import checking, checkouts, git, merging, work
from teams_cli.agents.checkouts import Checkout
from teams_cli.extensions.landing import outcomes, trust
from teams_cli.names import HUMAN
from teams_cli.store.contract import Store, update
from teams_cli.tasks import checks, landings, tasks
from teams_cli.tasks.assigning import state_of
from teams_cli.tasks.landings import LANDING, Landing
from teams_cli.tasks.tasks import IN_PROGRESS, IN_REVIEW, Task
from teams_cli.teams import history, presence, settings, teams
from teams_cli.teams.permission import Standing, require, standing_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from teams_cli.doctor import Problem
    from teams_cli.teams.permission import Caller
    from teams_cli.teams.teams import Team

MERGE, PULL_REQUEST = "merge", "pr"
WAYS = (MERGE, PULL_REQUEST)


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

    The commits up to the checked one are taken from the owner's worktree, your checkout, or the checkout where the task
    was checked. The target is the branch of the repository's main checkout, or the branch given with --onto. Repeating
    the command while the task is queued changes nothing.

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
    _refuse_unfinished(task)
    source = _source(store, standing, task, directory, onto)
    if source is None:
        raise errors.InvalidValue(
            f"{task.id} has no worktree, and {directory or 'here'} is in no git repository",
            "Run this in the checkout with its commits.",
        )
    return _queue(store, standing, task, source, onto, _way_to_land(standing, via))


def _refuse_unfinished(task: Task) -> None:
    unreviewed = f"{task.id} must be accepted by {task.review_by} before it lands"
    complete = f"teams update-task {task.id} --status completed"
    if task.status == IN_REVIEW:
        raise errors.WrongState(unreviewed, f"Wait for the review: teams wait --task {task.id}")
    if task.status not in ("completed", IN_PROGRESS):
        raise errors.WrongState(f"{task.id} is {state_of(task)}", f"Complete it first: {complete}")
    if task.review_by and task.status != "completed":
        raise errors.WrongState(unreviewed, f"Complete it: {complete}")


def _way_to_land(standing: Standing, via: str | None) -> str:
    if via and not standing.caller.is_human:
        refuse_way(via, standing.team)
    return via or str(settings.value(standing.team, "landingVia"))


def refuse_way(via: str, team: Team) -> None:
    """Refuse the way to land called *via* unless the person chose it in the setting `landingVia`."""
    setting = str(settings.value(team, "landingVia"))
    if via != setting:
        change = f"To change it, as the person: teams set landingVia {via} --as {HUMAN}"
        raise errors.NotAllowed(f"the person set landingVia to `{setting}`", change)


def queue_completed(store: Store, team: str, caller: Caller | None, task: Task, directory: str) -> Landing | None:
    """Queue a landing of the task, which was just completed. Return None if there is nothing to land: the caller is not
    a member, the owner has no checkout, or the owner's branch has no new commits. Uncommitted changes in the owner's
    worktree, however, raise an error.
    """
    standing = standing_of(teams.get(store, team), caller)
    if standing is None:
        return None
    worktree = checkouts.worktree_of(store, team, task.owner or "")
    # Somebody else who completes the task is usually not in the checkout that has its commits.
    source = _source(store, standing, task, directory if task.owner == standing.name else "", None)
    if source is None:
        return None
    target = checkouts.branch_of(source.main)
    tip = merging.tip_of(source.main, target) if target else ""
    has_new_commits = tip and source.branch != target and not merging.holds(source.main, tip, source.head)
    if not (has_new_commits or (worktree and work.uncommitted(source))):
        return None
    return _queue(store, standing, task, source, None, _way_to_land(standing, None))


def _source(store: Store, standing: Standing, task: Task, directory: str, onto: str | None) -> Checkout | None:
    """Return the checkout with the commits of the task; None if there is no checkout. The candidates are, in this
    order: the owner's worktree; *directory*, if the caller is the owner; the checkouts where the owner was last seen
    and where the task was checked, if they are trusted; *directory*. Return the first candidate that is not on the
    target branch or, if all are, the first candidate.

    The target branch is *onto* or, if that is None, the branch of the main checkout. *directory* is the caller's
    directory, or "" if it must not be used.
    """
    owner, team = task.owner or "", standing.team.name
    check = checks.of(task)
    last_seen, checked_in = checkouts.seen_in(store, team, owner), check.directory if check else None
    recorded = [place for place in (last_seen, checked_in) if place]
    places = [
        checkouts.worktree_of(store, team, owner),
        directory if owner == standing.name else None,
        *trust.trusted_places(store, team, recorded, directory),
        directory,
    ]
    checkouts_there = [checkouts.at(place) for place in dict.fromkeys(places) if place]
    candidates = [checkout for checkout in checkouts_there if checkout]
    for checkout in candidates:
        if checkout.branch != (onto or checkouts.branch_of(checkout.main)):
            return checkout
    return candidates[0] if candidates else None


def _queue(store: Store, standing: Standing, task: Task, source: Checkout, onto: str | None, via: str) -> Landing:
    """Queue a landing of the task, and return it. If the task's last landing has the same commit, target and claim, and
    did not fail, queue nothing and return the last landing.
    """
    _refuse_unsubmitted(store, task)
    team = standing.team.name
    target = onto or checkouts.branch_of(source.main)
    if not target:
        raise errors.InvalidValue(f"{source.main} has no branch checked out", "Give the target: --onto BRANCH")
    head = _head(source, task)
    last = landings.last_of(store, team, task.id)
    is_same = last and (last.head, last.onto, last.claim) == (head, target, task.claim)
    if last and is_same and last.state in ("queued", "checking", "landed"):
        return last
    _refuse_impossible(source, task, head, target)
    draft = Landing(
        team_name=team,
        task=task.id,
        title=task.title,
        owner=task.owner,
        by=standing.name,
        claim=task.claim,
        priority=task.priority,
        repository=source.main,
        host=store.host or None,
        branch=source.branch or None,
        onto=target,
        head=head,
        base=merging.tip_of(source.main, target),
        created_at=teams.now(store),
    )
    if via != MERGE:
        draft = draft.having(via=via)
    trust.trust(store, team, source.main)  # before a lander can see the landing
    landing, _ = store.create(team, LANDING, None, draft)
    history.note(store, team, standing.name, "landing asked for", landing=landing.id, task=task.id, head=head)
    return landing


def _refuse_unsubmitted(store: Store, task: Task) -> None:
    """In a store of several machines, refuse a task that needs a review, and has no commit submitted for review."""
    if store.host and task.review_by and not task.submitted:
        raise errors.Conflict(
            f"no commit of {task.id} was submitted for review",
            f"To have its owner complete it again, in its checkout: teams update-task {task.id} --status pending",
        )


def _head(source: Checkout, task: Task) -> str:
    """Return the commit to land. After a review, this is the reviewed commit or, if the branch was rewritten since, the
    checkout's present commit with the same files. Without a review, it is the commit that passed the check, if the
    branch contains it, and otherwise the checkout's present commit.

    Raises:
        Conflict: The checkout has neither the reviewed commit nor its files.
    """
    if task.status != "completed":  # the work goes on after the check
        return source.head
    if task.review_by and task.submitted:
        submitted = task.submitted
        if merging.holds(source.main, source.head, submitted):
            return submitted
        if merging.is_same(source.main, submitted, source.head):
            return source.head
        raise errors.Conflict(
            f"{task.id} was reviewed at {submitted[:10]}, which is not in {source.branch or source.top}",
            "Change to a checkout that has it, or have it reviewed again: "
            f"teams update-task {task.id} --status pending",
        )
    check = checks.of(task)
    if check and check.passed and check.commit and merging.holds(source.main, source.head, check.commit):
        return check.commit
    return source.head


def _refuse_impossible(source: Checkout, task: Task, head: str, target: str) -> None:
    """Refuse a landing that has nothing to merge, that git can't merge, or whose checkout has uncommitted changes."""
    check = checks.of(task)
    checking.refuse_dirty(task, work.uncommitted(source, check.left if check else None), source.top)
    if head == source.head:  # else the commit was checked or reviewed before
        checking.refuse_unfinished(task, source)
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


def refuse_unreviewed(store: Store, team: str, landing: Landing) -> None:
    """Refuse an open landing of a commit that was not reviewed although the task needs a review. If the target branch
    contains the commit already, refuse nothing.

    Raises:
        NotAllowed: The commit differs from the reviewed one.
        Conflict: The task has a reviewer, but no commit was submitted for review in a shared store.
    """
    task = tasks.get(store, team, landing.task)
    if landing.over:
        return
    _refuse_unsubmitted(store, task)
    if not (task.review_by and task.submitted):
        return
    if merging.is_commit(task.submitted) and landing.head == task.submitted:  # a branch of that name proves nothing
        return
    if merging.is_same(landing.repository, task.submitted, landing.head):
        return
    if not merging.is_on_branch(landing.repository, landing.onto, landing.head):
        refusal = f"{landing.head[:10]} was not reviewed: {task.id} was, at {task.submitted[:10]}"
        raise errors.NotAllowed(refusal, f"Land the reviewed commit: teams land {task.id}")


def refuse_all(store: Store, team: str, why: str) -> None:
    """Refuse the open landings of a closed team, for the reason *why*. Landings that already have a merge commit are
    not refused, because the target branch may be moving to that commit now.
    """

    def refuse(landing: Landing) -> Landing:
        if landing.over or landing.merge:
            return landing
        now = teams.now(store)
        # `returned` says that no task is to be updated: the tasks of a closed team stay as they are.
        return landing.having(state="refused", reason=why, ended_at=now, updated_at=now, returned=True)

    for landing in landings.open_ones(store, team):
        update(store, team, LANDING.even_in_closed_team, landing.id, refuse)


def unqueued(store: Store, team: Team, fix: bool) -> Iterator[Problem]:
    """Yield a problem for each completed task whose landing was not queued, because the command that completed the task
    was killed. *fix* has no effect, because each problem names the command that repairs it.
    """
    tasks_by_id = {task.id: task for task in tasks.all_of(store, team.name, [])}
    for agent, _ in store.scan(team.name, presence.AGENT, []):
        task = tasks_by_id.get(agent.completing or "")
        if task and task.status == "completed" and landings.last_of(store, team.name, task.id) is None:
            what = f"{task.id} is completed, but it was not queued to land: the command was killed"
            yield "warning", what, f"teams land {task.id} --team {team.name}"
