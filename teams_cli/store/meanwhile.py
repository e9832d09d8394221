"""Acting while this thread sleeps, and ending a sleep from outside; every command sets it, few sleep."""

from __future__ import annotations

from _thread import _local  # `threading.local`, without the import of that

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


class _Meanwhile(_local):
    """What is done before each sleep of this thread, with the name of the team; it says in how many seconds it has to
    be done again.
    """

    act: Callable[[str], float] | None = None
    around_sleep: Callable[[bool], None] | None = None
    """Told True before each sleep proper, in which nothing is written, and False after it; it may have a signal raise
    `Ended` in between.
    """


class Ended(BaseException):
    """Who sleeps was told to end; *hint* says how to go on."""

    hint = "Wait longer, or look: teams brief"


meanwhile = _Meanwhile()
