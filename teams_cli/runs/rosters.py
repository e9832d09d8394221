"""Bringing up the team of a repository from its roster, and ending it. Both may be repeated."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from filelock import FileLock, Timeout

from teams_cli import closing, errors
from teams_cli.agents import ending, interrupting, starting
from teams_cli.agents.sessions import SESSION, Session
from teams_cli.agents.starting import StartRequest
from teams_cli.membership import joining
from teams_cli.messages import messages
from teams_cli.runs.runs import SHELL
from teams_cli.store.contract import Store
from teams_cli.store.files import disk
from teams_cli.store.retrying import update
from teams_cli.tasks import claims, creating, tasks
from teams_cli.tasks.creating import Planned
from teams_cli.teams import pages, role_definitions, roles, settings, teams
from teams_cli.teams.config import Config
from teams_cli.teams.permission import Caller, require
from teams_cli.workflows import roster as rosters
from teams_cli.workflows.roster import ListedTask, MemberTemplate, Roster

_LEADER = "lead"
_PROMPT = """\
You are {name}{kind} in the team {team}. Work as a member of it: do what the line `next:` of `teams brief` says."""
_LOOK = "teams brief"
"""The prompt for an agent that is a shell."""
_FOR = "Your purpose: "
_AGAIN = "The team is up again. Continue your work: teams brief"
_DOWN = "the team was taken down"
_PATIENCE = 60.0


def up(
    store: Store, caller: Caller | None, path: str, config: Config, environ: Mapping[str, str], name: str = ""
) -> dict[str, Any]:
    """Bring up the team of the roster in the file *path*, or resume it. Members with a harness are started, and the
    others are expected.

    Existing members, pages and tasks stay as they are. If this is interrupted, repeating it does the rest.

    Raises:
        InvalidValue: The file is not valid; names everything that is wrong.
        WorkflowNotFound: There is no such file, here or above.
        NotAllowed: The caller does not lead the team.
    """
    roster = rosters.read(path)
    name = name or roster.name
    with _alone(store, name):
        leader = teams.get(store, name).leader if name in store.teams() else roster.leader or _LEADER
        return _Rise(store, caller or Caller(leader, config=config), path, environ, name, roster).rise()


@contextmanager
def _alone(store: Store, team: str) -> Iterator[None]:
    """Keep other processes of this machine from bringing up the team during a `with` block, because two would create
    everything twice. If another process is doing it, wait until it has finished.
    """
    disk.make_directories(f"{store.root}/rosters", store.root)
    lock = FileLock(f"{store.root}/rosters/{team}.lock", _PATIENCE, mode=0o600)
    try:
        lock.acquire()
    except Timeout:
        busy = f"another `teams up` of {team} has run for {_PATIENCE:g} seconds"
        raise errors.Busy(busy, "Wait for it, then repeat.") from None
    try:
        yield
    finally:
        lock.release()


class _Rise:
    """Brings up the roster in the file *path* as the *team*. Agents inherit *environ*."""

    def __init__(
        self, store: Store, caller: Caller, path: str, environ: Mapping[str, str], team: str, roster: Roster
    ) -> None:
        self.store = store
        self.caller = caller
        self.path = path
        self.environ = environ
        self.team = team
        self.roster = roster
        self.descriptions = rosters.descriptions(path)
        self.templates = rosters.tasks_of(self.roster, path)

    def rise(self) -> dict[str, Any]:
        """Create or resume the team, and add the parts of the roster that it does not have yet."""
        created = self._open()
        require(self.store, self.team, self.caller, "up")
        if self.roster.rules is not None:
            settings.change(self.store, self.team, self.caller, settings.RULES, self.roster.rules)
        for member in self.roster.members:  # an undefined role may be described in an agent's file
            team = teams.get(self.store, self.team)
            if roles.role_for(member.role, team, self.caller.config) is None and member.role in self.descriptions:
                about = self.descriptions[member.role]
                role_definitions.define(self.store, self.team, self.caller, member.role, description=about)
            roles.known_role(member.role, teams.get(self.store, self.team), self.caller.config)
        missing = [key for key in self.roster.pages if pages.find(self.store, self.team, key) is None]
        for key in missing:  # a page that the team has changed since is left alone
            pages.share(self.store, self.team, self.caller, key, self.roster.pages[key], 0)
        made = self._create_tasks()
        members = [self._member(member) for member in self.roster.members]
        return {
            "team": self.team,
            "leader": teams.get(self.store, self.team).leader,
            "created": created,
            "members": members,
            "pages": missing,
            "tasks": made,
        }

    def _open(self) -> bool:
        """Create the team, or open it again. Return whether it was created now."""
        if self.team not in self.store.teams():
            leader = self.roster.leader or ("" if self.caller.is_human else self.caller.name) or _LEADER
            if not self.caller.is_human and leader != self.caller.name:
                raise errors.NotAllowed(
                    f"{self.caller.name} does not lead {self.team}: {self.path} names {leader}",
                    f"Start it with --as {leader} or --as human.",
                )
            joining.spawn_team(self.store, self.team, Caller(leader, config=self.caller.config))
            return True
        if teams.get(self.store, self.team).state == "closed":
            closing.restore(self.store, self.team, self.caller)
        return False

    def _create_tasks(self) -> list[str]:
        there = {task.step: task.id for task in tasks.all_of(self.store, self.team, []) if task.step}
        planned = []
        for template in self.templates:
            if template.id not in there:
                task = creating.of_template(self.team, template, os.path.dirname(self.path)).having(step=template.id)
                blockers = [there.get(key, key) for key in template.blocked_by]
                keep_for, after = None, []
                if isinstance(template, ListedTask):  # the tasks of a workflow are for nobody
                    keep_for, after = template.keep_for, [there.get(key, key) for key in template.after]
                planned.append(Planned(template.id, task, blockers, keep_for, after))
        made = creating.create_all(self.store, self.team, self.caller, planned) if planned else []
        return [task.id for task in made]

    def _member(self, member: MemberTemplate) -> dict[str, Any]:
        """Start, resume or expect a member, and return its state. The member keeps the role that it has; if the roster
        names another, that is in `said`.
        """
        role = roles.known_role(member.role, teams.get(self.store, self.team), self.caller.config)
        state = self._state(member, role)
        present = teams.get(self.store, self.team).member(member.name)
        now = present.role if present else role
        return {"name": member.name, "role": now, "state": state, **({} if now == role else {"said": role})}

    def _state(self, member: MemberTemplate, role: str) -> str:
        team = teams.get(self.store, self.team)
        session = ending.current(self.store, self.team, member.name)
        if session is not None:
            if not session.ended:
                return "running"
            return self._resumed(session, member.model) if member.harness else "done"
        if member.name == team.leader:
            return "leads"
        there = team.member(member.name) is not None
        if member.harness and not there:
            starting.run_agent(self.store, self.team, self.caller, self._request(member, role))
            return "started"
        if not there:
            joining.join(self.store, self.team, Caller(member.name, config=self.caller.config), role)
        if about := self._about(member):
            messages.notify(self.store, self.team, member.name, about, f"roster-{member.name}", "info", event="roster")
        return "here" if there else "expected"

    def _about(self, member: MemberTemplate) -> str:
        """Return the sentence about the member's purpose; "" if no agent's file describes it."""
        purpose = self.descriptions.get(member.name) or self.descriptions.get(member.role)
        return f"{_FOR}{purpose}" if purpose else ""

    def _request(self, member: MemberTemplate, role: str) -> StartRequest:
        about = self._about(member)
        kind = f" ({role})" if role not in roles.BUILT_IN else ""
        asked = _PROMPT.format(name=member.name, kind=kind, team=self.team) + (f"\n{about}" if about else "")
        prompt = member.prompt or (_LOOK if member.harness == SHELL else asked)
        return StartRequest(
            prompt,
            agent=member.name,
            description=about.removeprefix(_FOR)[:100] or None,
            harness=member.harness,
            model=member.model,
            type=role,
            worktree=member.worktree,
            permissions=member.permissions,
            directory=os.path.dirname(self.path),
            environ=self.environ,
        )

    def _resumed(self, session: Session, model: str | None) -> str:
        """Resume an agent that `down` stopped, with the *model* of the roster, and return its state. An agent that is
        done is left alone, because mail resumes it.
        """
        if session.outcome == "completed":
            return "done"

        def unstopped(session: Session) -> Session:
            ended = {"stop_asked": None, "failure": None, "pause_asked": None}
            return session.having(outcome="completed", state="done", model=model or session.model, **ended)

        update(self.store, self.team, SESSION, session.agent, unstopped)
        messages.send(self.store, self.team, self.caller, session.agent, _AGAIN)
        return "resumed"


def down(
    store: Store, caller: Caller | None, path: str, config: Config, environ: Mapping[str, str], name: str = ""
) -> dict[str, Any]:
    """End the team of the roster: its agents are stopped, their tasks are released, and the team is closed.

    Nothing is lost: `teams up` continues with the team. Clients that were opened with --detach end, unless somebody
    looks at them.

    Raises:
        TeamNotFound: The team was never started.
        WorkflowNotFound: There is no `teams.yaml`, here or above.
        Conflict: An agent could not be stopped in time.
        NotAllowed: The caller does not lead the team.
    """
    name = name or rosters.read(path).name
    caller = caller or Caller(teams.get(store, name).leader, config=config)
    team = require(store, name, caller, "down").team
    if team.state == "closed":
        return {"team": name, "state": "closed", "stopped": []}
    stopped = []
    for session in ending.all_of(store, team.name, []):
        if not session.ended:
            interrupting.stop(store, team.name, caller, session.agent)
            stopped.append(session.agent)
        claims.release_tasks_of(store, team, session.agent, caller.name, _DOWN)
    closed = closing.close_with_clients(store, name, caller, True, environ)
    left = {"leftClients": closed.left} if closed.left else {}
    return {"team": name, "state": "closed", "stopped": stopped + closed.ended, **left}
