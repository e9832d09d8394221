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
    from collections.abc import Collection
    from typing import Any

    from teams_cli.records.types import Count, Name, Text, Time, Word
    from teams_cli.tasks.tasks import Task

MAX_OUTPUT = 4000
"""Characters of a check's output that are kept: its end."""
_TOLD = 1200
_KEPT = ("result", "claim")
CHECK_STALE = "check stale"
"""The history entry for a check of another commit than the one that landed."""


class Check(Record):
    """The outcome of a command: its exit *status* (0: passed), how many *seconds* it took if that was one or more, the
    end of its *output*, on which *commit*, *by* whom.

    It is *stale* when its commit is no part of what landed. *left* are files that it left behind, which git does not
    ignore. The *result* is what the owner said under that *claim* of a task that was not completed, since it failed.
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
        """Whether the command said yes."""
        return self.status == 0

    def brief(self) -> dict[str, Any]:
        """The check as others see it, without what was printed."""
        document = self.to_document()
        for key in ("output", *_KEPT):
            document.pop(key, None)
        return document

    @property
    def told(self) -> str:
        """Its outcome, with the end of its output."""
        how = f"exit status {self.status}" if self.status >= 0 else f"ended by signal {-self.status}"
        how += f" after {length(self.seconds)}" if self.seconds else ""
        on = f" on {self.commit[:10]}" if self.commit else ""
        said = self.output.strip()[-_TOLD:]
        return f"`{self.command}`{on}: {how}" + (f"\n{said}" if said else "")


class Evidence(Record):
    """A file that was handed in with a task: its name, size in bytes and SHA-256; the copy is the record *id*."""

    id: Word
    name: Text
    size: Count
    sha256: Word
    by: Name
    at: Time


def of(task: Task) -> Check | None:
    """The outcome of the task's last check."""
    return Check.from_json(task.checked) if task.checked else None


def kept_result(task: Task, name: str) -> str | None:
    """The result given when the check failed: under the same claim and check the owner need not give it again."""
    found = of(task)
    return found.result if found and (found.by, found.claim, found.command) == (name, task.claim, task.check) else None


def when_said(task: Task, result: str | None) -> dict[str, Any] | None:
    """The outcome of the check, without the result kept with it if a newer one is given."""
    if result is None or not task.checked:
        return task.checked
    return {key: value for key, value in task.checked.items() if key not in _KEPT}


def final_result(task: Task, said: str | None, status: str | None, name: str) -> str | None:
    """The result of a task that ends so: what is said with that, else what was before."""
    if said is not None:
        return said
    return (kept_result(task, name) if status == "completed" else None) or task.result_so_far


def set_from(check: str | None, directory: str) -> str | None:
    """The checkout around the directory where the check is set, in which it is run for who works in none."""
    return (check and environment.checkout_around(directory)) or None


def refuse_setter(at: Standing, *rules: str | None) -> None:
    """Raises NotAllowed: Who does the work does not say how it is checked."""
    if any(rules) and not (at.leads or at.manages):
        raise errors.NotAllowed(
            f"{at.name} is a {at.role}: checks and reviews are set by a leader, a task-manager or the human",
            "Leave out --check and --review-by, or ask the leader.",
        )


def refuse_unsayable(draft: Task) -> None:
    """Raises InvalidValue: The check is blank or too long."""
    if draft.check is not None:
        text.checked(draft.check, "check")


def reviewer(at: Standing, word: str, coming: Collection[str] = ()) -> str:
    """The reviewer: a role, a member, one that is *coming*, or the human.

    Raises:
        AgentNotFound: There is neither a role nor an active member of that name.
    """
    if word == HUMAN or word in coming or at.team.member(word):
        return word
    role = roles.role_for(word, at.team, at.caller.config)
    if role is None:
        raise errors.AgentNotFound(
            f"no role or active member {word!r} can review",
            f"Members: {at.team.names_in_words(HUMAN)}; or a role.",
        )
    return role


def refuse_unchecked(task: Task, found: Check | None) -> None:
    """Let a task be completed only by a check of its own that passed.

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
    """Raises CheckFailed: With the end of the output, and how to complete the task again, with these *options*."""
    if not found.passed:
        kept = " (your result is kept)" if found.result else ""
        raise errors.CheckFailed(
            f"{task.id} is not done: {found.told}",
            f"Fix it, commit, and complete it again{kept}: teams update-task {task.id} --status completed{options}",
        )
