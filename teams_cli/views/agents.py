"""The agents of a team as lists show them: who is there, in what state, at work on what."""

from __future__ import annotations

from teams_cli import errors
from teams_cli.agents import checking, ending, sessions
from teams_cli.agents.seats import terminals
from teams_cli.agents.sessions import Session
from teams_cli.clock import seconds_since
from teams_cli.messages import inboxes
from teams_cli.messages.inboxes import Inbox
from teams_cli.messages.messages import MESSAGE, Message
from teams_cli.names import HUMAN
from teams_cli.store.contract import Store
from teams_cli.tasks import tasks
from teams_cli.teams import teams
from teams_cli.teams.presence import Agent, is_gone, load_all
from teams_cli.teams.teams import Member, Team

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any


def member_rows(store: Store, team: Team, working: set[str], problems: list[errors.TeamsError]) -> list[dict[str, Any]]:
    """All members that did not leave, in the order of joining; *working* are those that own a task in progress."""
    rows = []
    shown = [member for member in team.roster() if member.active or member.stopped_by]
    mail, known = _mail(store, team, shown, problems), load_all(store, team.name)
    for member in shown:
        if member.agent_id in mail:
            try:
                agent = known(member.agent_id)
                rows.append(_row(store, team, member, agent, member.agent_id in working, mail[member.agent_id]))
            except errors.TeamsError as problem:
                problems.append(problem)
    return rows


def _mail(store: Store, team: Team, members: list[Member], problems: list[errors.TeamsError]) -> dict[str, int]:
    """How much unread mail each has; of whom it can't be told, one by one, is a problem."""
    names = [member.agent_id for member in members]
    try:
        return inboxes.unread_counts(store, team.name, names)
    except errors.TeamsError:
        counts = {}
        for name in names:
            try:
                counts[name] = len(inboxes.unread(store, team.name, name))
            except errors.TeamsError as problem:
                problems.append(problem)
        return counts


def _row(store: Store, team: Team, member: Member, agent: Agent, working: bool, unread: int) -> dict[str, Any]:
    row = {
        "name": member.agent_id,
        "displayName": member.agent_name,
        "role": member.role,
        "agentType": member.agent_type,
        "status": agent.status,
        "statusHistory": [entry.to_json() for entry in agent.status_history],
        "state": state_of(store, team, member, agent, working),
        "queueDepth": unread,
        "lastSeen": agent.last_seen or member.joined_at,
    }
    if agent.host:
        row["host"] = agent.host
    if agent.note:
        row["note"] = agent.note
    return row


def state_of(store: Store, team: Team, member: Member, agent: Agent, working: bool) -> str:
    """`stopped` after a shutdown, `stale` when not seen for too long or its process is gone, else `active`, `idle`."""
    if member.stopped_by:
        return "stopped"
    seen = agent.expected_at or member.joined_at
    limit = team.silence
    if is_gone(agent) or (seen and seconds_since(seen, store.now()) > limit):
        return "stale"
    return "active" if working else "idle"


def agent_rows(store: Store, team: Team, problems: list[errors.TeamsError]) -> list[dict[str, Any]]:
    """All members that did not leave, in the order of joining, with what is known of those that were started."""
    return rows_with(store, team, sessions_by_agent(store, team, problems), problems)


def sessions_by_agent(store: Store, team: Team, problems: list[errors.TeamsError]) -> dict[str, Session]:
    """The sessions of the agents that were started, by name."""
    return {session.agent: session for session in ending.all_of(store, team.name, problems)}


def rows_with(
    store: Store, team: Team, started: Mapping[str, Session], problems: list[errors.TeamsError]
) -> list[dict[str, Any]]:
    """The rows of the members, with what these sessions tell of them."""
    own: dict[str, list[str]] = {}
    for task in tasks.labelled(store, team.name, tasks.IN_PROGRESS):
        own.setdefault(task.owner or "", []).append(task.id)
    working = {*own, *(name for name, session in started.items() if not session.ended)}
    rows = member_rows(store, team, working, problems)
    seated = {terminal.agent: terminal for terminal in terminals.all_of(store, team.name, problems)}
    for row in rows:
        if row["name"] in own:
            row["tasks"] = own[row["name"]]
        member = team.member(row["name"])
        if member and member.child_of:
            row["childOf"] = member.child_of
        session, terminal = started.get(row["name"]), seated.get(row["name"])
        if session:
            describe(store, session, row)
        if terminal and (session is None or session.taken_by):
            terminals.describe(store, team, terminal, row)
    return rows


def describe(store: Store, session: Session, row: dict[str, Any]) -> None:
    """Add to the row of a listed agent what its session says."""
    if session.outcome == "stopped" and session.ended:
        row["state"] = "stopped"
    elif session.ended and session.outcome in ("failed", "lost") and row["state"] != "stopped":
        row["state"] = "failed"
    elif row["state"] != "stopped":  # its keeper says more of it than when it was last heard of
        row["state"] = "idle" if session.ended else "active"
    if checking.is_limited(store, session) and row["state"] != "stopped":
        row["state"], row["limitedUntil"] = "limited", session.limited_until
    if session.host:
        row["host"] = session.host
    row["session"] = {
        key: value
        for key, value in session.to_document().items()
        if key
        in (
            "takenBy",
            "state",
            "outcome",
            "harness",
            "description",
            "caller",
            "directory",
            "worktree",
            "branch",
            "turns",
        )
    }


