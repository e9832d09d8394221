"""Receipts: until when a message must be acknowledged, and the notice to its sender if it was not."""

from __future__ import annotations

from teams_cli.clock import later, rfc3339, seconds_since
from teams_cli.messages import inboxes
from teams_cli.messages.messages import MESSAGE, Message
from teams_cli.store.contract import Store
from teams_cli.store.retrying import update, upsert
from teams_cli.teams import presence
from teams_cli.teams.presence import AGENT, Agent, Awaited
from teams_cli.teams.teams import Team

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from teams_cli.teams.presence import OnceTold


WITHIN = "ack_timeout"


def due(store: Store, team: Team) -> str:
    """Return until when a message that is sent now must be acknowledged."""
    from teams_cli.teams import settings

    return rfc3339(later(store.now(), float(settings.value(team, WITHIN))))


def expect(store: Store, team: str, sent: Message) -> None:
    """Note that the sender of a stored message waits for its acknowledgement. Repeating it changes nothing."""
    if sent.ack_by is None:
        return
    entry = Awaited(number=sent.number, due=sent.ack_by)

    def change(agent: Agent) -> Agent:
        known = any(each.number == sent.number for each in agent.awaits or ())
        return agent if known else agent.having(awaits=[*(agent.awaits or ()), entry])

    upsert(store, team, AGENT, sent.from_, Agent(agent=sent.from_), change)


def recipients_to_acknowledge(store: Store, team: str, message: Message) -> list[str]:
    """Return the recipients who have not handled a message."""

    def is_open(name: str) -> bool:
        inbox = inboxes.advance(store, team, inboxes.load(store, team, name), [])
        return not inboxes.is_handled(inbox, message.number)

    return [name for name in message.recipients or [message.to] if is_open(name)]


def overdue(store: Store, team: str, sender: str) -> list[dict[str, Any]]:
    """Return the overdue messages of the sender, with the recipients who have not handled them."""
    late = [entry.number for entry in presence.load(store, team, sender).awaits or () if is_due(store, entry)]
    rows = []
    for message in store.fetch(team, MESSAGE, late, []) if late else ():
        if names := recipients_to_acknowledge(store, team, message):
            rows.append({"id": message.id, "ackBy": message.ack_by, "waitsFor": names})
    return rows


def is_due(store: Store, entry: Awaited) -> bool:
    """Whether the message should have been acknowledged by now."""
    return seconds_since(entry.due, store.now()) >= 0


def next_due(store: Store, team: str, sender: str) -> float | None:
    """Return in how many seconds the next message of the sender becomes overdue; None if none will."""
    left = [-seconds_since(entry.due, store.now()) for entry in presence.load(store, team, sender).awaits or ()]
    return min((seconds for seconds in left if seconds > 0), default=None)


def overdue_notices(store: Store, team: str, sender: str, once_told: OnceTold) -> list[str]:
    """Return a notice to the sender for each overdue message. Acknowledged messages are removed from the list."""
    late = [entry for entry in presence.load(store, team, sender).awaits or () if is_due(store, entry)]
    if all(entry.told for entry in late):
        return []
    rows = {row["id"]: row for row in overdue(store, team, sender)}

    def change(agent: Agent) -> Agent:
        kept = [
            each.having(told=True) if is_due(store, each) else each
            for each in agent.awaits or ()
            if not is_due(store, each) or f"msg-{each.number}" in rows
        ]
        return agent.having(awaits=kept or None)

    once_told(lambda: update(store, team, AGENT, sender, change))
    untold = [f"msg-{entry.number}" for entry in late if not entry.told]
    return [f"{in_words(rows[key])}: teams show-message {key}" for key in untold if key in rows]


def in_words(row: dict[str, Any]) -> str:
    """Return a sentence about an overdue message."""
    return f"{row['id']} is not acknowledged by {', '.join(row['waitsFor'])}"
