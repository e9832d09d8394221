"""Commands on workflows."""

from __future__ import annotations

import os
import sys

from teams_cli.caller import Caller
from teams_cli.commands.call import Outcome
from teams_cli.commands.declaration import Command, argument, option, switch, table
from teams_cli.errors import InvalidValue, NoTeam, NotFound, WrongUsage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from teams_cli.commands.call import Call
    from teams_cli.runs.leaders import Ended
    from teams_cli.runs.surroundings import Surroundings

_RUN = """Run a workflow: spawn a team, create its tasks, start workers that claim and do them, and report.

WORKFLOW is a file, or the name of one that `teams list-workflows` lists. Workers run each task's command for real, in
the directory that the variable `repo` says (here, unless given). The report goes to standard output and to a file.
Ctrl-C ends the workers and keeps the state; --resume finishes the rest, and tries again what failed, as the workflow
was when the run began.

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

What is wrong is named with its line and field: first the form, then names, circles and skills.

The front matter has:

* name, description, pattern: the last is leader, swarm, pipeline or council.

* tasks: a list of id, title, description, blockedBy, require, priority, run, prompt, each. What is in `run`, `sh` runs.

* variables: NAME: DEFAULT, or NAME: {default, description}; they are in the environment of the commands.

* agents: a number, or a list of name, role, type, count. roles: NAME: {extends, skill, description, allow, deny}.

* needs: a list, of git-checkout. broadcast: a text to all workers. synthesize: {run, prompt}, done by the leader.

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
    around = _surroundings(call)
    if report:
        report = _writable(around.path(report))
    assert call.person is not None
    with call.person.progress() as shown:
        if resume:
            return _answer(_resumed(call, workflow, var, agents, report or "", around, shown))
        return _answer(_started(call, workflow, var, agents, report or "", harness, around, shown))


def _surroundings(call: Call) -> Surroundings:
    from teams_cli.runs.surroundings import Surroundings

    return Surroundings(call.environ, call.directory, sys.executable)


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
    harness: str,
    around: Surroundings,
    shown: Any,
) -> Ended:
    from teams_cli.runs import conduct
    from teams_cli.workflows import files

    if not word:
        raise WrongUsage("say which workflow", "See `teams list-workflows`.")
    path = files.find(word, around.directory)
    workflow = files.read(path, call.config.agent)
    team, source = call.sources.get("team", ("", ""))
    order = conduct.Order(workflow, path, _variables(var), agents, team if source == "flag" else "", report, harness)
    caller = call.caller or Caller(conduct.LEADER_NAME, config=call.config)
    return conduct.start(call.store, caller, order, around, shown)


def _resumed(
    call: Call,
    word: str | None,
    var: tuple[str, ...],
    agents: int | None,
    report: str,
    around: Surroundings,
    shown: Any,
) -> Ended:
    from teams_cli.runs import conduct

    if var or agents is not None:
        raise WrongUsage("a resumed run keeps its variables and agents", "Leave --var and --agents out.")
    return conduct.resume(call.store, call.caller, call.config, _interrupted_team(call, word), around, shown, report)


def _interrupted_team(call: Call, word: str | None) -> str:
    from teams_cli.runs import records

    if call.sources.get("team", ("", ""))[1] == "flag":
        return call.load_team().name
    name = os.path.basename(word or "").removesuffix(".md")
    found = records.unfinished(call.store, name)
    if not found and word and os.path.isfile(os.path.join(call.said_directory, word)):
        from teams_cli.workflows import files

        found = records.unfinished(
            call.store, files.read(files.find(word, call.said_directory), call.config.agent).name
        )
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
    from teams_cli.runs.steps import key_of

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
    from teams_cli.workflows import files

    rows = [files.describe(path, call.problems) for path in files.listing(call.directory)]
    return [row for row in rows if row]


def _check(call: Call, workflow: str) -> Any:
    from teams_cli.workflows import files

    path = files.find(workflow, call.directory)
    found = files.read(path, call.config.agent)
    return {
        "name": found.name,
        "pattern": found.pattern,
        "path": path,
        "valid": True,
        "tasks": [task.id for task in found.tasks],
        "variables": {name: variable.default for name, variable in found.variables.items()},
        "agents": sum(agent.count for agent in found.agents),
    }


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
        at_shell=True,
    ),
    Command("list-workflows", _list, doc=_LIST, in_team=False, changes=False, at_shell=True),
    Command(
        "check-workflow",
        _check,
        argument("FILE", "A workflow file, or the name of one.", name="workflow"),
        doc=_CHECK,
        in_team=False,
        changes=False,
        at_shell=True,
    ),
)
