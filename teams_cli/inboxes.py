"""Inboxes: what an agent has read and handled of the log. Reading never removes; a message stays until handled."""

from __future__ import annotations

from zlib import crc32

from teams_cli import history, messages, teams, text
from teams_cli.errors import AlreadyHandled, MessageNotFound, NotFound, StorageFailed, TeamsError, WaitRanOut
from teams_cli.messages import MESSAGE, Message
from teams_cli.names import number_of
from teams_cli.records import Record, field
from teams_cli.roles import require
from teams_cli.store.contract import Kind, upsert

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from teams_cli.caller import Caller
    from teams_cli.shapes import Count, Name, Number, Time
    from teams_cli.store.contract import Store

_REMEMBERED = 200
_FAR_BEHIND = 1000


class Open(Record):
    """A message that is not handled yet. A quiet one informs, and is no reason to go on working."""

    number: Number
    read_at: Time | None = None
    quiet: bool | None = None


class Handled(Record):
    """A message that was handled lately."""

    number: Number
    read_at: Time | None = None
    handled_at: Time


class Inbox(Record):
    """Where an agent is in the log: all its messages up to `upTo` are handled but the open ones.

    The times of the last 200 handled ones are kept, and of all after `upTo`; of those before, `settledAt` says when the
    last was handled.
    """

    nested = {"open": Open, "handled": Handled}  # noqa: RUF012

    agent: Name
    up_to: Count = 0
    settled_at: Time | None = None
    open: list[Open] = field(default_factory=list)
    handled: list[Handled] = field(default_factory=list)

    def find_open(self, number: int) -> Open | None:
        return next((entry for entry in self.open if entry.number == number), None)


INBOX: Kind[Inbox] = Kind("inbox", Inbox, key="agent")


def load(store: Store, team: str, agent: str) -> Inbox:
    """The agent's inbox; an empty one if it never read."""
    try:
        return store.get(team, INBOX, agent)[0]
    except NotFound:
        return Inbox(agent=agent)


class Selection:
    """Which messages to show: of one sender, after a number, at most so many, also handled ones."""

    def __init__(self, sender: str = "", since: int = 0, limit: int = 0, handled: bool = False) -> None:
        self.sender = sender
        self.since = since
        self.limit = limit
        self.handled = handled

    def pick(self, found: list[Message]) -> list[Message]:
        chosen = [m for m in found if m.number > self.since and self.sender in ("", m.from_)]
        return chosen[: self.limit] if self.limit else chosen


def read(
    store: Store,
    team_name: str,
    caller: Caller | None,
    selection: Selection,
    problems: list[TeamsError],
    peek: bool = False,
) -> list[dict[str, Any]]:
    """The caller's unhandled messages, oldest first, and mark them as read, unless *peek*.

    Damaged messages are added to *problems*; the others are shown.
    """
    require(store, team_name, caller, "read-messages")
    assert caller is not None
    if peek or selection.handled:
        return _look(store, team_name, caller.name, selection, problems)
    shown: list[Message] = []

    def mark(inbox: Inbox) -> Inbox:
        problems.clear()
        ahead = advance(store, team_name, inbox, problems)
        shown[:] = selection.pick(_open_messages(store, team_name, ahead, problems))
        return _marked_read(inbox, ahead, {message.number for message in shown}, teams.now(store))

    try:
        _, inbox = upsert(store, team_name, INBOX, caller.name, Inbox(agent=caller.name), mark)
    except StorageFailed as failure:  # a full or read-only disk is no reason to show nothing
        found = _look(store, team_name, caller.name, selection, problems)
        problems.append(StorageFailed(f"the messages could not be marked as read: {failure.message}", failure.hint))
        return found
    return [as_shown(message, inbox) for message in shown]


def _look(
    store: Store, team: str, agent: str, selection: Selection, problems: list[TeamsError]
) -> list[dict[str, Any]]:
    inbox = advance(store, team, load(store, team, agent), problems)
    if selection.handled:
        found = store.read(team, MESSAGE, agent, selection.since, problems)
        return [as_shown(message, inbox) for message in selection.pick(found) if message.number <= inbox.up_to]
    return [as_shown(message, inbox) for message in selection.pick(_open_messages(store, team, inbox, problems))]


