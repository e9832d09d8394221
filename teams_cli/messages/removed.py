"""Messages that were removed from the log behind what an agent has read of it."""

from __future__ import annotations

from teams_cli import errors
from teams_cli.messages.inboxes import INBOX, Inbox
from teams_cli.messages.messages import MESSAGE
from teams_cli.store.contract import Store
from teams_cli.store.retrying import upsert

_MOST = 1_000_000
"""Messages that may have been removed: an inbox that says more is not believed."""


def hold_to_log(store: Store, team: str, inbox: Inbox, last: int) -> None:
    """See to it that an inbox which has read on behind the *last* message is shown those that were not.

    It reads on behind those that it knows, and the numbers up to where it was are given to no other message, since it
    would be taken for one of these. That is, unless no log goes so far: then none would be left for the team.
    """
    believed = inbox.furthest() - last <= _MOST
    try:
        if believed:
            store.reserve(team, MESSAGE, inbox.furthest())
    except errors.TeamsError:
        believed = False
        raise
    finally:
        upsert(store, team, INBOX.also_closed, inbox.agent, inbox, lambda found: _taken_back(found, last, believed))


def _taken_back(inbox: Inbox, last: int, believed: bool) -> Inbox:
    if inbox.furthest() <= last:  # somebody else did
        return inbox
    known = inbox.named()
    back = max((number for number in known if number <= last), default=last if known else 0)
    back = inbox.up_to if inbox.up_to <= last else back
    if believed:
        return inbox.having(up_to=back)
    return inbox.having(
        up_to=back,
        open=[entry for entry in inbox.open if entry.number <= last],
        handled=[entry for entry in inbox.handled if entry.number <= last],
        damaged=[number for number in inbox.damaged or () if number <= last] or None,
    )
