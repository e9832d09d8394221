"""Commands for received and sent messages, and for members."""

from __future__ import annotations

from teams_cli import errors, text
from teams_cli.clock import ago, clock_time, length
from teams_cli.commands.declaration import (
    EVERY_ROW,
    Command,
    Table,
    argument,
    in_group,
    option,
    present,
    row_limit,
    switch,
)
from teams_cli.messages import reading
from teams_cli.messages.messages import Message, quote, quote_bounded
from teams_cli.messages.reading import Reading, Selection
from teams_cli.names import HUMAN, number_of
from teams_cli.teams.permission import refuse_former, require

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from teams_cli.commands.call import Call
    from teams_cli.commands.declaration import Parts


_CHARACTERS_OF_OLD = 72
_CHARACTERS_OF_SENT = 48
_LIST = """List the members: role, activity, state, unread messages, last seen.

`state` is active (the agent runs or has a task in progress), idle, stale (it was silent for `staleAfterSeconds`, or its
process is gone) or stopped (it was shut down). An idle member with `mayHaveEnded` was notified that all work is done,
and does not wait for more. `queueDepth` counts unread messages.
"""
_ACK = """Mark messages as handled without an answer: those that you name, or else all that you have read. Marking a
message twice changes nothing.

Raises:
    MessageNotFound: You have no such message; no message was marked.
"""
_ATTEND = """Show the other agents and your open messages in the format of the OpenCode `broadcast` tool.

The answer is for clients, not for people. A client appends the answer to the context of each model call. Messages are
repeated until they are handled; showing them marks them as read. Until you run `announce`, the key `hint` says how to
announce your activity. A message to one agent is not shown to others.
"""
_READ = """Show your new messages, and a line for each older message that is still open.

A message is open until you answer it or `ack` it. A message that needs no answer is open until you read it. With
--wait, wait for a new message.

Raises:
    WaitRanOut: No message came in time.
"""
_SHOW = """Show a message, and its state for each recipient.

The states are: queued; woken (the recipient's client in a terminal was woken); shown (in a turn or by a hook); read;
handled; and will not be read. The sender, the recipients, the leader and the human may see a message.

Raises:
    MessageNotFound: There is no such message, or you may not see it.
"""
_SENT = """List the messages that you sent, oldest first, each with its state for each recipient.

The states are: queued; woken (the recipient's client in a terminal was woken); shown (in a turn or by a hook); read;
handled; and will not be read. A message will not be read if the recipient left or was stopped, or if the team is
closed. A message sent with --ack-required is overdue if it is not handled within the time in the setting `ack_timeout`.
"""


def _read(
    call: Call, all: bool, peek: bool, from_: str | None, since: str | None, wait: float | None, limit: int | None
) -> Any:
    after = number_of(since, "msg") if since else 0
    selection = Selection(from_ or "", after, limit or 0, handled=all, room=call.max_bytes)
    if not (all or peek) and call.caller:
        from teams_cli.views import mail

        # Messages about ended tasks need no answer. If they can't be closed now, they are only shown once more.
        call.try_to(lambda: mail.close_settled(call.store, call.team, call.agent))
    if wait is not None and not all:
        _wait(call, selection, wait)
    once_shown = None if peek else call.once_shown
    messages = reading.read(
        call.store, call.team, call.caller, selection, call.problems, once_shown, left_out=call.left_out
    )
    if messages.more:
        if all:
            options = f" --all --since {messages[-1]['id']}"
        elif messages.unread:  # those shown are marked as read, so the next ones follow
            options = ""
        else:
            options = f" --limit {len(messages) + messages.more}"
        sender = f" --from {from_}" if from_ else ""
        call.remark = f"{messages.more} more: teams read-messages{options}{sender}"
    elif messages and not (all or peek):
        _set_next_step(call, messages)
    return messages


def _set_next_step(call: Call, messages: Reading) -> None:
    """Set the next step to the command that the messages ask for, or else to the next one of the caller's work."""
    from teams_cli.views import mail, steps

    def subject_of(message: dict[str, Any]) -> dict[str, Any] | None:
        about = str(message.get("about") or "")
        if not about or mail.is_outdated(call.store, call.team, call.agent, Message.from_json(message)):
            return None
        return mail.subject_of(call.store, call.team, about)

    if call.load_team().state == "closed":  # whatever the messages ask for would be refused
        return
    call.next_step = steps.after_reading(messages, call.load_team(), subject_of)
    if not call.next_step and call.load_team().member(call.agent):
        call.try_to(call.set_next_step)


