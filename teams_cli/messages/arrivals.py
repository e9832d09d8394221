"""Waiting for mail, and reading it once it has come."""

from __future__ import annotations

from teams_cli import errors
from teams_cli.clock import length
from teams_cli.messages.inboxes import advance, load
from teams_cli.messages.messages import MESSAGE
from teams_cli.messages.reading import Reading, Selection, read
from teams_cli.store.contract import Store
from teams_cli.teams.permission import require

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from teams_cli.teams.caller import Caller
    from teams_cli.teams.presence import OnceTold


def wait_and_read(
    store: Store,
    team: str,
    caller: Caller | None,
    selection: Selection,
    problems: list[errors.TeamsError],
    timeout: float,
    sleep_until: Callable[[Callable[[], bool], float], bool],
    once_told: OnceTold | None = None,
) -> Reading:
    """Read as `read` does, but block until one was not read yet, or was read since by another process of the caller.

    Raises:
        WaitRanOut: None came within *timeout* seconds.
    """
    caller = require(store, team, caller, "read-messages").caller
    name = caller.name
    began = store.last(team, MESSAGE)  # what comes from here on ends each wait of this agent, whichever marks it first

    def arrived() -> bool:
        inbox = advance(store, team, load(store, team, name), [])
        new = [entry.number for entry in inbox.open if entry.read_at is None or entry.number > began]
        return bool(new and selection.fitting(store.fetch(team, MESSAGE, new, [])))

    if not sleep_until(arrived, timeout):
        raise errors.WaitRanOut(
            f"no new message came within {length(timeout)}", "Wait longer, or go on with other work."
        )
    return read(store, team, caller, selection, problems, once_told)
