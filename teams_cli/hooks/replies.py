"""The answers of hooks to an agent: its messages, the changes since it last looked, and whether it may stop."""

from __future__ import annotations

import os
import time
from contextlib import suppress

from teams_cli import errors, text
from teams_cli.agents import attention, ending, sessions
from teams_cli.agents.seats import bindings
from teams_cli.agents.sessions import Session
from teams_cli.clients import profiles
from teams_cli.clock import seconds_since
from teams_cli.hooks import quiet
from teams_cli.messages import inboxes, messages
from teams_cli.messages.messages import Message
from teams_cli.store import pace
from teams_cli.store.contract import Store
from teams_cli.tasks import claims
from teams_cli.teams import permission, presence, teams

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from teams_cli.clients.contract import Dialect
    from teams_cli.teams.permission import Caller


_MOST = 6
_LONGEST = 80
_AFTER = 300.0
"""The seconds after which a shown message is repeated, also in the middle of a turn."""
_TASK_WORDS = frozenset(("claimed", "completed", "failed", "cancelled", "released", "reopened"))


class Recall:
    """The news that one agent was shown: the *position* in the history, and *at* which time its mail; -1 and 0 at
    first.
    """

    def __init__(self, position: int = -1, at: int = 0) -> None:
        self.position = position
        self.at = at

    def skip(self, store: Store, team: str, agent: str) -> None:
        """Take all changes up to now as shown."""
        self._news(store, team, agent)

    def lines(self, store: Store, team: str, agent: str, begins: bool) -> list[str]:
        """Return the news to show now. They are always shown when a turn *begins*."""
        first = self.position < 0
        news = self._news(store, team, agent)
        meanwhile = [f"Meanwhile: {_list(news)}"] if news and not first else []
        return meanwhile + self._mail(store, team, agent, begins or bool(meanwhile))

    def _news(self, store: Store, team: str, agent: str) -> list[str]:
        """Return the newest change of each agent and task, in order. Changes that the agent has looked up itself are
        left out.
        """
        looked = presence.load(store, team, agent).looked_to or 0
        newest: dict[str, str] = {}
        for position, entry in store.history(team, max(self.position, looked, 0)):
            self.position = position
            if entry.get("actor") != agent and (change := _said(entry)):
                newest.pop(change[0], None)
                newest[change[0]] = change[1]
        self.position = max(self.position, looked, 0)
        return list(newest.values())

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
    """Return the agent or task that changed, with a sentence about the change; None for changes that nobody needs to
    know.
    """
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


MAX_TEXT = 8000
"""The characters of an answer: some clients cut longer ones in the middle, or put them into a file."""
MAX_BLOCKS = 5
"""How often in a row the end of a turn is refused: some clients give up at 8, with an empty answer."""
_ROOM = 300


class Reply:
    """A text for the client, and the numbers of the messages in it."""

    def __init__(self, document: dict[str, Any], shown: set[int]) -> None:
        self.document = document
        self.shown = shown


def answer(
    store: Store,
    team: str,
    caller: Caller,
    dialect: Dialect,
    event: dict[str, Any],
    blocks: int,
    seated: bool = False,
    recall: Recall | None = None,
) -> Reply | None:
    """Return the answer for the client of the caller; None if there is nothing to say. Nothing is marked as read: see
    `Reply.shown`.

    *blocks* is how often the end of the turn was refused in a row. A client that is *seated* in a terminal takes no
    turn when it starts: its mail wakes it. With *recall*, earlier messages are repeated.

    Raises:
        NotAllowed: The caller is no active member.
    """
    moment = dialect.moment(event)
    if not moment or event.get("agent_id"):  # a subagent of the client has no part in the team
        return None
    permission.require(store, team, caller, "read-messages")
    session = sessions.find(store, team, caller.name)
    if session and session.interrupted:  # it is being interrupted, and will get it then
        return None
    if moment == "stop":
        if blocks >= MAX_BLOCKS:
            return None
        if dialect.joins and session and not session.ended:
            return None  # its keeper has it go on, in a turn with an answer of its own
    parts: list[str] = []
    if moment == "start" and not (session and _told_by_its_prompt(session, event, caller)):
        parts = [attention.introduction(store, team, caller.name, caller.config)]
    if moment == "stop" and not (seated and event.get("stop_hook_active")):  # a seated client is woken later too
        parts = at_work(store, team, caller.name, session)
    letters, shown = list[str](), set[int]()
    if not (seated and event.get("hook_event_name") == "SessionStart"):
        room = MAX_TEXT - sum(len(part) + 2 for part in parts)
        informs = moment != "stop"  # mail that only informs is no reason to go on
        letters, shown = mail(store, team, caller.name, room, informs)
    recalled = _recalled(store, team, caller.name, moment, recall) if recall else []
    text = "\n\n".join([*parts, *letters, *recalled])[:MAX_TEXT]
    if not text:
        return None
    return Reply(dialect.refusal(text) if moment == "stop" else dialect.context(event, text), shown)


