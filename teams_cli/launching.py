"""Starting agents, waking those that are idle, interrupting and stopping those that run."""

from __future__ import annotations

import os
import sys

from teams_cli import (
    conditions,
    harness,
    history,
    membership,
    messages,
    names,
    processes,
    sessions,
    settings,
    teams,
    text,
)
from teams_cli.caller import Caller
from teams_cli.errors import AgentNotFound, Conflict, NotFound, WrongState
from teams_cli.roles import require
from teams_cli.sessions import SESSION, Session
from teams_cli.store.contract import update

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from teams_cli.config import Config
    from teams_cli.messages import Message
    from teams_cli.store.contract import Store
    from teams_cli.teams import Team

_DESCRIPTION = 50


class Order:
    """What is to be started: the prompt, and what was said of the agent."""

    def __init__(
        self,
        prompt: str,
        *,
        agent: str | None = None,
        description: str | None = None,
        harness: str | None = None,
        type: str | None = None,
        worktree: bool = False,
        answer: str | None = None,
        directory: str = ".",
        environ: Mapping[str, str] | None = None,
    ) -> None:
        self.prompt = prompt
        self.agent = agent
        self.description = description
        self.harness = harness
        self.type = type
        self.worktree = worktree
        self.answer = answer
        self.directory = directory
        self.environ = environ or {}


def run_agent(store: Store, team_name: str, caller: Caller | None, order: Order) -> Session:
    """Start an agent as leader or human; it goes on by itself.

    Raises:
        InvalidValue: The prompt is blank, or the harness unknown.
        AlreadyExists: There is an agent of that name.
        NotAllowed: The caller's role starts no agents so.
    """
    team = require(store, team_name, caller, "run-agent")
    assert caller is not None
    return _start(store, team, caller, order, run=f"{team_name}-{os.urandom(6).hex()}", depth=1)


def spawn(store: Store, team_name: str, caller: Caller | None, order: Order) -> Session:
    """Start a sibling that works beside you, and go on at once; its output will come to you as a message from it.

    It can be written to from now on. You are not done before it is.

    Raises:
        InvalidValue: The prompt is blank, or the harness unknown.
        Conflict: It would be more than `max_depth` deep.
        NotAllowed: Leaders and the human use `run-agent`.
    """
    team = require(store, team_name, caller, "spawn")
    assert caller is not None
    own = sessions.find(store, team_name, caller.name)
    depth = (own.depth if own else 1) + 1
    deepest = int(settings.value(team, "max_depth"))
    if depth > deepest:
        raise Conflict(
            f"{caller.name} is {depth - 1} deep, and agents are started at most {deepest} deep",
            "Do it yourself, or raise the setting max_depth.",
        )
    run = own.run if own else f"{team_name}-{os.urandom(6).hex()}"
    if own and order.harness is None:
        order.harness = own.harness
    return _start(store, team, caller, order, run, depth)


def _start(store: Store, team: Team, caller: Caller, order: Order, run: str, depth: int) -> Session:
    """Register the agent, so that it can be written to; then start its keeper."""
    text.checked(order.prompt, "prompt", text.MAX_RESULT)
    profile = order.harness or str(settings.value(team, "harness"))
    harness.find(profile, caller.config)
    asked = None if order.agent is None else Caller(order.agent, config=caller.config)
    if order.agent is not None:
        names.check_name(order.agent, "agent")
        if team.find(order.agent):
            raise Conflict(f"there is an agent {order.agent} already", "Choose another name, or leave it out.")
    place = os.path.abspath(order.directory)
    top = _repository(place) if order.worktree else ""
    member, token = membership.join(store, team.name, asked, None, order.type, None, order.answer)
    tree, branch = _worktree(store, team, member.agent_id, top) if top else (None, None)
    now = teams.now(store)
    session = Session(
        agent=member.agent_id,
        caller=caller.name,
        run=run,
        depth=depth,
        harness=profile,
        prompt=order.prompt,
        description=order.description or order.prompt.strip().splitlines()[0][:_DESCRIPTION],
        directory=tree or place,
        worktree=tree,
        branch=branch,
        session_id=_new_uuid(),
        created_at=now,
        started_at=now,
    )
    store.create(team.name, SESSION, member.agent_id, session)
    history.note(store, team.name, caller.name, "agent started", agent=session.agent, about=session.description)
    start_keeper(store, team.name, session, caller.config, order.environ, token)
    return session


def _repository(place: str) -> str:
    from teams_cli import worktrees

    return worktrees.repository(place)


def _worktree(store: Store, team: Team, agent: str, top: str) -> tuple[str, str]:
    from teams_cli import worktrees

    return worktrees.add(store.place, team.name, agent, top)


def _new_uuid() -> str:
    from uuid import uuid4

    return str(uuid4())


