"""Reading: the messages that an agent has not handled, or has, shown to it and marked as read."""

from __future__ import annotations

from teams_cli import errors
from teams_cli.messages import inboxes
from teams_cli.messages.inboxes import Inbox
from teams_cli.messages.messages import MESSAGE, Message, fitting
from teams_cli.store.contract import Store
from teams_cli.teams import teams
from teams_cli.teams.permission import require

TYPE_CHECKING = False
if TYPE_CHECKING:
    from teams_cli.teams.caller import Caller
    from teams_cli.teams.presence import OnceTold


class Reading(list[dict[str, object]]):
    """Messages as they are shown, oldest first; *more* counts those left out, *unread* the new ones of these."""

    more = 0
    unread = 0


class Selection:
    """Which messages to show: of one sender, after a number, at most so many, also handled ones; with *room*, as many
    as are printed in so many bytes.
    """

    def __init__(self, sender: str = "", since: int = 0, limit: int = 0, handled: bool = False, room: int = 0) -> None:
        self.sender = sender
        self.since = since
        self.limit = limit
        self.handled = handled
        self.room = room

    def fitting(self, found: list[Message]) -> list[Message]:
        """Those of that sender, after that number."""
        return [m for m in found if m.number > self.since and self.sender in ("", m.from_)]

    def pick(self, found: list[Message], inbox: Inbox) -> list[Message]:
        """Those to show. Where there are too many, what was read before gives way to what is new."""
        chosen = self.fitting(found)
        new = inbox.unread_numbers()
        if not self.handled:
            chosen.sort(key=lambda message: message.number not in new)  # stable: each part oldest first
        if self.limit:
            chosen = chosen[: self.limit]
        if self.room:
            whole = [message for message in chosen if self.handled or message.number in new]
            chosen = fitting(whole, self.room) + [message for message in chosen if message not in whole]
        return sorted(chosen, key=lambda message: message.number)


def read(
    store: Store,
    team_name: str,
    caller: Caller | None,
    selection: Selection,
    problems: list[errors.TeamsError],
    once_told: OnceTold | None = None,
    turn: int | None = None,
) -> Reading:
    """The caller's unhandled messages, oldest first, to be marked as read *once told*, if at all; those that were carry
    `readBefore`. What only informs is handled with that. With *turn* the caller did not ask, but is given them.

    Damaged messages are added to *problems*; the others are shown.
    """
    caller = require(store, team_name, caller, "read-messages").caller
    if once_told is None or selection.handled:
        return _look(store, team_name, caller.name, selection, problems)
    try:
        problems += _read_too_far(store, team_name, caller.name)
    except errors.StorageFailed as failure:  # a full or read-only disk is no reason to show nothing
        problems.append(failure)
    mailbox = inboxes.Mailbox(store, team_name, caller.name, problems)
    found = mailbox.open_messages()
    shown = {message.number for message in selection.pick(found, mailbox.inbox)}
    once_told(lambda: mailbox.mark_read(shown, turn))
    after = inboxes.marked_read(mailbox.before, mailbox.inbox, shown, teams.now(store), turn)
    return _reading(selection, found, mailbox.inbox, after)


def _read_too_far(store: Store, team: str, agent: str) -> list[errors.TeamsError]:
    """Report an inbox that has read on behind the end of the log, and mend it."""
    inbox, last = inboxes.load(store, team, agent), store.last(team, MESSAGE)
    if inbox.furthest() <= last:
        return []
    from teams_cli.messages.removed import hold_to_log

    try:
        hold_to_log(store, team, inbox, last)
    except errors.NotAllowed as refusal:  # a login of its own takes numbers one by one
        return [refusal]
    said = f"{agent} has read up to msg-{inbox.furthest()}, and the log ended with msg-{last}: messages were removed"
    return [errors.DamagedRecord(said, "If they are needed, restore them from a backup.")]


def _look(store: Store, team: str, agent: str, selection: Selection, problems: list[errors.TeamsError]) -> Reading:
    mailbox = inboxes.Mailbox(store, team, agent, problems)
    inbox = mailbox.inbox
    if not selection.handled:
        return _reading(selection, mailbox.open_messages(), inbox, inbox)
    found = store.read(team, MESSAGE, agent, selection.since, problems)
    return _reading(selection, [message for message in found if message.number <= inbox.up_to], inbox, inbox)


def _reading(selection: Selection, found: list[Message], before: Inbox, after: Inbox) -> Reading:
    """The messages to show, as *after* has them; which are new *before* tells."""
    picked = selection.pick(found, before)
    reading = Reading(inboxes.documents(picked, after))
    new = before.unread_numbers()
    for document, message in zip(reading, picked, strict=True):
        if not selection.handled and message.number not in new:
            document["readBefore"] = True
    left_out = {m.number for m in selection.fitting(found)} - {m.number for m in picked}
    reading.more = len(left_out)
    reading.unread = len(left_out & new)
    return reading
