"""Commands on workflows."""

from __future__ import annotations

import os
import sys
from contextlib import ExitStack

from teams_cli import errors, text
from teams_cli.clients import permissions as levels
from teams_cli.commands.call import Call, Outcome
from teams_cli.commands.declaration import Command, Table, argument, in_group, option, switch
from teams_cli.teams.permission import Caller

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from teams_cli.commands.declaration import Parts
    from teams_cli.records.types import Permissions
    from teams_cli.runs.conduct import RunRequest


_RUN = """Run a workflow: create a team and its tasks, start workers that do the tasks, and report the outcome.

WORKFLOW is a file, or a name from `teams list-workflows`. Workers really run the commands of tasks, in the directory
that the variable `repo` names; the default is the current directory. The report goes to standard output and to a file.
Ctrl-C ends the workers and keeps the state; --resume finishes the rest and retries failed tasks, with the workflow as
it was at the start.

Raises:
    TaskFailed: A task failed, or was not run because another failed; the report says which.
    InvalidValue: The workflow or a variable is wrong, or there are too few agents; nothing was changed.
    NotFound: There is no such workflow.
    AlreadyExists: A team of that name exists, or its run has not ended yet.
    WrongState: The team of the run to resume was copied to another store.
"""
_LIST = """List the workflows of the program and those in ./workflows: name, description, pattern, path.

Invalid workflows are reported on standard error.
"""
_CHECK = """Check a workflow without running it: its form, unknown names, cycles, skills that nobody has, and
settings that its workers cannot use.

The error names the line and field of each fault.

The front matter has:

* name, description, and pattern: leader, swarm, pipeline or council.
* settings: {NAME: VALUE}, for the team.
* check: a command that must pass before anything is created; if it fails, its output is shown as the reason.
* attempts: how often a failing task is tried; the default is 3.
* tasks: a list of {id, title, description, blockedBy, require, priority, run, prompt, each, planRequired,
attempts}. The harness `shell` runs the command in `run`; agents with a model follow `prompt`.
* variables: {NAME: DEFAULT} or {NAME: {default, description}}; commands get them as environment variables.
* agents: a number, or a list of {name, role, type, count}. An entry can also set harness, model, permissions, cwd,
  worktree or answer; these values replace those of the run.
* roles: {NAME: {extends, skill, description, workflow, allow, deny}}.
* needs: a list with git-checkout (the variable `repo` must name a checkout), review (the extension for reviews must be
  installed), or both.
* broadcast: a text that is sent to all workers.
* synthesize: {run, prompt, verdict}: the leader's last step. A leader with a model follows `prompt`, never `run`;
  `verdict` is a regular expression that finds the verdict in the answer.

Raises:
    InvalidValue: The workflow has a fault.
    NotFound: There is no such workflow.
"""


def _run(
    call: Call,
    workflow: str | None,
    var: tuple[str, ...],
    agents: int | None,
    report: str | None,
    resume: bool,
    harness: str | None,
    model: str | None,
    permissions: Permissions | None,
) -> Any:
    from teams_cli.commands import questions
    from teams_cli.runs import conduct
    from teams_cli.runs.runs import key_of

    levels.refuse_more(call.environ, levels.LEVELS[-1], "run a workflow, which runs commands")
    around = conduct.Surroundings(call.environ, call.directory, sys.executable)
    report = around.path(report) if report else ""
    if report:
        _refuse_unwritable(report)
    assert call.person is not None
    with ExitStack() as stack, call.person.progress() as progress:
        # The person can be asked once the team of the run exists.
        progress.on_begin = lambda team: stack.enter_context(questions.asking_person_beside(call, team))
        if resume:
            options = {"--harness": harness, "--model": model, "--permissions": permissions, "--agents": agents}
            given = [*(["--var"] if var else []), *(name for name, value in options.items() if value is not None)]
            if given:
                raise errors.WrongUsage(
                    "a resumed run keeps its variables, its agents and their clients",
                    f"Leave out {text.listed(given)}.",
                )
            team = _interrupted_team(call, workflow)
            ended_run = conduct.resume(call.store, call.caller, call.config, team, around, progress, report)
        else:
            request = _request(call, workflow, var, agents, report, (harness or "shell", model, permissions))
            caller = call.caller or Caller(conduct.LEADER_NAME, config=call.config)
            ended_run = conduct.start(call.store, caller, request, around, progress)
    run = ended_run.run
    document = {
        "team": ended_run.team,
        "run": run.id,
        "workflow": run.workflow,
        "status": run.status,
        "report": run.report,
        "text": ended_run.text,
        "tasks": [{**task.to_document(), "step": key_of(task)} for task in ended_run.tasks],
        "agents": [agent.to_json() for agent in run.agents],
    }
    if run.verdict:
        document["verdict"] = run.verdict
    return document if run.status == "completed" else Outcome(document, 1)


def _refuse_unwritable(path: str) -> None:
    directory = os.path.dirname(path)
    if os.path.isdir(path) or not os.path.isdir(directory) or not os.access(directory, os.W_OK):
        raise errors.InvalidValue(
            f"can't write a report to {path}", "Give a file in a directory that you may write to."
        )


def _request(
    call: Call,
    workflow: str | None,
    var: tuple[str, ...],
    agents: int | None,
    report: str,
    client: tuple[str, str | None, Permissions | None],
) -> RunRequest:
    """Return the request to run the workflow. *client* is the harness, the model and the permissions of the agents."""
    from teams_cli.runs import conduct
    from teams_cli.workflows import files

    if not workflow:
        raise errors.WrongUsage("the workflow is missing", "See: teams list-workflows")
    path = files.path_of(workflow, call.directory)
    variables = {}
    for assignment in var:
        name, equals, value = assignment.partition("=")
        if not equals:
            raise errors.InvalidValue(f"{assignment!r} is not a variable with a value", "Write: --var NAME=VALUE")
        variables[name] = value
    content = files.read(path, roles=call.config.agent)
    return conduct.RunRequest(content, path, variables, agents, call.given("team"), report, *client)


