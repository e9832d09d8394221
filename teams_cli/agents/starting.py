"""Start agents: register the new member, store its session, and start its keeper, the process that runs its turns."""

from __future__ import annotations

import os
from dataclasses import dataclass, field

from teams_cli import environment, errors, names, processes, text
from teams_cli.agents import budgets, ending, git, isolation, sessions, trees
from teams_cli.agents.background import start_keeper
from teams_cli.agents.sessions import SESSION, Session
from teams_cli.clients import output, permissions, profiles
from teams_cli.clock import seconds_since
from teams_cli.membership import joining
from teams_cli.store.contract import Store, update, upsert
from teams_cli.teams import history, presence, roles, settings, teams
from teams_cli.teams.permission import Caller, require
from teams_cli.teams.teams import TEAM, Member, Team

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from teams_cli.clients.profiles import Profile
    from teams_cli.records.types import Permissions

_DESCRIPTION = 50
"""Number of characters of the prompt that serve as the description of an agent without one."""
_STARTING = 30.0
"""Seconds after which a member counts as never started, if the process that should start it is not recorded."""


@dataclass
class StartRequest:
    """A request to start an agent: its prompt and its options. When it starts, the agent gets the environment
    *environ*; later it gets the environment of the process that resumes it. *variables* are stored, and are added to
    the agent's environment each time. *type* is the name of a role; any other value is a skill of the agent.
    """

    prompt: str
    environ: Mapping[str, str] = field(kw_only=True)
    agent: str | None = None
    description: str | None = None
    harness: str | None = None
    type: str | None = None
    worktree: bool = False
    answer: str | None = None
    model: str | None = None
    acp_command: str | None = None
    permissions: Permissions | None = None
    directory: str = "."
    variables: Mapping[str, str] | None = None

    def __post_init__(self) -> None:
        self.directory = os.path.abspath(self.directory)

    def check(self) -> None:
        """Raise an error if a value of the request can't be used.

        Raises:
            InvalidValue: The prompt is blank or too long, the name is not valid, or the directory does not exist.
        """
        text.checked(self.prompt, "prompt", text.MAX_RESULT)
        if "\0" in self.prompt:
            raise errors.InvalidValue("the prompt has a NUL character", "Remove it.")
        if self.description is not None:
            text.one_line(self.description, "description")
        if self.agent is not None:
            names.check_name(self.agent, "agent")
        if self.model is not None:
            text.one_line(self.model, "model")
        if self.acp_command is not None:
            text.one_line(self.acp_command, "command")
        if not os.path.isdir(self.directory):
            raise errors.InvalidValue(
                f"the directory {self.directory} does not exist", "Create it, or give another --cwd."
            )


def run_agent(store: Store, team_name: str, caller: Caller | None, request: StartRequest) -> Session:
    """Start an agent for the leader or the human, and return its session. The agent continues by itself.

    Raises:
        InvalidValue: The prompt is blank, or the harness is unknown.
        AlreadyExists: There is an agent of that name.
        NotAllowed: The caller's role may not start agents with `run-agent`.
    """
    standing = require(store, team_name, caller, "run-agent")
    team, caller = standing.team, standing.caller
    if environment.holder(request.environ) and (starter := sessions.find(store, team_name, caller.name)):
        _inherit_client(request, starter)
    return _start(store, team, caller, request, f"{team_name}-{os.urandom(6).hex()}", depth=1)


def spawn(store: Store, team_name: str, caller: Caller | None, request: StartRequest) -> Session:
    """Start an agent that works beside you, without waiting for it. You get its output as a message.

    You can send it messages from now on. You may not finish before it does.

    Raises:
        InvalidValue: The prompt is blank, or the harness is unknown.
        Conflict: The new agent would be nested deeper than the setting `max_depth` allows.
        NotAllowed: You lead the team or are the human; use `run-agent`.
    """
    standing = require(store, team_name, caller, "spawn")
    team, caller = standing.team, standing.caller
    starter = sessions.find(store, team_name, caller.name)
    depth = (starter.depth if starter else 1) + 1  # a member that `teams` did not start is at level 1
    deepest = int(settings.value(team, "max_depth"))
    if depth > deepest:
        raise errors.Conflict(
            f"{caller.name} is at level {depth - 1}, and agents may be started only down to level {deepest}",
            "Do it yourself, or raise the setting max_depth.",
        )
    if starter:
        _inherit_client(request, starter)
    run = starter.run if starter else f"{team_name}-{os.urandom(6).hex()}"
    return _start(store, team, caller, request, run, depth)


def _inherit_client(request: StartRequest, starter: Session) -> None:
    """If the request names no harness, give it the client of *starter*, the session of the requesting agent."""
    if request.harness is None:
        request.harness = starter.harness
        request.acp_command = request.acp_command or starter.acp_command
        request.model = request.model or starter.model