def wait_and_read(
    store: Store,
    team: str,
    caller: Caller | None,
    selection: Selection,
    problems: list[TeamsError],
    timeout: float,
    sleep_until: Callable[[Callable[[], bool], float], bool],
    peek: bool = False,
) -> list[dict[str, Any]]:
    """As `read`, but block until there is one: those that were read and not handled come again at once, in case
    whoever read them was killed before it could show them.

    Raises:
        WaitRanOut: None came within *timeout* seconds.
    """
    shown: list[dict[str, Any]] = []

    def arrived() -> bool:
        shown[:] = read(store, team, caller, selection, problems, peek)
        return bool(shown)

    if not sleep_until(arrived, timeout):
        raise WaitRanOut(f"no message came within {timeout:g} seconds", "Wait longer, or go on with other work.")
    return shown


def advance(store: Store, team: str, inbox: Inbox, problems: list[TeamsError]) -> Inbox:
    """The inbox with all messages that came since as open ones.

    Messages above the newest number known beforehand are left for the next time: a directory read while they arrive
    may show a later one and not an earlier.
    """
    last = store.last(team, MESSAGE)
    if last <= inbox.up_to:
        return inbox
    damaged: list[TeamsError] = []
    fresh = store.read(team, MESSAGE, inbox.agent, inbox.up_to, damaged)
    problems += damaged
    known = {entry.number for entry in inbox.open} | {entry.number for entry in inbox.handled}
    new = [_opened(message) for message in fresh if message.number <= last and message.number not in known]
    # Nothing is passed over that could not be read: it may be repaired.
    return inbox.having(up_to=inbox.up_to if damaged else last, open=inbox.open + new)


def _opened(message: Message) -> Open:
    return Open(number=message.number, quiet=message.type == "info" or None)


def _open_messages(store: Store, team: str, inbox: Inbox, problems: list[TeamsError]) -> list[Message]:
    numbers = sorted(entry.number for entry in inbox.open)
    return store.fetch(team, MESSAGE, numbers, problems) if numbers else []


def _marked_read(before: Inbox, ahead: Inbox, shown: set[int], now: str) -> Inbox:
    """The inbox with the shown messages read; the one from before if that changes nothing worth a write."""
    unread = {entry.number for entry in ahead.open if entry.number in shown and entry.read_at is None}
    if not unread and ahead.up_to - before.up_to < _FAR_BEHIND:
        return before
    entries = [entry.having(read_at=now) if entry.number in unread else entry for entry in ahead.open]
    return ahead.having(open=entries)


def unhandled(store: Store, team: str, agent: str, most: int = 4) -> list[str]:
    """The ids of the oldest messages that the agent has read and neither answered nor set aside."""
    entries = [entry for entry in load(store, team, agent).open if entry.read_at and not entry.quiet]
    return [f"msg-{number}" for number in sorted(entry.number for entry in entries)[:most]]


def mark_read(store: Store, team: str, agent: str, numbers: set[int]) -> None:
    """Mark messages as read that were shown to the agent in another way."""

    def change(inbox: Inbox) -> Inbox:
        return _marked_read(inbox, advance(store, team, inbox, []), numbers, teams.now(store))

    if numbers:
        store.confirm(team, MESSAGE, f"msg-{max(numbers)}")
        upsert(store, team, INBOX, agent, Inbox(agent=agent), change)


def handle(store: Store, team_name: str, caller: Caller | None, ids: list[str]) -> list[Message]:
    """Mark messages as handled, without an answer; those that are handled already stay so.

    Raises:
        MessageNotFound: One was not sent to the caller; nothing is marked.
    """
    require(store, team_name, caller, "ack")
    assert caller is not None
    found = [received(store, team_name, caller.name, word) for word in ids]
    settle(store, team_name, caller.name, {message.number for message in found})
    for message in found:
        history.note(store, team_name, caller.name, "message handled", message=message.id)
    return found