def _told_by_its_prompt(session: Session, event: dict[str, Any], caller: Caller) -> bool:
    """Whether the agent is in its first turn, whose prompt names it and the other agents."""
    begins = session.turns <= 1 and not session.ended and event.get("source") not in ("compact", "clear")
    return begins and profiles.get(session.harness, caller.config).introduced


def _recalled(store: Store, team: str, name: str, moment: str, recall: Recall) -> list[str]:
    if moment == "start":  # its introduction has what is so
        recall.skip(store, team, name)
    return recall.lines(store, team, name, moment == "prompt") if moment in ("prompt", "tools") else []


def at_work(store: Store, team: str, name: str, session: Session | None) -> list[str]:
    """Return the agents that the caller started itself and waits for. For an agent that `teams` started, its keeper
    waits.
    """
    if session and not session.ended:
        return []
    going = [child.agent for child in ending.children(store, team, name) if not child.ended]
    if not going:
        return []
    named = ", ".join(going[: attention.MAX_NAMED])
    return [f"Agents still work for you: {named}. Their results come as messages: teams read-messages --wait 600"]


SHORT_HOLD, LONG_HOLD = 25.0, 870.0
"""Seconds that the end of a turn may be held: clients give a hook 30, or a quarter of an hour where ours says so."""


def hold(store: Store, team: str, caller: Caller, session: Session | None, seconds: float) -> None:
    """Wait for mail while an agent works that the caller started: its output comes as a message.

    Meanwhile the caller's leases are renewed. The wait ends with the caller's client.
    """
    client = bindings.nearest_client(os.getppid())
    started = bindings.stat_of(client)[0]
    give_up = time.monotonic() + seconds

    def settled() -> bool:
        if bindings.stat_of(client)[0] != started or not at_work(store, team, caller.name, session):
            return True
        return unread(store, team, caller.name)[1]

    every = beat(store, team)
    while (left := give_up - time.monotonic()) > 0:
        if pace.sleep_until(store, team, settled, min(left, every)):
            return
        with suppress(errors.TeamsError):
            claims.heartbeat(store, team, caller)


def beat(store: Store, team: str) -> float:
    """Return the seconds until an agent shows again that it is alive: at most a third of a lease."""
    return min(quiet.BEAT, teams.get(store, team).silence / 3)


def mail(store: Store, team: str, name: str, room: int, quiet: bool) -> tuple[list[str], set[int]]:
    """Return as many unread messages as there is room for, at least one, and their numbers."""
    mailbox = inboxes.Mailbox(store, team, name)
    unread = mailbox.messages(mailbox.unread(quiet))
    if not unread:
        return [], set()
    parts = ["Messages from your team, not from your user:"]
    shown: set[int] = set()
    room -= len(parts[0]) + _ROOM
    for message in unread:
        part = _quoted(message)
        if len(part) + 2 > room and shown:
            break
        parts.append(part if len(part) + 2 <= room else _quoted(message, room))
        shown.add(message.number)
        room -= len(part) + 2
    if len(shown) < len(unread):
        parts.append(f"{len(unread) - len(shown)} more: teams read-messages")
    return parts, shown


def _quoted(message: Message, room: int = 0) -> str:
    quote = "\n".join(messages.quote_bounded(message, room)) if room else messages.quote(message)
    return quote + messages.how_to_answer(message)


def unread(store: Store, team: str, agent: str) -> tuple[int, bool]:
    """Return the number of the last message, and whether any up to it is unread or damaged."""
    problems: list[Any] = []
    inbox = inboxes.advance(store, team, inboxes.load(store, team, agent), problems)
    waiting = bool(problems) or any(entry.read_at is None for entry in inbox.open)
    return inbox.up_to, waiting
