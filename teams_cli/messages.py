"""Messages: sending to one, to all others, and answering; each is written once and never changed."""

from __future__ import annotations

from teams_cli import history, teams, text
from teams_cli.errors import InvalidValue, NobodyThere, UidTaken
from teams_cli.names import EVERYONE, SYSTEM, is_name
from teams_cli.records import Record
from teams_cli.roles import require
from teams_cli.store.contract import Kind

TYPE_CHECKING = False
if TYPE_CHECKING:
    from teams_cli.caller import Caller
    from teams_cli.shapes import MessageId, MessageType, Name, Number, Text, Time
    from teams_cli.store.contract import Store


class Message(Record):
    """One message. `readAt` and `handledAt` are the reader's, and are not in the file."""

    id: MessageId = ""
    number: Number = 0
    from_: Name
    to: Name
    message: Text
    timestamp: Time
    type: MessageType = "plain"
    reply_to: MessageId | None = None
    recipients: list[Name] | None = None


MESSAGE: Kind[Message] = Kind("message", Message, prefix="msg", numbered=True)


def send(store: Store, team_name: str, caller: Caller | None, to: str, body: str, uid: str | None = None) -> Message:
    """Send a message to one member, to `leader`, or to `human`. It stays in the recipient's inbox until handled.

    With *uid*, sending again gives the message of the first time and adds nothing.

    Raises:
        AgentNotFound: There is no such active member; the hint names those that there are.
        InvalidValue: The text is blank or too long, or the recipient is the sender.
        UidTaken: The sender used *uid* for another message.
    """
    team = require(store, team_name, caller, "send-message", f"to {to}")
    assert caller is not None
    body = text.checked(body, "message")
    recipient = teams.find_recipient(team, to)
    if recipient == caller.name:
        raise InvalidValue("you can't send a message to yourself", "Choose another member: `teams list-agents`.")
    draft = Message(from_=caller.name, to=recipient, message=body, timestamp=teams.now(store))
    return post(store, team_name, draft, uid)


def broadcast(store: Store, team_name: str, caller: Caller | None, body: str, uid: str | None = None) -> Message:
    """Send one message to every other active member: to all of them or to none.

    Raises:
        NobodyThere: There is no other active member.
        InvalidValue: The text is blank or too long.
    """
    team = require(store, team_name, caller, "broadcast-message")
    assert caller is not None
    body = text.checked(body, "message")
    others = [name for name in team.active_names() if name != caller.name]
    if not others:
        raise NobodyThere(f"nobody else is in team {team_name}", "Wait until somebody joins: `teams list-agents`.")
    draft = Message(
        from_=caller.name,
        to=EVERYONE,
        message=body,
        timestamp=teams.now(store),
        type="broadcast",
        recipients=others,
    )
    return post(store, team_name, draft, uid)


def notify(
    store: Store, team_name: str, to: str, body: str, uid: str, kind: MessageType = "notice", sender: str = SYSTEM
) -> None:
    """Tell a member of an event. The *uid* is made from the event, so that telling it again adds nothing."""
    draft = Message(from_=sender, to=to, message=body, timestamp=teams.now(store), type=kind)
    store.append(team_name, MESSAGE, [to], draft, f"{SYSTEM}~{uid}")


def post(store: Store, team_name: str, draft: Message, uid: str | None) -> Message:
    """Append the message to the log.

    Raises:
        InvalidValue: The uid can't be one.
        UidTaken: The sender used it for another message.
    """
    if uid is not None and not is_name(uid):
        raise InvalidValue(f"{uid!r} can't be a uid", "Use 1 to 64 letters, digits, '-' and '_'.")
    to = draft.recipients or [draft.to]
    sent, new = store.append(team_name, MESSAGE, to, draft, uid and f"{draft.from_}~{uid}")
    if new:
        history.note(store, team_name, draft.from_, "message sent", message=sent.id, to=sent.to)
    elif (sent.to, sent.message) != (draft.to, draft.message):
        raise UidTaken(f"the uid {uid!r} was used for {sent.id}, another message", "Choose another uid.")
    return sent


def quote(message: Message) -> str:
    """The message as it is delivered: who it is from on a line of its own, and every line of the body marked, so that
    a body can't pass for another message.
    """
    lines = message.message.splitlines() or [""]
    return "\n".join([f'[From agent "{message.from_}"]:', *(f"| {line}" for line in lines)])