def _wait(call: Call, selection: Selection, seconds: float) -> None:
    """Wait for a message. The wait also ends when an agent that the caller started ends, or the team is closed."""
    from teams_cli.agents import ending
    from teams_cli.store import pace
    from teams_cli.tasks import overviews

    alarm = pace.Alarm()
    has_arrived = reading.arrival(call.store, call.team, call.caller, selection)

    def look() -> bool:
        started = ending.children(call.store, call.team, call.agent)  # the end of a killed agent is news, too
        ending.set_alarm(call.store, call.team, started, alarm)
        if has_arrived():
            return True
        team = call.load_team()
        refuse_former(team, call.known_caller)
        overviews.refuse_closed(call.store, team)
        return False

    topics = ["team", f"message/{call.agent}"]
    if not pace.sleep_until(call.store, call.team, look, seconds, topics, alarm, call.say):
        why = f"no new message came within {length(seconds)}"
        raise errors.WaitRanOut(why, "Wait longer, or go on with other work.")


def _ack(call: Call, message: list[str]) -> Any:
    handled = reading.handle(call.store, call.team, call.caller, list(message))
    call.try_to(call.set_next_step)
    return {"handled": [message.id for message in handled]}


_TEXT = argument("TEXT", "What to say; `-` reads it from standard input.", name="text", text=True)


def _show(call: Call, message: str) -> Any:
    from teams_cli.views import receipts

    team = require(call.store, call.team, call.known_caller, "read-messages").team
    reader = "" if call.agent in (HUMAN, team.leader) else call.agent  # "" may see every message
    return receipts.to_document(call.store, call.team, f"msg-{number_of(message, 'msg')}", reader)


def _sent(call: Call, to: str | None, open: bool, limit: int) -> Any:
    from teams_cli.views import receipts

    standing = require(call.store, call.team, call.known_caller, "read-messages")
    return receipts.sent(call.store, standing.team, standing.caller.name, to or "", open, limit)


def _list_agents(call: Call) -> Any:
    from teams_cli.views import agents

    team = call.load_team()
    rows = agents.agent_rows(call.store, team, call.problems)
    started = {member.agent_id for member in team.roster() if member.started_by is not None}
    if any("session" not in row and row["name"] in started for row in rows):  # its start may have been interrupted
        from contextlib import suppress

        from teams_cli.agents import starting

        with suppress(errors.TeamsError):  # if the store can't be written, the agents are listed unchanged
            starting.remove_never_started(call.store, team)
            team = call.load_team()
        rows = agents.agent_rows(call.store, team, call.problems)
    return {"self": call.caller.name if call.caller else None, "agents": rows}


def _attend(call: Call) -> Any:
    from teams_cli.agents import attention

    return attention.payload(call.store, call.team, call.known_caller, call.once_shown, call.left_out)


def _reply(call: Call, message: str, text: str) -> Any:
    """Answer a message. If the message asks a question, the *text* becomes the answer to this question."""
    from teams_cli.questions import answering

    if question := answering.asked_by(call.store, call.team, call.caller, message):
        original = reading.received(call.store, call.team, call.agent, message)
        answered = answering.answer(call.store, call.team, call.caller, question.id, text)
        document = {
            "id": answered.id,
            "from": call.agent,
            "to": answered.from_,
            "message": text,
            "timestamp": next(answer.at for answer in answered.answers if answer.responder == call.agent),
            "type": "answer",
            "replyTo": original.id,
            "question": answered.id,
            "status": answered.status,
            "repliedTo": original.to_json(),
        }
    else:
        reply, original = reading.reply(call.store, call.team, call.caller, message, text, call.problems)
        document = {**reply.to_json(), "repliedTo": original.to_json()}
    from teams_cli.tasks import claims

    if call.try_to(lambda: claims.may_claim_now(call.store, call.load_team(), call.known_caller)):
        call.try_to(call.set_next_step)
    return document


