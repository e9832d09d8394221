"""Bring up the team of a repository from its roster, and end this team. Both actions may be repeated."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

from filelock import FileLock, Timeout

from teams_cli import closing, errors, names, text
from teams_cli.agents import ending, interrupting, sessions, starting, trees
from teams_cli.agents.sessions import SESSION, Session
from teams_cli.agents.starting import StartRequest
from teams_cli.clients import permissions, profiles
from teams_cli.membership import joining, shutdowns
from teams_cli.messages import messages
from teams_cli.names import HUMAN, check_key, check_name
from teams_cli.runs.runs import SHELL
from teams_cli.store.contract import Store, update
from teams_cli.store.files import disk
from teams_cli.tasks import claims, creating, tasks
from teams_cli.tasks.creating import Planned
from teams_cli.teams import pages, permission, role_definitions, roles, settings, teams
from teams_cli.teams.config import Config
from teams_cli.teams.permission import Caller, Standing, require
from teams_cli.teams.teams import LEADER, Member, Team
from teams_cli.workflows import checks
from teams_cli.workflows import roster as rosters
from teams_cli.workflows.checks import KeyPath, Problem
from teams_cli.workflows.model import TaskTemplate
from teams_cli.workflows.roster import ListedTask, MemberTemplate, Roster

_DEFAULT_LEADER = "lead"
_PROMPT = """\
You are {name}{kind} in the team {team}. Work as a member of it: do what the line `next:` of `teams brief` says."""
_SHELL_PROMPT = "teams brief"
"""The prompt for an agent whose harness is a shell."""
_RESUMED = "The team is up again. Continue your work: teams brief"
_LOCK_TIMEOUT = 60.0
"""Seconds to wait for another process that brings up the same team."""


def up(
    store: Store, caller: Caller | None, path: str, config: Config, environ: Mapping[str, str], name: str = ""
) -> dict[str, Any]:
    """Bring up the team of the roster in the file *path*, or resume the team. Members with a harness are started, and
    members without a harness are expected to join. *name* is the team, or "" for the team that the roster names.
    *caller* is the member that brings it up; None stands for the leader.

    Existing members, pages and tasks stay as they are. If bringing up is interrupted, repeating it does what is
    missing.

    Raises:
        WrongState: The team is closed, because it was copied to another store.
    """
    roster, problems = rosters.examine(path)
    if roster is None:
        rosters.refuse(path, problems)  # there are problems, so this raises an error
    assert roster is not None
    name = name or roster.name
    with _locked(store, name):
        if caller is None:
            leader = teams.get(store, name).leader if name in store.teams() else roster.leader or _DEFAULT_LEADER
            caller = Caller(leader, config=config)
        return _Launch(store, caller, path, environ, name, roster).bring_up(problems)


@contextmanager
def _locked(store: Store, team: str) -> Iterator[None]:
    """For a `with` block, keep other processes of this machine from bringing up the same team: two processes would
    create everything twice.
    """
    disk.make_directories(f"{store.root}/rosters", store.root)
    lock = FileLock(f"{store.root}/rosters/{team}.lock", _LOCK_TIMEOUT, mode=0o600)
    try:
        lock.acquire()
    except Timeout:
        raise errors.Busy(
            f"another `teams up` of {team} has run for {_LOCK_TIMEOUT:g} seconds", "Wait for it, then repeat."
        ) from None
    try:
        yield
    finally:
        lock.release()


Check = tuple[KeyPath, Callable[[], object]]
"""A check that is made in advance: the keys that lead to the checked part of the roster, and a function that raises an
error if this part is wrong.
"""


def _refusals(advance_checks: Iterable[Check]) -> Iterator[Problem]:
    """Make the checks, and yield a problem for each part that is refused. Raise errors not due to the file."""
    for key_path, refuse_part in advance_checks:
        try:
            refuse_part()
        except (errors.InvalidValue, errors.AlreadyExists, errors.NotFound) as wrong:
            yield key_path, f"{wrong.message}. {wrong.hint}"
        except errors.NotAllowed as wrong:
            # Only a name may be refused because of the file. Other refusals say what the caller may not do.
            if key_path[-1] not in ("for", "name"):
                raise
            yield key_path, f"{wrong.message}. {wrong.hint}"


class _Launch:
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

    def bring_up(self, problems: list[Problem]) -> dict[str, Any]:
        """Create or resume the team, and add the parts of the roster that it does not have yet. *problems* are problems
        with the form of the roster. If there are any, or if a check in advance finds others, nothing is changed.
        """
        rosters.refuse(self.path, [*problems, *self._problems(problems)])
        is_created = self._create_or_reopen_team()
        require(self.store, self.team, self.caller, "up")
        if self.roster.rules is not None:
            settings.change(self.store, self.team, self.caller, settings.RULES, self.roster.rules)
        for member in self.roster.members:
            description = self.descriptions.get(member.role)  # only if a file describes an agent of this role
            role = roles.role_for(member.role, self._load_team(), self.caller.config)
            if role is None and description is not None:
                role_definitions.define(self.store, self.team, self.caller, member.role, description=description)
            roles.known_role(member.role, self._load_team(), self.caller.config)  # refuses a role that is still unknown
        missing_pages = [key for key in self.roster.pages if pages.find(self.store, self.team, key) is None]
        for key in missing_pages:  # a page that the team has changed since is left alone
            pages.share(self.store, self.team, self.caller, key, self.roster.pages[key], 0)
        task_ids = self._create_tasks()
        members = [self._bring_up_member(member) for member in self.roster.members]
        return {
            "team": self.team,
            "leader": self._load_team().leader,
            "created": is_created,
            "members": members,
            "pages": missing_pages,
            "tasks": task_ids,
        }

    def _load_team(self) -> Team:
        return teams.get(self.store, self.team)

    def _problems(self, problems_of_form: list[Problem]) -> Iterator[Problem]:
        """Yield the problems that later steps would find, except *problems_of_form* and what only follows from them."""
        yield from _refusals([(("name",), lambda: check_name(self.roster.name, "team"))])
        yield from rosters.problems_of(self.roster)
        exists = self.team in self.store.teams()
        if exists:
            team = self._load_team()
            closing.refuse_copied(team)
            if team.state != "closed":
                require(self.store, self.team, self.caller, "up")
        else:
            leader = self._leader_of_new_team()
            defaults = settings.of_user(self.caller.config) if self.caller.config else {}
            members = [Member(agent_id=leader, role=LEADER, joined_at="")]
            # The team as it would be created.
            team = Team(name=self.team, leader=leader, created_at="", settings=defaults, members=members)
            role = HUMAN if self.caller.is_human else LEADER
            needs = {
                "up": True,
                "set": self.roster.rules is not None,
                "share": bool(self.roster.pages),
                "create-task": bool(self.templates),
                "run-agent": any(member.harness for member in self.roster.members),
            }
            for operation, is_needed in needs.items():
                if is_needed and roles.verdict(role, operation, team, self.caller.config) == "deny":
                    permission.judge(role, operation, "deny", self.caller, self.team, team)  # raises the error
        if (rules := self.roster.rules) is not None:
            yield from _refusals([(("rules",), lambda: settings.known(settings.RULES).parse(settings.RULES, rules))])
        for key, body in self.roster.pages.items():
            yield from _refusals(self._checks_of_page(exists, key, body))
        yield from self._problems_of_tasks(team, exists, problems_of_form)
        for index, member in enumerate(self.roster.members):
            yield from _refusals(self._checks_of_member(team, member, ("members", index)))

    def _checks_of_page(self, exists: bool, key: str, body: str) -> Iterator[Check]:
        """Yield each check that creating the page *key* would make. *exists* says whether the team exists."""
        yield ("pages", key), lambda: check_key(key, "page")
        yield ("pages", key), lambda: pages.check_text(body)
        if exists and names.is_name(key) and pages.find(self.store, self.team, key) is None:
            yield ("pages", key), lambda: pages.refuse_new_page(self.store, self.team, key)

    def _problems_of_tasks(self, team: Team, exists: bool, problems_of_form: list[Problem]) -> Iterator[Problem]:
        """Yield the problems of the tasks: ids that are given twice, and new tasks that the team would refuse."""
        path_of_tasks: KeyPath = ("tasks",) if self.roster.tasks else ("workflow", "tasks")
        created_before = {task.step for task in tasks.all_of(self.store, self.team, [])} if exists else set()
        standing = Standing(team, self.caller, HUMAN if self.caller.is_human else LEADER)
        ids = [template.id for template in self.templates]
        # A task of the roster whose form is wrong is not in `self.templates`, so an unknown id may be the id of this
        # task. A workflow with such a task was refused as a whole.
        is_task_missing = any(key_path[:1] == ("tasks",) for key_path, _ in problems_of_form)

        def is_known(task_id: str) -> bool:
            if is_task_missing or task_id in (*ids, *created_before):
                return True
            try:
                return exists and bool(tasks.get(self.store, self.team, task_id))
            except (errors.TaskNotFound, errors.InvalidValue):
                return False

        for index, task_id in enumerate(ids):
            if task_id in ids[:index]:
                yield (*path_of_tasks, index, "id"), f"{task_id} is given twice"
        numbered = enumerate(self.templates)
        new_tasks = [(index, template) for index, template in numbered if template.id not in created_before]
        for index, template in new_tasks:
            yield from _refusals(self._checks_of_task(standing, template, (*path_of_tasks, index)))
        yield from checks.dependencies(new_tasks, is_known, path_of_tasks)

    def _checks_of_task(self, standing: Standing, template: TaskTemplate, key_path: KeyPath) -> Iterator[Check]:
        """Yield each check that creating the task would make."""
        yield (*key_path, "touches"), lambda: text.file_patterns(template.touches)
        draft = creating.of_template(self.team, template.model_copy(update={"touches": []}), os.path.dirname(self.path))
        yield key_path, lambda: tasks.drafted(standing, draft, "")
        if keep_for := getattr(template, "keep_for", None):
            yield (*key_path, "for"), lambda: creating.refuse_unfit(standing, draft, keep_for)
        for key, name in (("for", keep_for), ("reviewBy", template.review_by)):
            if name:
                yield (*key_path, key), partial(self._refuse_look_alike, standing.team, name)

    def _refuse_look_alike(self, team: Team, name: str) -> None:
        """Refuse a *name* that differs only in case from a member of the roster. The other checks refuse one that
        differs so from a member of the *team*. The name of a role may stand for the members with this role.
        """
        if team.find(name) or teams.look_alike(team, name) or roles.role_for(name, team, self.caller.config):
            return
        names_of_members = [member.name for member in self.roster.members]
        if name not in names_of_members and (meant := teams.nearest(name, names_of_members)).lower() == name.lower():
            raise errors.InvalidValue(f"{name} differs only in case from {meant}", f"Write: {meant}")

    def _checks_of_member(self, team: Team, template: MemberTemplate, key_path: KeyPath) -> Iterator[Check]:
        """Yield each check that adding or starting the member would make."""
        config = self.caller.config
        yield (*key_path, "name"), lambda: check_name(template.name, "agent")
        if template.role in self.descriptions and roles.role_for(template.role, team, config) is None:
            yield (*key_path, "role"), lambda: role_definitions.refuse_name(template.role, team)
        else:
            yield (*key_path, "role"), lambda: roles.known_role(template.role, team, config)
        former = team.find(template.name)
        if former and (former.active or ending.current(self.store, self.team, template.name)):
            return  # it is there or is resumed, so nothing is added or started
        if former:
            yield (*key_path, "name"), lambda: shutdowns.refuse_return(former)
        yield (*key_path, "name"), lambda: joining.refuse_look_alike(team, template.name)
        if not template.harness:
            return
        harness = template.harness
        yield (*key_path, "harness"), lambda: profiles.get(harness, config)
        # Without the model, which is checked below, because its problems belong to another key.
        request = self._start_request(template.model_copy(update={"model": None}), template.role)
        yield (*key_path, "prompt"), request.check
        if model := template.model:
            yield (*key_path, "model"), lambda: text.one_line(model, "model")
        try:
            profile = profiles.get(harness, config)
        except errors.InvalidValue:  # was yielded above
            return
        yield (*key_path, "harness"), lambda: profiles.refuse_missing(profile, config, self.environ)
        if model:
            yield (*key_path, "model"), lambda: profiles.refuse_model(profile, model)
        yield (
            (*key_path, "permissions"),
            lambda: permissions.choose(profile, template.permissions, team, self.environ),
        )
        if template.worktree:
            yield (*key_path, "worktree"), lambda: trees.repository(request.directory)

    def _create_or_reopen_team(self) -> bool:
        """Create the team, or open it again. Return whether it is new."""
        if self.team not in self.store.teams():
            leader = self._leader_of_new_team()
            if not self.caller.is_human and leader != self.caller.name:
                raise errors.NotAllowed(
                    f"{self.caller.name} does not lead {self.team}: {self.path} names {leader}",
                    f"Start it with --as {leader} or --as human.",
                )
            joining.spawn_team(self.store, self.team, Caller(leader, config=self.caller.config))
            return True
        if self._load_team().state == "closed":
            closing.restore(self.store, self.team, self.caller)
        return False

    def _leader_of_new_team(self) -> str:
        if self.roster.leader:
            return self.roster.leader
        return _DEFAULT_LEADER if self.caller.is_human else self.caller.name

    def _create_tasks(self) -> list[str]:
        """Create the tasks of the roster that the team does not have yet, and return their ids."""
        while True:
            with suppress(creating.Overtaken):  # by another machine that brings up the same team
                return self._create_missing_tasks()

    def _create_missing_tasks(self) -> list[str]:
        existing = self._ids_by_step()
        planned = []
        for template in self.templates:
            if template.id in existing:
                continue
            task = creating.of_template(self.team, template, os.path.dirname(self.path)).having(step=template.id)
            blockers = [existing.get(key, key) for key in template.blocked_by]
            plan = Planned(template.id, task, blockers)
            if isinstance(template, ListedTask):  # the tasks of a workflow have none of this
                after = [existing.get(key, key) for key in template.after]
                blocks = [existing.get(key, key) for key in template.blocks]
                plan = plan._replace(keep_for=template.keep_for, after=after, blocks=blocks)
            planned.append(plan)

        def check_last() -> None:
            if not self._ids_by_step().keys().isdisjoint(plan.key for plan in planned):
                raise creating.Overtaken

        created = creating.create_all(self.store, self.team, self.caller, planned, check_last) if planned else []
        return [task.id for task in created]

    def _ids_by_step(self) -> dict[str, str]:
        return {task.step: task.id for task in tasks.all_of(self.store, self.team, []) if task.step}

    def _bring_up_member(self, template: MemberTemplate) -> dict[str, Any]:
        """Start or resume a member, or expect it to join, and return a row with its state."""
        listed_role = roles.known_role(template.role, self._load_team(), self.caller.config)
        state = self._start_or_expect(template, listed_role)
        member = self._load_team().member(template.name)
        role = member.role if member else listed_role
        row = {"name": template.name, "role": role, "state": state}
        return row if role == listed_role else {**row, "said": listed_role}  # a member keeps the role that it has

    def _start_or_expect(self, template: MemberTemplate, role: str) -> str:
        """Start or resume the member if it has a harness. Otherwise make it a member, so that a client can act as it
        later, and send it its purpose. Return the member's state, such as "started" or "expected".
        """
        team = self._load_team()
        session = ending.current(self.store, self.team, template.name)
        if session is not None:
            if not session.ended:
                return "running"
            if not template.harness or session.outcome == "completed":  # mail resumes an agent that is done
                return "done"
            self._resume(session, template.model)
            return "resumed"
        if template.name == team.leader:
            return "leads"
        is_member = team.member(template.name) is not None
        if template.harness and not is_member:
            starting.run_agent(self.store, self.team, self.caller, self._start_request(template, role))
            return "started"
        if not is_member:
            joining.join(self.store, self.team, Caller(template.name, config=self.caller.config), role)
        if purpose := self._purpose(template):
            notice = f"Your purpose: {purpose}"
            uid = f"roster-{template.name}"
            messages.notify(self.store, self.team, template.name, notice, uid, "info", event="roster")
        return "here" if is_member else "expected"

    def _purpose(self, template: MemberTemplate) -> str:
        """Return the member's purpose, from the file that describes the agent or its role; "" without a file."""
        return self.descriptions.get(template.name) or self.descriptions.get(template.role) or ""

    def _start_request(self, template: MemberTemplate, role: str) -> StartRequest:
        purpose = self._purpose(template)
        if template.prompt or template.harness == SHELL:
            prompt = template.prompt or _SHELL_PROMPT
        else:
            kind = f" ({role})" if role not in roles.BUILT_IN else ""
            prompt = _PROMPT.format(name=template.name, kind=kind, team=self.team)
            if purpose:
                prompt += f"\nYour purpose: {purpose}"
        return StartRequest(
            prompt,
            agent=template.name,
            description=purpose[:100] or None,
            harness=template.harness,
            model=template.model,
            type=role,
            worktree=template.worktree,
            permissions=template.permissions,
            directory=os.path.dirname(self.path),
            environ=self.environ,
        )

    def _resume(self, session: Session, model: str | None) -> None:
        """Resume an agent that `down` stopped, with the roster's *model*: record that the agent is done, and send it a
        message, which resumes an agent that is done. An agent of another machine keeps its model, because that machine
        starts it only as recorded there.
        """
        changed = session.having(model=model or session.model)
        # With the new model, this machine recorded it if an earlier `up` was killed before it changed the session.
        if any(sessions.is_started_here(self.store, self.team, each) for each in (session, changed)):
            sessions.note_started_here(self.store, self.team, changed)
        else:
            changed = session

        def as_done(session: Session) -> Session:
            cleared = {"stop_asked": None, "failure": None, "pause_asked": None}
            return session.having(outcome="completed", state="done", model=changed.model, **cleared)

        update(self.store, self.team, SESSION, session.agent, as_done)
        messages.send(self.store, self.team, self.caller, session.agent, _RESUMED)


def down(
    store: Store, caller: Caller | None, path: str, config: Config, environ: Mapping[str, str], name: str = ""
) -> dict[str, Any]:
    """End the team *name*: its agents are stopped, their tasks are released, and the team is closed. Its landings wait
    until it is up again. If *name* is "", the roster at *path* names the team. The *caller* ends it; None stands for
    the leader.

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
        claims.release_tasks_of(store, team, session.agent, caller.name, "the team was taken down")
    closed = closing.close_with_clients(store, name, caller, True, environ, refuses_landings=False)
    answer = {"team": name, "state": "closed", "stopped": stopped + closed.ended}
    if closed.still_open:
        answer["leftClients"] = closed.still_open
    return answer
