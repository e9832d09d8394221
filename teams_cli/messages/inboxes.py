"""Inboxes: the messages that an agent has read and handled. Reading removes nothing: a message stays until it is
handled.
"""

from __future__ import annotations

from teams_cli import errors
from teams_cli.messages.messages import MESSAGE, Message
from teams_cli.names import SYSTEM
from teams_cli.records.records import Record, field
from teams_cli.store.contract import Kind, Store
from teams_cli.store.retrying import upsert
from teams_cli.teams import teams

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection
    from typing import Any

    from teams_cli.records.types import Count, Name, Number, Time


_FAR_BEHIND = 1000
MOST_OPEN = 20_000
"""The most open messages of an inbox. Later ones stay in the log until some are handled."""
_REMEMBERED = 200


class Open(Record):
    """A message that is not handled yet. A quiet one is no reason to go on working; one with *fyi* is handled by
    reading.

    `turn` is the turn in which the agent was given it without asking, or 0 if turns are not counted.
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
    """An agent's position in the log: all its messages up to `upTo` are handled, except the open ones.

    `handled` has the times of the last 200 handled messages, and of all after `upTo`; `settledAt` is when the last of
    the dropped ones was handled. `damaged` has the numbers of messages that could not be read and may be repaired.
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

    def is_unread(self, number: int) -> bool:
        """Whether that message has arrived and is unread."""
        entry = self.find_open(number)
        return entry is not None and entry.read_at is None

    def named(self) -> list[int]:
        """The numbers of the messages that the inbox names."""
        return [*(each.number for each in self.open), *(each.number for each in self.handled), *(self.damaged or ())]

    def furthest(self) -> int:
        """The highest number that the inbox knows of."""
        return max([self.up_to, *self.named()])

    def unread_numbers(self) -> set[int]:
        """Return the numbers of the unread messages."""
        return {entry.number for entry in self.open if entry.read_at is None}


INBOX: Kind[Inbox] = Kind("inbox", Inbox, key="agent", logins="own")


def load(store: Store, team: str, agent: str) -> Inbox:
    """Return the agent's inbox; an empty one if it never read."""
    try:
        return store.get(team, INBOX, agent)[0]
    except errors.NotFound:
        return Inbox(agent=agent)


class Mailbox:
    """An agent's inbox: as it was stored, `before`, and with all messages that came since, which are read once. Errors
    of damaged messages are appended to *problems*.
    """

    def __init__(self, store: Store, team: str, agent: str, problems: list[errors.TeamsError] | None = None) -> None:
        self.store = store
        self.team = team
        self.before = load(store, team, agent)
        self._problems = [] if problems is None else problems
        self._fresh: dict[int, Message] = {}
        self.inbox = advance(store, team, self.before, self._problems, self._fresh)

    def unread(self, quiet: bool = False) -> list[int]:
        """Return the numbers of the agent's unread messages. With *quiet*, also of those that only inform."""
        return unread_in(self.inbox, quiet)

    def open_messages(self) -> list[Message]:
        """Return the messages that are not handled, oldest first."""
        return open_messages(self.store, self.team, self.inbox, self._problems, self._fresh)

    def messages(self, numbers: list[int]) -> list[Message]:
        """Return the messages of these numbers, oldest first."""
        return _found(self.store, self.team, numbers, self._problems, self._fresh)

    def mark_read(self, numbers: set[int], turn: int | None = None) -> None:
        """Mark messages as read that were shown to the agent."""
        mark_read(self.store, self.team, self.before.agent, numbers, turn, looked=self)


def advance(
    store: Store, team: str, inbox: Inbox, problems: list[errors.TeamsError], fresh: dict[int, Message] | None = None
) -> Inbox:
    """Return the inbox with all newer messages as open ones. They are added to *fresh* by their numbers."""
    if inbox.damaged:
        inbox = _repaired(store, team, inbox, problems)
    if len(inbox.open) >= MOST_OPEN:
        return inbox
    unread: list[errors.TeamsError] = []
    came, last = store.news(team, MESSAGE, inbox.agent, inbox.up_to, unread)
    if last <= inbox.up_to:
        return inbox
    problems += unread
    if fresh is not None:
        fresh.update((message.number, message) for message in came)
    known = {entry.number for entry in inbox.open} | {entry.number for entry in inbox.handled}
    new = [_opened(message) for message in came if message.number not in known]
    if len(new) > (room := MOST_OPEN - len(inbox.open)):
        new, last = new[:room], new[room - 1].number
    numbers = [getattr(problem, "number", 0) for problem in unread]
    if not all(numbers):  # the disk refused: the same is tried the next time
        return inbox.having(open=inbox.open + new)
    damaged = [number for number in numbers if number <= last]
    return inbox.having(up_to=last, open=inbox.open + new, damaged=[*(inbox.damaged or ()), *damaged] or None)


