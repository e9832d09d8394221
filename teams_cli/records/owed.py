"""Owed notices: part of a change's commit, and sent after it by the next command."""

from __future__ import annotations

from teams_cli.names import SYSTEM
from teams_cli.records.records import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeVar

    from teams_cli.records.types import MessageType, Name, Text, Word

    R = TypeVar("R", bound=Record)


class Owed(Record):
    """A notice that is still to be sent. Its *uid* is made from the event, so that sending it twice adds nothing;
    *by* is who caused it; doing what it is *about* handles it.
    """

    to: Name
    message: Text
    uid: Word
    type: MessageType = "notice"
    sender: Name = SYSTEM
    by: Name = SYSTEM
    about: Word | None = None


def owing(record: R, *notices: Owed) -> R:
    """Add notices to what the record owes, for the commit that changes it."""
    return record.having(owed=[*(record.owed or ()), *notices]) if notices else record  # type: ignore[attr-defined]