def _interrupted_team(call: Call, workflow: str | None) -> str:
    """Return the team of the run to resume: the team that was named, or else the team of the only run that can be
    resumed. If *workflow* is given, only runs of this workflow count. *workflow* is a name or a file.
    """
    from teams_cli.runs import runs
    from teams_cli.workflows import files

    name = os.path.basename(workflow or "").removesuffix(".md")

    def name_in_file() -> str:
        if not workflow or not os.path.isfile(os.path.join(call.current_directory, workflow)):
            return name
        return files.read(files.path_of(workflow, call.current_directory), roles=call.config.agent).name

    if call.given("team"):
        team = call.load_team().name
        run = runs.get(call.store, team)
        if workflow and run.workflow != name and run.workflow != name_in_file():
            raise errors.InvalidValue(
                f"team {team} was made for the workflow {run.workflow}, not for {workflow}",
                f"Resume it: teams run --resume --team {team}",
            )
        return team
    teams = runs.unfinished(call.store, name)
    if not teams and (in_file := name_in_file()) != name:
        name = in_file
        teams = runs.unfinished(call.store, name)
    if not teams:
        teams = runs.unfinished(call.store, name, led=True)[:1]  # refused later, by an error that names its process
    if not teams:
        raise errors.NotFound("no run can be resumed", "See: teams discover-teams; choose with --team NAME.")
    if len(teams) > 1:
        raise errors.NoTeam("several runs can be resumed", f"Use --team NAME. Teams: {', '.join(teams[:20])}.")
    return teams[0]


def _list(call: Call) -> Any:
    from teams_cli import workflows
    from teams_cli.workflows import files

    rows = [files.describe(path, call.problems) for path in workflows.paths(call.directory)]
    return [row for row in rows if row]


def _check(call: Call, workflow: str, harness: str) -> Any:
    from teams_cli.runs import conduct, crew
    from teams_cli.workflows import files
    from teams_cli.workflows.model import REPO

    path = files.path_of(workflow, call.directory)
    content = files.read(path, roles=call.config.agent)
    repo = content.variables[REPO].default if REPO in content.variables else None
    request = conduct.RunRequest(content, path, {}, harness=harness)
    caller = Caller(conduct.LEADER_NAME, config=call.config)
    around = conduct.Surroundings(call.environ, call.directory, sys.executable)
    run = conduct.drafted(request, {REPO: around.path(repo or ".")}, caller)
    crew.refuse_unfit(run, call.config)
    return {
        "name": content.name,
        "pattern": content.pattern,
        "path": path,
        "valid": True,
        "tasks": [task.id for task in content.tasks],
        "variables": {name: variable.default for name, variable in content.variables.items()},
        "agents": sum(agent.count for agent in content.agents),
    }


_HARNESS_HELP = "The client that the workers use."


def words_of_workflow_run(done: dict[str, Any]) -> Parts:
    return [*text.quoted(done["text"]), f"status: {done['status']}; team: {done['team']}; report: {done['report']}"]


def words_of_workflows(rows: list[dict[str, Any]]) -> Parts:
    table = [[row["name"], row["pattern"], row["description"], row["path"]] for row in rows]
    return [Table(["workflow", "pattern", "description", "path"], table, "no workflows")]


def words_of_workflow_checked(workflow: dict[str, Any]) -> Parts:
    tasks = text.counted(len(workflow["tasks"]), "task")
    agents = text.counted(workflow["agents"], "agent")
    return [
        f"{workflow['name']}: valid; {workflow['pattern']} pattern, {tasks}, {agents}",
        *(f"  --var {name}={'…' if default is None else default}" for name, default in workflow["variables"].items()),
    ]


COMMANDS = in_group(
    "Workflows",
    Command(
        "run",
        _run,
        argument("WORKFLOW", "A workflow file, or the name of a workflow.", name="workflow", required=False),
        option("--var", "Set a variable of the workflow.", metavar="NAME=VALUE", many=True),
        option("--agents", "The number of workers, instead of the number in the workflow.", type=int, metavar="N"),
        option("--report", "The file for the report, instead of one in the data directory.", metavar="FILE"),
        switch("--resume", "Finish a run that was interrupted or that failed."),
        option("--harness", _HARNESS_HELP),
        option("--model", "The model for their client.", metavar="MODEL"),
        option("--permissions", levels.HELP, choices=levels.LEVELS, metavar="LEVEL"),
        doc=_RUN,
        changes=False,
        words=words_of_workflow_run,
        traits="at_shell",
        example="run code-review",
        also="run-workflow start-workflow workflow",
    ),
    Command(
        "list-workflows",
        _list,
        doc=_LIST,
        in_team=False,
        changes=False,
        words=words_of_workflows,
        traits="at_shell",
        example="list-workflows",
        also="workflows",
    ),
    Command(
        "check-workflow",
        _check,
        argument("FILE", "A workflow file, or the name of a workflow.", name="workflow"),
        option("--harness", _HARNESS_HELP, default="shell"),
        doc=_CHECK,
        in_team=False,
        changes=False,
        words=words_of_workflow_checked,
        traits="at_shell",
        example="check-workflow release.md",
        also="validate-workflow validate lint",
    ),
)