def _start(store: Store, team: Team, caller: Caller, request: StartRequest, run: str, depth: int) -> Session:
    """Register the agent, make its worktree, store its session, and start its keeper. From the registration on,
    messages can be sent to the agent. If its session can't be stored, the agent leaves the team.
    """
    profile, level = _checked_client(store, team, caller, request, run)
    team = remove_never_started(store, team)
    if request.agent and team.find(request.agent):
        earlier = ending.current(store, team.name, request.agent)
        if earlier is None or not _never_ran(earlier):
            raise _name_is_taken(request.agent)
    top = trees.repository(request.directory) if request.worktree else ""
    if top:
        trees.refuse_stale(store.root, team.name, request.agent or joining.next_name(team), top)
    member, token = _join(store, team, caller, request)
    presence.register_process(store, team.name, member.agent_id, os.getpid())
    try:
        port = isolation.base_of(store, team.name, member.agent_id)
        tree, branch = _add_worktree(store, team, request, member.agent_id, top, port) if top else (None, None)
        now = teams.now(store)
        draft = Session(
            agent=member.agent_id,
            caller=caller.name,
            run=run,
            depth=depth,
            harness=profile.name,
            model=request.model,
            acp_command=request.acp_command,
            permissions=level,
            prompt=request.prompt,
            description=request.description or " ".join(request.prompt.split())[:_DESCRIPTION],
            directory=tree or request.directory,
            variables=dict(request.variables) if request.variables else None,
            worktree=tree,
            branch=branch,
            checkout=top or None,
            port_base=port,
            session_id=sessions.new_id(),
            session_known=output.is_preset(profile) or None,
            created_at=now,
            started_at=now,
        )
        # First the record on this machine, because a keeper refuses a session without it.
        sessions.note_started_here(store, team.name, draft)
        session = _store_session(store, team.name, draft.kept_by(os.getpid(), store.host))
    except trees.SetupFailed:  # the name stays free for the next agent
        _remove_member(store, team.name, member)
        raise
    except BaseException:
        if sessions.find(store, team.name, member.agent_id) is None:  # else the session was stored, and ends as lost
            joining.leave(store, team.name, Caller(member.agent_id, token=token))
        raise
    history.note(store, team.name, caller.name, "agent started", agent=session.agent, about=session.description)
    start_keeper(store, team.name, session, caller.config, request.environ)
    return session


def _checked_client(
    store: Store, team: Team, caller: Caller, request: StartRequest, run: str
) -> tuple[Profile, Permissions | None]:
    """Return the profile and the permission level of the client. Refuse a request that would fail whatever the agent's
    name is, for example because the client is not installed or a budget is used up.
    """
    request.check()
    harness = request.harness or str(settings.value(team, "harness"))
    profile = profiles.get(harness, caller.config, request.acp_command)
    profiles.refuse_missing(profile, caller.config, request.environ)
    if request.model:
        profiles.refuse_model(profile, request.model)
    level = permissions.choose(profile, request.permissions, team, request.environ)
    if budget := budgets.used_up(store, team.name, request.agent or "", run):
        raise errors.WrongState(f"no agent can start: {budget}", f"Raise it: {budget.raised_by}")
    return profile, level


def _add_worktree(store: Store, team: Team, request: StartRequest, agent: str, top: str, port: int) -> tuple[str, str]:
    """Make the worktree of the agent, and prepare it. If the preparation fails, the worktree is removed again. Returns
    the path and the branch of the worktree.
    """
    tree, branch = trees.add(store.root, team.name, agent, top)
    variables = {"TEAMS_TEAM": team.name, "TEAMS_AGENT_ID": agent, isolation.VARIABLE: str(port)}
    try:
        environ = {**request.environ, **variables, **store.variables}
        trees.furnish(team, top, tree, environ, "the agent was not started")
    except BaseException:
        git.run(top, "worktree", "remove", "--force", tree)
        git.run(top, "branch", "--quiet", "-D", branch)
        raise
    return tree, branch


def _store_session(store: Store, team: str, draft: Session) -> Session:
    """Store the session of a new agent. It may replace the session of an earlier agent of this name that never ran."""

    def replaced(stored: Session) -> Session:
        if stored is draft:  # there was none
            return draft.having(generation=1)
        if not _never_ran(stored):
            raise _name_is_taken(draft.agent)
        return draft.having(generation=stored.generation + 1)

    return upsert(store, team, SESSION, draft.agent, draft, replaced)[1]


def _never_ran(session: Session) -> bool:
    """Whether the agent was lost before its first turn, so that another agent may take its name."""
    return session.outcome == "lost" and not session.turns


def _join(store: Store, team: Team, caller: Caller, request: StartRequest) -> tuple[Member, str]:
    """Register the agent as a member that the *caller* started. Returns the member and its token."""
    requested = None if request.agent is None else Caller(request.agent, config=caller.config)
    role = roles.role_for(request.type, team, caller.config) if request.type else None
    member, token = joining.join(
        store,
        team.name,
        requested,
        role,
        None if role else request.type,  # a type that is no role is a skill
        answer=request.answer,
        started_by=caller.name,
        launcher=processes.identity(os.getpid(), store.host),
    )
    if member.started_by != caller.name:  # another agent of this name joined first
        raise _name_is_taken(member.agent_id)
    return member, token


def _name_is_taken(agent: str) -> errors.AlreadyExists:
    return errors.AlreadyExists(f"there is an agent {agent} already", "Choose another name, or leave it out.")


def remove_never_started(store: Store, team: Team) -> Team:
    """Remove the members whose start was interrupted, because the process that should have started them died. Their
    names can then be used again. Returns the changed team.
    """
    for member in team.members:
        if _was_never_started(store, team, member):
            team = _remove_member(store, team.name, member)
            history.note(store, team.name, member.agent_id, "member left", reason="it was never started")
    return team


def _was_never_started(store: Store, team: Team, member: Member) -> bool:
    """Whether the process that should have started the member ended before it stored a session for the member."""
    if not member.active or not member.started_by or sessions.find(store, team.name, member.agent_id):
        return False
    if member.launcher is None:  # written by a version that did not record it
        return seconds_since(member.joined_at or team.created_at, store.now()) > _STARTING
    has_ended = processes.identified_has_ended(member.launcher)
    if has_ended is None:  # the launcher is on another machine
        return presence.is_silent(store, team, member.agent_id, member.joined_at)
    return has_ended


def _remove_member(store: Store, team: str, removed: Member) -> Team:
    def without_member(team: Team) -> Team:
        return team.having(members=[member for member in team.members if member != removed])

    return update(store, team, TEAM, team, without_member)[1]
