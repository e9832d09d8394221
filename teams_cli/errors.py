"""The errors with which `teams` refuses a command, each with its exit status. Modules refer to them as `errors.Busy`.

    TeamsError (1)
    ├── InvalidValue (2)      ExtensionMissing · NoIdentity · NoTeam · WrongUsage
    ├── NotFound (10)         TeamNotFound · AgentNotFound · TaskNotFound · MessageNotFound · NothingReady
    ├── Conflict (11)         AlreadyExists · AlreadyHandled · CheckFailed · DependencyCycle · NobodyThere ·
    │                         NotChecked · PlanRequired · StaleClaim · StaleRevision · TaskBlocked · TaskClaimed ·
    │                         TaskKept · UidTaken · WrongState
    ├── Busy (12)             OutcomeUnknown
    ├── NotAllowed (13)       NeedsHuman
    ├── WaitRanOut (14)
    ├── DamagedRecord (15)
    ├── NotInstalled (1)
    ├── StorageFailed (1)
    └── TaskFailed (1)

An error that only a single, seldom used package raises is declared there, as a subclass of one of these. The table of
exit statuses only grows. `code` is the class name in snake_case, for scripts.

Any other error is a bug. Its traceback goes to a log, whose path is shown.
"""

from __future__ import annotations

import os

from teams_cli import __version__


class TeamsError(Exception):
    """An expected failure. The message says what failed and why, and the hint what to do."""

    status = 1

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    @property
    def code(self) -> str:
        """The class name in snake_case, for scripts."""
        name = type(self).__name__
        return "".join("_" + c.lower() if c.isupper() else c for c in name).lstrip("_")


class NotFound(TeamsError):
    """Something does not exist."""

    status = 10


class InvalidValue(TeamsError):
    """A value is not valid."""

    status = 2


class WrongUsage(InvalidValue):
    """The words of a command do not fit together."""


class ExtensionMissing(InvalidValue):
    """A command or an option belongs to an extension that is not installed."""


class NoIdentity(InvalidValue):
    """The command changes something, so it needs to know who you are."""


class NoTeam(InvalidValue):
    """The command needs to know which team you mean."""


class TeamNotFound(NotFound):
    """There is no team of that name."""


class AgentNotFound(NotFound):
    """The team has no active member of that name."""


class TaskNotFound(NotFound):
    """The team has no such task."""


class MessageNotFound(NotFound):
    """You have no such message."""


class NothingReady(NotFound):
    """No task is ready for you."""


class Conflict(TeamsError):
    """The state of the team does not allow the change."""

    status = 11


class AlreadyExists(Conflict):
    """The name is taken."""


class StaleRevision(Conflict):
    """Another process changed the record first."""


class WrongState(Conflict):
    """The present state of the task, message or other thing does not allow the command."""


class StaleClaim(Conflict):
    """The caller's claim on the task has ended."""


class NobodyThere(Conflict):
    """The team has no other active member."""


class UidTaken(Conflict):
    """The uid belongs to another message of the same sender."""


class NotChecked(Conflict):
    """The check of the task was not run."""


class CheckFailed(Conflict):
    """The check of the task failed, so it is not completed."""


class DependencyCycle(Conflict):
    """The task would wait for itself."""


class TaskBlocked(Conflict):
    """A blocker of the task is not completed."""


class TaskKept(Conflict):
    """The task is assigned to another agent."""


class TaskClaimed(Conflict):
    """Another agent owns the task."""


class AlreadyHandled(Conflict):
    """The message was handled before."""


class PlanRequired(Conflict):
    """The task needs an approved plan first."""


class TaskFailed(TeamsError):
    """A task of a workflow failed, or was not run because another task failed."""


class Busy(TeamsError):
    """A record or directory was locked for too long. Nothing was changed, so the command can be repeated."""

    status = 12


class OutcomeUnknown(Busy):
    """The change may have been made: the disk or the server did not confirm it. Repeating the change is safe, and shows
    whether it was made.
    """


class NotAllowed(TeamsError):
    """You may not do this."""

    status = 13


class NeedsHuman(NotAllowed):
    """The human must allow the operation, and has not done so."""


class WaitRanOut(TeamsError):
    """The time to wait ended before the awaited event."""

    status = 14
    state: str = ""
    """How the work stands, without the command that waits longer."""


class DamagedRecord(TeamsError):
    """A file is damaged, and is left as it is. `number` is the number of a damaged message; 0 if it is not known."""

    status = 15
    number: int = 0

    def __init__(self, message: str, hint: str = "", path: str = "") -> None:
        super().__init__(message, hint)
        self.path = path


class NotInstalled(TeamsError):
    """A program or extra that the command needs is not installed."""


class StorageFailed(TeamsError):
    """The disk failed; nothing was changed."""


def kinds(above: type[TeamsError] = TeamsError) -> dict[str, type[TeamsError]]:
    """Return *above* and all classes of errors derived from it, by name. A class is included only if its module is
    loaded.
    """
    by_name = {above.__name__: above}
    for kind in above.__subclasses__():
        by_name.update(kinds(kind))
    return by_name


def report_bug(error: Exception, words: list[str]) -> TeamsError:
    """Write the traceback of *error* to a log, and return the error to show to the user. Of the command line *words*,
    only the command's name is logged, because the other words may be private.
    """
    import tempfile
    import traceback

    try:
        descriptor, path = tempfile.mkstemp(prefix="teams-bug-", suffix=".log")
        with os.fdopen(descriptor, "w", encoding="utf-8", errors="backslashreplace") as log:
            log.write(f"teams {__version__}\ncommand: {words[:1]}\n\n")
            log.write("".join(traceback.format_exception(error)))
        hint = f"The details are in {path}; please report them."
    except OSError as failure:
        hint = f"Please report it; its details could not be written: {failure.strerror}."
    if isinstance(error, ImportError):  # modules are loaded when they are needed, which may be after a long wait
        hint = f"If teams was updated while the command ran, repeat the command. Else: {hint}"
    return TeamsError(f"a bug: {type(error).__name__}: {error}", hint)
