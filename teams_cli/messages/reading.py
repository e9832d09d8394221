"""Reading messages, handling a message by a reply or an acknowledgement, and waiting for new messages."""

from __future__ import annotations

from zlib import crc32

from teams_cli import errors, text
from teams_cli.messages import inboxes
from teams_cli.messages.inboxes import (
    INBOX,
    Inbox,
    Mailbox,
    is_handled,
    load,
    load_with_new,
    with_handled,
    with_new_messages,
)
from teams_cli.messages.messages import MESSAGE, Message, fitting, post
from teams_cli.names import SYSTEM, number_of
from teams_cli.store.contract import Store, upsert
from teams_cli.teams import history, teams
from teams_cli.teams.permission import require

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from teams_cli.teams.permission import Caller
    from teams_cli.teams.presence import OnceShown


class Reading(list[dict[str, object]]):
    """A list of messages to show, as JSON, oldest first. *more* is the number of messages that were left out, and
    *unread* says how many of those are unread.
    """

    more = 0
    unread = 0


class Selection:
    """Selects the messages to show: only messages from *sender*, only numbers above *since*, and at most *limit* of
    them. *room* is the number of bytes into which they must fit. "" and 0 set no limit. With *handled*, handled
    messages are shown too.
    """

    def __init__(self, sender: str = "", since: int = 0, limit: int = 0, handled: bool = False, room: int = 0) -> None:
        self.sender = sender
        self.since = since
        self.limit = limit
        self.handled = handled
        self.room = room

    def wanted(self, messages: list[Message]) -> list[Message]:
        """Return the *messages* that come from the sender and have a number above *since*."""
        return [m for m in messages if m.number > self.since and self.sender in ("", m.from_)]

    def pick(self, messages: list[Message], inbox: Inbox) -> list[Message]:
        """Return the messages to show, oldest first. If there is no room for all, unread messages are kept first."""
        picked = self.wanted(messages)
        unread = set(inbox.unread(quiet=True))
        if not self.handled:
            # The sort is stable, so the unread ones come first, and both parts stay in their order.
            picked.sort(key=lambda message: message.number not in unread)
        if self.limit:
            picked = picked[: self.limit]
        if self.room:
            # Only these are shown with their text. A message that was read before needs only a line.
            with_text = [message for message in picked if self.handled or message.number in unread]
            picked = fitting(with_text, self.room) + [message for message in picked if message not in with_text]
        return sorted(picked, key=lambda message: message.number)


def read(
    store: Store,
    team_name: str,
    caller: Caller | None,
    selection: Selection,
    problems: list[errors.TeamsError],
    once_shown: OnceShown | None = None,
    turn: int | None = None,
    left_out: Collection[int] = (),
) -> Reading:
    """Return the caller's unhandled messages, oldest first. Messages that were read before have the field `readBefore`.
    *once_shown* takes a function that marks the messages as read, to be called after they were shown. Nothing is marked
    if *once_shown* is None, or if the *selection* asks for handled messages too.

    A message that only informs becomes handled when it is marked. If the caller did not ask for the messages, *turn* is
    the number of its turn. *left_out* gets the numbers of the messages for which the answer has no room; these stay
    unread. Errors of damaged messages are appended to *problems*.
    """
    agent = require(store, team_name, caller, "read-messages").name
    if once_shown is None or selection.handled:
        mailbox = inboxes.Mailbox(store, team_name, agent, problems)
        messages = mailbox.open_messages()
        if selection.handled:
            log = store.read(team_name, MESSAGE, agent, selection.since, problems)
            # Later messages came after the inbox was read, which does not say whether they are handled.
            messages = [message for message in log if message.number <= mailbox.inbox.up_to]
        return _reading(selection, messages, mailbox.inbox, mailbox.inbox)
    try:
        problems += _mend_position(store, team_name, agent)
    except errors.StorageFailed as failure:  # a full or read-only disk is no reason to show nothing
        problems.append(failure)
    mailbox = inboxes.Mailbox(store, team_name, agent, problems)
    messages = mailbox.open_messages()
    shown = {message.number for message in selection.pick(messages, mailbox.inbox)}
    once_shown(lambda: mailbox.mark_read(shown.difference(left_out), turn))
    after = inboxes.with_read(mailbox.before, mailbox.inbox, shown, teams.now(store), turn)
    return _reading(selection, messages, mailbox.inbox, after)


def _mend_position(store: Store, team: str, agent: str) -> list[errors.TeamsError]:
    """Correct an inbox that is ahead of its log, such as one restored from a backup. Return the errors to report."""
    inbox, last = load(store, team, agent), store.last(team, MESSAGE)
    if inbox.highest_number() <= last:
        return []
    try:
        inboxes.hold_to_log(store, team, inbox, last)
    except errors.NotAllowed as refusal:  # a database login may take numbers only one by one
        return [refusal]
    read_to = f"{agent} has read up to msg-{inbox.highest_number()}"
    problem = f"{read_to}, but the log ends with msg-{last}: messages were removed"
    return [errors.DamagedRecord(problem, "If they are needed, restore them from a backup.")]


