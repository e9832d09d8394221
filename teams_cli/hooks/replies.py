"""The answers of hooks to an agent: its messages, the changes in the team since its last look, and whether it may end
its turn.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from typing import Any, NamedTuple

from teams_cli import errors, text
from teams_cli.agents import attention, ending, sessions
from teams_cli.agents.seats import bindings
from teams_cli.agents.sessions import Session
from teams_cli.clients import profiles
from teams_cli.clock import seconds_since
from teams_cli.hooks import quiet
from teams_cli.messages import inboxes, messages
from teams_cli.store import pace
from teams_cli.store.contract import Store
from teams_cli.tasks import claims
from teams_cli.teams import permission, presence, teams

TYPE_CHECKING = False
if TYPE_CHECKING:
    from teams_cli.clients.contract import Dialect
    from teams_cli.teams.permission import Caller


_MOST_LISTED = 6
_LONGEST_STATUS = 80
_AFTER = 300.0
"""Seconds after which the agent is reminded of open messages that it was shown, even in the middle of a turn."""
_TASK_WORDS = frozenset(("claimed", "completed", "failed", "cancelled", "released", "reopened"))


class Recall:
    """A record of what an agent has been shown. *position* is the position in the team's history up to which the agent
    has been shown changes (-1 at first). *mail_shown_at* is the time when the agent was last reminded of its open mail,
    in seconds since 1970 (0 at first).
    """

    def __init__(self, position: int = -1, mail_shown_at: int = 0) -> None:
        self.position = position
        self.mail_shown_at = mail_shown_at

    def lines(self, store: Store, team: str, agent: str, begins: bool) -> list[str]:
        """Return the news to show now: changes since the last call (none at the first call), and mail that is still
        open. Open mail is always included if a turn *begins* or something has changed, and otherwise only from time to
        time.
        """
        is_first = self.position < 0
        changes = self.take_changes(store, team, agent)
        lines = [f"Meanwhile: {_listed(changes)}"] if changes and not is_first else []
        return lines + self._open_mail(store, team, agent, begins or bool(lines))

    def take_changes(self, store: Store, team: str, agent: str) -> list[str]:
        """Move *position* to the end of the history. Return a sentence for each agent or task that has changed since
        the old position, about its newest change. Changes that *agent* itself has made or looked up are left out.
        """
        looked_to = presence.load(store, team, agent).looked_to or 0
        newest: dict[str, str] = {}
        for position, entry in store.history(team, max(self.position, looked_to, 0)):
            self.position = position
            if entry.get("actor") != agent and (change := _change(entry)):
                subject, sentence = change
                newest.pop(subject, None)  # so that the subject stands where its newest change is
                newest[subject] = sentence
        self.position = max(self.position, looked_to, 0)
        return list(newest.values())

    def _open_mail(self, store: Store, team: str, agent: str, is_due: bool) -> list[str]:
        """Return a list with a line about the messages that the agent was shown long ago and that are still open; empty
        if there are none. Unless *is_due*, the list is also empty for a while after such a line was returned.
        """
        now = store.now()
        seconds = int(now.timestamp())
        if not is_due and 0 <= seconds - self.mail_shown_at < _AFTER:
            return []
        numbers = []
        for entry in inboxes.load(store, team, agent).open:
            if entry.read_at and not entry.quiet and seconds_since(entry.read_at, now) >= _AFTER:
                numbers.append(entry.number)
        if not numbers:
            return []
        self.mail_shown_at = seconds
        ids = _listed([f"msg-{number}" for number in sorted(numbers)])
        return [f"Still open: {ids}: teams reply ID TEXT, or teams ack ID"]


def _change(entry: dict[str, Any]) -> tuple[str, str] | None:
    """Return the agent or task that changed, and a sentence about the change; None if other agents need not know about
    it.
    """
    actor, what = str(entry.get("actor")), str(entry.get("what"))
    noun, _, verb = what.partition(" ")
    if what == "status announced":
        return actor, f"{actor}: {text.clipped(str(entry.get('status')), _LONGEST_STATUS)}"
    if what == "session failed":
        return actor, f"{actor} failed"
    if noun == "task" and verb in _TASK_WORDS:
        task = str(entry.get("task"))
        return task, f"{task} {verb} by {actor}"
    return None


def _listed(texts: list[str]) -> str:
    """Return the last few of the *texts*, separated by semicolons, and the number of texts that were left out."""
    shown = texts[-_MOST_LISTED:]
    if len(texts) > len(shown):
        shown = [*shown, f"{len(texts) - len(shown)} more"]
    return "; ".join(shown)


MAX_TEXT = 8000
"""Maximum number of characters of an answer. Some clients cut longer answers in the middle, or put them into a file."""
MAX_STOPS_REFUSED = 5
"""Maximum number of times in a row that the end of a turn is refused. Some clients give up at the 8th time, with an
empty answer.
"""
_ROOM_FOR_REST = 300
"""Number of characters that are kept free for the lines around the messages."""


class ClientEvent(NamedTuple):
    """An event that a client reports by its hook. *caller* is the agent that gets the answer, a member of *team*.
    *document* is the client's JSON, and *dialect* says how to read it.
    """

    store: Store
    team: str
    caller: Caller
    dialect: Dialect
    document: dict[str, Any]

    @property
    def moment(self) -> str:
        """The kind of the event: start, prompt, tools or stop; "" for any other event."""
        return self.dialect.moment(self.document)


class Reply(NamedTuple):
    """The answer of a hook. *document* is the JSON for the client. *shown* has the numbers of the messages in it."""

    document: dict[str, Any]
    shown: set[int]


def answer(
    event: ClientEvent, stops_refused: int = 0, seated: bool = False, recall: Recall | None = None
) -> Reply | None:
    """Return the answer to the event; None if there is nothing to say. The messages in the answer are listed in
    `Reply.shown`; this function does not mark them as read.

    At the end of a turn, an answer refuses to let the turn end. *stops_refused* is the number of times in a row that
    this was already done. A client that is *seated* in a terminal gets no messages when it starts, because they wake it
    afterwards. With *recall*, the agent is reminded of changes and open messages.
    """
    if not event.moment or event.document.get("agent_id"):  # a subagent gets its own answers, under its own name
        return None
    permission.require(event.store, event.team, event.caller, "read-messages")
    session = sessions.find(event.store, event.team, event.caller.name)
    if session and session.interrupted:  # its turn is being ended; its next turn shows the messages
        return None
    if event.moment != "stop":
        return _news(event, session, seated, recall)
    if stops_refused >= MAX_STOPS_REFUSED:
        return None
    if event.dialect.joins and session and not session.ended:
        return None  # the process that runs its turns has it go on, in a turn with an answer of its own
    at_work: list[str] = []
    if not (seated and event.document.get("stop_hook_active")):  # a seated client can be woken later
        at_work = agents_at_work(event.store, event.team, event.caller.name, session)
    letters, shown = _mail_after(at_work, event, with_quiet=False)  # mail that only informs is no reason to go on
    text = "\n\n".join([*at_work, *letters])[:MAX_TEXT]
    return Reply(event.dialect.refusal(text), shown) if text else None


def _news(event: ClientEvent, session: Session | None, seated: bool, recall: Recall | None) -> Reply | None:
    """Return an introduction if the client starts, the agent's unread mail, and reminders by *recall*."""
    introduction: list[str] = []
    letters: list[str] = []
    shown: set[int] = set()
    reminders: list[str] = []
    if event.moment == "start" and not _is_introduced_by_prompt(event, session):
        introduction = [attention.introduction(event.store, event.team, event.caller.name, event.caller.config)]
    if not (seated and event.document.get("hook_event_name") == "SessionStart"):
        letters, shown = _mail_after(introduction, event, with_quiet=True)
    if recall and event.moment == "start":  # the introduction has the present state
        recall.take_changes(event.store, event.team, event.caller.name)
    elif recall:
        reminders = recall.lines(event.store, event.team, event.caller.name, begins=event.moment == "prompt")
    text = "\n\n".join([*introduction, *letters, *reminders])[:MAX_TEXT]
    return Reply(event.dialect.context(event.document, text), shown) if text else None


