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

Most commands refuse nothing, and to make thirty classes is a twentieth of what the interpreter does for one: those that
no answer needs stand in `refusals`, which a command imports when the first of them is named. What goes on for long has
them from the start, or before it sleeps: by the time that it refuses something another version may be installed.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from teams_cli.errors.refusals import *  # noqa: F403
else:

    def __getattr__(name: str) -> type[TeamsError]:
        """Make the refusals, of which one is named for the first time."""
        if name[:1].isupper():
            make_all()
        if name in globals():
            return globals()[name]
        raise AttributeError(f"errors has no {name}")


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


def make_all() -> None:
    """Make all the refusals, if they are not made."""
    from teams_cli.errors import refusals

    globals().update({name: found for name, found in vars(refusals).items() if isinstance(found, type)})


def kinds(above: type[TeamsError] = TeamsError) -> dict[str, type[TeamsError]]:
    """All kinds of refusals by their names, as far as the rooms that make them are loaded."""
    make_all()
    found = {above.__name__: above}
    for kind in above.__subclasses__():
        found.update(kinds(kind))
    return found


make_all()
