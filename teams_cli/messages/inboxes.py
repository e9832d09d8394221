"""Inboxes: what an agent has read and handled of the log. Reading never removes; a message stays until handled."""

from __future__ import annotations

from teams_cli.errors import DamagedRecord, NotAllowed, NotFound, StorageFailed, TeamsError
from teams_cli.messages.messages import MESSAGE, Message
from teams_cli.records.annotations import Any, Count, Name, Number, Time
from teams_cli.records.records import Record, field
from teams_cli.store.contract import Kind, Store
from teams_cli.store.retrying import upsert
from teams_cli.teams import teams
from teams_cli.teams.operations import EVERYBODY, operation
from teams_cli.teams.permission import require

TYPE_CHECKING = False
if TYPE_CHECKING:
    from teams_cli.teams.caller import Caller

_FAR_BEHIND = 1000
MOST_OPEN = 20_000
"""Open messages that an inbox holds; those that came after them are left in the log until some are handled."""
_REMEMBERED = 200
_MOST_REMOVED = 1_000_000
"""Messages that may have been removed behind what was read: whoever says more is not believed."""


class Open(Record):
    """A message that is not handled yet. A quiet one is no reason to go on working; one *fyi* is handled by reading.
    `turn` says in which of its turns the agent was given it unasked, 0 where turns are not counted, until it asks.
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
    """Where an agent is in the log: all its messages up to `upTo` are handled but the open ones.

    The times of the last 200 handled ones are kept, and of all after `upTo`; of those before, `settledAt` says when the
    last was handled. `damaged` are the numbers of those that could not be read: they may be repaired.
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
        """Whether that message came and was not read."""
        entry = self.find_open(number)
        return entry is not None and entry.read_at is None

    def named(self) -> list[int]:
        """The numbers of the messages that it names."""
        return [*(each.number for each in self.open), *(each.number for each in self.handled), *(self.damaged or ())]

    def furthest(self) -> int:
        """The highest number that it knows of."""
        return max([self.up_to, *self.named()])

    def unread_numbers(self) -> set[int]:
        """The numbers of the messages that came and were not read."""
        return {entry.number for entry in self.open if entry.read_at is None}


INBOX: Kind[Inbox] = Kind("inbox", Inbox, key="agent", logins="own")


def load(store: Store, team: str, agent: str) -> Inbox:
    """The agent's inbox; an empty one if it never read."""
    try:
        return store.get(team, INBOX, agent)[0]
    except NotFound:
        return Inbox(agent=agent)


class Reading(list[dict[str, object]]):
    """Messages as they are shown, oldest first; *more* counts those left out, *unread* the new ones of these."""

    more = 0
    unread = 0


class Selection:
    """Which messages to show: of one sender, after a number, at most so many, also handled ones."""

    def __init__(self, sender: str = "", since: int = 0, limit: int = 0, handled: bool = False) -> None:
        self.sender = sender
        self.since = since
        self.limit = limit
        self.handled = handled

    def fitting(self, found: list[Message]) -> list[Message]:
        """Those of that sender, after that number."""
        return [m for m in found if m.number > self.since and self.sender in ("", m.from_)]

    def pick(self, found: list[Message], inbox: Inbox) -> list[Message]:
        """Those to show. Where there are too many, what was read before gives way to what is new."""
        chosen = self.fitting(found)
        if not self.limit or len(chosen) <= self.limit:
            return chosen
        if not self.handled:
            new = inbox.unread_numbers()
            chosen.sort(key=lambda message: message.number not in new)  # stable: each part oldest first
        return sorted(chosen[: self.limit], key=lambda message: message.number)


@operation("read-messages", may=EVERYBODY, of_closed_team=True)
def read(
    store: Store,
    team_name: str,
    caller: Caller | None,
    selection: Selection,
    problems: list[TeamsError],
    peek: bool = False,
    turn: int | None = None,
) -> Reading:
    """The caller's unhandled messages, oldest first, and mark them as read, unless *peek*; those that were
    carry `readBefore`. What only informs is handled with that. With *turn* the caller did not ask, but is given them.

    Damaged messages are added to *problems*; the others are shown.
    """
    caller = require(store, team_name, caller, "read-messages").caller
    if peek or selection.handled:
        return _look(store, team_name, caller.name, selection, problems)
    seen: list[Message] = []
    before = Inbox(agent=caller.name)

    def mark(inbox: Inbox) -> Inbox:
        nonlocal before
        problems.clear()  # when another writer was first, this is called again, and finds them again
        fresh: dict[int, Message] = {}
        before = advance(store, team_name, inbox, problems, fresh)
        seen[:] = open_messages(store, team_name, before, problems, fresh)
        shown = {message.number for message in selection.pick(seen, before)}
        return _marked_read(inbox, before, shown, teams.now(store), turn)

    try:
        problems_of_log = _read_too_far(store, team_name, caller.name)
        _, inbox = upsert(store, team_name, INBOX.also_closed, caller.name, Inbox(agent=caller.name), mark)
    except StorageFailed as failure:  # a full or read-only disk is no reason to show nothing
        found = _look(store, team_name, caller.name, selection, problems)
        problems.append(StorageFailed(f"the messages could not be marked as read: {failure.message}", failure.hint))
        return found
    problems += problems_of_log
    return _reading(selection, seen, before, inbox)


def _read_too_far(store: Store, team: str, agent: str) -> list[TeamsError]:
    """Report an inbox that has read on behind the end of the log, and mend it."""
    inbox, last = load(store, team, agent), store.last(team, MESSAGE)
    if inbox.furthest() <= last:
        return []
    try:
        hold_to_log(store, team, inbox, last)
    except NotAllowed as refusal:  # a login of its own takes numbers one by one
        return [refusal]
    said = f"{agent} has read up to msg-{inbox.furthest()}, and the log ended with msg-{last}: messages were removed"
    return [DamagedRecord(said, "Bring them back from a backup, if they are missed.")]


