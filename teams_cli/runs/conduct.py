"""Runs: a workflow carried out by a team of its own, begun here or resumed; led by this process."""

from __future__ import annotations

import os
import secrets
from dataclasses import dataclass

from teams_cli import closing, errors
from teams_cli.clients import environments
from teams_cli.membership import joining
from teams_cli.runs import crew, orders, runs
from teams_cli.runs.leader import Ended, Leader
from teams_cli.runs.runs import RUN, Run
from teams_cli.store.contract import Store
from teams_cli.tasks import leases
from teams_cli.teams import permission, settings, teams
from teams_cli.teams.permission import Caller
from teams_cli.workflows.model import Workflow

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from teams_cli.records.types import Permissions
    from teams_cli.runs.leader import Progress
    from teams_cli.teams.config import Config
    from teams_cli.teams.teams import Team


class LiveRun:
    """A run that this process carries out: its *team*, its *record*, who leads it, and in which *surroundings*."""

    def __init__(self, store: Store, team: str, record: Run, leader: Caller, surroundings: Surroundings) -> None:
        self.store = store
        self.team = team
        self.record = record
        self.leader = leader
        self.surroundings = surroundings
        self.workflow = Workflow.model_validate(record.definition)

    @property
    def about(self) -> str:
        """What the workflow is for, in a line."""
        return " ".join(self.workflow.description.split())

    def load_team(self) -> Team:
        """The team, as it is now."""
        return teams.get(self.store, self.team)

    def environment_of(self, agent: str, kind: str) -> dict[str, str]:
        """The environment of that agent's processes, by which all of them can be found."""
        return self.surroundings.of_agent(self.store, self.team, agent, kind, self.record.tag_of(agent))


LEADER_NAME = "leader"


@dataclass
class RunRequest:
    """What is asked for: which workflow, with which variables, by how many agents, in which team, reported where."""

    workflow: Workflow
    file: str
    given: Mapping[str, str]
    agents: int | None = None
    team: str = ""
    report: str = ""
    harness: str = runs.SHELL
    model: str | None = None
    permissions: Permissions | None = None


def start(store: Store, caller: Caller, request: RunRequest, surroundings: Surroundings, progress: Progress) -> Ended:
    """Run a workflow: spawn a team, create the tasks, start the workers, wait for them, synthesize, and report.

    Raises:
        InvalidValue: A variable is unknown, missing or wrong, the agents are too few, or a client is not there or
            can't start; nothing was changed.
        AlreadyExists: There is a team of the name that was asked for.
        TaskFailed: The command that finds what to do failed; nothing was changed.
    """
    values = orders.variables(request.workflow, request.given, surroundings)
    draft = drafted(request, values, caller)
    crew.refuse_missing(draft, caller.config, surroundings)
    if not draft.thinks:
        orders.refuse_impossible(request.workflow, values, surroundings, progress.say)
    chosen = orders.settings(request.workflow, caller)
    items = orders.items(request.workflow, values, surroundings, progress.say)
    team = _spawn(store, caller, request)
    for key, value in chosen.items():
        settings.change(store, team, caller, key, value)
    report = request.report or os.path.join(store.root, "runs", team, "report.md")
    draft = draft.having(items=items, report=report, started_at=teams.now(store))
    run = store.create(team, RUN, None, draft.led_by_us(store.host))[0]
    return Leader(LiveRun(store, team, run, caller, surroundings), progress).lead()


def drafted(request: RunRequest, values: dict[str, str], caller: Caller) -> Run:
    """The run that is asked for, before anything is changed.

    Raises:
        InvalidValue: The agents are too few.
    """
    users = dict(caller.config.agent) if caller.config else {}
    return Run(
        workflow=request.workflow.name,
        file=request.file,
        definition=request.workflow.to_json(),
        variables=values,
        agents=orders.staff(request.workflow, request.agents, caller.name, users),
        leader=caller.name,
        harness=request.harness,
        model=request.model,
        permissions=request.permissions,
        mark=secrets.token_hex(8),
        report=request.report,
        started_at="",
    )


def _spawn(store: Store, caller: Caller, request: RunRequest) -> str:
    """A new team: of the name that was asked for, else the workflow's with the first number that is free."""
    description = " ".join(request.workflow.description.split())
    if request.team:
        joining.spawn_team(store, request.team, caller, description)
        return request.team
    stem, number = request.workflow.name[:56], 1
    while True:
        name = f"{stem}-{number}"
        number += 1
        if name.lower() not in {known.lower() for known in store.teams()}:
            try:
                joining.spawn_team(store, name, caller, description)
                return name
            except errors.AlreadyExists:  # another run was first
                continue


def resume(
    store: Store,
    caller: Caller | None,
    config: Config,
    team: str,
    surroundings: Surroundings,
    progress: Progress,
    report: str = "",
) -> Ended:
    """Finish a run that was interrupted, killed, or had tasks that failed: these are tried again.

    What is completed stays so; variables, agents and leader are those of the start.

    Raises:
        NotFound: The team is of no run.
        NotAllowed: The caller is neither its leader nor a task-manager nor the human.
        WrongState: The run is going on.
    """
    run = runs.get(store, team)
    leader = Caller(run.leader, config=config)
    if teams.get(store, team).state == "closed":
        closing.restore(store, team, caller or leader)
    permission.require(store, team, caller or leader, "create-task", "run --resume")
    crew.refuse_missing(run, config, surroundings)
    run = runs.take(store, team, run)
    crew.reap(run)
    leases.release_all(store, teams.get(store, team))
    if reopened := orders.reopen_failed(store, team):
        progress.say(f"tried again: {', '.join(reopened)}")
    run = run.having(report=report or run.report)
    return Leader(LiveRun(store, team, run, leader, surroundings), progress).lead()


class Surroundings:
    """The environment, directory and Python of whoever starts a run. Shell commands get *environ*, without identities;
    agents, of what is *inherited*, what their clients' profiles keep.
    """

    def __init__(self, environ: Mapping[str, str], directory: str, python: str) -> None:
        self.inherited = environ
        self.environ = environments.clean(environ)
        self.directory = directory
        self.python = python

    def path(self, word: str) -> str:
        """The path that *word* means here; `~` is looked at because in `--var repo=~/x` a shell leaves it as it is."""
        home = self.environ.get("HOME", "")
        if home and (word == "~" or word.startswith("~/")):
            word = home + word[1:]
        return os.path.abspath(os.path.join(self.directory, word))

    def of_agent(self, store: Store, team: str, agent: str, type: str, tag: str) -> dict[str, str]:
        """The environment of that agent's processes. *tag* is what all of them can be found by."""
        return {
            **self.environ,
            **store.variables,
            **environments.identity(team, agent, agent, type),
            "TEAMS_RUN_ID": tag,
            "PYTHON": self.python,
        }
