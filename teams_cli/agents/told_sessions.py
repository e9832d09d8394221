"""Sessions that clients report in their hooks, without a supervisor or a terminal of ours.

They are never resumed by us; copies of them answer questions.
"""

from __future__ import annotations

from teams_cli.agents import sessions, started_here
from teams_cli.agents.sessions import Session
from teams_cli.store.contract import Store
from teams_cli.store.retrying import upsert
from teams_cli.teams import presence, teams

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_KEYS = ("client", "sessionId", "directory", "host")


def note(store: Store, team: str, agent: str, client: str, session_id: str, directory: str) -> None:
    """Note where the agent's client has its session, unless `teams` keeps one of that agent."""
    told = dict(zip(_KEYS, (client, session_id, directory, store.host), strict=True))
    known = presence.load(store, team, agent).client
    if not started_here.is_session_id(session_id) or (known and told.items() <= known.items()):
        return
    if sessions.find(store, team, agent) is not None:
        return
    found = {**told, "at": teams.now(store)}
    upsert(store, team, presence.AGENT, agent, presence.Agent(agent=agent), lambda known: known.having(client=found))
    started_here.note(store, team, _session(agent, found))


def find(store: Store, team: str, agent: str) -> Session | None:
    """The session that the agent's client told of on this machine, and not another in its name; None if it did not."""
    told = presence.load(store, team, agent).client
    if not told or told.get("host", "") != store.host or not all(isinstance(told.get(key), str) for key in _KEYS):
        return None
    session = _session(agent, told)
    return session if started_here.is_ours(store, team, session) else None


def _session(agent: str, told: dict[str, Any]) -> Session:
    at = str(told.get("at"))
    return sessions.of_client(agent, str(told["client"]), str(told["sessionId"]), str(told["directory"]), at)
