"""The endpoints of the Janus system: list the agents, send a message to one of them, and read an agent's log."""

from __future__ import annotations

from teams_cli import errors
from teams_cli.agents import interrupting, logs, sessions
from teams_cli.commands.call import Attempt
from teams_cli.extensions.http import refusals
from teams_cli.extensions.http.refusals import Document
from teams_cli.names import HUMAN
from teams_cli.teams import teams
from teams_cli.teams.teams import Team
from teams_cli.views.agents import agent_rows

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from starlette.requests import Request

    from teams_cli.commands.call import Call
    from teams_cli.messages.messages import Message


_YES, _NO = ("true", "1", "yes"), ("false", "0", "no", "")
_LINES = 100
"""The number of lines of a log, unless the request asks for another number."""


def agents(call: Call, request: Request) -> list[dict[str, Any]]:
    """Return the active members of the team in the query or, without one, of all open teams, as Janus lists agents."""
    rows = []
    for record in _teams(call, request.query_params.get("team", "")):
        active = set(record.active_names())
        for row in agent_rows(call.store, record, call.problems):
            if row["name"] not in active:
                continue
            other_values = {key: row[key] for key in ("role", "agentType", "state", "queueDepth", "lastSeen")}
            status = "active" if row["state"] == "active" else "idle"  # the words of Janus
            announced = row["status"]  # what the agent says it is doing
            rows.append(
                {"name": row["name"], "status": status, "announced": announced, **other_values, "team": record.name}
            )
    return rows


def _teams(call: Call, team: str) -> list[Team]:
    """Return the record of the *team* or, if this is "", the records of all open teams."""
    names = [team] if team else call.open_teams()
    names = names or [call.team]  # if no team is open, `call.team` raises the error that says so
    return [teams.get(call.store, name) for name in names]


def send(call: Call, name: str, body: dict[str, Any], interrupt: str | None, team: str) -> Document:
    """Deliver the message in *body* to the agent *name*. Return the answer, which also says whether the message
    interrupted a turn of the agent. *interrupt* and *team* are the values in the query of the request: *interrupt* is
    None if the team's settings decide, and *team* is "" if `_common_team` must find the team.
    """
    message, sender = body.get("message"), body.get("sender")
    if not (isinstance(message, str) and isinstance(sender, str) and message.strip() and sender):
        raise errors.WrongUsage("Missing message or sender", 'Send both: {"message": "TEXT", "sender": "NAME"}')
    try:
        call.given_team = team or _common_team(call, name) or call.given_team
        if interrupt is not None and interrupt.lower() not in _YES + _NO:
            raise errors.InvalidValue(f"{interrupt!r} is not true or false", "Use ?interrupt=true, or leave it out.")
        ends_turn = None if interrupt is None else interrupt.lower() in _YES
        uid = body.get("uid")
        if uid is not None and not isinstance(uid, str):
            raise errors.InvalidValue("uid is not a string", "Use 1 to 64 letters, digits, '-' and '_'.")
        target = teams.get_recipient(call.load_team(), name)
        if target == call.agent:
            raise errors.WrongUsage("Cannot send message to self", "Choose another agent: GET /api/agents")

        def deliver(uid: str) -> tuple[Message, bool]:
            return interrupting.send_and_interrupt(
                call.store, call.team, call.known_caller, target, message, call.environ, ends_turn, uid
            )

        if uid is None:
            with Attempt(call, "message", target, message, str(ends_turn)) as attempt_uid:
                sent, is_interrupted = deliver(attempt_uid)
        else:
            sent, is_interrupted = deliver(uid)
        call.signs.note_seen()  # sending is a sign of life of the sender
    except errors.AgentNotFound as missing:
        available = [agent for record in _teams(call, team) for agent in record.active_names()]
        error = f'Agent "{name}" not found'
        return _undelivered(404, error, missing.code, missing.hint, available=available)
    numbers = {"id": sent.id, "number": sent.number}
    return Document({"delivered": True, "target": target, **numbers, "interrupted": is_interrupted})


def _common_team(call: Call, name: str) -> str:
    """Return the team in which the caller writes to the agent *name*: the only open team that has both of them or, if
    none has both, the only open team that has *name*. Return "" if there are several such teams, or if at most one team
    is open and it does not have *name*.
    """
    open_teams = [teams.get(call.store, team) for team in call.open_teams()]
    with_recipient = [team for team in open_teams if _has(team, name)]
    if len(open_teams) > 1 and not with_recipient:
        raise errors.AgentNotFound(f"no team has an agent {name!r}", "GET /api/agents lists those of all teams.")
    candidates = [team for team in with_recipient if _has(team, call.agent)] or with_recipient
    return candidates[0].name if len(candidates) == 1 else ""


def _has(team: Team, name: str) -> bool:
    return name in (HUMAN, "leader") or team.member(name) is not None


def refused(error: Exception, write_hint: Callable[[str], str]) -> Document:
    """Return the answer to a message that was not delivered because of *error*. *write_hint* adapts the error's texts
    to the client.
    """
    refusal = refusals.refused(error, write_hint)
    return _undelivered(refusal.status, refusal.message, refusal.code, refusal.hint, refusal.headers)


def _undelivered(
    status: int, error: str, code: str, hint: str, headers: dict[str, str] | None = None, **details: Any
) -> Document:
    """Return the answer to a message that was not delivered. Besides the keys of Janus it has a *code* and a *hint*."""
    return Document({"delivered": False, "error": error, **details, "code": code, "hint": hint}, status, headers)


def log(call: Call, request: Request) -> dict[str, Any]:
    """Return the last lines that an agent printed, in their order: as many as `lines` in the query, or 100."""
    name = request.path_params["name"]
    count = request.query_params.get("lines", str(_LINES))
    if not (count.isascii() and count.isdigit() and 0 < int(count[:9]) <= 10_000):
        raise errors.InvalidValue(f"{count!r} is not a valid number of lines", "Give one from 1 to 10000.")
    session = sessions.find(call.store, call.load_team().name, name)
    if session is None:
        raise errors.AgentNotFound(f"teams started no agent {name!r}", "Only agents that it started have logs.")
    tail = logs.tail(call.store, call.team, session.agent, session.turns, int(count))
    return {"agent": session.agent, "lines": tail}