def _repaired(store: Store, team: str, inbox: Inbox, problems: list[errors.TeamsError]) -> Inbox:
    """Return the inbox with those messages open that were damaged and can be read now. Missing ones are forgotten."""
    unread: list[errors.TeamsError] = []
    found = store.fetch(team, MESSAGE, inbox.damaged or (), unread)
    problems += unread
    still = [number for problem in unread if (number := getattr(problem, "number", 0))]
    if len(still) < len(unread):  # the disk refused: the same is tried the next time
        return inbox
    handled = {entry.number for entry in inbox.handled}
    new = [m for m in found if inbox.agent in (m.recipients or [m.to]) and m.number not in handled]
    if not new and len(still) == len(inbox.damaged or ()):
        return inbox
    return inbox.having(open=inbox.open + [_opened(message) for message in new], damaged=still or None)


def _opened(message: Message) -> Open:
    return Open(number=message.number, quiet=message.type == "info" or None, fyi=message.is_closed_by_reading or None)


def open_messages(
    store: Store, team: str, inbox: Inbox, problems: list[errors.TeamsError], fresh: dict[int, Message] | None = None
) -> list[Message]:
    """The messages that were seen and are not handled, oldest first; those that are *fresh* were read just now."""
    return _found(store, team, [entry.number for entry in inbox.open], problems, fresh or {})


def _found(
    store: Store, team: str, numbers: list[int], problems: list[errors.TeamsError], fresh: dict[int, Message]
) -> list[Message]:
    """Return the messages of these numbers, oldest first. The *fresh* ones need not be read."""
    before = [number for number in numbers if number not in fresh]
    found = store.fetch(team, MESSAGE, before, problems) if before else []
    read = [fresh[number] for number in numbers if number in fresh]
    return sorted([*found, *read], key=lambda message: message.number)


def marked_read(before: Inbox, ahead: Inbox, shown: set[int], now: str, turn: int | None = None) -> Inbox:
    """Return the inbox with the shown messages read; the same one if that changes nothing worth a write."""
    unread = {entry.number for entry in ahead.open if entry.number in shown and entry.read_at is None}
    given = {entry.number for entry in ahead.open if entry.number in shown and entry.turn is not None}
    asked = given if turn is None else set()
    if not unread and not asked and ahead.up_to - before.up_to < _FAR_BEHIND:
        return before
    entries = [
        entry.having(read_at=entry.read_at or now, turn=turn) if entry.number in unread | asked else entry
        for entry in ahead.open
    ]
    return settled(ahead.having(open=entries), {e.number for e in entries if e.fyi and e.number in unread}, now)


def settled(inbox: Inbox, numbers: set[int], now: str) -> Inbox:
    """Return the inbox with these open messages handled."""
    if not numbers:
        return inbox
    done = [
        Handled(number=entry.number, read_at=entry.read_at or now, handled_at=now)
        for entry in inbox.open
        if entry.number in numbers
    ]
    seen = {entry.number for entry in inbox.open}
    # One that can't be read just now was read before, or nobody could say that it is handled.
    done += [Handled(number=number, read_at=now, handled_at=now) for number in sorted(numbers - seen)]
    handled = inbox.handled + done
    # Behind what the disk refused `upTo` stands still, and only this list tells that those after it are handled.
    ahead = [entry for entry in handled if entry.number > inbox.up_to]
    behind = [entry for entry in handled if entry.number <= inbox.up_to]
    dropped = behind[:-_REMEMBERED]
    return inbox.having(
        open=[entry for entry in inbox.open if entry.number not in numbers],
        handled=behind[-_REMEMBERED:] + ahead,
        settled_at=dropped[-1].handled_at if dropped else inbox.settled_at,
    )


def unanswered(inbox: Inbox, mail: list[Message], most: int = 4) -> list[str]:
    """Return the ids of the oldest messages in *mail* that were read and neither answered nor handled. A message that
    is itself an answer wants none.
    """
    read = {entry.number for entry in inbox.open if entry.read_at and not entry.quiet}
    return [message.id for message in mail if message.number in read and not message.reply_to][:most]


def mark_read(
    store: Store, team: str, agent: str, numbers: set[int], turn: int | None = None, looked: Mailbox | None = None
) -> None:
    """Mark messages as read that were shown to the agent in another way.

    With *turn*, they were shown unasked in that turn (0 if turns are not counted). New messages are looked for, unless
    the caller *looked* and the inbox has not changed since.
    """

    def change(inbox: Inbox) -> Inbox:
        ahead = looked.inbox if looked and looked.before == inbox else advance(store, team, inbox, [])
        return marked_read(inbox, ahead, numbers, teams.now(store), turn)

    if numbers:
        store.confirm(team, MESSAGE, f"msg-{max(numbers)}")
    if numbers or looked:
        upsert(store, team, INBOX.also_closed, agent, Inbox(agent=agent), change)