def reply(store: Store, team_name: str, caller: Caller | None, word: str, body: str) -> tuple[Message, Message]:
    """Answer a message: send the text to its sender and mark it as handled. The answer, and what it answers.

    Raises:
        MessageNotFound: No such message was sent to the caller.
        AlreadyHandled: It was handled before; nothing is sent.
        AgentNotFound: The sender is no active member any more.
    """
    team = require(store, team_name, caller, "reply", word)
    assert caller is not None
    body = text.checked(body, "message")
    original = received(store, team_name, caller.name, word)
    if is_handled(advance(store, team_name, load(store, team_name, caller.name), []), original.number):
        raise AlreadyHandled(f"{original.id} is handled already", f"Write anew: teams send-message {original.from_} …")
    draft = messages.Message(
        from_=caller.name,
        to=teams.find_recipient(team, original.from_),
        message=body,
        timestamp=teams.now(store),
        type="reply",
        reply_to=original.id,
    )
    # A crash between the two changes leaves the message open; the same answer again then finds the one that was sent.
    answer = messages.post(store, team_name, draft, f"re-{original.number}-{crc32(body.encode()):08x}")
    settle(store, team_name, caller.name, {original.number})
    return answer, original


def received(store: Store, team: str, agent: str, word: str) -> Message:
    """The message of that id, if it was sent to the agent.

    Raises:
        MessageNotFound: There is none, or it was sent to others.
    """
    number = number_of(word, "msg")
    try:
        message, _ = store.get(team, MESSAGE, f"msg-{number}")
    except NotFound:
        message = None
    if message is None or agent not in (message.recipients or [message.to]):
        raise MessageNotFound(f"no message msg-{number} was sent to {agent}", "See `teams read-messages --all`.")
    return message


def settle(store: Store, team: str, agent: str, numbers: set[int]) -> None:
    """Mark messages that were sent to the agent as handled."""
    store.confirm(team, MESSAGE, f"msg-{max(numbers)}")

    def change(inbox: Inbox) -> Inbox:
        ahead = advance(store, team, inbox, [])
        waiting = {number for number in numbers if not is_handled(ahead, number)}
        return _handled(ahead, waiting, teams.now(store)) if waiting else inbox

    upsert(store, team, INBOX, agent, Inbox(agent=agent), change)


def _handled(inbox: Inbox, numbers: set[int], now: str) -> Inbox:
    done = [
        Handled(number=entry.number, read_at=entry.read_at or now, handled_at=now)
        for entry in inbox.open
        if entry.number in numbers
    ]
    handled = inbox.handled + done
    # Behind a damaged message `upTo` stands still, and only this list tells that those after it are handled.
    ahead = [entry for entry in handled if entry.number > inbox.up_to]
    behind = [entry for entry in handled if entry.number <= inbox.up_to]
    dropped = behind[:-_REMEMBERED]
    return inbox.having(
        open=[entry for entry in inbox.open if entry.number not in numbers],
        handled=behind[-_REMEMBERED:] + ahead,
        settled_at=dropped[-1].handled_at if dropped else inbox.settled_at,
    )


def is_handled(inbox: Inbox, number: int) -> bool:
    """Whether that message is handled; *inbox* must have advanced past it."""
    if inbox.find_open(number):
        return False
    return number <= inbox.up_to or any(entry.number == number for entry in inbox.handled)


def unread(store: Store, team: str, agent: str, quiet: bool = False) -> list[int]:
    """The numbers of the agent's messages that it has not read yet; with *quiet* also those that only inform."""
    inbox = advance(store, team, load(store, team, agent), [])
    return [entry.number for entry in inbox.open if entry.read_at is None and (quiet or not entry.quiet)]


def outputs_of(store: Store, team: str, agent: str, sender: str) -> list[Message]:
    """The unhandled messages in which *sender*'s output came to the agent."""
    inbox = advance(store, team, load(store, team, agent), [])
    return [m for m in _open_messages(store, team, inbox, []) if m.from_ == sender and m.type == "output"]


def as_shown(message: Message, inbox: Inbox) -> dict[str, Any]:
    """The message as JSON, with when its reader read and handled it."""
    document = message.to_json()
    entry = inbox.find_open(message.number)
    done = next((item for item in inbox.handled if item.number == message.number), None)
    if entry and entry.read_at:
        document["readAt"] = entry.read_at
    elif done:
        document.update(readAt=done.read_at or done.handled_at, handledAt=done.handled_at)
    elif not entry and is_handled(inbox, message.number) and inbox.settled_at:
        document.update(readAt=inbox.settled_at, handledAt=inbox.settled_at)
    return document
