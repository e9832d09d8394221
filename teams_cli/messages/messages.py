"""Send messages, broadcasts and notices, and show a message as it is delivered. A message is never changed."""

from __future__ import annotations

from teams_cli import errors, text
from teams_cli.names import EVERYONE, SYSTEM, is_name
from teams_cli.records.records import Record
from teams_cli.store.contract import Kind, Store
from teams_cli.teams import history, teams
from teams_cli.teams.permission import require

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection

    from teams_cli.records.types import MessageId, MessageType, Name, Number, Text, Time, Word
    from teams_cli.teams.permission import Caller


class Event:
    """Events of notices on which the program acts: values of `Message.event`. Other events are only for readers."""

    TASK_ASSIGNED = "task-assigned"
    TASK_ASSIGNED_BLOCKED = "task-assigned-blocked"
    """The task is assigned to the reader, but is not ready yet."""
    TASK_READY = "task-ready"
    """The task is assigned to the reader, and its blockers are completed."""
    TASK_UNASSIGNED = "task-unassigned"
    """The task is no longer assigned to the reader, or to another agent whose leader the reader is."""
    TASK_LOST = "task-lost"
    """The reader no longer has the task."""
    TASK_RELEASED = "task-released"
    """The reader no longer has the task: somebody released it and said why."""
    TASK_TAKEN = "task-taken"
    """The reader had the task, and another agent has it now."""
    LEASE_ENDING, OWNER_SILENT = "lease-ending", "owner-silent"
    """A grace period began: the reader has the task and must show that it is at work, or leads the team."""
    TASK_EDITED = "task-edited"
    """A task that is assigned to the reader, but not claimed yet, was edited."""
    OWN_TASK_EDITED = "owned-task-edited"
    """A task that the reader has or reviews was edited."""
    REVIEW_ASKED = "review-asked"
    """A task waits for a review by the reader."""
    REVIEW_ACCEPTED = "review-accepted"
    """A task of the reader was accepted by its reviewer."""
    TASK_COMPLETED = "task-completed"
    """A task of the reader's team is completed, and its result follows."""
    TASK_BACK = "task-back"
    """A task of the reader was in review, or waited to land, and is the reader's work again."""
    TASK_COMPLETABLE = "task-completable"
    """The reader has the task, and all tasks that must be completed before this one are completed."""
    PLAN_PROPOSED = "plan-proposed"
    PLAN_APPROVED, PLAN_REJECTED = "plan-approved", "plan-rejected"
    """The reader's plan was approved or rejected."""


class Message(Record):
    """One message. *about* is the id of what the reader should act on, such as `plan-3`. *ackBy* is the time by which
    the sender wants the message handled. A notice of the program has an *event*, such as those in `Event`, and the id
    of its *task*. Each reader's inbox records when this reader read and handled the message.
    """

    id: MessageId = ""
    number: Number = 0
    from_: Name
    to: Name
    message: Text
    timestamp: Time
    type: MessageType = "plain"
    reply_to: MessageId | None = None
    recipients: list[Name] | None = None
    fyi: bool | None = None
    ack_by: Time | None = None
    about: Word | None = None
    event: Word | None = None
    task: Word | None = None

    @property
    def only_informs(self) -> bool:
        """Whether the message needs only to be read: its sender said so, or it is a notice of the program."""
        return bool(self.fyi) or self.from_ == SYSTEM

    @property
    def is_closed_by_reading(self) -> bool:
        """Whether the message counts as handled once it is read: it only informs, is an answer, or is a broadcast."""
        return self.only_informs or self.reply_to is not None or self.type == "broadcast"

    @property
    def event_and_task(self) -> tuple[str, str]:
        """The event of a notice, and the id of the task that the notice is about. Each is "" if the notice has none;
        both are "" for a message that is not a notice.
        """
        if self.from_ != SYSTEM:
            return "", ""
        if self.event:
            return self.event, self.task or ""
        from teams_cli.messages import old_notices  # only messages of older versions have no event

        return old_notices.event_of(self.message, self.about or "")

    @property
    def addressed(self) -> str:
        """The recipients as the sender named them; `all` for a broadcast."""
        return ", ".join(self.recipients) if self.recipients and self.type != "broadcast" else self.to