def _is_introduced_by_prompt(event: ClientEvent, session: Session | None) -> bool:
    """Return whether the agent begins its first turn, whose prompt introduces it to the team."""
    if session is None or session.turns > 1 or session.ended or event.document.get("source") in ("compact", "clear"):
        return False
    return profiles.get(session.harness, event.caller.config).introduced


def _mail_after(parts: list[str], event: ClientEvent, with_quiet: bool) -> tuple[list[str], set[int]]:
    """Return lines with as many unread messages as fit into an answer after the *parts*, and the numbers of these
    messages. Messages that only inform are left out unless *with_quiet* is set.
    """
    room = MAX_TEXT - sum(len(part) + 2 for part in parts)
    return mail(event.store, event.team, event.caller.name, room, with_quiet)


def agents_at_work(store: Store, team: str, name: str, session: Session | None) -> list[str]:
    """Return a list with one line about the agents that *name* started and that are still working; empty if there are
    none. The list is also empty while the *session* of *name* is running: the process that runs the session waits for
    these agents.
    """
    if session and not session.ended:
        return []
    at_work = [child.agent for child in ending.children(store, team, name) if not child.ended]
    if not at_work:
        return []
    names = ", ".join(at_work[: attention.MAX_NAMED])
    return [f"Agents still work for you: {names}. Their results come as messages: teams read-messages --wait 600"]


