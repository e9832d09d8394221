"""The endpoints of the Janus system: list the agents, send a message to one of them, and read an agent's log."""

from __future__ import annotations

from teams_cli import errors
from teams_cli.agents import interrupting, logs, sessions
from teams_cli.extensions.http import refusals
from teams_cli.extensions.http.refusals import Document
from teams_cli.names import HUMAN
from teams_cli.teams import teams
from teams_cli.teams.teams import Team
from teams_cli.views.agents import agent_rows

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from teams_cli.commands.call import Call


_YES, _NO = ("true", "1", "yes"), ("false", "0", "no", "")
_LINES = 100


def agents(call: Call, team: str) -> list[dict[str, Any]]:
    """Return the active agents of the team, or of all open teams if *team* is "". Each has its team, and the `status`
    `active` or `idle`.
    """
    named = [team] if team else call.open_teams()
    return [row for name in named or [call.team] for row in _of_team(call, teams.get(call.store, name))]


def _of_team(call: Call, team: Team) -> list[dict[str, Any]]:
    active = set(team.active_names())
    rows = agent_rows(call.store, team, call.problems)
    return [{**_row(row), "team": team.name} for row in rows if row["name"] in active]


def _row(row: dict[str, Any]) -> dict[str, Any]:
    kept = {key: row[key] for key in ("role", "agentType", "state", "queueDepth", "lastSeen")}
    status = "active" if row["state"] == "active" else "idle"
    return {"name": row["name"], "status": status, "announced": row["status"], **kept}


def send(call: Call, name: str, given: dict[str, Any], interrupt: str | None, team: str) -> Document:
    """Deliver a message to the agent *name*, in *team* or in the only team that has both agents. Return the answer,
    which says whether the message ended a turn.
    """
    body, sender = given.get("message"), given.get("sender")
    if not (isinstance(body, str) and isinstance(sender, str) and body.strip() and sender):
        return _undelivered(400, "Missing message or sender")
    try:
        call.said_team = team or _team_for(call, name) or call.said_team
        return _send(call, name, body, given.get("uid"), _interrupts(interrupt))
    except errors.AgentNotFound as missing:
        return _missing(call, name, missing, team)


def _team_for(call: Call, name: str) -> str:
    """Return the only team that has both the caller and the agent *name*, else the only team that has *name*. Return ""
    if several teams have *name*.

    Raises:
        AgentNotFound: There are several teams, and none has the recipient.
    """
    open_teams = [teams.get(call.store, team) for team in call.open_teams()]
    with_recipient = [team for team in open_teams if _has(team, name)]
    if len(open_teams) > 1 and not with_recipient:
        raise errors.AgentNotFound(f"no team has an agent {name!r}", "GET /api/agents lists those of all teams.")
    candidates = [team for team in with_recipient if _has(team, call.agent)] or with_recipient
    return candidates[0].name if len(candidates) == 1 else ""


def _has(team: Team, name: str) -> bool:
    return name in (HUMAN, "leader") or team.member(name) is not None


def _send(call: Call, name: str, body: str, uid: object, now: bool | None) -> Document:
    if uid is not None and not isinstance(uid, str):
        raise errors.InvalidValue("uid is not a string", "Use 1 to 64 letters, digits, '-' and '_'.")
    target = teams.get_recipient(call.load_team(), name)
    if target == call.agent:
        return _undelivered(400, "Cannot send message to self")
    sent, ended = interrupting.deliver_interruptions(
        call.store, call.team, call.known, target, body, call.environ, now, uid
    )
    call.note_seen()
    return Document({"delivered": True, "target": target, "id": sent.id, "number": sent.number, "interrupted": ended})


def refused(error: Exception) -> Document:
    """Return the answer to a message that was not delivered because of *error*."""
    refusal = refusals.refused(error)
    return _undelivered(refusal.status, refusal.message, refusal.headers, code=refusal.code, hint=refusal.hint)


def _undelivered(status: int, error: str, headers: dict[str, str] | None = None, **more: Any) -> Document:
    return Document({"delivered": False, "error": error, **more}, status, headers)


def _missing(call: Call, name: str, missing: errors.AgentNotFound, team: str) -> Document:
    names = [team] if team else call.open_teams()
    available = [agent for team in names or [call.team] for agent in teams.get(call.store, team).active_names()]
    return _undelivered(404, f'Agent "{name}" not found', available=available, code=missing.code, hint=missing.hint)


def _interrupts(value: str | None) -> bool | None:
    if value is None or value.lower() in _YES + _NO:
        return None if value is None else value.lower() in _YES
    raise errors.InvalidValue(f"{value!r} is not true or false", "Use ?interrupt=true, or leave it out.")


def log(call: Call, name: str, lines: str | None) -> dict[str, Any]:
    """Return the last lines that an agent printed, the newest last.

    Raises:
        AgentNotFound: `teams` did not start an agent of that name.
        InvalidValue: *lines* is not a number from 1 to 10000.
    """
    wanted = lines if lines is not None else str(_LINES)
    if not (wanted.isascii() and wanted.isdigit() and 0 < int(wanted[:9]) <= 10_000):
        raise errors.InvalidValue(f"{wanted!r} is not a valid number of lines", "Give one from 1 to 10000.")
    session = sessions.find(call.store, call.load_team().name, name)
    if session is None:
        raise errors.AgentNotFound(f"teams started no agent {name!r}", "Only agents that it started have logs.")
    return {
        "agent": session.agent,
        "lines": logs.tail(call.store, call.team, session.agent, session.turns, int(wanted)),
    }
