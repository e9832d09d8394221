"""Notices about changes. A changed record stores the notices to be sent. The process that made the change then sends
them, or a later process does if it can't.
"""

from __future__ import annotations

from teams_cli import errors
from teams_cli.messages import messages
from teams_cli.messages.messages import Message
from teams_cli.records.records import Owed, Record
from teams_cli.store.contract import Kind, Store, update

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeVar

    R = TypeVar("R", bound=Record)


def deliver(store: Store, team: str, kind: Kind[R], record: R, sent: dict[str, Message] | None = None) -> bool:
    """Send the unsent notices that are stored in the *record*, and remove them from it. The sent messages are added to
    *sent*, by the uids of the notices.

    Return False if a notice could not be sent. It then stays in the record, and is sent later.
    """
    owed: list[Owed] = record.owed or []  # type: ignore[attr-defined]
    if not owed:
        return True
    try:
        sent = {} if sent is None else sent
        numbers = {notice.uid: 0 for notice in owed}  # 0 stands for a notice that is no longer due
        for notice in owed:
            if due := record.still_due(notice, store, team):
                message = messages.notify(
                    store,
                    team,
                    due.to,
                    due.message,
                    due.uid,
                    due.type,
                    due.sender,
                    due.by,
                    about=due.about,
                    event=due.event,
                    task=due.task,
                )
                sent[notice.uid] = message
                numbers[notice.uid] = message.number
        _remove_sent(store, team, kind, record, numbers)
    except errors.TeamsError:
        return False
    return True


def send_owed_by(store: Store, team: str, kind: Kind[R], key: str) -> None:
    """Send the unsent notices that are stored in the record with that *key*. If the record is damaged, nothing is sent.

    The record is made durable first, because the process that changed it may have been killed before it did so.
    """
    record: R | None = None
    try:
        record = store.get(team, kind, key)[0]
    except errors.NotFound:
        pass
    except errors.TeamsError:
        return
    if record is None or not getattr(record, "owed", None):  # the change was not made, so the store's hint is wrong
        store.correct_hints(team, kind, [key])
        return
    try:
        store.confirm(team, kind, key)
    except errors.TeamsError:
        return
    deliver(store, team, kind, record)


def close_requests(store: Store, team: str, agent: str, about: str) -> None:
    """Mark as handled all messages that ask the agent to deal with *about*, the id of a plan or a question, because the
    agent has done so. Errors are ignored: at worst, an outdated message stays open.
    """
    from teams_cli.messages import inboxes, reading  # large modules, which the most frequent commands do not need

    try:
        mail = inboxes.Mailbox(store, team, agent).open_messages()
        requests = {message.number for message in mail if message.about == about}
        if requests:
            reading.mark_handled(store, team, agent, requests)
    except errors.TeamsError:
        return


def _remove_sent(store: Store, team: str, kind: Kind[R], record: R, numbers: dict[str, int]) -> None:
    """Remove from the record the notices that were sent. *numbers* has, by the uids of these notices, the numbers of
    their messages; 0 for a notice that was no longer due.

    The messages are on the disk by now. If a power cut brings notices back into the record, they are sent again, which
    adds no second message.
    """

    def without_sent(record: R) -> R:
        owed: list[Owed] = record.owed or []  # type: ignore[attr-defined]
        remaining = [notice for notice in owed if notice.uid not in numbers]
        if len(remaining) == len(owed):
            return record
        for notice in owed:
            if notice.uid in numbers:
                # Only a session changes: the message of a restart becomes its next turn.
                record = record.paid(notice, numbers[notice.uid])
        return record.having(owed=remaining or None)

    update(store, team, kind, getattr(record, kind.key), without_sent, lasting=False)
