"""Interrupting agents that were started, and stopping them."""

from __future__ import annotations

from teams_cli import conditions, history, launching, messages, resumes, sessions, teams
from teams_cli.errors import AgentNotFound, Conflict, WrongState
from teams_cli.roles import require
from teams_cli.sessions import SESSION, Session
from teams_cli.store.contract import update

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from teams_cli.caller import Caller
    from teams_cli.messages import Message
    from teams_cli.store.contract import Store

_PATIENCE = 20.0


def interject(
    store: Store, team_name: str, caller: Caller | None, to: str, body: str, environ: Mapping[str, str]
) -> Message:
    """Stop what an agent is doing and give it the text as its next turn. Further ones queue until that is done.

    An idle agent is resumed with it, and a paused one goes on.

    Raises:
        AgentNotFound: There is no such active member.
        WrongState: It was not started by `teams`, or was stopped; the text is not sent.
    """
    team = require(store, team_name, caller, "interject", to)
    assert caller is not None
    agent = teams.find_recipient(team, to)
    session = sessions.current(store, team_name, agent)
    if session is None:
        raise WrongState(
            f"{agent} was not started by teams, so it can't be interrupted",
            f"Write to it: teams send-message {agent} …",
        )
    if session.ended and session.outcome == "stopped":
        raise WrongState(f"{agent} was stopped", "Start another: teams run-agent …")
    message = messages.send(store, team_name, caller, agent, body)

    def ask(found: Session) -> Session:
        if found.state == "paused":
            found = resumes.unpaused(found)
        return found.having(interjected=max(found.interjected, message.number))

    if update(store, team_name, SESSION, agent, ask)[1].ended:
        launching.wake(store, team, caller.config, [agent], caller.name, environ)
    return message


def stop(store: Store, team_name: str, caller: Caller | None, agent: str, patience: float = _PATIENCE) -> Session:
    """End an agent and all its processes. Its caller is told; it is not resumed by messages any more.

    Raises:
        AgentNotFound: `teams` started no agent of that name.
        Conflict: It did not end in time.
    """
    require(store, team_name, caller, "stop-agent", agent)
    assert caller is not None
    name = caller.name
    if sessions.current(store, team_name, agent) is None:
        raise AgentNotFound(f"teams started no agent {agent!r} in team {team_name}", "See `teams list-agents`.")

    def ask(found: Session) -> Session:
        if not found.ended:
            return found.having(stop_asked=name)
        if found.outcome == "stopped":
            return found
        return found.having(state="done", outcome="stopped", failure=f"{name} stopped it")

    before, after = update(store, team_name, SESSION, agent, ask)
    if before is not after:
        history.note(store, team_name, name, "agent stopped", agent=agent)
    if not conditions.sleep_until(store, team_name, lambda: _has_ended(store, team_name, agent), patience):
        raise Conflict(f"{agent} did not end within {patience:g} seconds", "Ask again, or look: teams list-agents")
    return sessions.find(store, team_name, agent) or after


def _has_ended(store: Store, team: str, agent: str) -> bool:
    found = sessions.current(store, team, agent)
    return found is None or found.ended
