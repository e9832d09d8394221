"""Commands on messages and on who is there."""

from __future__ import annotations

from teams_cli import agents, attention, conditions, inboxes, messages, sessions, settings, views
from teams_cli.commands.declaration import Command, argument, option, switch, table
from teams_cli.errors import TeamsError, WrongUsage
from teams_cli.inboxes import Selection
from teams_cli.names import HUMAN, number_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from teams_cli.commands.call import Call
    from teams_cli.teams import Team

_LIST = """List the members: role, status line and its history, state, unread messages, when last seen.

`state` is active (runs, or has a task in progress), idle, stale (not heard of for `staleAfterSeconds`, or its process
is gone) or stopped (shut down). `queueDepth` counts unread messages.
"""
_ACK = """Mark messages as handled without an answer, so that they are shown no more.

Marking one twice changes nothing.

Raises:
    MessageNotFound: One was not sent to you; none is marked.
"""
_READ = """Show your unhandled messages, oldest first, and mark them as read.

Reading never removes: a message is shown until you answer it or `ack` it. With --wait, block until there is one.

Raises:
    WaitRanOut: None came within the time.
"""


def _send(call: Call, to: str, text: str, uid: str | None) -> Any:
    if call.caller and settings.value(call.load_team(), "delivery") == "interject":
        from teams_cli import interruptions

        return interruptions.deliver(call.store, call.team, call.caller, to, text, call.environ, uid=uid)[0].to_json()
    return _delivered(call, messages.send(call.store, call.team, call.caller, to, text, uid))


def _broadcast(call: Call, text: str, uid: str | None) -> Any:
    sent = messages.broadcast(call.store, call.team, call.caller, text, uid)
    if sent.from_ != HUMAN:
        agents.introduce(call.store, call.team, sent.from_, sent.message)
    return _delivered(call, sent)


def _delivered(call: Call, message: messages.Message) -> dict[str, Any]:
    """The stored message as JSON; those of its recipients that `teams` started and that are idle are resumed."""
    call.wake(*(message.recipients or [message.to]))
    return message.to_json()


def _announce(call: Call, status: str) -> Any:
    agent = agents.announce(call.store, call.team, call.caller, status)
    return {"name": agent.agent, "status": agent.status, "statusHistory": [e.to_json() for e in agent.status_history]}


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
        raise WrongUsage(f"{limit} is no limit", "Give a number from 1.")
    after = number_of(since, "msg") if since else 0
    selection = Selection(from_ or "", after, limit or 0, handled=all)
    if wait is None:
        return inboxes.read(call.store, call.team, call.caller, selection, call.problems, peek)

    def sleep(ready: Any, timeout: float) -> bool:
        def look() -> bool:
            sessions.children(call.store, call.team, call.agent)  # the end of one that was killed is news too
            return bool(ready())

        return conditions.sleep_until(call.store, call.team, look, timeout)

    return inboxes.wait_and_read(call.store, call.team, call.caller, selection, call.problems, wait, sleep, peek)


def _reply(call: Call, message: str, text: str) -> Any:
    answer, original = inboxes.reply(call.store, call.team, call.caller, message, text)
    return {**_delivered(call, answer), "repliedTo": original.to_json()}


def _ack(call: Call, message: list[str]) -> Any:
    handled = inboxes.handle(call.store, call.team, call.caller, list(message))
    return {"handled": [found.id for found in handled]}


def _list(call: Call) -> Any:
    team = call.load_team()
    rows = views.agent_rows(call.store, team, call.problems)
    if any("session" not in row and _is_started(team, row["name"]) for row in rows):
        rows = views.agent_rows(call.store, _cleared(call, team), call.problems)
    return {"self": call.caller.name if call.caller else None, "agents": rows}


def _is_started(team: Team, name: str) -> bool:
    member = team.find(name)
    return member is not None and member.started_by is not None


def _cleared(call: Call, team: Team) -> Team:
    """The team without those that somebody was about to start when it was killed, if that can be written."""
    from teams_cli import launching

    try:
        launching.clear_away(call.store, team)
    except TeamsError:
        return team
    return call.load_team()


def _attend(call: Call) -> Any:
    team = call.team
    return attention.payload(call.store, team, call.caller)


_TEXT = argument("TEXT", "What to say; `-` reads it from standard input.", name="text", text=True)
_UID = option("--uid", "A name of your own for this message: sending again under it adds nothing.")

COMMANDS = table(
    Command(
        "send-message",
        _send,
        argument("TO", "A member, `leader` or `human`.", name="to"),
        _TEXT,
        _UID,
        doc=messages.send,
    ),
    Command("broadcast-message", _broadcast, _TEXT, _UID, doc=messages.broadcast),
    Command(
        "announce",
        _announce,
        argument("STATUS", "What you are working on.", name="status", text=True),
        doc=agents.announce,
    ),
    Command(
        "read-messages",
        _read,
        switch("--all", "Also those that are handled; marks nothing."),
        switch("--peek", "Mark nothing."),
        option("--from", "Only those of this sender.", metavar="AGENT", name="from_"),
        option("--since", "Only those after this one.", metavar="ID"),
        option("--wait", "Block until there is one, at most so long.", type=float, metavar="SECONDS"),
        option("--limit", "Show at most N.", type=int, metavar="N"),
        doc=_READ,
    ),
    Command("reply", _reply, argument("ID", "The message: 7, #7 or msg-7.", name="message"), _TEXT, doc=inboxes.reply),
    Command(
        "ack",
        _ack,
        argument("ID", "The messages: 7, #7 or msg-7.", name="message", many=True, required=True),
        doc=_ACK,
    ),
    Command("list-agents", _list, doc=_LIST, reads=True),
    Command("attend", _attend, doc=attention.payload),
)
