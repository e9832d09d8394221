"""Receipts: the time until which a message must be acknowledged, and the notice to its sender if it was not."""

from __future__ import annotations

from teams_cli.clock import later, rfc3339, seconds_since
from teams_cli.messages import inboxes
from teams_cli.messages.messages import MESSAGE, Message
from teams_cli.store.contract import Store, update, upsert
from teams_cli.teams import presence
from teams_cli.teams.presence import AGENT, Agent, Awaited
from teams_cli.teams.teams import Team

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from teams_cli.teams.presence import OnceShown


def due(store: Store, team: Team) -> str:
    """Return the time until which a message that is sent now must be acknowledged."""
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


def overdue(store: Store, team: str, sender: str) -> list[dict[str, Any]]:
    """Return a row for each message of the sender that was not acknowledged in time: its id, the end of that time, and
    the recipients that have not handled it. A recipient acknowledges a message by handling it.
    """
    numbers = [entry.number for entry in presence.load(store, team, sender).awaits or () if is_due(store, entry)]
    rows = []
    for message in store.fetch(team, MESSAGE, numbers, []) if numbers else ():
        names = [
            name
            for name in message.recipients or [message.to]
            if not inboxes.is_handled(inboxes.load_with_new(store, team, name), message.number)
        ]
        if names:
            rows.append({"id": message.id, "ackBy": message.ack_by, "waitsFor": names})
    return rows


def is_due(store: Store, entry: Awaited) -> bool:
    """Return whether the time until which the message must be acknowledged has passed."""
    return seconds_since(entry.due, store.now()) >= 0


def next_due(store: Store, team: str, sender: str) -> float | None:
    """Return the seconds until the next message of the sender becomes overdue; None if none of its messages will."""
    seconds = [-seconds_since(entry.due, store.now()) for entry in presence.load(store, team, sender).awaits or ()]
    return min((number for number in seconds if number > 0), default=None)


def overdue_notices(store: Store, team: str, sender: str, once_shown: OnceShown) -> list[str]:
    """Return a sentence for the sender about each overdue message that was not reported to it yet. *once_shown* gets a
    function, to be called after the sentences were shown. The function records that they were shown, and that the
    sender no longer waits for messages that were acknowledged.
    """
    overdue_entries = [entry for entry in presence.load(store, team, sender).awaits or () if is_due(store, entry)]
    if all(entry.told for entry in overdue_entries):  # or there are none
        return []
    rows = {row["id"]: row for row in overdue(store, team, sender)}

    def note_shown(agent: Agent) -> Agent:
        awaits = []
        for entry in agent.awaits or ():
            if not is_due(store, entry):
                awaits.append(entry)
            elif f"msg-{entry.number}" in rows:
                awaits.append(entry.having(told=True))
        return agent.having(awaits=awaits or None)

    once_shown(lambda: update(store, team, AGENT, sender, note_shown))
    unshown = [f"msg-{entry.number}" for entry in overdue_entries if not entry.told]
    return [f"{in_words(rows[key])}: teams show-message {key}" for key in unshown if key in rows]


def in_words(row: dict[str, Any]) -> str:
    """Return a sentence about an overdue message. *row* describes the message, as the function `overdue` returns it."""
    return f"{row['id']} is not acknowledged by {', '.join(row['waitsFor'])}"
