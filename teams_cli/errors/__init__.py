"""The refusals of `teams`, each with its exit status, named as `errors.Busy`.

    TeamsError (1)
    ├── InvalidValue (2)      NoIdentity · NoTeam · WrongUsage
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

One that a single, seldom used room makes stands in that room, below one of these. The table of exit statuses only
grows. `code` is the class name in snake_case, for scripts.

Most commands refuse nothing, and to make thirty classes takes a thirtieth of their time: those that no answer needs
stand in `refusals`, which is imported when the first of them is named.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from teams_cli.errors.refusals import (
        AgentNotFound as AgentNotFound,
    )
    from teams_cli.errors.refusals import (
        AlreadyExists as AlreadyExists,
    )
    from teams_cli.errors.refusals import (
        AlreadyHandled as AlreadyHandled,
    )
    from teams_cli.errors.refusals import (
        Busy as Busy,
    )
    from teams_cli.errors.refusals import (
        CheckFailed as CheckFailed,
    )
    from teams_cli.errors.refusals import (
        Conflict as Conflict,
    )
    from teams_cli.errors.refusals import (
        DamagedRecord as DamagedRecord,
    )
    from teams_cli.errors.refusals import (
        DependencyCycle as DependencyCycle,
    )
    from teams_cli.errors.refusals import (
        InvalidValue as InvalidValue,
    )
    from teams_cli.errors.refusals import (
        MessageNotFound as MessageNotFound,
    )
    from teams_cli.errors.refusals import (
        NeedsHuman as NeedsHuman,
    )
    from teams_cli.errors.refusals import (
        NobodyThere as NobodyThere,
    )
    from teams_cli.errors.refusals import (
        NoIdentity as NoIdentity,
    )
    from teams_cli.errors.refusals import (
        NotAllowed as NotAllowed,
    )
    from teams_cli.errors.refusals import (
        NotChecked as NotChecked,
    )
    from teams_cli.errors.refusals import (
        NoTeam as NoTeam,
    )
    from teams_cli.errors.refusals import (
        NothingReady as NothingReady,
    )
    from teams_cli.errors.refusals import (
        NotInstalled as NotInstalled,
    )
    from teams_cli.errors.refusals import (
        OutcomeUnknown as OutcomeUnknown,
    )
    from teams_cli.errors.refusals import (
        PlanRequired as PlanRequired,
    )
    from teams_cli.errors.refusals import (
        StaleClaim as StaleClaim,
    )
    from teams_cli.errors.refusals import (
        StaleRevision as StaleRevision,
    )
    from teams_cli.errors.refusals import (
        StorageFailed as StorageFailed,
    )
    from teams_cli.errors.refusals import (
        TaskBlocked as TaskBlocked,
    )
    from teams_cli.errors.refusals import (
        TaskClaimed as TaskClaimed,
    )
    from teams_cli.errors.refusals import (
        TaskFailed as TaskFailed,
    )
    from teams_cli.errors.refusals import (
        TaskKept as TaskKept,
    )
    from teams_cli.errors.refusals import (
        TaskNotFound as TaskNotFound,
    )
    from teams_cli.errors.refusals import (
        TeamNotFound as TeamNotFound,
    )
    from teams_cli.errors.refusals import (
        UidTaken as UidTaken,
    )
    from teams_cli.errors.refusals import (
        WaitRanOut as WaitRanOut,
    )
    from teams_cli.errors.refusals import (
        WrongState as WrongState,
    )
    from teams_cli.errors.refusals import (
        WrongUsage as WrongUsage,
    )
else:

    def __getattr__(name: str) -> type[TeamsError]:
        """Make the refusals, of which one is named for the first time."""
        if not name[:1].isupper():
            raise AttributeError(f"errors has no {name}")
        from teams_cli.errors import refusals

        return getattr(refusals, name)


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


def kinds(above: type[TeamsError] | None = None) -> dict[str, type[TeamsError]]:
    """All kinds of refusals by their names, as far as the rooms that make them are loaded."""
    from teams_cli.errors import refusals  # noqa: F401  # makes its kinds

    above = above or TeamsError
    found = {above.__name__: above}
    for kind in above.__subclasses__():
        found.update(kinds(kind))
    return found
