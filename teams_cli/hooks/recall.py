"""Reminding an agent between its model calls of others' changes, and of its open messages.

Where a client lets nothing be added to each call, this is said in two lines at most, when something changed or a turn
begins.
"""

from __future__ import annotations

from teams_cli import text
from teams_cli.clock import seconds_since
from teams_cli.messages import inboxes
from teams_cli.store.contract import Store
from teams_cli.teams import presence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_MOST = 6
_LONGEST = 80
_AFTER = 300.0
"""Seconds after which a message that was shown is recalled, and in the middle of a turn again."""
_TASK_WORDS = frozenset(("claimed", "completed", "failed", "cancelled", "released", "reopened"))


class Recall:
    """What one agent was told of up to now: the *position* in the history, *at* when of its mail; -1 and 0 before."""

    def __init__(self, position: int = -1, at: int = 0) -> None:
        self.position = position
        self.at = at

    def skip(self, store: Store, team: str, agent: str) -> None:
        """Take what happened up to now as told."""
        self._news(store, team, agent)

    def lines(self, store: Store, team: str, agent: str, begins: bool) -> list[str]:
        """What to say now; a turn that *begins* is a reason of its own."""
        first = self.position < 0
        news = self._news(store, team, agent)
        told = [f"Meanwhile: {_list(news)}"] if news and not first else []
        return told + self._mail(store, team, agent, begins or bool(told))

    def _news(self, store: Store, team: str, agent: str) -> list[str]:
        """The newest of each agent and task, in the order of what happened; what it looked up itself is left out."""
        looked = presence.load(store, team, agent).looked_to or 0
        found: dict[str, str] = {}
        for position, entry in store.history(team, max(self.position, looked, 0)):
            self.position = position
            if entry.get("actor") != agent and (said := _said(entry)):
                found.pop(said[0], None)
                found[said[0]] = said[1]
        self.position = max(self.position, looked, 0)
        return list(found.values())

    def _mail(self, store: Store, team: str, agent: str, due: bool) -> list[str]:
        now = store.now()
        seconds = int(now.timestamp())
        if not due and 0 <= seconds - self.at < _AFTER:
            return []
        shown = [entry for entry in inboxes.load(store, team, agent).open if entry.read_at and not entry.quiet]
        old = sorted(entry.number for entry in shown if seconds_since(entry.read_at or "", now) >= _AFTER)
        if not old:
            return []
        self.at = seconds
        return [f"Still open: {_list([f'msg-{number}' for number in old])}: teams reply ID TEXT, or teams ack ID"]


def _said(entry: dict[str, Any]) -> tuple[str, str] | None:
    """Of which agent or task the change is, and what to say of it; None for what nobody has to know."""
    actor, what = str(entry.get("actor")), str(entry.get("what"))
    noun, _, word = what.partition(" ")
    if what == "status announced":
        return actor, f"{actor}: {text.clipped(str(entry.get('status')), _LONGEST)}"
    if what == "session failed":
        return actor, f"{actor} failed"
    task = str(entry.get("task"))
    return (task, f"{task} {word} by {actor}") if noun == "task" and word in _TASK_WORDS else None


def _list(said: list[str]) -> str:
    return "; ".join([*said[-_MOST:], *([f"{len(said) - _MOST} more"] if len(said) > _MOST else [])])
