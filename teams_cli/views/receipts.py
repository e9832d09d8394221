"""Receipts: what became of messages for each of their recipients, and the notice to a sender whose message was not
acknowledged in time.
"""

from __future__ import annotations

from teams_cli import errors
from teams_cli.clock import later, rfc3339, seconds_since
from teams_cli.messages import inboxes
from teams_cli.messages.messages import MESSAGE, Message
from teams_cli.names import HUMAN
from teams_cli.store.contract import Store, update, upsert
from teams_cli.teams import teams
from teams_cli.teams.presence import AGENT, Agent, Awaited
from teams_cli.teams.teams import Team

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from teams_cli.messages.inboxes import Inbox
    from teams_cli.teams.presence import OnceShown

NO_MORE = "will_not_be_read"

_BLOCK = 250
"""How many messages are read at a time."""
_MOST_SEARCHED = 10_000
"""How many of the team's newest messages are searched for those of one sender."""


def to_document(store: Store, team_name: str, key: str, reader: str) -> dict[str, Any]:
    """Return the message *key* as JSON, with its state for each recipient. *reader* is the agent that asks, which can
    see only messages that it sent or received. If *reader* is "", every message can be seen.

    Raises:
        MessageNotFound: There is no such message, or it is neither from nor to the *reader*.
    """
    try:
        message, _ = store.get(team_name, MESSAGE, key)
    except errors.NotFound:
        raise errors.MessageNotFound(f"there is no {key}", "See: teams read-messages --all") from None
    if reader and reader not in (message.from_, *_recipients(message)):
        raise errors.MessageNotFound(f"there is no {key} from you or to you", "See: teams read-messages --all")
    return reached(store, teams.get(store, team_name), message)


def reached(store: Store, team: Team, message: Message, inboxes_read: dict[str, Inbox] | None = None) -> dict[str, Any]:
    """Return the message as JSON, with its state for each recipient. If it still has to be acknowledged, `overdue` says
    whether the time for this has passed. *inboxes_read* maps agents to the inboxes that were read for earlier messages.
    Those that are read now are added.
    """
    inboxes_read = {} if inboxes_read is None else inboxes_read
    document = {
        **message.to_json(),
        "reach": [_state_for(store, team, message, name, inboxes_read) for name in _recipients(message)],
    }
    if message.ack_by and any(each["state"] != "handled" for each in document["reach"]):
        document["overdue"] = seconds_since(message.ack_by, store.now()) >= 0
    return document


def sent(store: Store, team: Team, sender: str, to: str, only_open: bool, most: int) -> list[dict[str, Any]]:
    """Return the newest messages of the *sender* with their states: at most *most* messages, oldest first. If *to* is
    not empty, return only messages to this agent. With *only_open*, return only messages that some recipient has yet to
    handle.
    """
    newest: list[dict[str, Any]] = []
    inboxes_read: dict[str, Inbox] = {}
    for message in _newest_first(store, team.name):
        if message.from_ != sender or to not in ("", *_recipients(message)):
            continue
        document = reached(store, team, message, inboxes_read)
        if not only_open or any(each["state"] not in ("handled", NO_MORE) for each in document["reach"]):
            newest.append(document)
        if len(newest) == most:
            break
    return newest[::-1]


def states_of(store: Store, team: Team, sender: str, window: int) -> list[dict[str, Any]]:
    """Return the states, without the texts, of the messages that the *sender* wrote, and of all messages that must be
    acknowledged. Only the newest messages of the team are searched, as many as *window* says.
    """
    inboxes_read: dict[str, Inbox] = {}
    wanted = (m for m in _newest_first(store, team.name, window) if m.from_ == sender or m.ack_by)
    rows = (reached(store, team, message, inboxes_read) for message in wanted)
    return [{key: row[key] for key in ("id", "reach", "overdue") if key in row} for row in rows]


def _newest_first(store: Store, team: str, window: int = _MOST_SEARCHED) -> Iterator[Message]:
    """Yield the team's newest messages, as many as *window* says (rounded up to a whole block)."""
    last = store.last(team, MESSAGE)
    for end in range(last, max(0, last - window), -_BLOCK):
        yield from reversed(store.fetch(team, MESSAGE, range(max(1, end - _BLOCK + 1), end + 1), []))


def _recipients(message: Message) -> list[str]:
    return message.recipients or [message.to]


