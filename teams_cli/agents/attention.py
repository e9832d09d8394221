"""Show an agent the other agents and the agent's messages before its next model call."""

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
    from collections.abc import Collection
    from typing import Any

    from teams_cli.teams.permission import Caller
    from teams_cli.teams.presence import OnceShown


MAX_NAMED = 20
"""Maximum number of other agents that are named."""
_MOST_MESSAGES, _CHARACTERS_AGAIN, _CHARACTERS_OF_NEW = 10, 201, 2001
"""Maximum number of messages that `glance` shows, and of characters that it shows of a read message and of a new one.
"""
_STATUS = 101
"""Maximum number of characters of another agent's status that `glance` shows."""

_HINT = "ACTION REQUIRED: Announce yourself to the other agents: "
HINT = f'{_HINT}teams announce "what you are working on"'
_HINT_IN_TOOLS = f'{_HINT}broadcast(message="what you are working on")'


def payload(
    store: Store, team_name: str, caller: Caller, once_shown: OnceShown, left_out: Collection[int] = ()
) -> dict[str, Any]:
    """Return the other agents and the caller's open messages as JSON, in the form in which the tool `broadcast` returns
    them.

    A client adds this result to the end of the context of the next model call. A message is returned by every call
    until it is handled, but is marked as read by the first call. The result has the key `hint` until the caller has
    announced itself. The key `more` counts the messages that did not fit; `read-messages` shows them. *left_out* gets
    the numbers of the messages for which the answer has no room; these stay unread.
    """
    # With a turn, the messages count as shown unasked. The number of the turn is not known here.
    selection = Selection(room=text.MOST_ANSWER)
    mail = reading.read(store, team_name, caller, selection, [], once_shown, turn=0, left_out=left_out)
    read_before = [Message.from_json(document) for document in mail if "readBefore" in document]
    count_that_fits = len(fitting(read_before))  # new messages are always shown
    omitted = {message.id for message in read_before[count_that_fits:]}
    messages = [
        {"id": message.number, "from": message.from_, "content": body_bounded(message)}
        for message in map(Message.from_json, mail)
        if message.id not in omitted
    ]
    result = _result_of_broadcast(store, team_name, caller, others(store, team_name, caller.name), messages)
    if more := mail.more + len(omitted):
        result["state"]["output"]["more"] = f"{more} more: teams read-messages"
    return result


def glance(store: Store, team_name: str, caller: Caller) -> dict[str, Any] | None:
    """Return the other agents and the caller's messages in a short form, for clients that add it to every model call.
    None if there are no other agents and no messages.

    Unlike `payload`, this function marks no message as read, and its hints name tools instead of commands. Long
    messages are cut; a message that the caller has read already is cut to a tenth of the length.
    """
    agents = [
        {"name": row["name"], "status": text.clipped(row["status"] or "", _STATUS) or None, "idle": row["idle"]}
        for row in others(store, team_name, caller.name)[:MAX_NAMED]
    ]
    messages = []
    for document in reading.read(store, team_name, caller, Selection(limit=_MOST_MESSAGES), []):
        characters = _CHARACTERS_AGAIN if document.get("readAt") else _CHARACTERS_OF_NEW
        content = text.clipped(str(document["message"]), characters)
        messages.append({"id": document["number"], "from": document["from"], "content": content})
    if not agents and not messages:
        return None
    result = _result_of_broadcast(store, team_name, caller, agents, messages)
    output = result["state"]["output"]
    if "hint" in output:
        output["hint"] = _HINT_IN_TOOLS
    if messages:
        output["reply"] = "broadcast(reply_to=ID, message=TEXT); without an answer: ack(message=ID)"
    return result


def _result_of_broadcast(
    store: Store, team: str, caller: Caller, agents: list[dict[str, Any]], messages: list[dict[str, Any]]
) -> dict[str, Any]:
    """Return a result of the tool `broadcast` in the format of OpenCode Teams."""
    output: dict[str, Any] = {}
    if not caller.is_human and presence.load(store, team, caller.name).status is None:
        output["hint"] = HINT
    output.update(you_are=caller.name, agents=agents, messages=messages)
    title = f"{len(agents)} agent(s), {len(messages)} message(s)"
    state = {"status": "completed", "input": {"synthetic": True}, "output": output, "title": title}
    return {"tool": "broadcast", "state": state}


def introduction(store: Store, team_name: str, name: str, config: Config | None) -> str:
    """Return a text for the start of a session: the agent's name, role and first command, and the other agents."""
    team = teams.get(store, team_name)
    member = team.member(name)
    about = f"{roles.about(member, team, config)} ".lstrip() if member else ""  # a role may have no text
    lines = [f"You are {name} in team {team_name}: do the `next:` of `teams brief`. {about}The other agents:"]
    rows = others(store, team_name, name)
    for row in rows[:MAX_NAMED]:
        lines.append(f"- {row['name']}: {row['status'] or '-'}{' (idle)' if row['idle'] else ''}")
    if len(rows) > MAX_NAMED:
        lines.append(f"- {len(rows) - MAX_NAMED} more: teams list-agents")
    if invitation := asking.invitation(team):
        lines.append(invitation)
    if presence.load(store, team_name, name).status is None:
        lines.append(HINT)
    return "\n".join(lines)


def others(store: Store, team_name: str, name: str) -> list[dict[str, Any]]:
    """Return a row for each member except *name*, in the order of joining: its name, its current and earlier status
    lines, whether it is idle, and its worktree if it has one.
    """
    team = teams.get(store, team_name)
    owners = {task.owner for task in tasks.labelled(store, team_name, tasks.IN_PROGRESS)}
    working = {*owners, *team.inside_clients()}  # a subagent inside a client ends with its work
    rows = []
    for other in team.active_names():
        if other == name:
            continue
        agent = presence.load_other(store, team_name, other)
        session = sessions.find(store, team_name, other)
        is_busy = other in working or (session is not None and not session.ended)
        history = [entry.status for entry in agent.status_history]
        row = {"name": other, "status": agent.status, "idle": not is_busy, "statusHistory": history}
        if session and (worktree := session.present_worktree(store.host)):
            row["worktree"] = worktree
        rows.append(row)
    return rows
