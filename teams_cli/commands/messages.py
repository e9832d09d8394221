"""Commands that send messages, and announce the sender's work."""

from __future__ import annotations

from itertools import takewhile

from teams_cli import errors, text
from teams_cli.commands.call import Attempt
from teams_cli.commands.declaration import Command, argument, in_group, option, present, switch
from teams_cli.messages import messages
from teams_cli.messages.messages import Message
from teams_cli.names import HUMAN, each_name
from teams_cli.teams import presence
from teams_cli.text import in_quotes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from teams_cli.commands.call import Call
    from teams_cli.commands.declaration import Parts
    from teams_cli.teams.teams import Team


def _send(
    call: Call, to: list[str], text: str, to_owners_of: str | None, fyi: bool, ack_required: bool, uid: str | None
) -> Any:
    """Send a message. Without a *uid*, one is made, so that a repeat after a lost answer sends no second message."""
    names = each_name(to)
    team = call.load_team()
    if len(to) > 1:
        _refuse_unquoted(call, team, to, text)
    elif to:
        _refuse_reversed(team, to[0], names, text)
    if to_owners_of:
        names += _other_owners(call, to_owners_of)
    if not names:
        raise errors.WrongUsage("the recipient or the text is missing", "teams send-message AGENT TEXT")
    if fyi and ack_required:
        raise errors.WrongUsage("--fyi and --ack-required can't be combined", "Choose one.")
    expected = _names_to_come(call, team, names)
    ack_by = None
    if ack_required:
        from teams_cli.views import receipts

        ack_by = receipts.due(call.store, team)

    def send(uid: str | None) -> Message:
        if call.caller and len(names) == 1 and not expected and team.settings.get("delivery") == "interject":
            from teams_cli.agents import interrupting

            return interrupting.send_and_interrupt(
                call.store, call.team, call.caller, names[0], text, call.environ, uid=uid, fyi=fyi, ack_by=ack_by
            )[0]
        return messages.send(
            call.store, call.team, call.caller, names, text, uid, fyi, ack_by=ack_by, expected=expected
        )

    if uid is None and call.caller:
        with Attempt(call, "send-message", *names, text, str(fyi), str(ack_required)) as attempt_uid:
            sent = send(attempt_uid)
    else:
        sent = send(uid)
    if ack_required:  # the message is sent, so a failure to expect its receipt is only reported
        call.try_to(lambda: receipts.expect(call.store, call.team, sent))
    return _with_readers(call, sent, expected)


def _refuse_reversed(team: Team, to: str, names: list[str], text: str) -> None:
    """Refuse a message whose recipient and text were swapped: *text* is a member's name, and none of *names* is."""
    members = {*team.active_names(), HUMAN}
    if text in members and not members.intersection(names) and to != "leader":
        hint = f"Write the recipient first: teams send-message {text} {in_quotes(to)}"
        raise errors.AgentNotFound(f"{to!r} is not a member, but {text} is", hint)


def _names_to_come(call: Call, team: Team, names: list[str]) -> list[str]:
    """Return those of the *names* that belong to agents that have yet to join. Messages to them are kept until then."""
    if all(name in (HUMAN, "leader") or team.find(name) for name in names):
        return []
    from teams_cli.membership import joining

    return joining.expected(call.store, team, names, call.config)


def _refuse_unquoted(call: Call, team: Team, words: list[str], text: str) -> None:
    """Refuse a message whose text was written without quotes: its first *words* would be taken for recipients."""

    def is_known(word: str) -> bool:
        names = each_name([word])
        expected = _names_to_come(call, team, names)
        return all(name in (HUMAN, "leader", *expected) or team.find(name) is not None for name in names)

    recipients = list(takewhile(is_known, words))
    words_of_text = words[len(recipients) :]
    if recipients and words_of_text:
        whole_text = in_quotes(" ".join([*words_of_text, text]))
        raise errors.WrongUsage(
            f"{words_of_text[0]!r} is not a member; the text must be one argument",
            f"Quote it: teams send-message {' '.join(recipients)} {whole_text}",
        )


def _other_owners(call: Call, task_refs: str) -> list[str]:
    """Return the owners of the tasks, except for the caller. Refuse if a task has no owner, or the caller owns all."""
    from teams_cli.tasks import tasks

    owners = []
    for task_ref in task_refs.split(","):
        task = tasks.get(call.store, call.team, task_ref.strip())
        if task.owner is None:
            raise errors.WrongState(f"{task.id} has no owner: it is {task.status}", "Name members: teams list-agents")
        owners.append(task.owner)
    other_owners = [name for name in owners if name != call.agent]
    if not other_owners:
        raise errors.NobodyThere(f"{call.agent} owns {task_refs}, and nobody else", "Name members: teams list-agents")
    return other_owners


