"""The record of a run, from which the run can be resumed; and the results of tasks, which later tasks get as files."""

from __future__ import annotations

import json
import os
import shutil

from teams_cli import errors, processes
from teams_cli.clock import boot_id
from teams_cli.records.records import Record, field
from teams_cli.store.contract import Kind, Store, update
from teams_cli.teams import history, presence, teams

TYPE_CHECKING = False
if TYPE_CHECKING:
    from teams_cli.records.types import Count, Name, Object, Permissions, Text, Time, Word
    from teams_cli.tasks.tasks import Task

SHELL = "shell"
"""The harness of workers, which run the commands of tasks and have no model."""
RUNNING, COMPLETED, FAILED, INTERRUPTED = "running", "completed", "failed", "interrupted"
INCOMPLETE = "incomplete"
"""The status of a run in which nothing failed, but some tasks were left because no living worker could do them."""


class Assigned(Record):
    """A member of a run: a worker, or an agent with a model. A field is None if the workflow does not set it."""

    name: Name
    role: Name
    type: Word | None = None
    harness: Name | None = None
    model: Text | None = None
    permissions: Permissions | None = None
    cwd: Text | None = None
    worktree: bool | None = None
    answer: Text | None = None


class Run(Record):
    """A run of a workflow, in a new team. The tasks of the run are the tasks of this team that have a `step`."""

    nested = {"agents": Assigned}  # noqa: RUF012

    id: Word = ""
    workflow: Name
    file: Text | None = None
    definition: Object
    variables: Object = field(default_factory=dict)
    items: Object = field(default_factory=dict)
    agents: list[Assigned] = field(default_factory=list)
    leader: Name
    harness: Name = "shell"
    model: Text | None = None
    verdict: Text | None = None
    permissions: Permissions | None = None
    mark: Word
    report: Text
    status: Word = RUNNING
    started_at: Time
    ended_at: Time | None = None
    pid: Count | None = None
    pid_started: Word | None = None
    pid_boot: Word | None = None

    def harness_of(self, assigned: Assigned) -> str:
        """Return the harness of *assigned*, or the harness of the run if *assigned* has none."""
        return assigned.harness or self.harness

    @property
    def harnesses(self) -> list[str]:
        """The names of all harnesses of the run, each once. The first is the harness of the run itself."""
        return list(dict.fromkeys([self.harness, *(self.harness_of(agent) for agent in self.agents)]))

    @property
    def model_harness(self) -> str:
        """The harness that takes the leader's turn: the first of the run's harnesses with a model, or ""."""
        return next((name for name in self.harnesses if name != SHELL), "")

    def tag_of(self, agent: str) -> str:
        """Return the tag in the environment of the agent's processes, by which they are found."""
        return f"{self.mark}.{agent}"

    def led_by_us(self, host: str = "") -> Run:
        """Return the record with this process as the leader of the run. *host* is the name of this machine, or "" if no
        other machine uses the store.
        """
        pid = os.getpid()
        started, scope = processes.process_started(pid), processes.pid_scope(host)
        return self.having(status=RUNNING, ended_at=None, pid=pid, pid_started=started, pid_boot=scope)


RUN: Kind[Run] = Kind("run", Run, numbered=True)


def is_led(store: Store, team: str, run: Run) -> bool:
    """Whether the process that leads the run is alive. If this process can't see it, because it is on another machine
    or in another container, the run counts as led until its leader falls silent.
    """
    if run.status != RUNNING or run.pid is None:
        return False
    if " " not in (run.pid_boot or ""):  # written by an earlier version, or where there are no containers
        started = processes.process_started(run.pid)
        return run.pid_boot == boot_id() and started != "" and started == run.pid_started
    ended = processes.has_ended(run.pid, run.pid_started, run.pid_boot)
    if ended is None:
        return not presence.is_silent(store, teams.get(store, team), run.leader, run.started_at)
    return not ended


def get(store: Store, team: str) -> Run:
    """Return the last run of the team.

    Raises:
        NotFound: The team was not made by a run.
    """
    run = _last(store, team)
    if run is None:
        raise errors.NotFound(f"team {team} was not created by `teams run`", "Start a run: teams run WORKFLOW")
    return run


def _last(store: Store, team: str) -> Run | None:
    return next((run for run, _ in reversed(list(store.scan(team, RUN, [])))), None)


def unfinished(store: Store, workflow: str = "", led: bool = False) -> list[str]:
    """Return the teams whose last run is not completed, although no living process leads it. With *led*, return instead
    the teams whose unfinished run is led by a living process. If *workflow* is not empty, only runs of that workflow
    are considered.
    """
    teams_to_resume = []
    for team in store.teams():
        run = _last(store, team)
        if run and run.status != COMPLETED and workflow in ("", run.workflow) and is_led(store, team, run) == led:
            teams_to_resume.append(team)
    return teams_to_resume


def take(store: Store, team: str, run: Run) -> Run:
    """Make this process the leader of the run, and return the changed record.

    Raises:
        WrongState: Another process leads the run.
    """

    def change(run: Run) -> Run:
        if is_led(store, team, run) and run.pid != os.getpid():
            raise errors.WrongState(
                f"the run of team {team} still runs in process {run.pid}", "Wait for it, or stop it."
            )
        return run.led_by_us(store.host)

    return update(store, team, RUN.even_in_closed_team, run.id, change)[1]


def settle(store: Store, team: str, run: Run, status: str, verdict: str | None = None) -> None:
    """Record the *status* and the *verdict* with which the run ended. The verdict is None if the run has none."""

    def change(run: Run) -> Run:
        return run.having(status=status, ended_at=teams.now(store), verdict=verdict)

    update(store, team, RUN.even_in_closed_team, run.id, change)
    history.note(store, team, run.leader, f"run {status}", run=run.id)


def key_of(task: Task) -> str:
    """Return the key of the step for which the task was made, or the id of the task if there was no step."""
    return task.step or task.id


def directory(root: str, team: str, *parts: str) -> str:
    """Return the directory of the team's run, or the subdirectory of it that the *parts* name. A missing directory is
    created.
    """
    path = os.path.join(root, "runs", team, *parts)
    try:
        os.makedirs(path, 0o700, exist_ok=True)
    except OSError as error:
        raise errors.StorageFailed(
            f"can't make {path}: {error.strerror}", "Make room, or choose another --root."
        ) from None
    return path


def write_results(root: str, team: str, agent: str, tasks: list[Task]) -> str:
    """Write the results of the tasks, and an index, to files that a command of the agent can read. Return their
    directory.
    """
    remove_results(root, team, agent)
    results_directory = directory(root, team, "given", agent)
    rows = [
        {
            "key": key_of(task),
            "task": task.id,
            "title": task.title,
            "status": task.status,
            "owner": task.owner or "",
            "item": task.item or "",
            "file": f"{key_of(task)}.txt",
        }
        for task in tasks
    ]
    try:
        for row, task in zip(rows, tasks, strict=True):
            if task.result is not None:
                _write(os.path.join(results_directory, row["file"]), task.result)
        _write(os.path.join(results_directory, "index.json"), json.dumps(rows, indent=2))
    except OSError as error:
        raise errors.StorageFailed(
            f"can't write the results for {agent}: {error.strerror}", f"Look at {results_directory}."
        ) from None
    return results_directory


def _write(path: str, text: str) -> None:
    with open(path, "w", encoding="utf-8", newline="") as file:
        file.write(text)


def remove_results(root: str, team: str, agent: str) -> None:
    """Remove the files that `write_results` wrote for the agent."""
    shutil.rmtree(os.path.join(root, "runs", team, "given", agent), ignore_errors=True)
