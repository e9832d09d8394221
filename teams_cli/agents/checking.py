"""Checks: before a task counts as completed, its check runs on what its owner committed."""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Callable
from contextlib import suppress

from teams_cli import environment, errors, processes, text
from teams_cli.agents import checkouts, merging, shell, work
from teams_cli.agents.checkouts import Checkout
from teams_cli.agents.trees import own_place, tree
from teams_cli.clients import environments
from teams_cli.clock import length, parse_rfc3339
from teams_cli.messages import messages
from teams_cli.store.contract import Store, update
from teams_cli.tasks import assigning, changes, checks, leases
from teams_cli.tasks.changes import Edit
from teams_cli.tasks.checks import Check, Workplace
from teams_cli.tasks.tasks import IN_PROGRESS, TASK, Task
from teams_cli.teams import history, presence, settings, teams
from teams_cli.teams.permission import Standing
from teams_cli.teams.teams import Team

_MOST_LEFT = 50
"""Maximum number of recorded files that a check left behind. They do not count as uncommitted in its next run."""
_LONG = 300.0
"""Seconds after which the leader is notified that a check is still running."""
_MOST_PAUSE = 15.0
"""Maximum seconds between two renewals of the claims while a check runs."""


def check_or_refuse(store: Store, standing: Standing, task: Task, edit: Edit, place: Workplace, worktree: str) -> Check:
    """Run the check of the task and return its outcome. If the check fails, record its outcome in the task, with the
    result from *edit*. *worktree* is the caller's own worktree, or "".

    Raises:
        CheckFailed: The check failed.
        Conflict: Some files are not committed, so the check would miss them.
    """
    changes.refuse_finishing(store, standing, task, edit)
    outcome = _CheckRun(store, standing.team, task, standing.name, place).check(worktree)
    if not outcome.passed:
        result = checks.kept_result(task, standing.name) if edit.result is None else edit.result
        outcome = outcome.having(result=result, claim=task.claim if result else None)

        def with_failed_check(latest: Task) -> Task:
            if (latest.status, latest.claim) != (task.status, task.claim):  # changed during the check
                assigning.refuse_stranger(store, latest, standing)
                return latest
            remark = f"exit status {outcome.status}"
            return latest.having(checked=outcome.to_json()).noted(teams.now(store), outcome.by, "check failed", remark)

        if task.status == IN_PROGRESS:  # in review, the check of the submitted work has passed
            team, commit = standing.team.name, outcome.commit
            update(store, team, TASK, task.id, with_failed_check)
            history.note(store, team, outcome.by, "check failed", task=task.id, commit=commit, status=outcome.status)
        checks.refuse_failed(task, outcome, edit.options)
    return outcome


