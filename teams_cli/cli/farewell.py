"""If SIGTERM ends a wait, the command says how to continue the wait. Only a sleeping command can do so, because it has
nothing half done.
"""

from __future__ import annotations

import os
import signal

from teams_cli import errors
from teams_cli.cli import output
from teams_cli.store.retrying import Ended

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

_SECONDS_FOR_REPORT = 2
"""Seconds that the report may take. After them the process ends without it."""


def around_sleep(asleep: bool) -> None:
    """While the command is *asleep*, let SIGTERM wake it instead of ending it at once. After the sleep, restore the
    default action of SIGTERM.
    """
    if asleep and signal.getsignal(signal.SIGTERM) == signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _wake)
    elif not asleep and signal.getsignal(signal.SIGTERM) is _wake:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _wake(number: int, _frame: FrameType | None) -> None:
    signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGALRM, lambda *_: _die())
    signal.alarm(_SECONDS_FOR_REPORT)
    raise Ended


def take_leave(ended: Ended, as_json: bool, talk: Callable[[str], object]) -> int:
    """Report how to continue the wait, and end the process as if SIGTERM had killed it."""
    error = errors.WaitRanOut("the wait was interrupted", ended.hint)
    talk(output.refusal(error, as_json, error.code).removesuffix("\n"))
    return _die()


def _die() -> int:
    os.kill(os.getpid(), signal.SIGTERM)
    return 128 + signal.SIGTERM
