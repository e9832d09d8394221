"""Counting the unread mail of many agents at once, without reading it."""

from __future__ import annotations

from teams_cli import errors
from teams_cli.messages import inboxes
from teams_cli.messages.inboxes import INBOX, MOST_OPEN, Inbox
from teams_cli.messages.messages import MESSAGE, Message
from teams_cli.names import SYSTEM
from teams_cli.store.contract import Store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection

_BY_SYSTEM = f"{SYSTEM}~"
"""How the uids of notices begin."""


def unread_counts(store: Store, team: str, agents: Collection[str]) -> dict[str, int]:
    """How many messages each of the agents has not read yet, as `inboxes.unread` counts them, from the envelopes of the
    log; of notices alone it has to be read whether they only inform. A message that can't be read counts as well.

    Raises:
        DamagedRecord: An inbox can't be read, whosever it is.
    """
    problems: list[errors.TeamsError] = []
    read = {inbox.agent: inbox for inbox, _ in store.scan(team, INBOX, problems)}
    if problems:
        raise problems[0]
    found = {agent: read.get(agent) or Inbox(agent=agent) for agent in agents}
    ahead = {agent: inbox.up_to for agent, inbox in found.items() if _is_simple(inbox)}
    counts = {agent: _unread_of(found[agent]) for agent in ahead}
    notices: dict[int, list[str]] = {}
    for number, uid, to in store.envelopes(team, MESSAGE, min(ahead.values(), default=0)) if ahead else ():
        for agent in to:
            if number > ahead.get(agent, number):
                if uid.startswith(_BY_SYSTEM):
                    notices.setdefault(number, []).append(agent)
                else:
                    counts[agent] += 1
    for notice in _fetched(store, team, sorted(notices)):
        for agent in () if notice.type == "info" else notices[notice.number]:
            counts[agent] += 1
    return {agent: counts[agent] if agent in counts else len(inboxes.unread(store, team, agent)) for agent in agents}


def _fetched(store: Store, team: str, numbers: list[int]) -> list[Message]:
    if not numbers:
        return []
    return store.fetch(team, MESSAGE, numbers, [])


def _unread_of(inbox: Inbox) -> int:
    return sum(entry.read_at is None and not entry.quiet for entry in inbox.open)


def _is_simple(inbox: Inbox) -> bool:
    """Whether all that is said of messages behind `upTo` is that they came."""
    numbers = [entry.number for entry in inbox.open] + [entry.number for entry in inbox.handled]
    return max(numbers, default=0) <= inbox.up_to and not inbox.damaged and len(inbox.open) < MOST_OPEN
