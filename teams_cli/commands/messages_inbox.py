"""Commands on the messages that one got or sent, and on who is there."""

from __future__ import annotations

from teams_cli import errors
from teams_cli.commands.declaration import Command, argument, option, switch, table
from teams_cli.messages import reading
from teams_cli.messages.messages import Message
from teams_cli.messages.reading import Reading, Selection
from teams_cli.names import number_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from teams_cli.commands.call import Call

_LIST = """List the members: role, activity, state, unread messages, last seen.

`state` is active (runs, or has a task in progress), idle, stale (silent for `staleAfterSeconds`, or its process
is gone) or stopped (shut down). `queueDepth` counts unread messages.
"""
_ACK = """Mark messages as handled without an answer: the named ones, or all that you read.

Marking one twice changes nothing.

Raises:
    MessageNotFound: You have no such message; none is marked.
"""
_ATTEND = """Show the other agents and your open messages, as the result of a `broadcast` tool.

A client appends it to the context of each model call. Messages come again until they are handled; showing them
marks them as read. `hint` is there until you announce yourself. A message to one agent is not shown to others.
"""
_READ = """Show your new messages, and a line for each older one that is still open.

A message is open until you answer or `ack` it, or, if it needs no answer, read it. With --wait, wait for a new
one.

Raises:
    WaitRanOut: No message came in time.
"""
_SHOW = """Show a message, and how far it got with each recipient.

It is queued; woken, when a client in a terminal was; shown, by a turn or a hook; read; handled; or will not be
read. Its sender, its recipients, the leader and the human may see it.

Raises:
    MessageNotFound: There is no such message, or you may not see it.
"""
_SENT = """List the messages that you sent, oldest first, and how far each got with each recipient.

A message is queued; woken, when a client in a terminal was; shown, by a turn or a hook; read; or handled. It
will not be read if the agent left or was stopped, or the team is closed. One sent with --ack-required is
overdue when it is not handled within the setting `ack_timeout`.
"""


def _read(
    call: Call,
    all: bool,
    peek: bool,
    from_: str | None,
    since: str | None,
    wait: float | None,
    limit: int | None,
) -> Any:
    if limit is not None and limit < 1:
        raise errors.WrongUsage(f"{limit} is not a valid limit", "Give a number from 1.")
    after = number_of(since, "msg") if since else 0
    selection = Selection(from_ or "", after, limit or 0, handled=all, room=call.room)
    if not (all or peek) and call.caller:
        from teams_cli.views import work

        call.try_to(lambda: work.close_over(call.store, call.team, call.agent))
    found = _found(call, selection, peek, wait)
    if found.more:
        call.more = f"{found.more} more: teams read-messages{_rest(found, all)}{f' --from {from_}' if from_ else ''}"
    elif found and not (all or peek):
        from teams_cli.views import steps

        call.follows = steps.after_reading(found, lambda message: _matter_of(call, message))
    return found


def _matter_of(call: Call, message: dict[str, Any]) -> dict[str, Any] | None:
    about = str(message.get("about") or "")
    if not about:
        return None
    from teams_cli.views import work

    return work.matter_of(call.store, call.team, about)


def _rest(found: Reading, all: bool) -> str:
    """The options that show what was left out."""
    if all:
        return f" --all --since {found[-1]['id']}"
    return "" if found.unread else f" --limit {len(found) + found.more}"


def _found(call: Call, selection: Selection, peek: bool, wait: float | None) -> Reading:
    if wait is None or selection.handled:
        once_told = None if peek else call.once_told
        return reading.read(call.store, call.team, call.caller, selection, call.problems, once_told)
    from teams_cli.commands.runners.messages import wait_and_read

    return wait_and_read(call, selection, peek, wait)


def _ack(call: Call, message: list[str]) -> Any:
    handled = reading.handle(call.store, call.team, call.caller, list(message))
    call.try_to(call.say_what_follows)
    return {"handled": [found.id for found in handled]}


_TEXT = argument("TEXT", "What to say; `-` reads it from standard input.", name="text", text=True)

COMMANDS = table(
    "Messages",
    Command(
        "read-messages",
        _read,
        switch("--all", "Also handled ones; marks nothing.", seldom=True),
        switch("--peek", "Mark nothing.", seldom=True),
        option("--from", "Only from this sender.", metavar="AGENT", name="from_", seldom=True),
        option("--since", "Only messages after this one.", metavar="MESSAGE", seldom=True),
        option("--wait", "How long to wait for one.", type=float, metavar="SECONDS"),
        option("--limit", "Show at most N.", type=int, metavar="N", default=20, seldom=True),
        doc=_READ,
        words="messages:read",
        answers=list[Message],
        long=True,
        sleeps=True,
        repeatable=True,
        daily=True,
        quiet=True,
        held="all peek from_ since wait limit",
        example="read-messages",
        want="read your messages",
        also={
            (
                "inbox read messages get-messages list-messages check-messages mail receive check-mail "
                "check-inbox read-inbox read-mail get-mail list-msg msgs notice"
            ): "",
        },
    ),
    Command(
        "show-message",
        "commands.runners.messages:show",
        argument("ID", "The message: 7, #7 or msg-7.", name="message"),
        doc=_SHOW,
        words="messages:reached",
        reads=True,
        whole=True,
        held="message",
        example="show-message 7",
        also="message-status delivered receipt",
    ),
    Command(
        "sent",
        "commands.runners.messages:sent",
        option("--to", "Only messages to this member.", metavar="AGENT"),
        switch("--open", "Only messages that somebody has to handle."),
        option("--limit", "Show at most the newest N.", type=int, metavar="N", default=20),
        doc=_SENT,
        words="messages:sent_before",
        answers=list[Message],
        reads=True,
        held="to open limit",
        example="sent --open",
        also="outbox sent-messages receipts delivery overdue",
    ),
    Command(
        "reply",
        "commands.runners.messages:reply",
        argument("ID", "The message: 7, #7 or msg-7.", name="message"),
        _TEXT,
        doc=reading.reply,
        words="messages:replied",
        answers=Message,
        adding=True,
        held="message text",
        example='reply 12 "Use the second one"',
        want="answer a message",
        also="respond reply-message answer-message",
    ),
    Command(
        "ack",
        _ack,
        argument(
            "ID",
            "The messages: 7, #7 or msg-7; or all that you read.",
            name="message",
            many=True,
            required=False,
            else_all=True,
        ),
        doc=_ACK,
        words="messages:handled",
        repeatable=True,
        daily=True,
        held="message",
        example="ack 12",
        also="acknowledge ack-message mark-read handle",
    ),
    Command(
        "list-agents",
        "commands.runners.messages:list_agents",
        doc=_LIST,
        reads=True,
        words="messages:agents",
        daily=True,
        held="",
        example="list-agents",
        also="agents member members list-members ps who",
    ),
    Command(
        "attend",
        "commands.runners.messages:attend",
        doc=_ATTEND,
        words="messages:attention",
        adding=True,
        quiet=True,
        held="",
        example="attend",
        also="attention",
    ),
)
