"""Handing in: who completes a task in a worktree is refused once what would be lost there, or seen by nobody."""

from __future__ import annotations

from teams_cli import environment, errors, extensions, text
from teams_cli.agents import checkouts, git, merging
from teams_cli.agents.checkouts import Checkout
from teams_cli.store.contract import Store
from teams_cli.tasks.tasks import Task
from teams_cli.teams import presence, settings
from teams_cli.teams.permission import Standing


def refuse_unshared(store: Store, at: Standing, task: Task, directory: str, options: str) -> None:
    """Refuse, once for each claim, what is not committed in the worktree that the owner of the task completes it in;
    and, once for each agent, what is committed there on a branch that nobody else has. Of a task with a check it is
    known which commit was checked, and that is the whole of it; what a workflow's agents leave is named in its report.

    Raises:
        Conflict: There is such work; said again, the task is completed as it is.
    """
    top = environment.checkout_around(checkouts.worktree_of(store, at.team.name, at.name) or directory)
    checkout = checkouts.at(top) if not (task.check or task.step) and environment.is_worktree(top) else None
    if checkout is None or checkout.is_main:
        return
    then = f"then teams update-task {task.id} --status completed{options}"
    if names := checkout.uncommitted():
        if not presence.was_refused(store, at.team.name, at.name, f"{task.id}:{task.claim}"):
            raise errors.Conflict(
                f"{top} has what is not committed: {text.listed(names)}; {task.id} is as it was",
                f"git add -A && git commit -m '{task.id}'; {then}",
            )
    elif _is_alone(at, task, checkout) and not presence.was_refused(store, at.team.name, at.name, "unshared"):
        share = f"teams land {task.id}" if extensions.provided("land a completed task") else "git push"
        raise errors.Conflict(
            f"what you committed is on {checkout.branch or 'no branch'} alone; {task.id} is as it was",
            f"{share}; {then}",
        )


def _is_alone(at: Standing, task: Task, checkout: Checkout) -> bool:
    """Whether what is committed there is neither on the main checkout's branch nor pushed, and nothing lands it."""
    if task.review_by or task.landing or settings.lands_by_itself(at.team):
        return False
    target = checkouts.branch_of(checkout.main)
    tip = merging.tip(checkout.main, target) if target else ""
    if not tip or merging.holds(checkout.main, tip, checkout.head):
        return False
    return not git.said(checkout.top, "for-each-ref", "--count=1", "--contains", checkout.head, "refs/remotes")