def hold_to_log(store: Store, team: str, inbox: Inbox, last: int) -> None:
    """See to it that an inbox which has read on behind the *last* message is shown those that were not.

    It reads on behind those that it knows, and the numbers up to where it was are given to no other message, since it
    would be taken for one of these. That is, unless no log goes so far: then none would be left for the team.
    """
    believed = inbox.furthest() - last <= _MOST_REMOVED
    try:
        if believed:
            store.reserve(team, MESSAGE, inbox.furthest())
    except TeamsError:
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


def _look(store: Store, team: str, agent: str, selection: Selection, problems: list[TeamsError]) -> Reading:
    fresh: dict[int, Message] = {}
    inbox = advance(store, team, load(store, team, agent), problems, fresh)
    if not selection.handled:
        return _reading(selection, open_messages(store, team, inbox, problems, fresh), inbox, inbox)
    found = store.read(team, MESSAGE, agent, selection.since, problems)
    return _reading(selection, [message for message in found if message.number <= inbox.up_to], inbox, inbox)


def _reading(selection: Selection, found: list[Message], before: Inbox, after: Inbox) -> Reading:
    """The messages to show, as *after* has them; which are new *before* tells."""
    picked = selection.pick(found, before)
    reading = Reading(_documents(picked, after))
    new = before.unread_numbers()
    for document, message in zip(reading, picked, strict=True):
        if not selection.handled and message.number not in new:
            document["readBefore"] = True
    left_out = {m.number for m in selection.fitting(found)} - {m.number for m in picked}
    reading.more = len(left_out)
    reading.unread = len(left_out & new)
    return reading


def advance(
    store: Store, team: str, inbox: Inbox, problems: list[TeamsError], fresh: dict[int, Message] | None = None
) -> Inbox:
    """The inbox with all messages that came since as open ones, which are added to *fresh* by their numbers."""
    if inbox.damaged:
        inbox = _repaired(store, team, inbox, problems)
    if len(inbox.open) >= MOST_OPEN:
        return inbox
    unread: list[TeamsError] = []
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


def _repaired(store: Store, team: str, inbox: Inbox, problems: list[TeamsError]) -> Inbox:
    """The inbox with those messages open that could not be read and can by now; what is gone is forgotten."""
    unread: list[TeamsError] = []
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
    return Open(number=message.number, quiet=message.type == "info" or None, fyi=message.only_informs or None)


def open_messages(
    store: Store, team: str, inbox: Inbox, problems: list[TeamsError], fresh: dict[int, Message] | None = None
) -> list[Message]:
    """The messages that were seen and are not handled, oldest first; those that are *fresh* were read just now."""
    fresh = fresh or {}
    numbers = sorted(entry.number for entry in inbox.open)
    before = [number for number in numbers if number not in fresh]
    found = store.fetch(team, MESSAGE, before, problems) if before else []
    read = [fresh[number] for number in numbers if number in fresh]
    return sorted([*found, *read], key=lambda message: message.number)


def _marked_read(before: Inbox, ahead: Inbox, shown: set[int], now: str, turn: int | None = None) -> Inbox:
    """The inbox with the shown messages read; the one from before if that changes nothing worth a write."""
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
    """The inbox with these of its open messages handled."""
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
    """The ids of the oldest of its messages, *mail*, that were read and neither answered nor set aside. One that itself
    answers wants no answer.
    """
    read = {entry.number for entry in inbox.open if entry.read_at and not entry.quiet}
    return [message.id for message in mail if message.number in read and not message.reply_to][:most]


def mark_read(store: Store, team: str, agent: str, numbers: set[int], turn: int | None = None) -> None:
    """Mark messages as read that were shown to the agent in another way; with *turn* unasked, in that one (0: in one
    that nobody counts).
    """

    def change(inbox: Inbox) -> Inbox:
        return _marked_read(inbox, advance(store, team, inbox, []), numbers, teams.now(store), turn)

    if numbers:
        store.confirm(team, MESSAGE, f"msg-{max(numbers)}")
        upsert(store, team, INBOX.also_closed, agent, Inbox(agent=agent), change)


def is_handled(inbox: Inbox, number: int) -> bool:
    """Whether that message is handled; *inbox* must have advanced past it."""
    if inbox.find_open(number):
        return False
    if any(entry.number == number for entry in inbox.handled):
        return True
    return _is_behind(inbox, number)


def _is_behind(inbox: Inbox, number: int) -> bool:
    """Whether that message lies behind where the inbox is in the log, so that it is handled unless it is open."""
    return number <= inbox.up_to and number not in (inbox.damaged or ())


def unread(store: Store, team: str, agent: str, quiet: bool = False) -> list[int]:
    """The numbers of the agent's messages that it has not read yet; with *quiet* also those that only inform."""
    return unread_in(advance(store, team, load(store, team, agent), []), quiet)


def unread_in(inbox: Inbox, quiet: bool = False) -> list[int]:
    """The numbers of the messages of an inbox, as far as it has advanced, that were not read yet."""
    return [entry.number for entry in inbox.open if entry.read_at is None and (quiet or not entry.quiet)]


def to_document(message: Message, inbox: Inbox) -> dict[str, Any]:
    """The message as JSON, with when its reader read and handled it."""
    return _documents([message], inbox)[0]


def _documents(found: list[Message], inbox: Inbox) -> list[dict[str, Any]]:
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