def _reading(selection: Selection, messages: list[Message], before: Inbox, after: Inbox) -> Reading:
    """Return the *messages* that the *selection* shows. *before* and *after* are the inbox before and after they were
    marked as read.
    """
    picked = selection.pick(messages, before)
    reading = Reading(inboxes.documents(picked, after))
    unread = set(before.unread(quiet=True))
    for document, message in zip(reading, picked, strict=True):
        if not selection.handled and message.number not in unread:
            document["readBefore"] = True
    left_out = {m.number for m in selection.wanted(messages)} - {m.number for m in picked}
    reading.more = len(left_out)
    reading.unread = len(left_out & unread)
    return reading


def handle(store: Store, team_name: str, caller: Caller | None, ids: list[str]) -> list[Message]:
    """Mark messages as handled, without an answer: the messages in *ids* or, if *ids* is empty, all messages that were
    shown to the caller.

    Messages that are handled already stay handled.

    Raises:
        MessageNotFound: A message was not sent to the caller; nothing is marked.
    """
    agent = require(store, team_name, caller, "ack").name
    if ids:
        messages = [received(store, team_name, agent, message_ref) for message_ref in ids]
    else:
        numbers = [entry.number for entry in load(store, team_name, agent).open if entry.read_at]
        messages = store.fetch(team_name, MESSAGE, sorted(numbers), [])  # damaged ones stay open
    if messages:
        mark_handled(store, team_name, agent, {message.number for message in messages})
    for message in messages:
        history.note(store, team_name, agent, "message handled", message=message.id)
    return messages


def reply(
    store: Store, team_name: str, caller: Caller | None, message_ref: str, body: str, problems: list[errors.TeamsError]
) -> tuple[Message, Message]:
    """Reply to a message, and mark it as handled.

    Raises:
        MessageNotFound: You have no such message.
        AlreadyHandled: The message was already handled; nothing was sent.
        WrongState: The message is a notice from the program; nobody reads answers to it.
        AgentNotFound: The sender is no longer an active member.
    """
    standing = require(store, team_name, caller, "reply", message_ref)
    agent = standing.name
    body = text.checked(body, "message")
    original = received(store, team_name, agent, message_ref)
    if original.from_ == SYSTEM:
        raise errors.WrongState(
            f"{original.id} is a notice; nobody reads answers to it", "Follow it, if it asks for something."
        )
    inbox = load_with_new(store, team_name, agent)
    if not original.is_closed_by_reading and is_handled(inbox, original.number):
        hint = f"Write a new message: teams send-message {original.from_} …"
        raise errors.AlreadyHandled(f"{original.id} is handled already", hint)
    draft = Message(
        from_=agent,
        to=teams.get_recipient(standing.team, original.from_),
        message=body,
        timestamp=teams.now(store),
        type="reply",
        reply_to=original.id,
    )
    # A crash between the two changes leaves the message open. Repeating the same answer then sends no second message.
    answer = post(store, team_name, draft, f"re-{original.number}-{crc32(body.encode()):08x}")
    try:
        mark_handled(store, team_name, agent, {original.number})
    except errors.TeamsError as problem:
        open_still = f"{original.id} stays open (teams ack {original.id}): {problem.message}"
        problems.append(errors.TeamsError(open_still))
    return answer, original


def received(store: Store, team: str, agent: str, message_ref: str) -> Message:
    """Return the message with the id *message_ref*, if it was sent to the agent. *message_ref* may also be only the
    number of the message.

    Raises:
        MessageNotFound: There is no such message, or it was sent only to others.
    """
    number = number_of(message_ref, "msg")
    try:
        message, _ = store.get(team, MESSAGE, f"msg-{number}")
    except errors.NotFound:
        message = None
    if message is None or agent not in (message.recipients or [message.to]):
        raise errors.MessageNotFound(f"no message msg-{number} was sent to {agent}", "See: teams read-messages --all")
    return message


def mark_handled(store: Store, team: str, agent: str, numbers: set[int], even_in_closed_team: bool = False) -> None:
    """Mark the messages with these *numbers* as handled; with *even_in_closed_team*, also in a closed team."""
    store.confirm(team, MESSAGE, f"msg-{max(numbers)}")

    def change(inbox: Inbox) -> Inbox:
        current = with_new_messages(store, team, inbox, [])
        unhandled = {number for number in numbers if not is_handled(current, number)}
        return with_handled(current, unhandled, teams.now(store)) if unhandled else inbox

    upsert(store, team, INBOX.even_in_closed_team if even_in_closed_team else INBOX, agent, Inbox(agent=agent), change)


def outputs_of(store: Store, team: str, agent: str, sender: str) -> list[Message]:
    """Return the unhandled messages to the *agent* that have the output of the agent *sender*."""
    mail = Mailbox(store, team, agent).open_messages()
    return [message for message in mail if message.from_ == sender and message.type == "output"]


def arrival(store: Store, team: str, caller: Caller | None, selection: Selection) -> Callable[[], bool]:
    """Return a function that returns whether there is an unread message that the *selection* shows. A message that
    comes later counts even if another process of the caller has marked it as read.
    """
    agent = require(store, team, caller, "read-messages").name
    last_before = store.last(team, MESSAGE)

    def has_arrived() -> bool:
        inbox = load_with_new(store, team, agent)
        new_numbers = [entry.number for entry in inbox.open if entry.read_at is None or entry.number > last_before]
        return bool(new_numbers and selection.wanted(store.fetch(team, MESSAGE, new_numbers, [])))

    return has_arrived
