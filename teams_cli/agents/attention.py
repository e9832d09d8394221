"""Show an agent the other agents and its messages before its next model call."""

from __future__ import annotations

from teams_cli import text
from teams_cli.agents import sessions
from teams_cli.messages import reading
from teams_cli.messages.messages import Message, body_bounded, fitting
from teams_cli.messages.reading import Selection
from teams_cli.questions import asking
from teams_cli.store.contract import Store
from teams_cli.tasks import tasks
from teams_cli.teams import presence, roles, teams
from teams_cli.teams.config import Config

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from teams_cli.teams.permission import Caller
    from teams_cli.teams.presence import OnceShown


MAX_NAMED = 20

_MOST_RECALLED, _RECALLED, _SHOWN = 10, 201, 2001
"""How many messages `glance` shows, and how many characters of a message that was shown before, and of a new one."""
_STATUS = 101
"""The characters shown of another agent's status."""

_HINT = "ACTION REQUIRED: Announce yourself to the other agents: "
HINT = f'{_HINT}teams announce "what you are working on"'
_HINT_IN_TOOLS = f'{_HINT}broadcast(message="what you are working on")'


def payload(store: Store, team_name: str, caller: Caller, once_shown: OnceShown) -> dict[str, Any]:
    """Return the other agents and the caller's open messages, in the form of the result of a tool `broadcast`.

    A client adds it to the end of the context of the next model call. Messages come again at every call until they are
    handled; being shown marks them as read. `hint` is there until the caller has announced itself. If there are too
    many messages, `more` counts those that are left for the next call or for `read-messages`.
    """
    mail = reading.read(store, team_name, caller, Selection(room=text.MOST_ANSWER), [], once_shown, turn=0)
    shown = [Message.from_json(document) for document in mail]
    again = [message for message, document in zip(shown, mail, strict=True) if "readBefore" in document]
    left = {message.id for message in again[len(fitting(again)) :]}
    messages = [
        {"id": message.number, "from": message.from_, "content": body_bounded(message)}
        for message in shown
        if message.id not in left
    ]
    made = _broadcast(store, team_name, caller, others(store, team_name, caller.name), messages)
    if more := mail.more + len(left):
        made["state"]["output"]["more"] = f"{more} more: teams read-messages"
    return made


def glance(store: Store, team_name: str, caller: Caller) -> dict[str, Any] | None:
    """Return the same as `payload`, but short, for clients that add it to every model call; None if there are no other
    agents and no messages.

    It marks nothing as read. It names tools, because it looks like the result of a tool. Messages that the agent
    already has in its context are shortened.
    """
    there = others(store, team_name, caller.name)[:MAX_NAMED]
    mail = reading.read(store, team_name, caller, Selection(limit=_MOST_RECALLED), [])
    if not there and not mail:
        return None
    agents = [
        {"name": row["name"], "status": text.clipped(row["status"] or "", _STATUS) or None, "idle": row["idle"]}
        for row in there
    ]
    messages = []
    for document in mail:
        content = text.clipped(str(document["message"]), _RECALLED if document.get("readAt") else _SHOWN)
        messages.append({"id": document["number"], "from": document["from"], "content": content})
    made = _broadcast(store, team_name, caller, agents, messages)
    output = made["state"]["output"]
    if "hint" in output:
        output["hint"] = _HINT_IN_TOOLS
    if mail:
        output["reply"] = "broadcast(reply_to=ID, message=TEXT); without an answer: ack(message=ID)"
    return made


def _broadcast(
    store: Store, team: str, caller: Caller, there: list[dict[str, Any]], messages: list[dict[str, Any]]
) -> dict[str, Any]:
    output: dict[str, Any] = {}
    if not caller.is_human and presence.load(store, team, caller.name).status is None:
        output["hint"] = HINT
    output.update(you_are=caller.name, agents=there, messages=messages)
    state = {"status": "completed", "input": {"synthetic": True}, "output": output}
    state["title"] = f"{len(there)} agent(s), {len(messages)} message(s)"
    return {"tool": "broadcast", "state": state}


def introduction(store: Store, team: str, name: str, config: Config | None) -> str:
    """Return a text for the start of a session: the agent's name, and the other agents."""
    peers = others(store, team, name)
    of_team = teams.get(store, team)
    member = of_team.member(name)
    about = f"{roles.about(member, of_team, config)} ".lstrip() if member else ""
    head = f"You are {name} in team {team}: do the `next:` of `teams brief`. {about}The other agents:"
    lines = [head]
    lines += [f"- {row['name']}: {row['status'] or '-'}{' (idle)' if row['idle'] else ''}" for row in peers]
    if len(peers) > MAX_NAMED:
        lines[MAX_NAMED + 1 :] = [f"- {len(peers) - MAX_NAMED} more: teams list-agents"]
    if asks := asking.invitation(of_team):
        lines.append(asks)
    if presence.load(store, team, name).status is None:
        lines.append(HINT)
    return "\n".join(lines)


def others(store: Store, team_name: str, name: str) -> list[dict[str, Any]]:
    """Return a row for each other member, idle ones included, in the order of joining."""
    team = teams.get(store, team_name)
    working = {*(task.owner for task in tasks.labelled(store, team_name, tasks.IN_PROGRESS)), *team.inside_clients()}
    rows = []
    for other in team.active_names():
        if other != name:
            agent = presence.load(store, team_name, other)
            session = sessions.find(store, team_name, other)
            busy = other in working or (session is not None and not session.ended)
            history = [entry.status for entry in agent.status_history]
            row = {"name": other, "status": agent.status, "idle": not busy, "statusHistory": history}
            tree = session.present_worktree(store.host) if session else None
            rows.append({**row, "worktree": tree} if tree else row)
    return rows
