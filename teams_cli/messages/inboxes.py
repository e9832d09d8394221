"""Inboxes: the messages that an agent has read and handled. Reading removes nothing: a message stays until it is
handled.
"""

from __future__ import annotations

from teams_cli import errors
from teams_cli.messages.messages import MESSAGE, Message
from teams_cli.names import SYSTEM
from teams_cli.records.records import Record, field
from teams_cli.store.contract import Kind, Store, get_if_there, upsert
from teams_cli.teams import teams

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection
    from typing import Any

    from teams_cli.records.types import Count, Name, Number, Time


_FAR_BEHIND = 1000
"""If a stored inbox is this many messages behind the log, it is written even if nothing else has changed."""
MOST_OPEN = 20_000
"""The most open messages that an inbox can have. Later messages stay in the log until some of the open ones are
handled.
"""
_MAX_HANDLED = 200
"""The number of handled messages that an inbox lists one by one."""


class Open(Record):
    """A message that is not handled yet. A *quiet* message only informs, so it wakes no agent. A message with *fyi* is
    handled as soon as it is read.

    *turn* is the number of the agent's turn in which the message was shown to it unasked; 0 if its turns are not
    counted. It is None if the message was not shown yet, or if the agent read it with a command.
    """

    number: Number
    read_at: Time | None = None
    turn: Count | None = None
    quiet: bool | None = None
    fyi: bool | None = None


class Handled(Record):
    """A message that was handled lately."""

    number: Number
    read_at: Time | None = None
    handled_at: Time


class Inbox(Record):
    """An agent's position in the log: all messages to the agent up to `upTo` are handled, except the open and the
    damaged ones.

    `handled` has the last 200 handled messages, and every handled message after `upTo`; older ones are dropped from it.
    `settledAt` is the time at which the newest of the dropped messages was handled. `damaged` has the numbers of
    messages that could not be read and may be repaired.
    """

    nested = {"open": Open, "handled": Handled}  # noqa: RUF012

    agent: Name
    up_to: Count = 0
    settled_at: Time | None = None
    open: list[Open] = field(default_factory=list)
    handled: list[Handled] = field(default_factory=list)
    damaged: list[Number] | None = None

    def find_open(self, number: int) -> Open | None:
        return next((entry for entry in self.open if entry.number == number), None)

    def listed_numbers(self) -> list[int]:
        """Return the numbers of the messages that the inbox lists: the open, the handled and the damaged ones."""
        return [
            *(entry.number for entry in self.open),
            *(entry.number for entry in self.handled),
            *(self.damaged or ()),
        ]

    def highest_number(self) -> int:
        """Return the highest message number in the inbox: its position, or the number of a message that it lists."""
        return max([self.up_to, *self.listed_numbers()])

    def unread(self, quiet: bool = False) -> list[int]:
        """Return the numbers of the unread messages. Messages that only inform are left out, unless *quiet* is true."""
        return [entry.number for entry in self.open if entry.read_at is None and (quiet or not entry.quiet)]


INBOX: Kind[Inbox] = Kind("inbox", Inbox, key="agent", logins="own")


def load(store: Store, team: str, agent: str) -> Inbox:
    """Return the agent's inbox; an empty one if the agent has not read any message yet."""
    return get_if_there(store, team, INBOX, agent) or Inbox(agent=agent)


def load_with_new(store: Store, team: str, agent: str, problems: list[errors.TeamsError] | None = None) -> Inbox:
    """Return the agent's inbox with the messages that came since it was stored. *problems* gets the errors of damaged
    messages.
    """
    return with_new_messages(store, team, load(store, team, agent), [] if problems is None else problems)


