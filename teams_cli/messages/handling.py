"""Handling messages: answered, acknowledged, or taken as the output of an agent."""

from __future__ import annotations

from zlib import crc32

from teams_cli import errors, text
from teams_cli.messages import messages
from teams_cli.messages.inboxes import INBOX, Inbox, Mailbox, advance, is_handled, load, settled
from teams_cli.messages.messages import MESSAGE, Message
from teams_cli.names import SYSTEM, number_of
from teams_cli.store.contract import Store
from teams_cli.store.retrying import upsert
from teams_cli.teams import history, teams
from teams_cli.teams.permission import require

TYPE_CHECKING = False
if TYPE_CHECKING:
    from teams_cli.teams.caller import Caller


def handle(store: Store, team_name: str, caller: Caller | None, ids: list[str]) -> list[Message]:
    """Mark messages as handled, without an answer: all that were shown to the caller, unless it says which.

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
    """The messages that the agent has read and that are not handled; what it can't read again stays."""
    read = [entry.number for entry in load(store, team, agent).open if entry.read_at]
    return store.fetch(team, MESSAGE, sorted(read), [])


def reply(
    store: Store, team_name: str, caller: Caller | None, word: str, body: str, problems: list[errors.TeamsError]
) -> tuple[Message, Message]:
    """Reply to a message, and mark it as handled.

    Raises:
        MessageNotFound: You have no such message.
        AlreadyHandled: It was handled before; nothing was sent.
        WrongState: It is a notice of the program.
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
    """The message of that id, if it was sent to the agent.

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
    """Mark messages that were sent to the agent as handled; with *also_closed* in a closed team too."""
    store.confirm(team, MESSAGE, f"msg-{max(numbers)}")

    def change(inbox: Inbox) -> Inbox:
        ahead = advance(store, team, inbox, [])
        waiting = {number for number in numbers if not is_handled(ahead, number)}
        return settled(ahead, waiting, teams.now(store)) if waiting else inbox

    upsert(store, team, INBOX.also_closed if also_closed else INBOX, agent, Inbox(agent=agent), change)


def settle_about(store: Store, team: str, agent: str, about: str) -> None:
    """Handle what asked the agent for something that is done. That is done, so failing here is no failure."""
    try:
        mail = Mailbox(store, team, agent).open_messages()
        asked = {message.number for message in mail if message.about == about}
        if asked:
            settle(store, team, agent, asked)
    except errors.TeamsError:
        return


def outputs_of(store: Store, team: str, agent: str, sender: str) -> list[Message]:
    """The unhandled messages in which *sender*'s output came to the agent."""
    mail = Mailbox(store, team, agent).open_messages()
    return [m for m in mail if m.from_ == sender and m.type == "output"]
