"""Starting agents, and waking those that are idle."""

from __future__ import annotations

import os
import sys

from teams_cli import (
    conditions,
    harness,
    history,
    logs,
    membership,
    names,
    origins,
    processes,
    resumes,
    roles,
    sessions,
    settings,
    teams,
    text,
)
from teams_cli.caller import Caller
from teams_cli.clock import seconds_since
from teams_cli.errors import AlreadyExists, Conflict, InvalidValue, NotFound, TeamsError
from teams_cli.roles import require
from teams_cli.sessions import SESSION, Session
from teams_cli.store.contract import update
from teams_cli.teams import TEAM

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from teams_cli.config import Config
    from teams_cli.store.contract import Store
    from teams_cli.teams import Member, Team

_DESCRIPTION = 50
_STARTING = 30.0


class Order:
    """What is to be started: the prompt, and what was said of the agent.

    It inherits *environ* (when it is resumed, that of whoever does); *variables* are its own, and are kept.
    """

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
        variables: Mapping[str, str] | None = None,
    ) -> None:
        self.prompt = prompt
        self.agent = agent
        self.description = description
        self.harness = harness
        self.type = type
        self.worktree = worktree
        self.answer = answer
        self.directory = os.path.abspath(directory)
        self.environ = environ or {}
        self.variables = variables

    def check(self) -> None:
        """Raises InvalidValue: The prompt is blank or too long, the name can't be one, the directory is not there."""
        text.checked(self.prompt, "prompt", text.MAX_RESULT)
        if "\0" in self.prompt:
            raise InvalidValue("the prompt has a NUL character", "No program can be given one; leave it out.")
        if self.description is not None:
            text.one_line(self.description, "description")
        if self.agent is not None:
            names.check_name(self.agent, "agent")
        if not os.path.isdir(self.directory):
            raise InvalidValue(f"there is no directory {self.directory}", "Make it first, or give another --cwd.")

    @property
    def about(self) -> str:
        """The description; unless given, the beginning of the prompt."""
        return self.description or " ".join(self.prompt.split())[:_DESCRIPTION]


def run_agent(store: Store, team_name: str, caller: Caller | None, order: Order) -> Session:
    """Start an agent as leader or human; it goes on by itself.

    Raises:
        InvalidValue: The prompt is blank, or the harness unknown.
        AlreadyExists: There is an agent of that name.
        NotAllowed: The caller's role starts no agents so.
    """
    team = require(store, team_name, caller, "run-agent")
    assert caller is not None
    return _start(store, team, caller, order, _new_run(team_name), depth=1)