class Mailbox:
    """An agent's inbox: `before` is the inbox as it was stored, and `inbox` also has the messages that came since then.
    Each new message is read from the store only once. Errors of damaged messages are appended to *problems*.
    """

    def __init__(self, store: Store, team: str, agent: str, problems: list[errors.TeamsError] | None = None) -> None:
        self.store = store
        self.team = team
        self.before = load(store, team, agent)
        self._problems = [] if problems is None else problems
        self._fresh: dict[int, Message] = {}
        self.inbox = with_new_messages(store, team, self.before, self._problems, self._fresh)

    def unread(self, quiet: bool = False) -> list[int]:
        """Return the numbers of the unread messages. Messages that only inform are left out, unless *quiet* is true."""
        return self.inbox.unread(quiet)

    def open_messages(self) -> list[Message]:
        """Return the messages that are not handled, oldest first."""
        return self.messages([entry.number for entry in self.inbox.open])

    def messages(self, numbers: list[int]) -> list[Message]:
        """Return the messages with these *numbers*, oldest first. New messages are not read again."""
        to_read = [number for number in numbers if number not in self._fresh]
        messages = [self._fresh[number] for number in numbers if number in self._fresh]
        if to_read:
            messages += self.store.fetch(self.team, MESSAGE, to_read, self._problems)
        return sorted(messages, key=lambda message: message.number)

    def mark_read(self, numbers: set[int], turn: int | None = None) -> None:
        """Mark messages that were shown to the agent as read. *turn* is None if the agent asked for them. Otherwise it
        is the number of the turn in which they were shown; 0 if turns are not counted.
        """
        mark_read(self.store, self.team, self.before.agent, numbers, turn, mailbox=self)


def with_new_messages(
    store: Store, team: str, inbox: Inbox, problems: list[errors.TeamsError], fresh: dict[int, Message] | None = None
) -> Inbox:
    """Return the inbox with the messages that came since it was stored, as open messages. If the inbox is full, later
    messages stay in the log. The new messages are also added to *fresh*, by their numbers. Errors of damaged messages
    are appended to *problems*.
    """
    if inbox.damaged:
        inbox = _repaired(store, team, inbox, problems)
    if len(inbox.open) >= MOST_OPEN:
        return inbox
    new_problems: list[errors.TeamsError] = []
    messages, read_up_to = store.news(team, MESSAGE, inbox.agent, inbox.up_to, new_problems)
    if read_up_to <= inbox.up_to:
        return inbox
    problems += new_problems
    if fresh is not None:
        fresh.update((message.number, message) for message in messages)
    listed = {entry.number for entry in inbox.open} | {entry.number for entry in inbox.handled}
    new_entries = [_opened(message) for message in messages if message.number not in listed]
    room = MOST_OPEN - len(inbox.open)
    if len(new_entries) > room:
        new_entries = new_entries[:room]
        read_up_to = new_entries[-1].number
    new_damaged = [getattr(problem, "number", 0) for problem in new_problems]
    if not all(new_damaged):  # the disk refused to read: the same messages are read again the next time
        return inbox.having(open=inbox.open + new_entries)
    damaged = [*(inbox.damaged or ()), *(number for number in new_damaged if number <= read_up_to)]
    return inbox.having(up_to=read_up_to, open=inbox.open + new_entries, damaged=damaged or None)


def _repaired(store: Store, team: str, inbox: Inbox, problems: list[errors.TeamsError]) -> Inbox:
    """Return the inbox after trying to read its damaged messages again: those that can be read now become open, and
    those that no longer exist are no longer listed.
    """
    new_problems: list[errors.TeamsError] = []
    messages = store.fetch(team, MESSAGE, inbox.damaged or (), new_problems)
    problems += new_problems
    still_damaged = [number for problem in new_problems if (number := getattr(problem, "number", 0))]
    if len(still_damaged) < len(new_problems):  # the disk refused to read: the same is tried the next time
        return inbox
    handled = {entry.number for entry in inbox.handled}
    readable = [m for m in messages if inbox.agent in (m.recipients or [m.to]) and m.number not in handled]
    if not readable and len(still_damaged) == len(inbox.damaged or ()):  # nothing has changed
        return inbox
    return inbox.having(open=inbox.open + [_opened(message) for message in readable], damaged=still_damaged or None)


def _opened(message: Message) -> Open:
    return Open(number=message.number, quiet=message.type == "info" or None, fyi=message.is_closed_by_reading or None)


def with_read(before: Inbox, current: Inbox, shown: set[int], now: str, turn: int | None = None) -> Inbox:
    """Return the *current* inbox after marking the messages whose numbers are in *shown* as read. If nothing worth
    storing has changed, return *before*, the inbox as it was stored.

    *turn* is None if the agent asked for the messages, else the turn in which they were shown.
    """
    unread = {entry.number for entry in current.open if entry.number in shown and entry.read_at is None}
    changed = set(unread)
    if turn is None:  # the agent asked for messages that it was shown before without asking
        changed |= {entry.number for entry in current.open if entry.number in shown and entry.turn is not None}
    if not changed and current.up_to - before.up_to < _FAR_BEHIND:
        return before
    entries = [
        entry.having(read_at=entry.read_at or now, turn=turn) if entry.number in changed else entry
        for entry in current.open
    ]
    handled_by_reading = {entry.number for entry in entries if entry.fyi and entry.number in unread}
    return with_handled(current.having(open=entries), handled_by_reading, now)


