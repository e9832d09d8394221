"""Checks of tasks: the command, its outcome, and the attachments of the owner."""

from __future__ import annotations

from teams_cli import environment, errors, text
from teams_cli.clock import length
from teams_cli.names import HUMAN
from teams_cli.records.records import Record
from teams_cli.teams import roles
from teams_cli.teams.permission import Standing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from teams_cli.records.types import Count, Name, Text, Time, Word
    from teams_cli.tasks.tasks import Task

MAX_OUTPUT = 4000
"""Characters that are kept of the end of a check's output."""
_TOLD = 1200
_KEPT = ("result", "claim")
CHECK_STALE = "check stale"
"""The history entry that a check ran on another commit than the one that landed."""


class Check(Record):
    """The outcome of a command: its exit *status* (0 is passed), *seconds* if it took one or more, the end of its
    *output*, the *commit* on which it ran, and *by* whom.

    It is *stale* if its commit is no part of what landed. *left* lists untracked files that it left behind. *result* is
    the result that the owner gave under that *claim* when the check failed.
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
        """Return the check without its output."""
        document = self.to_document()
        for key in ("output", *_KEPT):
            document.pop(key, None)
        return document

    @property
    def told(self) -> str:
        """Return the outcome of the check, with the end of its output."""
        how = f"exit status {self.status}" if self.status >= 0 else f"ended by signal {-self.status}"
        how += f" after {length(self.seconds)}" if self.seconds else ""
        on = f" on {self.commit[:10]}" if self.commit else ""
        said = self.output.strip()[-_TOLD:]
        return f"`{self.command}`{on}: {how}" + (f"\n{said}" if said else "")


class Evidence(Record):
    """A file that was attached to a task: name, size in bytes and SHA-256. The copy is the record *id*."""

    id: Word
    name: Text
    size: Count
    sha256: Word
    by: Name
    at: Time


def of(task: Task) -> Check | None:
    """Return the outcome of the task's last check."""
    return Check.from_json(task.checked) if task.checked else None


def kept_result(task: Task, name: str) -> str | None:
    """Return the result that was given when the check failed. Under the same claim and check the owner need not repeat
    it.
    """
    found = of(task)
    return found.result if found and (found.by, found.claim, found.command) == (name, task.claim, task.check) else None


def with_new_result(task: Task, result: str | None) -> dict[str, Any] | None:
    """Return the outcome of the check, without the kept result if a newer result is given."""
    if result is None or not task.checked:
        return task.checked
    return {key: value for key, value in task.checked.items() if key not in _KEPT}


def final_result(task: Task, said: str | None, status: str | None, name: str) -> str | None:
    """Return the result of a task that is completed: the given one, else the one before."""
    if said is not None:
        return said
    return (kept_result(task, name) if status == "completed" else None) or task.result_so_far


def set_from(check: str | None, directory: str) -> str | None:
    """Return the checkout of the directory where the check is set: it runs there if the owner has no checkout."""
    return (check and environment.checkout_around(directory)) or None


def refuse_setter(at: Standing, *rules: str | None) -> None:
    """Raises NotAllowed: The owner of a task may not set its check."""
    if any(rules) and not (at.leads or at.manages):
        raise errors.NotAllowed(
            f"{at.name} is a {at.role}: checks and reviews are set by a leader, a task-manager or the human",
            "Leave out --check and --review-by, or ask the leader.",
        )


def refuse_unsayable(draft: Task) -> None:
    """Raises InvalidValue: The check is blank or too long."""
    if draft.check is not None:
        text.checked(draft.check, "check")


def reviewer(at: Standing, word: str) -> str:
    """Return the reviewer: a member, the human, the role that an alias stands for, or a member that has yet to join."""
    if word == HUMAN or at.team.member(word):
        return word
    return roles.role_for(word, at.team, at.caller.config) or word


def refuse_unchecked(task: Task, found: Check | None) -> None:
    """Refuse to complete a task whose check has not passed.

    Raises:
        NotChecked: It was not run.
        StaleClaim: The command is another one by now.
        CheckFailed: It failed.
    """
    if task.check is None:
        return
    if found is None:
        raise errors.NotChecked(
            f"the check of {task.id} was not run: {task.check}",
            f"Run it: teams update-task {task.id} --status completed",
        )
    if found.command != task.check:
        raise errors.StaleClaim(f"the check of {task.id} was changed to: {task.check}", "Complete it again.")
    refuse_failed(task, found)


def refuse_failed(task: Task, found: Check, options: str = "") -> None:
    """Raises CheckFailed: The command failed. The error has the end of the output, and the command that completes the
    task, with *options*.
    """
    if not found.passed:
        kept = " (your result is kept)" if found.result else ""
        raise errors.CheckFailed(
            f"{task.id} is not done: {found.told}",
            f"Fix it, commit, and complete it again{kept}: teams update-task {task.id} --status completed{options}",
        )