MESSAGE: Kind[Message] = Kind("message", Message, prefix="msg", numbered=True, logins="message")


def send(
    store: Store,
    team_name: str,
    caller: Caller | None,
    to: str | list[str],
    body: str,
    uid: str | None = None,
    fyi: bool = False,
    wake: bool = True,
    ack_by: str | None = None,
    expected: Collection[str] = (),
) -> Message:
    """Send a message to members, `leader` or `human`. If one of them can't get it, nobody gets it.

    A message stays in the inbox until it is handled; with --fyi, until it is read. A message to a member that has not
    joined yet is kept until the member joins. For this, the configuration must have an agent or a role of that name, or
    a task must be assigned to it. Sending again with the same *uid* sends nothing.

    Raises:
        AgentNotFound: A recipient is not an active member; the error lists the members.
        InvalidValue: The text is blank or too long, or you named yourself as a recipient.
        UidTaken: You have used the same *uid* for another message.
    """
    names = [to] if isinstance(to, str) else to
    standing = require(store, team_name, caller, "send-message", f"to {', '.join(names)}")
    body = text.checked(body, "message")
    recipients = [name if name in expected else teams.get_recipient(standing.team, name) for name in names]
    recipients = list(dict.fromkeys(recipients))
    if standing.name in recipients:
        raise errors.InvalidValue("you can't send a message to yourself", "Choose another member: `teams list-agents`.")
    is_to_one = len(recipients) == 1
    draft = Message(
        from_=standing.name,
        to=recipients[0] if is_to_one else EVERYONE,
        message=body,
        timestamp=teams.now(store),
        recipients=None if is_to_one else recipients,
        fyi=fyi or None,
        ack_by=ack_by or None,
    )
    return post(store, team_name, draft, uid, wake)


def broadcast(store: Store, team_name: str, caller: Caller | None, body: str, uid: str | None = None) -> Message:
    """Send one message to every other active member. If one of them can't get it, nobody gets it.

    Raises:
        NobodyThere: There is no other active member.
        InvalidValue: The text is blank or too long.
    """
    standing = require(store, team_name, caller, "broadcast-message")
    body = text.checked(body, "message")
    others = [name for name in standing.team.active_names() if name != standing.name]
    if not others:
        raise errors.NobodyThere(
            f"nobody else is in team {team_name}", "Wait until somebody joins: `teams list-agents`."
        )
    draft = Message(
        from_=standing.name,
        to=EVERYONE,
        message=body,
        timestamp=teams.now(store),
        type="broadcast",
        recipients=others,
    )
    return post(store, team_name, draft, uid)


def notify(
    store: Store,
    team_name: str,
    to: str,
    body: str,
    uid: str,
    kind: MessageType = "notice",
    sender: str = SYSTEM,
    by: str = "",
    wake: bool = True,
    about: str | None = None,
    even_in_closed_team: bool = False,
    event: str | None = None,
    task: str | None = None,
) -> Message:
    """Send a notice of an event to the member *to*. The member *by* caused the event. The *uid* is made from the event,
    so that a repeated call adds no second notice.

    *about* names what the reader has to act on, such as `plan-3`. Once the reader has acted, the notice counts as
    handled. *event* and *task* say to programs what happened, and to which task. With *even_in_closed_team*, the notice
    is sent in a closed team, too, for example with the output of an agent that was at work when the team was closed.
    """
    draft = Message(from_=sender, to=to, message=body, timestamp=teams.now(store), type=kind, about=about)
    draft = draft.having(event=event, task=task) if event else draft
    log = MESSAGE.even_in_closed_team if even_in_closed_team else MESSAGE
    sent, _ = store.append(team_name, log, [to], draft, f"{SYSTEM}~{uid}")
    if wake:
        wake_up(store, team_name, [to], sent, by or sender)
    return sent