def with_handled(inbox: Inbox, numbers: set[int], now: str) -> Inbox:
    """Return the inbox after marking the open messages with these *numbers* as handled."""
    if not numbers:
        return inbox
    newly_handled = [
        Handled(number=entry.number, read_at=entry.read_at or now, handled_at=now)
        for entry in inbox.open
        if entry.number in numbers
    ]
    # A message that is not open can't be read now. It was read before, or nobody could ask to mark it as handled.
    not_open = sorted(numbers - {entry.number for entry in inbox.open})
    newly_handled += [Handled(number=number, read_at=now, handled_at=now) for number in not_open]
    handled = inbox.handled + newly_handled
    # All entries after `upTo` are kept. `upTo` stays before a message that the disk refused to read, and then only
    # these entries show that later messages are handled.
    up_to_position = [entry for entry in handled if entry.number <= inbox.up_to]
    after_position = [entry for entry in handled if entry.number > inbox.up_to]
    dropped = up_to_position[:-_MAX_HANDLED]
    return inbox.having(
        open=[entry for entry in inbox.open if entry.number not in numbers],
        handled=up_to_position[-_MAX_HANDLED:] + after_position,
        settled_at=dropped[-1].handled_at if dropped else inbox.settled_at,  # the last entry was handled last
    )


def unanswered(inbox: Inbox, mail: list[Message], most: int = 4) -> list[str]:
    """Return the ids of messages in *mail* that were read, but neither answered nor handled: the oldest, at most
    *most*. Messages that only inform and messages that are answers are left out, because they need no answer.
    """
    read = {entry.number for entry in inbox.open if entry.read_at and not entry.quiet}
    return [message.id for message in mail if message.number in read and not message.reply_to][:most]


def mark_read(
    store: Store, team: str, agent: str, numbers: set[int], turn: int | None = None, mailbox: Mailbox | None = None
) -> None:
    """Mark messages that were shown to the agent as read.

    If the agent did not ask for the messages, *turn* is the number of the turn in which they were shown; 0 if turns are
    not counted. The *mailbox* has messages that were read from the store already. It is used if the inbox has not
    changed since.
    """

    def change(inbox: Inbox) -> Inbox:
        is_unchanged = mailbox is not None and mailbox.before == inbox
        current = mailbox.inbox if mailbox and is_unchanged else with_new_messages(store, team, inbox, [])
        return with_read(inbox, current, numbers, teams.now(store), turn)

    if numbers:
        store.confirm(team, MESSAGE, f"msg-{max(numbers)}")
    if numbers or mailbox:  # without new numbers, only the position of an inbox that is far behind is stored
        upsert(store, team, INBOX.even_in_closed_team, agent, Inbox(agent=agent), change)


def is_handled(inbox: Inbox, number: int) -> bool:
    """Return whether the message with that *number* is handled. The *inbox* must already include new messages."""
    if inbox.find_open(number):
        return False
    return any(entry.number == number for entry in inbox.handled) or _is_behind(inbox, number)


def _is_behind(inbox: Inbox, number: int) -> bool:
    """Return whether a message that is not open was handled: the inbox has passed it, and it is not damaged."""
    return number <= inbox.up_to and number not in (inbox.damaged or ())


def unread(store: Store, team: str, agent: str) -> list[int]:
    """Return the numbers of the agent's unread messages, without those that only inform."""
    return load_with_new(store, team, agent).unread()


def documents(messages: list[Message], inbox: Inbox) -> list[dict[str, Any]]:
    """Return the messages as JSON, with the times at which the owner of the inbox read and handled each message."""
    open_entries = {entry.number: entry for entry in inbox.open}
    handled_entries = {entry.number: entry for entry in inbox.handled}
    rows = []
    for message in messages:
        row = message.to_json()
        entry, handled = open_entries.get(message.number), handled_entries.get(message.number)
        if entry and entry.read_at:
            row["readAt"] = entry.read_at
        elif handled:
            row.update(readAt=handled.read_at or handled.handled_at, handledAt=handled.handled_at)
        elif not entry and inbox.settled_at and _is_behind(inbox, message.number):  # its entry was dropped
            row.update(readAt=inbox.settled_at, handledAt=inbox.settled_at)
        rows.append(row)
    return rows


