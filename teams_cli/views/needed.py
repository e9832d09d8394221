"""Needed: what who is called only when it is needed, as a leader that waits, need not hear at once."""

from __future__ import annotations

from teams_cli.membership import shutdowns
from teams_cli.messages import inboxes, messages
from teams_cli.names import SYSTEM
from teams_cli.store.contract import Store
from teams_cli.teams.teams import Team

TYPE_CHECKING = False
if TYPE_CHECKING:
    from teams_cli.messages.messages import Message


def can_wait(store: Store, team: Team, name: str, found: list[Message]) -> bool:
    """Whether the messages say only what went well: that others completed tasks, or ended as the agent of that name
    asked them to, where more of those are to come.
    """
    rest = [message for message in found if not _is_completion(message)]
    return not rest or (all(map(_is_end, rest)) and expects_ends(store, team, name))


def completions(store: Store, team: str, name: str) -> list[str]:
    """The tasks of whose completion the agent of that name has a message that it has not read."""
    numbers = inboxes.unread(store, team, name, quiet=True)
    found = store.fetch(team, messages.MESSAGE, numbers, []) if numbers else []
    return [message.about or "" for message in found if _is_completion(message)]


def expects_ends(store: Store, team: Team, name: str) -> bool:
    """Whether members were asked by the agent to end whose answer is not there yet."""
    on_its_way = any(told.to == name and shutdowns.is_approval(told.about) for told in team.owed or ())
    return on_its_way or any(
        asked.status == "requested" and asked.requested_by == name for asked in shutdowns.all_of(store, team, [])
    )


def _is_completion(message: Message) -> bool:
    """Whether all that the message says is that another completed a task."""
    return message.from_ == SYSTEM and message.type == "info" and (message.about or "").startswith("task-")


def _is_end(message: Message) -> bool:
    """Whether all that the message says is that a member ended as it was asked to."""
    return message.from_ == SYSTEM and shutdowns.is_approval(message.about)
