"""Commands on workflows."""

from __future__ import annotations

import os

from teams_cli.caller import Caller
from teams_cli.commands.call import Outcome
from teams_cli.commands.declaration import Command, argument, option, switch, table
from teams_cli.errors import InvalidValue, NoTeam, NotFound, WrongUsage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from teams_cli.commands.call import Call
    from teams_cli.run_leaders import Ended
    from teams_cli.surroundings import Surroundings

_RUN = """Run a workflow: spawn a team, create its tasks, start workers that claim and do them, and report.

WORKFLOW is a file, or the name of one that `teams list-workflows` lists. Workers run each task's command for real, in
the directory that the variable `repo` says (here, unless given). The report goes to standard output and to a file.
Ctrl-C ends the workers and keeps the state; --resume finishes the rest, and tries again what failed.

Raises:
    TaskFailed: A task failed, or was not run because of one that did; the report says which.
    InvalidValue: The workflow or a variable is wrong, or the agents are too few; nothing was changed.
    WorkflowNotFound: There is no such workflow.
    AlreadyExists: There is a team of that name, or its run is going on.
"""
_LIST = """List the workflows that come with the program and those in ./workflows: name, description, pattern, path.

One that is wrong is named on standard error, and the others are listed.
"""
_CHECK = """Check a workflow without running it: form, names that lead nowhere, circles, skills that nobody has.

Everything wrong is named at once, each with its line and field.

Raises:
    InvalidValue: Something is wrong.
    WorkflowNotFound: There is no such workflow.
"""


def _run(
    call: Call,
    workflow: str | None,
    var: tuple[str, ...],
    agents: int | None,
    report: str | None,
    resume: bool,
    harness: str,
) -> Any:
    if harness != "shell":
        raise InvalidValue(f"there is no harness {harness!r} for workflows yet", "Use --harness shell, the default.")
    from teams_cli.cli import progress, surroundings  # the one command that is live: it shows while it works

    around = surroundings.of_this_process()
    if report:
        report = _writable(around.path(report))
    with progress.for_this_process() as shown:
        if resume:
            return _answer(_resumed(call, workflow, var, agents, report or "", around, shown))
        return _answer(_started(call, workflow, var, agents, report or "", around, shown))


def _writable(path: str) -> str:
    """The path of the report, if one can be written there: found out before, not after the work."""
    directory = os.path.dirname(path)
    if os.path.isdir(path) or not os.path.isdir(directory) or not os.access(directory, os.W_OK):
        raise InvalidValue(f"can't write a report to {path}", "Give a file in a directory that you may write to.")
    return path


def _started(
    call: Call,
    word: str | None,
    var: tuple[str, ...],
    agents: int | None,
    report: str,
    around: Surroundings,
    shown: Any,
) -> Ended:
    from teams_cli import runs, workflow_files

    if not word:
        raise WrongUsage("say which workflow", "See `teams list-workflows`.")
    path = workflow_files.find(word, around.directory)
    workflow = workflow_files.read(path, call.config.agent)
    team, source = call.sources.get("team", ("", ""))
    order = runs.Order(workflow, path, _variables(var), agents, team if source == "flag" else "", report)
    caller = call.caller or Caller(runs.LEADER_NAME, config=call.config)
    return runs.start(call.store, caller, order, around, shown)


def _resumed(
    call: Call,
    word: str | None,
    var: tuple[str, ...],
    agents: int | None,
    report: str,
    around: Surroundings,
    shown: Any,
) -> Ended:
    from teams_cli import runs

    if var or agents is not None:
        raise WrongUsage("a resumed run keeps its variables and agents", "Leave --var and --agents out.")
    return runs.resume(call.store, call.caller, call.config, _interrupted_team(call, word), around, shown, report)


def _interrupted_team(call: Call, word: str | None) -> str:
    from teams_cli import run_records

    if call.sources.get("team", ("", ""))[1] == "flag":
        return call.load_team().name
    name = os.path.basename(word or "").removesuffix(".md")
    found = run_records.unfinished(call.store, name)
    if not found:
        raise NotFound("no run is to be resumed", "See `teams discover-teams`; say which with --team NAME.")
    if len(found) > 1:
        raise NoTeam("several runs can be resumed: say which", f"Use --team NAME. Teams: {', '.join(found[:20])}.")
    return found[0]


def _variables(words: tuple[str, ...]) -> dict[str, str]:
    values = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals:
            raise InvalidValue(f"{word!r} gives no variable a value", "Write --var NAME=VALUE.")
        values[name] = value
    return values


def _answer(ended: Ended) -> Any:
    from teams_cli.steps import key_of

    run = ended.run
    document = {
        "team": ended.team,
        "run": run.id,
        "workflow": run.workflow,
        "status": run.status,
        "report": run.report,
        "text": ended.text,
        "tasks": [{**task.to_json(), "step": key_of(task)} for task in ended.tasks],
        "agents": [agent.to_json() for agent in run.agents],
    }
    return document if run.status == "completed" else Outcome(document, 1)


def _list(call: Call) -> Any:
    from teams_cli import workflow_files

    rows = [workflow_files.describe(path, call.problems) for path in workflow_files.listing(_here())]
    return [row for row in rows if row]


def _check(call: Call, workflow: str) -> Any:
    from teams_cli import workflow_files

    path = workflow_files.find(workflow, _here())
    found = workflow_files.read(path, call.config.agent)
    return {
        "name": found.name,
        "pattern": found.pattern,
        "path": path,
        "valid": True,
        "tasks": [task.id for task in found.tasks],
        "variables": {name: variable.default for name, variable in found.variables.items()},
        "agents": sum(agent.count for agent in found.agents),
    }


def _here() -> str:
    from teams_cli.cli import surroundings

    return surroundings.of_this_process().directory


COMMANDS = table(
    Command(
        "run",
        _run,
        argument("WORKFLOW", "A workflow file, or the name of one.", name="workflow", required=False),
        option("--var", "Give a variable of the workflow a value.", metavar="NAME=VALUE", many=True),
        option("--agents", "How many workers, instead of what the workflow says.", type=int, metavar="N"),
        option("--report", "The file for the report, instead of one below the root.", metavar="FILE"),
        switch("--resume", "Finish a run that was interrupted or failed."),
        option("--harness", "What the workers are.", default="shell"),
        doc=_RUN,
        changes=False,
    ),
    Command("list-workflows", _list, doc=_LIST, in_team=False, changes=False),
    Command(
        "check-workflow",
        _check,
        argument("FILE", "A workflow file, or the name of one.", name="workflow"),
        doc=_CHECK,
        in_team=False,
        changes=False,
    ),
)
