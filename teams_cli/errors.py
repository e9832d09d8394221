"""The refusals of `teams`, each with its exit status, named as `errors.Busy`.

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

One that a single, seldom used package raises stands there, below one of these. The table of exit statuses only grows.
`code` is the class name in snake_case, for scripts.
"""

from __future__ import annotations


class TeamsError(Exception):
    """An expected failure: what and why in the message, what to do in the hint."""

    status = 1

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    @property
    def code(self) -> str:
        """The class name in snake_case: what scripts compare."""
        name = type(self).__name__
        return "".join("_" + c.lower() if c.isupper() else c for c in name).lstrip("_")


class NotFound(TeamsError):
    """There is no such thing."""

    status = 10


class InvalidValue(TeamsError):
    """A value is not valid."""

    status = 2


class WrongUsage(InvalidValue):
    """The words of a command do not fit together."""


class ExtensionMissing(InvalidValue):
    """A command or an option belongs to an extension that is not installed."""


class NoIdentity(InvalidValue):
    """A change was asked for without saying who asks."""


class NoTeam(InvalidValue):
    """A command that acts in a team was not told which."""


class TeamNotFound(NotFound):
    """There is no team of that name."""


class AgentNotFound(NotFound):
    """The team has no active member of that name."""


class TaskNotFound(NotFound):
    """The team has no such task."""


class MessageNotFound(NotFound):
    """No such message was sent to the caller."""


class NothingReady(NotFound):
    """No task is ready for the caller."""


class Conflict(TeamsError):
    """The state of the team does not admit the change."""

    status = 11


class AlreadyExists(Conflict):
    """The name is taken."""


class StaleRevision(Conflict):
    """Another writer was first; the record is not the one that was read."""


class WrongState(Conflict):
    """The thing is in a state from which this move does not lead."""


class StaleClaim(Conflict):
    """The claim that was quoted is over."""


class NobodyThere(Conflict):
    """There is no other active member to receive it."""


class UidTaken(Conflict):
    """The uid belongs to another message of the same sender."""


class NotChecked(Conflict):
    """The task is completed by its check, and that was not run."""


class CheckFailed(Conflict):
    """The check of the task failed, so it is not completed."""


class DependencyCycle(Conflict):
    """The task would wait for itself."""


class TaskBlocked(Conflict):
    """A task that it waits for is not completed."""


class TaskKept(Conflict):
    """The task is kept for another agent."""


class TaskClaimed(Conflict):
    """Another agent owns the task."""


class AlreadyHandled(Conflict):
    """The message was handled before."""


class PlanRequired(Conflict):
    """The task needs an approved plan first."""


class TaskFailed(TeamsError):
    """A task of a workflow failed, or could not be run because of one that did."""


class Busy(TeamsError):
    """A lock was not had in time; nothing was changed and a retry is safe."""

    status = 12


class OutcomeUnknown(Busy):
    """The change was made, but the disk did not confirm it; a retry is safe and tells."""


class NotAllowed(TeamsError):
    """The caller may not do this."""

    status = 13


class NeedsHuman(NotAllowed):
    """The human was asked, or has to be, and did not allow it."""


class WaitRanOut(TeamsError):
    """The time to wait was over first."""

    status = 14


class DamagedRecord(TeamsError):
    """A file is not what it should be; it is left as it is. `number` is that of a message, where it is one."""

    status = 15
    number: int = 0


class NotInstalled(TeamsError):
    """An extra of the program that this needs is missing."""


class StorageFailed(TeamsError):
    """The disk refused; nothing was changed."""


def kinds(above: type[TeamsError] = TeamsError) -> dict[str, type[TeamsError]]:
    """All kinds of refusals by their names, as far as the modules that declare them are loaded."""
    by_name = {above.__name__: above}
    for kind in above.__subclasses__():
        by_name.update(kinds(kind))
    return by_name
