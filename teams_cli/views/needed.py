"""Needed: what who is called only when it is needed, as a leader that waits, need not hear at once."""

from __future__ import annotations

from teams_cli.membership import shutdowns
from teams_cli.names import SYSTEM
from teams_cli.store.contract import Store
from teams_cli.teams import teams

TYPE_CHECKING = False
if TYPE_CHECKING:
    from teams_cli.messages.messages import Message


def can_wait(found: list[Message], ends_expected: bool) -> bool:
    """Whether the messages say only what went well: that others completed tasks, or ended as they were asked to, where
    more of those are to come.
    """
    rest = [message for message in found if not _is_completion(message)]
    return not rest or (ends_expected and all(map(_is_end, rest)))


def expects_ends(store: Store, team_name: str, name: str) -> bool:
    """Whether members were asked by the agent to end whose answer is not there yet.

    The team is read behind the requests: of one that is answered by then it still owes the answer, or the answer was
    sent, and is in the mail that is read after this.
    """
    asked = [found for found, _ in store.scan(team_name, shutdowns.SHUTDOWN, []) if found.requested_by == name]
    team = teams.get(store, team_name)
    on_its_way = any(told.to == name and shutdowns.is_approval(told.about) for told in team.owed or ())
    return on_its_way or any(shutdowns.as_decided(found, team).status == "requested" for found in asked)


def _is_completion(message: Message) -> bool:
    """Whether all that the message says is that another completed a task."""
    return message.from_ == SYSTEM and message.type == "info" and (message.about or "").startswith("task-")


def _is_end(message: Message) -> bool:
    """Whether all that the message says is that a member ended as it was asked to."""
    return message.from_ == SYSTEM and shutdowns.is_approval(message.about)
