"""Mail: how much of it the caller has not read; looked at after every call, so nothing is looked at twice."""

from __future__ import annotations

from teams_cli import errors
from teams_cli.messages import inboxes
from teams_cli.messages.inboxes import INBOX, Inbox
from teams_cli.messages.messages import MESSAGE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from teams_cli.commands.call import Call
    from teams_cli.store.contract import Store


class Mail:
    """The inbox as it was seen last, with what came since it was written."""

    def __init__(self) -> None:
        self._known: tuple[Any, Inbox] = (None, Inbox(agent=""))

    def unread(self, call: Call) -> int:
        """How many messages wait for the caller; 0 for the human, and where that can't be found out."""
        if call.caller is None or call.caller.is_human:
            return 0
        try:
            inbox = self._inbox(call, call.caller.name)
        except errors.TeamsError:
            return 0
        return sum(entry.read_at is None and not entry.quiet for entry in inbox.open)

    def _inbox(self, call: Call, agent: str) -> Inbox:
        """The inbox with all that came."""
        try:
            written, revision = call.store.get(call.team, INBOX, agent)
        except errors.NotFound:
            written, revision = Inbox(agent=agent), None
        state = (call.team, agent, revision)
        known, seen = self._known
        now = _advanced(call.store, call.team, seen if known == state else written)
        self._known = state, now  # at once: other calls may be looking
        return now


def _advanced(store: Store, team: str, inbox: Inbox) -> Inbox:
    """The inbox with all that came, or as it is where nothing seems to have: that is told sooner, and suffices here."""
    passed = None if inbox.damaged else store.glance(team, MESSAGE, inbox.agent, inbox.up_to)
    if passed is None:
        return inboxes.advance(store, team, inbox, [])
    return inbox if passed == inbox.up_to else inbox.having(up_to=passed)