_NOTICE_UID = f"{SYSTEM}~"
"""The prefix of the uid of each notice."""


def unread_counts(store: Store, team: str, agents: Collection[str]) -> dict[str, int]:
    """Return the number of unread messages of each of the agents.

    This is fast, because most messages are not read: the log shows their recipients. Only notices are read,
    because those that only inform do not count. Other messages count even if they are damaged.

    Raises:
        DamagedRecord: An inbox of the team can't be read, even if its agent is not one of the *agents*.
    """
    problems: list[errors.TeamsError] = []
    inboxes = {inbox.agent: inbox for inbox, _ in store.scan(team, INBOX, problems)}
    if problems:
        raise problems[0]
    counts: dict[str, int] = {}
    positions: dict[str, int] = {}
    for agent in agents:
        inbox = inboxes.get(agent) or Inbox(agent=agent)
        # Such an inbox lists messages after its position already, or damaged ones that may be readable by now.
        if inbox.damaged or inbox.highest_number() > inbox.up_to:
            counts[agent] = len(unread(store, team, agent))
        else:
            counts[agent] = len(inbox.unread())
            positions[agent] = inbox.up_to
    if not positions:
        return counts
    recipients_of_notices: dict[int, list[str]] = {}
    for number, uid, all_recipients in store.envelopes(team, MESSAGE, min(positions.values())):
        recipients = [agent for agent in all_recipients if agent in positions and number > positions[agent]]
        if uid.startswith(_NOTICE_UID) and recipients:
            recipients_of_notices[number] = recipients
            continue
        for agent in recipients:
            counts[agent] += 1
    numbers = sorted(recipients_of_notices)
    for notice in store.fetch(team, MESSAGE, numbers, []) if numbers else ():
        if notice.type != "info":
            for agent in recipients_of_notices[notice.number]:
                counts[agent] += 1
    return counts


_MAX_REMOVED = 1_000_000
"""If an inbox is further ahead of its log than this, its numbers must be wrong, because no log loses so many messages.
"""


def hold_to_log(store: Store, team: str, inbox: Inbox, last: int) -> None:
    """Correct an inbox that is ahead of its log. *last* is the number of the last message in the log. This happens if
    the log lost messages, for example when it was restored from a backup. Without the correction, new messages with the
    numbers of lost ones would count as handled.

    The inbox keeps the messages that it lists, and new messages get higher numbers than these. But if the inbox is so
    far ahead that its numbers must be wrong, its messages after *last* are removed from it instead.

    Raises:
        TeamsError: The higher numbers could not be reserved. The messages after *last* were then removed, too.
    """
    keeps_later = inbox.highest_number() - last <= _MAX_REMOVED
    try:
        if keeps_later:
            store.reserve(team, MESSAGE, inbox.highest_number())
    except errors.TeamsError:
        keeps_later = False
        raise
    finally:
        kind = INBOX.even_in_closed_team
        upsert(store, team, kind, inbox.agent, inbox, lambda stored: _held_to(stored, last, keeps_later))


def _held_to(inbox: Inbox, last: int, keeps_later: bool) -> Inbox:
    """Return the inbox with a position that fits a log whose last message is *last*. The position is the number of the
    last message that the inbox has seen. Unless *keeps_later* is true, all messages after *last* are removed.
    """
    if inbox.highest_number() <= last:  # another process corrected it
        return inbox
    position = inbox.up_to
    if position > last:
        listed = inbox.listed_numbers()
        # An inbox that lists only later messages may have dropped the entries of earlier ones that were handled. So all
        # messages of the log count as seen. An inbox that lists nothing never had a message, so all of them are new.
        position = max((number for number in listed if number <= last), default=last if listed else 0)
    if keeps_later:
        return inbox.having(up_to=position)
    return inbox.having(
        up_to=position,
        open=[entry for entry in inbox.open if entry.number <= last],
        handled=[entry for entry in inbox.handled if entry.number <= last],
        damaged=[number for number in inbox.damaged or () if number <= last] or None,
    )