def _state_for(store: Store, team: Team, message: Message, name: str, inboxes_read: dict[str, Inbox]) -> dict[str, Any]:
    """Return the state of the message for its recipient *name*, with the times that are known. It is `queued`, `woken`,
    `shown` (by a client without being asked), `read`, `handled` or `will_not_be_read`.
    """
    if (inbox := inboxes_read.get(name)) is None:
        inbox = inboxes_read[name] = inboxes.load_with_new(store, team.name, name)
    document = inboxes.documents([message], inbox)[0]
    entry = inbox.find_open(message.number)
    if entry and entry.turn is not None:  # 0 if the turns of the agent are not counted
        turn = {"turn": entry.turn} if entry.turn else {}
        return {"name": name, "state": "shown", "shownAt": entry.read_at, **turn}
    times: dict[str, Any] = {key: document[key] for key in ("readAt", "handledAt") if key in document}
    if "handledAt" in times:
        state = "handled"
    elif "readAt" in times:
        state = "read"
    elif _is_gone(store, team, name):
        state = NO_MORE
    else:
        from teams_cli.agents.seats import terminals

        terminal = terminals.find(store, team.name, name)
        is_woken = terminal and terminal.woken_to >= message.number and not terminal.unheard
        state = "woken" if is_woken else "queued"
    return {"name": name, "state": state, **times}


def _is_gone(store: Store, team: Team, name: str) -> bool:
    """Return whether nobody will read the mail of the agent *name*. An agent that has yet to join may still do so."""
    if name == HUMAN:
        return False
    from teams_cli.agents import sessions

    member = team.find(name)
    return team.state == "closed" or bool(member and not member.active) or sessions.was_stopped(store, team.name, name)


def due(store: Store, team: Team) -> str:
    """Return the time by which a message that is sent now must be acknowledged."""
    from teams_cli.teams import settings

    return rfc3339(later(store.now(), float(settings.value(team, "ack_timeout"))))


def expect(store: Store, team: str, sent: Message) -> None:
    """Record that the sender of the message *sent* waits for an acknowledgement. Repeating the call changes nothing."""
    if sent.ack_by is None:
        return
    entry = Awaited(number=sent.number, due=sent.ack_by)

    def change(agent: Agent) -> Agent:
        is_noted = any(awaited.number == sent.number for awaited in agent.awaits or ())
        return agent if is_noted else agent.having(awaits=[*(agent.awaits or ()), entry])

    upsert(store, team, AGENT, sent.from_, Agent(agent=sent.from_), change)


def overdue(store: Store, team: str, sender: Agent) -> list[dict[str, Any]]:
    """Return a row for each message of the *sender* that was not acknowledged in time: its id, the end of that time,
    and the recipients that have not handled it. A recipient acknowledges a message by handling it.
    """
    numbers = [entry.number for entry in sender.awaits or () if _is_due(store, entry)]
    rows = []
    for message in store.fetch(team, MESSAGE, numbers, []) if numbers else ():
        names = [
            name
            for name in _recipients(message)
            if not inboxes.is_handled(inboxes.load_with_new(store, team, name), message.number)
        ]
        if names:
            rows.append({"id": message.id, "ackBy": message.ack_by, "waitsFor": names})
    return rows


def _is_due(store: Store, entry: Awaited) -> bool:
    """Return whether the time by which the message must be acknowledged has passed."""
    return seconds_since(entry.due, store.now()) >= 0


def next_due(store: Store, sender: Agent) -> float | None:
    """Return the seconds until the next message of the *sender* becomes overdue; None if none of its messages will."""
    seconds = [-seconds_since(entry.due, store.now()) for entry in sender.awaits or ()]
    return min((number for number in seconds if number > 0), default=None)


def overdue_notices(store: Store, team: str, sender: Agent, once_shown: OnceShown) -> list[str]:
    """Return a sentence for the *sender* about each overdue message that was not reported to it yet. *once_shown* gets
    a function, to be called after the sentences were shown. The function records that they were shown, and that the
    sender no longer waits for messages that were acknowledged.
    """
    overdue_entries = [entry for entry in sender.awaits or () if _is_due(store, entry)]
    if all(entry.told for entry in overdue_entries):  # or there are none
        return []
    rows = {row["id"]: row for row in overdue(store, team, sender)}
    looked_up = {entry.number for entry in overdue_entries}

    def note_shown(agent: Agent) -> Agent:
        awaits = []
        for entry in agent.awaits or ():
            if entry.number not in looked_up:  # it may have become overdue meanwhile
                awaits.append(entry)
            elif f"msg-{entry.number}" in rows:
                awaits.append(entry.having(told=True))
        return agent.having(awaits=awaits or None)

    once_shown(lambda: update(store, team, AGENT, sender.agent, note_shown))
    unshown = [f"msg-{entry.number}" for entry in overdue_entries if not entry.told]
    return [f"{in_words(rows[key])}: teams show-message {key}" for key in unshown if key in rows]


def in_words(row: dict[str, Any]) -> str:
    """Return a sentence about an overdue message. *row* describes the message, as the function `overdue` returns it."""
    return f"{row['id']} is not acknowledged by {', '.join(row['waitsFor'])}"