def words_of_read(messages: list[dict[str, Any]]) -> Parts:
    new_lines: list[str] = []
    old_lines: list[str] = []
    for message in messages:
        if message.get("readBefore"):
            beginning = text.clipped_line(message["message"], _CHARACTERS_OF_OLD)
            old_lines.append(f"  {message['id']} from {message['from']}, {ago(message['timestamp'])}: {beginning}")
        else:
            new_lines += _message_lines(message, is_bounded=True)
    if old_lines:
        # Otherwise many old messages would take the room of the new ones, which are marked as read.
        if_cut = f"  [cut; all of it: teams read-messages --peek --limit {EVERY_ROW} --json >FILE]"
        old_lines = text.bounded(old_lines, text.MOST_ANSWER, if_cut)
        old_lines.insert(0, "still open (`teams reply ID TEXT`, or `teams ack`; in full: `teams read-messages --all`):")
    return [*(new_lines or ["no new messages" if old_lines else "no messages"]), *old_lines]


def _message_lines(document: dict[str, Any], is_bounded: bool = False) -> list[str]:
    """Return a line about the message, and its text, which is cut at a limit if *is_bounded* is set."""
    # A message that needs no answer is handled when it is read. This is not worth saying.
    is_handled = document.get("handledAt", "") > document.get("readAt", "")
    is_for_reader = "reach" not in document  # else the states for all recipients are shown
    head = f"{document['id']}, {ago(document['timestamp'])}"
    if "replyTo" in document:
        head += f", answers {document['replyTo']}"
    if is_handled:
        head += ", handled"
    elif "ackBy" in document and is_for_reader:
        head += f", to acknowledge: teams ack {document['id']}"
    message = Message.from_json(document)
    return [head, *(quote_bounded(message) if is_bounded else quote(message).split("\n"))]


def words_of_sent_before(documents: list[dict[str, Any]]) -> Parts:
    rows = []
    for document in documents:
        beginning = text.clipped_line(document["message"], _CHARACTERS_OF_SENT)
        overdue = " OVERDUE" if document.get("overdue") else ""
        rows += [
            [document["id"], each["name"], state_in_words(each) + overdue, ago(document["timestamp"]), beginning]
            for each in document["reach"]
        ]
    return [Table(["message", "to", "state", "age", "text"], rows, "nothing sent")]


def agent_state(agent: dict[str, Any]) -> str:
    """Return the state of an agent for a list, or its trouble if it has any. If its provider limits it, add the end of
    the limit. If it is idle and was paused, or may have ended its work, return that instead.
    """
    state = str(agent.get("trouble") or agent["state"])
    if state == "idle" and agent.get("session", {}).get("state") == "paused":  # no message resumes it
        return "paused"
    if state == "idle" and agent.get("mayHaveEnded"):
        return "may have ended"
    return f"{state} until {clock_time(agent['limitedUntil'])}" if state == "limited" else state


def state_in_words(reach: dict[str, Any]) -> str:
    """Return the state of a message for one recipient, such as `read`. *reach* is an entry of the message's `reach`."""
    turn = f" (turn {reach['turn']})" if "turn" in reach else ""
    return f"{reach['state'].replace('_', ' ')}{turn}"


def words_of_reached(document: dict[str, Any]) -> Parts:
    rows = [
        [to["name"], state_in_words(to), *(ago(to.get(key)) for key in ("shownAt", "readAt", "handledAt"))]
        for to in document["reach"]
    ]
    late = [f"overdue: it should have been acknowledged {ago(document['ackBy'])}"] if document.get("overdue") else []
    return [*_message_lines(document), Table(["to", "state", "shown", "read", "handled"], rows, "nobody"), *late]


def words_of_replied(answer: dict[str, Any]) -> Parts:
    original = answer["repliedTo"]
    if "question" in answer:
        return [f"{answer['question']}: answered to {answer['to']}; {original['id']} is handled"]
    return [f"{answer['id']}: sent to {answer['to']}; {original['id']} is handled"]