class _CheckRun:
    """Runs the check of a task for the member *by*, and renews the member's claims while the check runs."""

    def __init__(self, store: Store, team: Team, task: Task, by: str, place: Workplace) -> None:
        self.store = store
        self.team = team
        self.task = task
        self.by = by
        self.place = place
        self.began = time.monotonic()
        self.has_reported = False

    def check(self, worktree: str) -> Check:
        """Run the check on the commit of *worktree*, and return its outcome.

        If *worktree* is "", the check runs in the directory that the task names, uncommitted files included. If the
        task names no directory, the check runs on the commit of a checkout: the checkout around the caller, or, outside
        git, the checkout where the check was set. If there is neither, the check runs in the caller's directory.
        """
        directory = worktree or self.task.check_in or self.place.directory
        names_directory = bool(worktree or self.task.check_in or self.place.as_it_is)
        if not names_directory and not environment.checkout_around(directory):
            directory = self.task.check_from or directory
        if not os.path.isdir(directory):
            missing = f"{directory}, where {self.task.id} is checked, does not exist"
            raise errors.InvalidValue(missing, "Complete it in your own checkout, or on the machine of that checkout.")
        checkout = checkouts.at(directory)
        if checkout and (worktree or not names_directory):
            outcome = self._check_commit(checkout)
            if outcome.passed or worktree or directory == self.place.directory:
                return outcome
            outside = f"where the check was set: {self.place.directory or 'its owner'} is not in a checkout"
            return outcome.having(output=f"{outcome.output}\n[in {directory}, {outside}]")
        uncommitted = work.uncommitted(checkout) if checkout else []
        outcome = self._run(directory)
        if checkout and not outcome.passed:
            outcome = outcome.having(output=f"{outcome.output}{self._remark_on_missing_work(checkout)}")
        return outcome.having(commit=checkout.head) if checkout and not uncommitted else outcome

    def _remark_on_missing_work(self, checkout: Checkout) -> str:
        """Return a line saying that *checkout*, where the check failed, lacks the caller's commit; "" if it has the
        commit, or if the caller is not in a worktree of the same repository.
        """
        own = checkouts.at(self.place.directory)
        if own is None or own.common != checkout.common or merging.holds(checkout.top, checkout.head, own.head):
            return ""
        return f"\n[{checkout.top}, where the check ran, lacks your commit {own.head[:10]}: merge it first]"

    def _check_commit(self, checkout: Checkout) -> Check:
        """Run the check in *checkout*. It runs in a temporary checkout if git was told to skip files, or if the main
        checkout, in which other agents may work, has uncommitted files.
        """
        last_outcome = checks.of(self.task)
        left_by_last_check = last_outcome.left if last_outcome else None
        names = work.uncommitted(checkout, without=left_by_last_check)
        if names and checkout.is_main:
            return self._check_in_temporary_checkout(checkout, names)
        refuse_dirty(self.task, names, checkout.top)
        if not checkout.is_main:  # there, it may be another agent's
            refuse_unfinished(self.task, checkout)
        if hidden := checkout.hidden(parse_rfc3339(self.team.created_at).timestamp()):
            return self._check_in_temporary_checkout(checkout, hidden)
        outcome = self._run(checkout.top)
        after = checkouts.at(checkout.top) or checkout
        if after.head == checkout.head:
            return outcome.having(commit=checkout.head, left=work.uncommitted(after)[:_MOST_LEFT] or None)
        if checkout.is_main:
            return self._check_in_temporary_checkout(after, [])
        raise errors.Conflict(f"somebody committed in {checkout.top} during the check", "Complete the task again.")

    def _check_in_temporary_checkout(self, checkout: Checkout, omitted: list[str]) -> Check:
        """Run the check on the commit only. If it fails, its output names the *omitted* files."""
        top, consequence = checkout.top, f"{self.task.id} was not checked"
        with (
            own_place(self.store.root, self.team.name, top) as path,
            tree(self.team, top, checkout.head, path, self.place.environ, consequence) as remark_on_submodules,
        ):
            outcome = self._run(path)
        output = outcome.output
        if not outcome.passed:
            omitted = sorted(omitted, key=lambda name: name not in (self.task.check or ""))  # those of the check first
            left_out = f"; left out, because not committed: {text.listed(omitted)}" if omitted else ""
            output += f"\n[run on the commit only{left_out}; to include ignored files: the setting worktree.copy]"
            if remark_on_submodules:
                output += f"\n{remark_on_submodules}"
        return outcome.having(commit=checkout.head, directory=None, output=output)

    def _run(self, directory: str) -> Check:
        place = Workplace(directory, self.place.environ)
        return run(self.store, self.team, self.task.check or "", place, self.by, self._renew_claims)

    def _renew_claims(self) -> float:
        """Renew the claims of the member, and notify the leader once if the check takes long. Returns the number of
        seconds until the next call.
        """
        store, team, task, by = self.store, self.team, self.task, self.by
        pause = min(presence.seconds_between_signs(team), _MOST_PAUSE)
        seconds = time.monotonic() - self.began
        seconds_left = min(_LONG, float(settings.value(team, "checkTimeout")) / 2) - seconds
        if seconds_left > 0:
            pause = min(pause, seconds_left)
        elif not self.has_reported:
            self.has_reported = True
            uid = f"checks-{task.id}-{task.claim}-{os.urandom(4).hex()}"
            body = f"the check of {task.id} ({by}) has run for {length(seconds)}: {task.check}"
            event = "check-runs-long"
            with suppress(errors.TeamsError):  # the check runs on without the notice
                messages.notify(store, team.name, team.leader, body, uid, by=by, event=event, task=task.id)
        with suppress(errors.TeamsError):  # the next renewal may succeed
            leases.renew(store, team, presence.load(store, team.name, by))
        return pause