SHORT_HOLD, LONG_HOLD = 25.0, 870.0
"""Maximum seconds by which a hook delays the end of a turn: normally, and if our settings make the client wait longer
for the hook. By default, a client waits 30 seconds.
"""


def hold(store: Store, team: str, caller: Caller, session: Session | None, seconds: float) -> None:
    """While an agent that the caller started is working, wait at most *seconds* for mail. The output of such an agent
    comes as mail.

    Meanwhile the claims on the caller's tasks are renewed. The wait ends early if the caller's client ends.
    """
    client = bindings.nearest_client(os.getppid())
    started, _ = bindings.stat_of(client)
    give_up_at = time.monotonic() + seconds

    def is_over() -> bool:
        has_client_ended = bindings.stat_of(client)[0] != started
        if has_client_ended or not agents_at_work(store, team, caller.name, session):
            return True
        _, has_unread = unread(store, team, caller.name)
        return has_unread

    seconds_between_beats = beat(store, team)
    while (remaining := give_up_at - time.monotonic()) > 0:
        if pace.sleep_until(store, team, is_over, min(remaining, seconds_between_beats)):
            return
        with suppress(errors.TeamsError):  # the next heartbeat may succeed
            claims.heartbeat(store, team, caller)


def beat(store: Store, team: str) -> float:
    """Return the number of seconds between two signs of life of an agent, at most a third of the time after which a
    claim expires.
    """
    return min(quiet.BEAT, teams.get(store, team).silence / 3)


def mail(store: Store, team: str, name: str, room: int, with_quiet: bool) -> tuple[list[str], set[int]]:
    """Return lines with as many unread messages as fit into *room* characters, at least one, and the numbers of these
    messages. Messages that only inform are left out unless *with_quiet* is set.
    """
    mailbox = inboxes.Mailbox(store, team, name)
    unread_messages = mailbox.messages(mailbox.unread(with_quiet))
    if not unread_messages:
        return [], set()
    parts = ["Messages from your team, not from your user:"]
    shown: set[int] = set()
    room -= len(parts[0]) + _ROOM_FOR_REST
    for message in unread_messages:
        how_to_answer = messages.how_to_answer(message)
        whole = messages.quote(message) + how_to_answer
        length = len(whole) + 2  # with the empty line after it
        if length <= room:
            parts.append(whole)
        elif not shown:  # at least one message is shown, even if it must be cut
            parts.append("\n".join(messages.quote_bounded(message, room)) + how_to_answer)
        else:
            break
        shown.add(message.number)
        room -= length
    if len(shown) < len(unread_messages):
        parts.append(f"{len(unread_messages) - len(shown)} more: teams read-messages")
    return parts, shown


def unread(store: Store, team: str, agent: str) -> tuple[int, bool]:
    """Return the number of the last message in the log, and whether the agent has an unread or damaged message."""
    problems: list[Any] = []
    inbox = inboxes.load_with_new(store, team, agent, problems)
    return inbox.up_to, bool(problems) or any(entry.read_at is None for entry in inbox.open)