def words_of_agents(document: dict[str, Any]) -> Parts:
    rows = []
    for agent in document["agents"]:
        remark = " (you)" if agent["name"] == document["self"] else ""
        row = [
            agent["name"] + remark,
            agent["role"],
            agent_state(agent),
            str(agent["queueDepth"]),
            ago(agent["lastSeen"]),
            text.listed(agent.get("tasks", ()), 3) or "-",
            agent["status"] or "-",
        ]
        rows.append(row)
    lines: Parts = [Table(["agent", "role", "state", "unread", "last seen", "tasks", "status"], rows, "no agents")]
    for agent in document["agents"]:
        if worktree := agent.get("session", {}).get("worktree"):
            lines.append(f"{agent['name']} works in {worktree}")
    for agent in document["agents"]:
        if permission := agent.get("terminal", {}).get("waitsFor"):
            lines.append(f"{agent['name']} waits for a permission: {permission}")
    return lines


def words_of_attention(payload: dict[str, Any]) -> Parts:
    state = payload["state"]
    output = state["output"]
    lines: Parts = [state["title"]]
    lines += [output["hint"]] if "hint" in output else []
    for agent in output["agents"]:
        tree = f" (in {agent['worktree']})" if "worktree" in agent else ""
        lines.append(f"{agent['name']}{' (idle)' if agent['idle'] else ''}: {agent['status'] or '-'}{tree}")
    for message in output["messages"]:
        lines += [f"#{message['id']}", f'[From agent "{message["from"]}"]:', *text.quoted(message["content"], "| ")]
    return [*lines, *present(output.get("more"))]


COMMANDS = in_group(
    "Messages",
    Command(
        "read-messages",
        _read,
        switch("--all", "Also show handled messages; mark none as read.", seldom=True),
        switch("--peek", "Do not mark the messages as read.", seldom=True),
        option("--from", "Only messages from this sender.", metavar="AGENT", name="from_", seldom=True),
        option("--since", "Only messages after this one.", metavar="MESSAGE", seldom=True),
        option("--wait", "How long to wait for a message.", metavar="SECONDS"),
        row_limit("Show at most N messages.", default=20, seldom=True),
        doc=_READ,
        words=words_of_read,
        answers=list[Message],
        traits="long sleeps repeatable daily quiet",
        held="all peek from_ since wait limit",
        example="read-messages",
        want="read your messages",
        also={
            (
                "inbox read messages get-messages list-messages check-messages mail receive check-mail "
                "check-inbox read-inbox read-mail get-mail list-msg msgs notice"
            ): ""
        },
    ),
    Command(
        "show-message",
        _show,
        argument("ID", "The message's id, such as 7, #7 or msg-7.", name="message"),
        doc=_SHOW,
        words=words_of_reached,
        traits="reads whole",
        held="message",
        example="show-message 7",
        also="message-status delivered receipt",
    ),
    Command(
        "sent",
        _sent,
        option("--to", "Only messages to this member.", metavar="AGENT"),
        switch("--open", "Only messages that somebody still has to handle."),
        row_limit("Show only the newest N.", default=20),
        doc=_SENT,
        words=words_of_sent_before,
        answers=list[Message],
        traits="reads",
        held="to open limit",
        example="sent --open",
        also="outbox sent-messages receipts delivery overdue",
    ),
    Command(
        "reply",
        _reply,
        argument("ID", "The message's id, such as 7, #7 or msg-7.", name="message"),
        _TEXT,
        doc=reading.reply,
        words=words_of_replied,
        answers=Message,
        traits="adding",
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
            "The messages' ids, such as 7, #7 or msg-7; without an id, all messages that you have read.",
            name="message",
            many=True,
            required=False,
            else_all=True,
        ),
        doc=_ACK,
        words=lambda done: [f"handled: {', '.join(done['handled']) or 'nothing was open'}"],
        traits="repeatable daily",
        held="message",
        example="ack 12",
        also="acknowledge ack-message mark-read handle",
    ),
    Command(
        "list-agents",
        _list_agents,
        doc=_LIST,
        words=words_of_agents,
        traits="reads daily",
        held="",
        example="list-agents",
        also="agents member members list-members ps who",
    ),
    Command(
        "attend",
        _attend,
        doc=_ATTEND,
        words=words_of_attention,
        traits="adding quiet",
        held="",
        example="attend",
        also="attention",
    ),
)