def is_handled(inbox: Inbox, number: int) -> bool:
    """Whether that message is handled. *inbox* must have advanced past it."""
    if inbox.find_open(number):
        return False
    if any(entry.number == number for entry in inbox.handled):
        return True
    return _is_behind(inbox, number)


def _is_behind(inbox: Inbox, number: int) -> bool:
    """Whether the inbox has advanced past that message, so that it is handled unless it is open."""
    return number <= inbox.up_to and number not in (inbox.damaged or ())


def unread(store: Store, team: str, agent: str, quiet: bool = False) -> list[int]:
    """The numbers of the agent's messages that it has not read yet; with *quiet* also those that only inform."""
    return unread_in(advance(store, team, load(store, team, agent), []), quiet)


def unread_in(inbox: Inbox, quiet: bool = False) -> list[int]:
    """Return the numbers of the unread messages up to where the inbox has advanced."""
    return [entry.number for entry in inbox.open if entry.read_at is None and (quiet or not entry.quiet)]


def to_document(message: Message, inbox: Inbox) -> dict[str, Any]:
    """Return the message as JSON, with the times at which its reader read and handled it."""
    return documents([message], inbox)[0]


def documents(found: list[Message], inbox: Inbox) -> list[dict[str, Any]]:
    """Return the messages as JSON, with the times at which their reader read and handled them."""
    opened = {entry.number: entry for entry in inbox.open}
    handled = {entry.number: entry for entry in inbox.handled}
    return [_document(message, inbox, opened.get(message.number), handled.get(message.number)) for message in found]


def _document(message: Message, inbox: Inbox, entry: Open | None, done: Handled | None) -> dict[str, Any]:
    document = message.to_json()
    if entry and entry.read_at:
        document["readAt"] = entry.read_at
    elif done:
        document.update(readAt=done.read_at or done.handled_at, handledAt=done.handled_at)
    elif not entry and inbox.settled_at and _is_behind(inbox, message.number):
        document.update(readAt=inbox.settled_at, handledAt=inbox.settled_at)
    return document


_BY_SYSTEM = f"{SYSTEM}~"
"""The prefix of the uids of notices."""


def unread_counts(store: Store, team: str, agents: Collection[str]) -> dict[str, int]:
    """Return the number of unread messages of each of the agents, from the envelopes of the log.

    Only notices are read, to see whether they only inform. A message that cannot be read counts as unread.

    Raises:
        DamagedRecord: An inbox can't be read, whosever it is.
    """
    problems: list[errors.TeamsError] = []
    read = {inbox.agent: inbox for inbox, _ in store.scan(team, INBOX, problems)}
    if problems:
        raise problems[0]
    found = {agent: read.get(agent) or Inbox(agent=agent) for agent in agents}
    ahead = {agent: inbox.up_to for agent, inbox in found.items() if _is_simple(inbox)}
    counts = {agent: _unread_of(found[agent]) for agent in ahead}
    notices: dict[int, list[str]] = {}
    for number, uid, to in store.envelopes(team, MESSAGE, min(ahead.values(), default=0)) if ahead else ():
        for agent in to:
            if number > ahead.get(agent, number):
                if uid.startswith(_BY_SYSTEM):
                    notices.setdefault(number, []).append(agent)
                else:
                    counts[agent] += 1
    for notice in _fetched(store, team, sorted(notices)):
        for agent in () if notice.type == "info" else notices[notice.number]:
            counts[agent] += 1
    return {agent: counts[agent] if agent in counts else len(unread(store, team, agent)) for agent in agents}


def _fetched(store: Store, team: str, numbers: list[int]) -> list[Message]:
    if not numbers:
        return []
    return store.fetch(team, MESSAGE, numbers, [])


def _unread_of(inbox: Inbox) -> int:
    return sum(entry.read_at is None and not entry.quiet for entry in inbox.open)


def _is_simple(inbox: Inbox) -> bool:
    """Whether of messages after `upTo` it is only known that they came."""
    numbers = [entry.number for entry in inbox.open] + [entry.number for entry in inbox.handled]
    return max(numbers, default=0) <= inbox.up_to and not inbox.damaged


_MOST = 1_000_000
"""The most messages that may have been removed. An inbox that is further ahead is not believed."""


def hold_to_log(store: Store, team: str, inbox: Inbox, last: int) -> None:
    """Correct an inbox that has advanced past the *last* message of the log, so that its agent is shown new messages
    again.

    It keeps the messages that it knows. The numbers up to its old position are given to no message, since that would be
    taken for a known one; unless the position is so high that no number would be left.
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