NO_MORE = "will_not_be_read"
_BLOCK = 250
_FURTHEST = 10_000
"""Messages of the team that are looked through, from the newest on, for those of one sender."""


def to_document(store: Store, team_name: str, key: str, eyes: str) -> dict[str, Any]:
    """The message as JSON, with its state for each recipient; *eyes* is who looks, empty for one who may see all.

    Raises:
        MessageNotFound: There is no such message, or it is neither from nor to who looks.
    """
    try:
        message, _ = store.get(team_name, MESSAGE, key)
    except errors.NotFound:
        raise errors.MessageNotFound(f"there is no {key}", "See: teams read-messages --all") from None
    if eyes and eyes not in (message.from_, *_recipients(message)):
        raise errors.MessageNotFound(f"there is no {key} from you or to you", "See: teams read-messages --all")
    return reached(store, teams.get(store, team_name), message)


def reached(store: Store, team: Team, message: Message, seen: dict[str, Inbox] | None = None) -> dict[str, Any]:
    """The message as JSON, with its state for each recipient, and whether its acknowledgement is overdue. Who asks of
    several hands on in *seen* the inboxes that were looked at.
    """
    seen = {} if seen is None else seen
    document = {**message.to_json(), "reach": [_of(store, team, message, name, seen) for name in _recipients(message)]}
    if message.ack_by and any(each["state"] != "handled" for each in document["reach"]):
        document["overdue"] = seconds_since(message.ack_by, store.now()) >= 0
    return document


def sent(store: Store, team: Team, sender: str, to: str, only_open: bool, most: int) -> list[dict[str, Any]]:
    """The newest messages of the sender, oldest first, each with how far it got; with *only_open* those that somebody
    has not handled.
    """
    found: list[dict[str, Any]] = []
    seen: dict[str, Inbox] = {}
    for message in _newest_first(store, team.name):
        if message.from_ != sender or to not in ("", *_recipients(message)):
            continue
        document = reached(store, team, message, seen)
        if not only_open or any(each["state"] not in ("handled", NO_MORE) for each in document["reach"]):
            found.append(document)
        if len(found) == most:
            break
    return found[::-1]


def states_of(store: Store, team: Team, sender: str, window: int) -> list[dict[str, Any]]:
    """How far each of the sender's messages got, and of those that anybody is to acknowledge; of the newest of the
    team, without their texts.
    """
    seen: dict[str, Inbox] = {}
    newest = _newest_first(store, team.name, window)
    found = (message for message in newest if message.from_ == sender or message.ack_by)
    rows = (reached(store, team, message, seen) for message in found)
    return [{key: row[key] for key in ("id", "reach", "overdue") if key in row} for row in rows]


def _newest_first(store: Store, team: str, window: int = _FURTHEST) -> Iterator[Message]:
    last = store.last(team, MESSAGE)
    for end in range(last, max(0, last - window), -_BLOCK):
        yield from reversed(store.fetch(team, MESSAGE, range(max(1, end - _BLOCK + 1), end + 1), []))


def _recipients(message: Message) -> list[str]:
    return message.recipients or [message.to]


def _of(store: Store, team: Team, message: Message, name: str, seen: dict[str, Inbox]) -> dict[str, Any]:
    if (inbox := seen.get(name)) is None:
        inbox = seen[name] = inboxes.advance(store, team.name, inboxes.load(store, team.name, name), [])
    said = inboxes.to_document(message, inbox)
    entry = inbox.find_open(message.number)
    if entry and entry.turn is not None:
        turn = {"turn": entry.turn} if entry.turn else {}
        return {"name": name, "state": "shown", "shownAt": entry.read_at, **turn}
    times: dict[str, Any] = {key: said[key] for key in ("readAt", "handledAt") if key in said}
    return {"name": name, "state": _state(store, team, message, name, times), **times}


def _state(store: Store, team: Team, message: Message, name: str, times: dict[str, Any]) -> str:
    if "handledAt" in times:
        return "handled"
    if "readAt" in times:
        return "read"
    if _is_gone(store, team, name):
        return NO_MORE
    terminal = terminals.find(store, team.name, name)
    woken = terminal and terminal.woken_to >= message.number and not terminal.unheard
    return "woken" if woken else "queued"


def _is_gone(store: Store, team: Team, name: str) -> bool:
    """Whether nobody reads the mail of that name any more, as things stand; who has yet to join will."""
    if name == HUMAN:
        return False
    member = team.find(name)
    return team.state == "closed" or bool(member and not member.active) or sessions.was_stopped(store, team.name, name)