def wake_up(store: Store, team_name: str, to: list[str], sent: Message, by: str) -> None:
    """Wake the clients of the recipients *to* of the stored message *sent*, which the member *by* caused. A notice of
    type `info` wakes nobody.
    """
    if store.on_append and sent.type != "info":
        store.on_append(team_name, to, sent, by)


def checked_uid(uid: str) -> str:
    """Return *uid* if it is valid. The sender of a request chooses the uid, so that repeating the request with it
    changes nothing.

    Raises:
        InvalidValue: *uid* is not a valid uid.
    """
    if not is_name(uid):
        raise errors.InvalidValue(f"{uid!r} is not a valid uid", "Use 1 to 64 letters, digits, '-' and '_'.")
    return uid


def post(store: Store, team_name: str, draft: Message, uid: str | None, wake: bool = True) -> Message:
    """Append the message *draft* to the log. Wake its recipients, unless *wake* is false. A repeated call with the same
    *uid* adds no second message.

    Raises:
        InvalidValue: The uid is not valid.
        UidTaken: The sender used the uid for another message.
    """
    if uid is not None:
        checked_uid(uid)
    recipients = draft.recipients or [draft.to]
    sent, is_new = store.append(team_name, MESSAGE, recipients, draft, uid and f"{draft.from_}~{uid}")
    if is_new:
        history.note(store, team_name, draft.from_, "message sent", message=sent.id, to=sent.addressed)
    elif (sent.addressed, sent.message) != (draft.addressed, draft.message):
        raise errors.UidTaken(f"the uid {uid!r} was used for {sent.id}, another message", "Choose another uid.")
    if wake:
        wake_up(store, team_name, recipients, sent, draft.from_)
    return sent


def quote(message: Message) -> str:
    """Return the message as it is delivered: its sender on a line of its own, and then its text with a mark before
    every line. Thanks to the marks, no part of the text can pass for another message.
    """
    return "\n".join([f'[From agent "{message.from_}"]:', *(text.quoted(message.message, "| ") or ["| "])])


def how_to_answer(message: Message) -> str:
    """Return the line below a delivered message that says how to answer it; empty if the message only informs."""
    reply = f"teams reply {message.id} TEXT"
    if message.ack_by:
        return f"\n(its sender waits for: teams ack {message.id}, or {reply})"
    if message.is_closed_by_reading:
        return "" if message.only_informs else f"\n(needs no answer; to answer: {reply})"
    return f"\n(answer with: {reply}; or: teams ack {message.id})"


def quote_bounded(message: Message, room: int = text.MOST_LETTER) -> list[str]:
    """Return the lines of a message as it is delivered: at most *room* bytes, then the command that shows all of it."""
    return text.bounded(quote(message).split("\n"), room, _end_of_cut(message))


def body_bounded(message: Message) -> str:
    """Return the text of a message or, if it is too long, its beginning and the command that shows all of it."""
    return "\n".join(text.bounded(message.message.split("\n"), text.MOST_LETTER, _end_of_cut(message)))


def _end_of_cut(message: Message) -> str:
    return f"[cut; the whole of {message.id}: teams show-message {message.id}]"


MOST_AT_ONCE = 20
"""How many messages are shown at a time."""
_BYTES_BESIDE_TEXT = 200
"""The bytes that a message takes in an answer in addition to its text: for its id, its age and the next command."""


def fitting(messages: list[Message], room: int = text.MOST_ANSWER) -> list[Message]:
    """Return the first of the *messages*: as many as fit into an answer of *room* bytes, in the form in which they are
    delivered. At least one message is returned, even if it does not fit.
    """
    for count, message in enumerate(messages):
        room -= _BYTES_BESIDE_TEXT + text.size(quote_bounded(message))
        if room < 0:
            return messages[: max(1, count)]
    return messages
