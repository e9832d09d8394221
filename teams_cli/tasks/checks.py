"""Checks of tasks: the command, its outcome, and the attachments of the owner."""

from __future__ import annotations

from teams_cli import environment, errors
from teams_cli.clock import length
from teams_cli.names import HUMAN
from teams_cli.records.records import Record
from teams_cli.teams import roles, teams
from teams_cli.teams.permission import Standing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from teams_cli.records.types import Count, Name, Text, Time, Word
    from teams_cli.tasks.tasks import Task

MAX_OUTPUT = 4000
"""How many characters of the end of a check's output are kept."""
_MAX_OUTPUT_SHOWN = 1200
KEYS_OF_KEPT_RESULT = ("result", "claim")
"""The keys under which a failed check keeps the result that the owner gave, and the number of the owner's claim."""
CHECK_STALE = "check stale"
"""The history entry that says that a check ran on a commit other than the one that landed."""


class Workplace:
    """The directory and the environment in which a check runs. By default, the check runs on the committed files. With
    *as_it_is*, it runs on the files as they are, including uncommitted changes.
    """

    def __init__(self, directory: str, environ: Mapping[str, str], as_it_is: bool = False) -> None:
        self.directory = directory
        self.environ = environ
        self.as_it_is = as_it_is


class Check(Record):
    """The outcome of a check: its *command*, the exit *status* (0: passed; a negative number: the signal that ended it)
    and the end of its *output*. *seconds* is how long it took, if a second or more. *commit* is the commit on which it
    ran, and *by* the member who ran it.

    The outcome is *stale* if the work that landed does not contain this commit. *left* lists untracked files that the
    command left behind. If the check failed, *result* is the result that the owner gave, and *claim* the owner's claim
    at that time.
    """

    command: Text
    commit: Word | None = None
    status: int
    seconds: Count | None = None
    output: Text = ""
    by: Name
    at: Time
    directory: Text | None = None
    stale: bool | None = None
    left: list[Text] | None = None
    result: Text | None = None
    claim: Count | None = None

    @property
    def passed(self) -> bool:
        """Whether the command exited with 0."""
        return self.status == 0

    def brief(self) -> dict[str, Any]:
        """Return the check as JSON, without its output and without the owner's result."""
        document = self.to_document()
        for key in ("output", *KEYS_OF_KEPT_RESULT):
            document.pop(key, None)
        return document

    @property
    def in_words(self) -> str:
        """The check's command, commit, exit status or signal, duration, and the end of its output."""
        how = f"exit status {self.status}" if self.status >= 0 else f"ended by signal {-self.status}"
        how += f" after {length(self.seconds)}" if self.seconds else ""
        commit = f" on {self.commit[:10]}" if self.commit else ""
        output = self.output.strip()[-_MAX_OUTPUT_SHOWN:]
        return f"`{self.command}`{commit}: {how}" + (f"\n{output}" if output else "")


class Evidence(Record):
    """A file that was attached to a task: its name, its size in bytes and its SHA-256. The copy of the file is in
    another record, under the key *id*.
    """

    id: Word
    name: Text
    size: Count
    sha256: Word
    by: Name
    at: Time


def of(task: Task) -> Check | None:
    """Return the outcome of the task's last check; None if no check was run."""
    return Check.from_json(task.checked) if task.checked else None


def kept_result(task: Task, name: str) -> str | None:
    """Return the result that the owner *name* gave when the check failed, so that the owner need not repeat it. Return
    None if there is none, or if the owner, the claim or the check's command has changed since.
    """
    check = of(task)
    if check is None or (check.by, check.claim, check.command) != (name, task.claim, task.check):
        return None
    return check.result


def final_result(task: Task, result: str | None, status: str | None, name: str) -> str | None:
    """Return the result to store when the owner *name* ends the task with this *status*. It is *result*, if given;
    else, for a completed task, the result that was kept when its check failed; else the result that the task already
    has.
    """
    if result is not None:
        return result
    kept = kept_result(task, name) if status == "completed" else None
    return kept or task.result_so_far


def set_from(check: str | None, directory: str) -> str | None:
    """Return the checkout that contains the *directory* in which a *check* is set; None if there is no check or no
    checkout.
    """
    checkout = environment.checkout_around(directory) if check else ""
    return checkout or None


def refuse_setter(standing: Standing, *rules: str | None) -> None:
    """Raise NotAllowed if a plain member sets any of the *rules*, a check or a reviewer, because its own check could
    accept any work. A rule that is None or empty is not set.
    """
    if any(rules) and not (standing.leads or standing.manages):
        who = f"{standing.name} is a {standing.role}"
        raise errors.NotAllowed(
            f"{who}: checks and reviews are set by a leader, a task-manager or the human",
            "Leave out --check and --review-by, or ask the leader.",
        )


def reviewer(standing: Standing, name: str) -> str:
    """Return the reviewer that *name* means: the human, a member, or the role with this name or alias. Any other name
    is returned as it is, because it may belong to a member that has yet to join.

    Raises:
        InvalidValue, AgentNotFound: Nobody can join with that name.
    """
    if name == HUMAN or standing.team.member(name):
        return name
    if role := roles.role_for(name, standing.team, standing.caller.config):
        return role
    teams.refuse_unjoinable(standing.team, name)
    return name


def refuse_unchecked(task: Task, check: Check | None) -> None:
    """Refuse to complete a task whose check has not passed. *check* is its outcome; None if the check was not run.

    Raises:
        NotChecked: The check was not run.
        StaleClaim: The outcome belongs to another command, because the task's check was changed meanwhile.
        CheckFailed: The check failed.
    """
    if task.check is None:
        return
    if check is None:
        raise errors.NotChecked(
            f"the check of {task.id} was not run: {task.check}",
            f"Run it: teams update-task {task.id} --status completed",
        )
    if check.command != task.check:
        raise errors.StaleClaim(f"the check of {task.id} was changed to: {task.check}", "Complete it again.")
    refuse_failed(task, check)


def refuse_failed(task: Task, check: Check, options: str = "") -> None:
    """Refuse to complete a task whose check failed. The hint repeats the command that completes the task, with its
    *options*.

    Raises:
        CheckFailed: The check failed. The error contains the end of the output.
    """
    if not check.passed:
        kept = " (your result is kept)" if check.result else ""
        raise errors.CheckFailed(
            f"{task.id} is not done: {check.in_words}",
            f"Fix it, commit, and complete it again{kept}: teams update-task {task.id} --status completed{options}",
        )
