"""Reading messages, handling them by a reply or an acknowledgement, and waiting for new ones."""

from __future__ import annotations

from zlib import crc32

from teams_cli import errors, text
from teams_cli.clock import length
from teams_cli.messages import inboxes, messages
from teams_cli.messages.inboxes import INBOX, Inbox, Mailbox, advance, is_handled, load, settled
from teams_cli.messages.messages import MESSAGE, Message, fitting
from teams_cli.names import SYSTEM, number_of
from teams_cli.store.contract import Store
from teams_cli.store.retrying import upsert
from teams_cli.teams import history, teams
from teams_cli.teams.permission import require

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from teams_cli.teams.permission import Caller
    from teams_cli.teams.presence import OnceTold


class Reading(list[dict[str, object]]):
    """Messages to show, oldest first. *more* counts those that were left out, *unread* the new ones among these."""

    more = 0
    unread = 0


class Selection:
    """Which messages to show: of one sender, after a number, at most so many, also handled ones. With *room*, as many
    as fit into so many bytes.
    """

    def __init__(self, sender: str = "", since: int = 0, limit: int = 0, handled: bool = False, room: int = 0) -> None:
        self.sender = sender
        self.since = since
        self.limit = limit
        self.handled = handled
        self.room = room

    def fitting(self, found: list[Message]) -> list[Message]:
        """Return the messages of that sender after that number."""
        return [m for m in found if m.number > self.since and self.sender in ("", m.from_)]

    def pick(self, found: list[Message], inbox: Inbox) -> list[Message]:
        """Return the messages to show. If there are too many, those already read are left out first."""
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
    """Return the caller's unhandled messages, oldest first, and mark them as read *once told*. Messages that were read
    before carry `readBefore`.

    Messages that only inform are handled by this. With *turn*, the caller did not ask, but is given them. Errors of
    damaged messages are appended to *problems*.
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
    """Report an inbox that has advanced past the end of the log, and mend it."""
    inbox, last = inboxes.load(store, team, agent), store.last(team, MESSAGE)
    if inbox.furthest() <= last:
        return []
    from teams_cli.messages.inboxes import hold_to_log

    try:
        hold_to_log(store, team, inbox, last)
    except errors.NotAllowed as refusal:  # a login of its own takes numbers one by one
        return [refusal]
    said = f"{agent} has read up to msg-{inbox.furthest()}, but the log ends with msg-{last}: messages were removed"
    return [errors.DamagedRecord(said, "If they are needed, restore them from a backup.")]


def _look(store: Store, team: str, agent: str, selection: Selection, problems: list[errors.TeamsError]) -> Reading:
    mailbox = inboxes.Mailbox(store, team, agent, problems)
    inbox = mailbox.inbox
    if not selection.handled:
        return _reading(selection, mailbox.open_messages(), inbox, inbox)
    found = store.read(team, MESSAGE, agent, selection.since, problems)
    return _reading(selection, [message for message in found if message.number <= inbox.up_to], inbox, inbox)


def _reading(selection: Selection, found: list[Message], before: Inbox, after: Inbox) -> Reading:
    """Return the messages to show, from the inbox *after*. *before* tells which are new."""
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


def handle(store: Store, team_name: str, caller: Caller | None, ids: list[str]) -> list[Message]:
    """Mark messages as handled, without an answer: the named ones, or all that were shown to the caller.

    Those that are handled already stay so.

    Raises:
        MessageNotFound: One was not sent to the caller; nothing is marked.
    """
    caller = require(store, team_name, caller, "ack").caller
    if ids:
        found = [received(store, team_name, caller.name, word) for word in ids]
    else:
        found = _shown(store, team_name, caller.name)
    if not found:
        return []
    settle(store, team_name, caller.name, {message.number for message in found})
    for message in found:
        history.note(store, team_name, caller.name, "message handled", message=message.id)
    return found


def _shown(store: Store, team: str, agent: str) -> list[Message]:
    """Return the messages that the agent has read and not handled. Damaged ones stay as they are."""
    read = [entry.number for entry in load(store, team, agent).open if entry.read_at]
    return store.fetch(team, MESSAGE, sorted(read), [])


def reply(
    store: Store, team_name: str, caller: Caller | None, word: str, body: str, problems: list[errors.TeamsError]
) -> tuple[Message, Message]:
    """Reply to a message, and mark it as handled.

    Raises:
        MessageNotFound: You have no such message.
        AlreadyHandled: The message was already handled; nothing was sent.
        WrongState: The message is a notice from the program.
        AgentNotFound: The sender is no longer an active member.
    """
    at = require(store, team_name, caller, "reply", word)
    team, caller = at.team, at.caller
    body = text.checked(body, "message")
    original = received(store, team_name, caller.name, word)
    if original.from_ == SYSTEM:
        raise errors.WrongState(
            f"{original.id} is a notice; nobody reads answers to it", "Follow it, if it asks for something."
        )
    inbox = advance(store, team_name, load(store, team_name, caller.name), [])
    if not original.is_closed_by_reading and is_handled(inbox, original.number):
        hint = f"Write a new message: teams send-message {original.from_} …"
        raise errors.AlreadyHandled(f"{original.id} is handled already", hint)
    draft = messages.Message(
        from_=caller.name,
        to=teams.get_recipient(team, original.from_),
        message=body,
        timestamp=teams.now(store),
        type="reply",
        reply_to=original.id,
    )
    # A crash between the two changes leaves the message open; the same answer again then finds the one that was sent.
    answer = messages.post(store, team_name, draft, f"re-{original.number}-{crc32(body.encode()):08x}")
    try:
        settle(store, team_name, caller.name, {original.number})
    except errors.TeamsError as problem:
        said = f"{original.id} stays open (teams ack {original.id}): {problem.message}"
        problems.append(errors.TeamsError(said))
    return answer, original


def received(store: Store, team: str, agent: str, word: str) -> Message:
    """Return the message of that id, if it was sent to the agent.

    Raises:
        MessageNotFound: There is none, or it was sent to others.
    """
    number = number_of(word, "msg")
    try:
        message, _ = store.get(team, MESSAGE, f"msg-{number}")
    except errors.NotFound:
        message = None
    if message is None or agent not in (message.recipients or [message.to]):
        raise errors.MessageNotFound(f"no message msg-{number} was sent to {agent}", "See: teams read-messages --all")
    return message


def settle(store: Store, team: str, agent: str, numbers: set[int], also_closed: bool = False) -> None:
    """Mark messages that were sent to the agent as handled. With *also_closed*, in a closed team too."""
    store.confirm(team, MESSAGE, f"msg-{max(numbers)}")

    def change(inbox: Inbox) -> Inbox:
        ahead = advance(store, team, inbox, [])
        waiting = {number for number in numbers if not is_handled(ahead, number)}
        return settled(ahead, waiting, teams.now(store)) if waiting else inbox

    upsert(store, team, INBOX.also_closed if also_closed else INBOX, agent, Inbox(agent=agent), change)


def settle_about(store: Store, team: str, agent: str, about: str) -> None:
    """Handle the messages that asked the agent for something that is done. Errors are ignored, since it is done."""
    try:
        mail = Mailbox(store, team, agent).open_messages()
        asked = {message.number for message in mail if message.about == about}
        if asked:
            settle(store, team, agent, asked)
    except errors.TeamsError:
        return


def outputs_of(store: Store, team: str, agent: str, sender: str) -> list[Message]:
    """Return the unhandled messages that brought *sender*'s output to the agent."""
    mail = Mailbox(store, team, agent).open_messages()
    return [m for m in mail if m.from_ == sender and m.type == "output"]


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
    """Read as `read` does, but wait until there is an unread message, or one that another process of the caller has
    read meanwhile.

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