def _broadcast(call: Call, text: str, uid: str | None) -> Any:
    if uid is None and call.caller:
        with Attempt(call, "broadcast-message", text) as attempt_uid:
            return _broadcast(call, text, attempt_uid)
    sent = messages.broadcast(call.store, call.team, call.caller, text, uid)
    if sent.from_ != HUMAN:  # the message is sent, so a failure here is only reported
        call.try_to(lambda: presence.introduce(call.store, call.team, sent.from_, sent.message))
    return _with_readers(call, sent)


def _with_readers(call: Call, message: Message, expected: Sequence[str] = ()) -> dict[str, Any]:
    """Return the message as JSON, with the recipients that may read it late or never. These have yet to join
    (*expected*), were stopped, can't begin a turn now, or were notified that all work is done.
    """
    document: dict[str, Any] = message.to_json()
    if expected:
        document["keptFor"] = expected

    def add_readers() -> None:
        from teams_cli.agents import sessions

        names = [name for name in message.recipients or [message.to] if name not in (HUMAN, *expected)]
        if stopped := [name for name in names if _is_gone(call, name)]:
            document["notReadBy"] = stopped
        others = [name for name in names if name not in stopped]
        if idle := [name for name in others if sessions.is_idle(call.store, call.team, name)]:
            from teams_cli.agents import resuming  # slow to import, and few members have a session

            if resting := resuming.at_rest(call.store, call.team, idle):
                document["readLater"] = resting
        if ended := sessions.that_may_have_ended(call.store, call.load_team(), others):
            document["mayNotRead"] = ended

    call.try_to(add_readers)
    return document


def _is_gone(call: Call, name: str) -> bool:
    """Return whether the agent was stopped or, if `teams` did not start it, its process has ended."""
    from teams_cli.agents import sessions

    if sessions.find(call.store, call.team, name):
        return sessions.was_stopped(call.store, call.team, name)
    return presence.is_gone(presence.load_other(call.store, call.team, name))


def _announce(call: Call, status: str) -> Any:
    agent = presence.announce(call.store, call.team, call.caller, status)
    return {"name": agent.agent, "status": agent.status, "statusHistory": [e.to_json() for e in agent.status_history]}


_TEXT = argument("TEXT", "What to say; `-` reads it from standard input.", name="text", also="message", text=True)
_UID = option("--uid", "An id of your choice: repeating the command with the same id does not send the message again.")


def words_of_resting(message: dict[str, Any]) -> list[str]:
    """Return a line for each recipient that can't begin a turn for the message now."""
    return [f"{name} begins no turn now: {reason}" for name, reason in message.get("readLater", {}).items()]


def words_of_sent(message: dict[str, Any]) -> Parts:
    to = ", ".join(message.get("recipients") or [message["to"]])
    stopped = ", ".join(message.get("notReadBy", ()))
    notified_of_end = ", ".join(message.get("mayNotRead", ()))
    kept = None
    if expected := message.get("keptFor"):
        verb = "joins" if len(expected) == 1 else "join"
        kept = f"kept until {text.listed(expected)} {verb}"
    return present(
        f"{message['id']}: sent to {to}",
        kept,
        f"{stopped} was stopped and will not read it; see: teams list-agents" if stopped else None,
        *words_of_resting(message),
        f"{notified_of_end}: was notified that all work is done, and may not read it" if notified_of_end else None,
    )


COMMANDS = in_group(
    "Messages",
    Command(
        "send-message",
        _send,
        argument("TO", "Members, `leader` or `human`.", name="to", many=True, required=False),
        _TEXT,
        option(
            "--to-owners-of", "Also send it to the owners of these tasks, such as 9,10.", metavar="TASKS", seldom=True
        ),
        switch("--fyi", "The message needs no answer."),
        switch(
            "--ack-required",
            "Notify me if the message is not handled within the time in the setting `ack_timeout`.",
            seldom=True,
        ),
        _UID,
        doc=messages.send,
        words=words_of_sent,
        answers=Message,
        traits="adding daily",
        held="to text to_owners_of fyi ack_required uid",
        example='send-message bob "The parser is done"',
        want="send a message to members, `leader` or `human`",
        also={
            "send message msg tell dm write say post post-message chat notify/TO": "send-message TO TEXT",
            "report report-back tell-leader notify-leader": "send-message leader TEXT",
        },
    ),
    Command(
        "broadcast-message",
        _broadcast,
        _TEXT,
        _UID,
        doc=messages.broadcast,
        words=words_of_sent,
        answers=Message,
        traits="adding daily",
        held="text uid",
        example='broadcast-message "main is broken, do not merge"',
        also="broadcast send-all message-all",
    ),
    Command(
        "announce",
        _announce,
        argument("STATUS", "What you are working on.", name="status", text=True, called="text"),
        doc=presence.announce,
        words=lambda agent: [f"{agent['name']}: {agent['status']}"],
        traits="repeatable",
        held="status",
        example='announce "writing the tests"',
        also="set-status status-line",
    ),
)