def spawn(store: Store, team_name: str, caller: Caller | None, order: Order) -> Session:
    """Start a sibling that works beside you, and go on at once; its output will come to you as a message from it.

    It can be written to from now on. You can't finish before it does.

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
    if own and order.harness is None:
        order.harness = own.harness
    return _start(store, team, caller, order, own.run if own else _new_run(team_name), depth)


def _new_run(team: str) -> str:
    return f"{team}-{os.urandom(6).hex()}"


def _start(store: Store, team: Team, caller: Caller, order: Order, run: str, depth: int) -> Session:
    """Register the agent, so that it can be written to; then start its keeper."""
    order.check()
    profile = harness.find(order.harness or str(settings.value(team, "harness")), caller.config)
    if order.agent and team.find(order.agent):
        raise AlreadyExists(f"there is an agent {order.agent} already", "Choose another name, or leave it out.")
    clear_away(store, team)
    top = _repository(store, team, order) if order.worktree else ""
    member, token = _join(store, team, caller, order)
    try:
        tree, branch = _worktree(store, team, member.agent_id, top) if top else (None, None)
        now = teams.now(store)
        draft = Session(
            agent=member.agent_id,
            caller=caller.name,
            run=run,
            depth=depth,
            harness=profile.name,
            prompt=order.prompt,
            description=order.about,
            directory=tree or order.directory,
            variables=dict(order.variables) if order.variables else None,
            worktree=tree,
            branch=branch,
            session_id=_new_uuid(),
            session_known=harness.is_preset(profile) or None,
            created_at=now,
            started_at=now,
        )
        origins.note(store, team.name, draft)
        session, _ = store.create(team.name, SESSION, member.agent_id, draft.kept_by(os.getpid(), store.host))
    except BaseException:
        if sessions.find(store, team.name, member.agent_id) is None:
            membership.leave(store, team.name, Caller(member.agent_id, token=token))
        raise
    history.note(store, team.name, caller.name, "agent started", agent=session.agent, about=session.description)
    start_keeper(store, team.name, session, caller.config, order.environ)
    return session


def _join(store: Store, team: Team, caller: Caller, order: Order) -> tuple[Member, str]:
    """Make the agent a member, as the leader's or its sibling's work, not its own."""
    asked = None if order.agent is None else Caller(order.agent, config=caller.config)
    role = roles.role_for(order.type, team, caller.config) if order.type else None
    specialty = None if role else order.type
    member, token = membership.join(
        store, team.name, asked, role, specialty, answer=order.answer, started_by=caller.name
    )
    if member.started_by != caller.name:
        raise AlreadyExists(f"there is an agent {member.agent_id} already", "Choose another name, or leave it out.")
    return member, token


def _repository(store: Store, team: Team, order: Order) -> str:
    """The checkout to make a worktree of, looked at before anything is changed."""
    from teams_cli import worktrees

    top = worktrees.repository(order.directory)
    worktrees.refuse_stale(store.root, team.name, order.agent or membership.next_name(team), top)
    return top


def _worktree(store: Store, team: Team, agent: str, top: str) -> tuple[str, str]:
    from teams_cli import worktrees

    return worktrees.add(store.root, team.name, agent, top)


def _new_uuid() -> str:
    from uuid import uuid4

    return str(uuid4())


def clear_away(store: Store, team: Team) -> None:
    """Let members leave whose launcher was killed before it started them: there is nobody behind them."""
    for member in team.members:
        if not member.active or not member.started_by or sessions.find(store, team.name, member.agent_id):
            continue
        if seconds_since(member.joined_at or team.created_at, store.now()) > _STARTING:
            _remove(store, team.name, member.having(left_at=teams.now(store)))
            history.note(store, team.name, member.agent_id, "member left", reason="it was never started")


def _remove(store: Store, team: str, gone: Member) -> None:
    update(store, team, TEAM, team, lambda found: found.with_member(gone))


def start_keeper(store: Store, team: str, session: Session, config: Config | None, environ: Mapping[str, str]) -> None:
    """Start the keeper of a session; if that can't be, the session has failed and its caller is told."""
    try:
        origins.check(store, team, session)
        profile = harness.find(session.harness, config)
        log = log_path(store, team, session.agent)
        os.makedirs(os.path.dirname(log), 0o700, exist_ok=True)
        clean = harness.environment(profile, environ, _identity(store, team, session))
        clean["PATH"] = _path(clean.get("PATH", os.defpath))
        pid = processes.start_own("teams_cli.keeper", [], clean, log)
    except (OSError, TeamsError) as error:
        sessions.finish(store, team, session, "failed", f"its keeper can't be started: {error}")
        return
    sessions.hand_on(store, team, session, pid)
    if store.host:
        from teams_cli import wakers

        wakers.start(store, team, clean)


def _path(path: str) -> str:
    """The search path; where it does not lead to `teams`, which the agent is to call, with our directory at its end."""
    from shutil import which

    own = os.path.dirname(sys.executable)
    return path if which("teams", path=path) else f"{path}{os.pathsep}{own}"


def _identity(store: Store, team: str, session: Session) -> dict[str, str]:
    """The variables that say who the agent is, under our names and those of OpenCode Teams."""
    member = teams.load(store, team).find(session.agent)
    name = member.agent_name if member and member.agent_name else session.agent
    type = (member.agent_type or member.role) if member else "team-member"
    own = {"AGENT_ID": session.agent, "AGENT_NAME": name, "AGENT_TYPE": type}
    both = {f"{prefix}_{key}": value for prefix in ("TEAMS", "OPENCODE") for key, value in own.items()}
    ours = {**both, **store.variables, "TEAMS_TEAM": team, "OPENCODE_TEAM_NAME": team}
    return {**(session.variables or {}), **ours}


def log_path(store: Store, team: str, agent: str) -> str:
    """Where the keeper of the agent writes what nobody else takes."""
    return logs.path_of(store, team, agent)


def wake(
    store: Store,
    team: Team,
    config: Config | None,
    recipients: list[str],
    sender: str,
    environ: Mapping[str, str],
    for_output: bool = False,
) -> list[str]:
    """Resume those of the recipients of a stored message that are idle; their names.

    Those of another machine are left to the waker there.
    """
    woken = []
    for agent in recipients:
        session = sessions.current(store, team.name, agent) if team.member(agent) else None
        if session and session.host not in ("", store.host):
            continue
        if session and session.ended and sessions.waiting_numbers(store, team.name, session):
            opened = resumes.reopen(store, team.name, agent, sender, for_output)
            if opened:
                start_keeper(store, team.name, opened, config, environ)
                woken.append(agent)
    return woken


def wait_for_run(store: Store, team: str, run: str, look: Callable[[list[Session]], None]) -> list[Session]:
    """Block until all sessions of a run are done, also those that it led to; *look* is shown them at every change."""
    found: list[Session] = []

    def settled() -> bool:
        found[:] = sessions.of_run(store, team, run)
        look(found)
        return all(session.ended for session in found)

    while True:
        conditions.sleep_until(store, team, settled, None)
        sessions.linger(found)
        if settled():
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