def start_keeper(
    store: Store,
    team: str,
    session: Session,
    config: Config | None,
    environ: Mapping[str, str],
    token: str = "",
) -> None:
    """Start the keeper of a session; if that can't be, the session has failed and its caller is told."""
    profile = harness.find(session.harness, config)
    own = {
        "TEAMS_HOME": store.place,
        "TEAMS_TEAM": team,
        "TEAMS_AGENT_ID": session.agent,
        processes.MARK: session.mark,
        "OPENCODE_TEAM_NAME": team,
        "OPENCODE_AGENT_ID": session.agent,
    }
    if token:
        own["TEAMS_TOKEN"] = token
    clean = harness.environment(profile, environ, own)
    clean.pop(processes.MARK)  # the keeper is not one of those that it ends
    clean["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
    log = log_path(store, team, session.agent)
    try:
        os.makedirs(os.path.dirname(log), 0o700, exist_ok=True)
        processes.start_detached([sys.executable, "-m", "teams_cli.keeper"], clean, log, "/")
    except OSError as error:
        sessions.finish(store, team, session, "failed", f"its keeper can't be started: {error}")


def log_path(store: Store, team: str, agent: str) -> str:
    """Where the keeper and the client of the agent write what nobody else takes."""
    return f"{store.place}/logs/{team}/{agent}.log"


def wake(
    store: Store,
    team: Team,
    config: Config | None,
    recipients: list[str],
    sender: str,
    environ: Mapping[str, str],
    for_output: bool = False,
) -> list[str]:
    """Resume those of the recipients of a stored message that are idle; their names."""
    woken = []
    limit = int(settings.value(team, "max_resumes_per_hour"))
    for agent in recipients:
        session = sessions.current(store, team.name, agent) if team.member(agent) else None
        if session and session.ended and sessions.reopen(store, team.name, agent, sender, limit, for_output):
            again = sessions.find(store, team.name, agent)
            assert again is not None
            start_keeper(store, team.name, again, config, environ)
            woken.append(agent)
    return woken


def interject(
    store: Store, team_name: str, caller: Caller | None, to: str, body: str, environ: Mapping[str, str]
) -> Message:
    """Stop what an agent is doing and give it the text as its next turn. Further ones queue until that is done.

    Raises:
        AgentNotFound: There is no such active member.
        WrongState: It was not started by `teams`, so it can't be interrupted; the text is not sent.
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
    message = messages.send(store, team_name, caller, agent, body)

    def ask(found: Session) -> Session:
        if found.state == "paused":
            return found.having(state="done", resumes=[])
        return found if found.ended else found.having(interjected=message.number)

    after = update(store, team_name, SESSION, agent, ask)[1]
    if after.ended:
        wake(store, team, caller.config, [agent], caller.name, environ)
    return message


def stop(store: Store, team_name: str, caller: Caller | None, agent: str, patience: float = 15.0) -> Session:
    """End an agent and all its processes. Its caller is told; it is not resumed by messages any more.

    Raises:
        AgentNotFound: `teams` started no agent of that name.
        Conflict: It did not end in time.
    """
    require(store, team_name, caller, "stop-agent", agent)
    assert caller is not None
    name = caller.name
    session = sessions.current(store, team_name, agent)
    if session is None:
        raise AgentNotFound(f"teams started no agent {agent!r} in team {team_name}", "See `teams list-agents`.")
    if session.ended:
        return update(store, team_name, SESSION, agent, lambda found: found.having(outcome="stopped"))[1]
    update(store, team_name, SESSION, agent, lambda found: found.having(stop_asked=name))
    history.note(store, team_name, name, "agent stopped", agent=agent)

    def ended() -> bool:
        found = sessions.current(store, team_name, agent)
        return found is not None and found.ended

    if not conditions.sleep_until(store, team_name, ended, patience):
        raise Conflict(f"{agent} did not end within {patience:g} seconds", "Ask again, or look: teams list-agents")
    return sessions.current(store, team_name, agent) or session


def wait_for_run(store: Store, team: str, run: str, look: Callable[[list[Session]], None]) -> list[Session]:
    """Block until all sessions of a run are done, also those that it led to; *look* is shown them at every change."""
    found: list[Session] = []

    def settled() -> bool:
        found[:] = sessions.of_run(store, team, run)
        look(found)
        return all(session.ended for session in found)

    conditions.sleep_until(store, team, settled, None)
    return found


def wait_for(store: Store, team: str, agent: str) -> Session:
    """Block until the session of the agent is done."""

    def settled() -> bool:
        session = sessions.current(store, team, agent)
        return session is None or session.ended

    conditions.sleep_until(store, team, settled, None)
    session = sessions.find(store, team, agent)
    if session is None:
        raise NotFound(f"there is no session of {agent}")
    return session
