"""Complete a task after making sure that its check passes and that other members can get its work.

Most tasks have no check, and most callers have no worktree. Therefore the modules for checks and worktrees are imported
only where they are used.
"""

from __future__ import annotations

from teams_cli import environment, errors, extensions, text
from teams_cli.tasks import changes, editing, tasks
from teams_cli.tasks.tasks import IN_PROGRESS, IN_REVIEW, Task
from teams_cli.teams import presence, settings
from teams_cli.teams.permission import Standing, require

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from teams_cli.agents.checkouts import Checkout
    from teams_cli.store.contract import Store
    from teams_cli.tasks import evidence
    from teams_cli.tasks.changes import Edit, Remarks
    from teams_cli.tasks.checks import Workplace
    from teams_cli.teams.permission import Caller


def change_task(
    store: Store,
    team_name: str,
    caller: Caller | None,
    task_id: str,
    edit: Edit,
    place: Workplace,
    files: Sequence[evidence.File] = (),
) -> tuple[Task, Remarks]:
    """Change a task as *edit* says, and attach the *files*. If *edit* completes the task, the task's check runs first,
    which may take a long time.

    The check runs in the first of these places that exists: the owner's worktree, the directory that the task names,
    the checkout around the caller, and the checkout where the check was set.

    Raises:
        CheckFailed: The check failed. The task stays in progress, and the outcome is recorded in the task.
        Conflict: Some files are not committed, so the check would miss them. Also raised, but only once, if nobody else
            can get the work, or if the owner has not seen a change of the task: a repeated call completes the task.
    """
    if edit.status == "completed" or files:
        standing = require(store, team_name, caller, "update-task", task_id)
        task = tasks.get(store, team_name, task_id)
        if task.status == "completed" and (after_landing := extensions.provided("a task after its landing")):
            task = after_landing(store, standing.team, task)
        edit.refuse_invalid()
        if edit.status == "completed":
            needs_preparation = task.status == IN_PROGRESS
            if task.status == IN_REVIEW and task.owner == standing.name:  # its owner may submit a newer commit
                needs_preparation = _current_commit(store, standing, place) not in (None, task.submitted)
            if needs_preparation:
                edit = _prepared_completion(store, standing, task, edit, place)
        if files:
            from teams_cli.tasks import evidence

            files = evidence.not_attached(task, files)  # a repeated command attaches nothing twice
            evidence.refuse_too_many(task, files)
            changes.refuse_finishing(store, standing, task, edit)
            kept = [evidence.keep(store, team_name, task.id, standing.name, file) for file in files]
            edit = edit.having(evidence=kept)
    return changes.change_task(store, team_name, caller, task_id, edit)


def _prepared_completion(store: Store, standing: Standing, task: Task, edit: Edit, place: Workplace) -> Edit:
    """Run the check of the task, and return the *edit* with the check's outcome and the commit to be reviewed. Raises
    an error if the work is not ready to be completed.
    """
    is_owner = task.owner == standing.name
    if is_owner and not place.as_it_is:
        changes.refuse_finishing(store, standing, task, edit)
        _refuse_once(store, standing, task, edit, place)
    if task.check is not None:
        from teams_cli.agents import checking

        worktree = _worktree_of(store, standing.team.name, standing.name)
        checked = checking.check_or_refuse(store, standing, task, edit, place, worktree)
        edit = edit.having(checked=checked, claim=task.claim)
        if is_owner:  # somebody may have edited the task while the check ran
            _refuse_once(store, standing, tasks.get(store, standing.team.name, task.id), edit, place)
    if task.review_by:
        commit = edit.checked.commit if edit.checked else _current_commit(store, standing, place)
        edit = edit.having(submitted=commit)
    return edit


def _refuse_once(store: Store, standing: Standing, task: Task, edit: Edit, place: Workplace) -> None:
    """Refuse, once, to complete a task if its owner has not seen a change of it, or if nobody else can get the work.
    The result in *edit* is stored, so that it need not be given again. Repeating the command completes the task.

    Raises:
        Conflict: The owner has not seen a change of the task, or nobody else can get the work.
    """
    again = f"teams update-task {task.id} --status completed{edit.options}"
    if edit.result is not None:
        again += " (your result is kept; --result TEXT replaces it)"
    try:
        editing.refuse_unseen(store, standing.team, task, standing.name, again)
        if not (task.check or task.step):
            _refuse_unshared(store, standing, task, place.directory, again)
    except errors.Conflict:
        if edit.result is not None:
            only_result = changes.Edit(result=edit.result, claim=task.claim)
            changes.change_task(store, standing.team.name, standing.caller, task.id, only_result)
        raise


def _worktree_of(store: Store, team: str, agent: str) -> str:
    """Return the worktree that `teams` made for the agent, or "" if there is none on this machine."""
    if "session" not in store.holds(team, "session"):  # without importing sessions: `teams` started no agent
        return ""
    from teams_cli.agents import checkouts

    return checkouts.worktree_of(store, team, agent) or ""


def _current_commit(store: Store, standing: Standing, place: Workplace) -> str | None:
    """Return the commit of the caller's worktree or, if there is none, of the checkout around *place*; None outside
    git.
    """
    from teams_cli.agents import checkouts

    checkout = checkouts.at(_worktree_of(store, standing.team.name, standing.name) or place.directory)
    return checkout.head if checkout else None


def _refuse_unshared(store: Store, standing: Standing, task: Task, directory: str, again: str) -> None:
    """Refuse, once, to complete a task whose work nobody else can get: it is in uncommitted files, or in commits that
    are neither on the main checkout's branch nor pushed. Uncommitted files are refused once per claim, commits once per
    agent. The command *again* then completes the task. A rebase, or the like, is refused until it is finished.
    """
    team_name, name = standing.team.name, standing.name
    top = environment.checkout_around(_worktree_of(store, team_name, name) or directory)
    if not environment.is_worktree(top):
        return
    from teams_cli.agents import checkouts, work

    checkout = checkouts.at(top)
    if checkout is None or checkout.is_main:
        return
    if work.unfinished_in(checkouts.git_directory(checkout.top)):
        from teams_cli.agents import checking  # slow to import

        checking.refuse_unfinished(task, checkout)
    if names := work.uncommitted(checkout):
        # This records the refusal, so that a repeated command completes the task.
        if presence.notes_first_refusal(store, team_name, name, f"{task.id}:{task.claim}"):
            raise errors.Conflict(
                f"{top} has uncommitted files: {text.listed(names)}; {task.id} is not completed",
                f"git add -A && git commit -m '{task.id}'; then {again}",
            )
        return
    is_unshared = _has_unshared_commits(standing, task, checkout)
    if is_unshared and presence.notes_first_refusal(store, team_name, name, "unshared"):
        share = f"teams land {task.id}" if extensions.provided("land a completed task") else "git push"
        raise errors.Conflict(
            f"your commits are only on {checkout.branch or 'no branch'}; {task.id} is not completed",
            f"{share}; then {again}",
        )


def _has_unshared_commits(standing: Standing, task: Task, checkout: Checkout) -> bool:
    """Return whether the checkout has commits that exist nowhere else and that no landing will merge."""
    if task.review_by or task.landing or settings.lands_by_itself(standing.team):
        return False
    from teams_cli.agents import checkouts, git, merging

    target = checkouts.branch_of(checkout.main)
    tip = merging.tip_of(checkout.main, target) if target else ""
    if not tip or merging.holds(checkout.main, tip, checkout.head):
        return False
    return not git.output_of(checkout.top, "for-each-ref", "--count=1", "--contains", checkout.head, "refs/remotes")