def refuse_dirty(task: Task, names: list[str], worktree: str) -> None:
    """Refuse to complete the *task* if there are any *names*, which are the uncommitted files of its *worktree*."""
    if names:
        raise errors.Conflict(
            f"{worktree} has uncommitted changes: {text.listed(names)}; {task.id} was not changed",
            "Commit, ignore or restore them (git status), and try again.",
        )


def refuse_unfinished(task: Task, checkout: Checkout) -> None:
    """Refuse to complete or land the *task* while a rebase, or the like, is unfinished in its *checkout*. The commit
    there then lacks some of the work, although no file is uncommitted.
    """
    if operation := work.unfinished_in(checkouts.git_directory(checkout.top)):
        raise errors.Conflict(
            f"{checkout.top}: a {operation} is unfinished there; {task.id} was not changed",
            f"Finish or abort it, and try again. See how: git -C {shlex.quote(checkout.top)} status",
        )


def run(
    store: Store, team: Team, command: str, place: Workplace, by: str, meanwhile: Callable[[], float] | None = None
) -> Check:
    """Run the command of a check until it ends or the setting checkTimeout is exceeded, and return the outcome. While
    the command runs, *meanwhile* is called from time to time. It returns the number of seconds until its next call.
    """
    processes.end_orphaned_checks()  # an orphan may use the ports or files of this check
    mark = processes.new_mark()
    environ = {**environments.unnamed(place.environ), "PYTHONDONTWRITEBYTECODE": "1", processes.CHECK: mark}
    patience = float(settings.value(team, "checkTimeout"))
    try:  # a check that kills its parent kills this extra shell
        running = shell.ShellCommand(f"sh -c {shlex.quote(command)}; exit $?", place.directory, environ)
    except OSError as error:
        raise errors.TaskFailed(f"the check can't be run: {error.strerror}", f"Is {place.directory} there?") from None
    began, has_ended = time.monotonic(), True  # if the wait itself is interrupted, the command is killed at once
    try:
        has_ended = _wait(running, patience, meanwhile)
    finally:
        finished = running.finish(end=not has_ended)
        processes.end_tagged(mark, variable=processes.CHECK)
    output = "\n".join(part.strip("\n") for part in (finished.output, finished.errors) if part.strip())
    status = finished.status if has_ended else shell.TIMEOUT
    if not has_ended:
        output += f"\n[ended after {patience:g} seconds: the setting checkTimeout]"
    elif status < 0:
        output += f"\n[ended by signal {-status}: a check must not kill the process that runs it]"
    if len(output) > checks.MAX_OUTPUT:  # keep the end, in whole lines
        end = output[-checks.MAX_OUTPUT :]
        output = "…" + (end.partition("\n")[2] or end)
    seconds, at = round(time.monotonic() - began) or None, teams.now(store)
    return Check(
        command=command, status=status, seconds=seconds, output=output, by=by, at=at, directory=place.directory
    )


def _wait(running: shell.ShellCommand, patience: float, meanwhile: Callable[[], float] | None) -> bool:
    """Wait at most *patience* seconds for the command to end, and return whether it ended. *meanwhile* is called from
    time to time; it returns the number of seconds until its next call.
    """
    give_up_at = time.monotonic() + patience
    call_at = time.monotonic() if meanwhile else give_up_at
    while not running.wait(max(min(give_up_at, call_at) - time.monotonic(), 0)):
        if time.monotonic() >= give_up_at:
            return False
        if meanwhile and time.monotonic() >= call_at:
            call_at = time.monotonic() + meanwhile()
    return True
