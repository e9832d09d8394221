"""Notices that changes owe: they are sent after the change, by whichever process comes next."""

from __future__ import annotations

from teams_cli import errors
from teams_cli.messages import messages
from teams_cli.messages.messages import Message
from teams_cli.records.records import Owed, Record
from teams_cli.store.contract import Kind, Store
from teams_cli.store.retrying import update

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeVar

    R = TypeVar("R", bound=Record)


def deliver(store: Store, team: str, kind: Kind[R], record: R, sent: dict[str, Message] | None = None) -> bool:
    """Send the notices that the record owes, and remove them from it. Their uids are added to *sent*.

    Return False if one could not be sent: the change stands, and the notice stays owed.
    """
    owed: list[Owed] = record.owed or []  # type: ignore[attr-defined]
    if not owed:
        return True
    try:
        sent = {} if sent is None else sent
        numbers = dict.fromkeys((told.uid for told in owed), 0)
        for told in owed:
            if due := record.still_due(told, store, team):
                sent[told.uid] = message = _send(store, team, due)
                numbers[told.uid] = message.number
        _pay(store, team, kind, record, numbers)
    except errors.TeamsError:
        return False
    return True


def send_owed_by(store: Store, team: str, kind: Kind[R], key: str) -> None:
    """Send the notices that the record of that key owes. A damaged record is skipped.

    The change is made durable first: its writer may have been killed before it was on the disk.
    """
    try:
        record, _ = store.get(team, kind, key)
    except errors.NotFound:
        return store.correct_hints(team, kind, [key])
    except errors.TeamsError:
        return None
    if not getattr(record, "owed", None):  # the change that was to owe it was not made
        return store.correct_hints(team, kind, [key])
    try:
        store.confirm(team, kind, key)
    except errors.TeamsError:
        return None
    deliver(store, team, kind, record)
    return None


def settle_request(store: Store, team: str, agent: str, about: str) -> None:
    """Handle the message that asked the agent for something that is done; see `reading.settle_about`."""
    from teams_cli.messages import reading  # heavier than all of what a hot command needs of notices

    reading.settle_about(store, team, agent, about)


def _send(store: Store, team: str, told: Owed) -> Message:
    """Send the notice, unless it was sent before."""
    return messages.notify(
        store,
        team,
        told.to,
        told.message,
        told.uid,
        told.type,
        told.sender,
        told.by,
        about=told.about,
        event=told.event,
        task=told.task,
    )


def _pay(store: Store, team: str, kind: Kind[R], record: R, sent: dict[str, int]) -> None:
    """Remove the notices with these uids from the record, which may note their message numbers.

    They are durable already. If a power cut puts them back on the record, sending them again adds nothing.
    """

    def paid(found: R) -> R:
        owed: list[Owed] = found.owed or []  # type: ignore[attr-defined]
        left = [told for told in owed if told.uid not in sent]
        if len(left) == len(owed):
            return found
        for told in owed:
            found = found.paid(told, sent[told.uid]) if told.uid in sent else found
        return found.having(owed=left or None)

    update(store, team, kind, getattr(record, kind.key), paid, lasting=False)
