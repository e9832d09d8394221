"""Running, listing and checking workflows."""

from __future__ import annotations

import os
import sys
from contextlib import ExitStack

from teams_cli import errors
from teams_cli.clients import permissions as levels
from teams_cli.commands import console
from teams_cli.commands.answers import Outcome
from teams_cli.commands.call import Call
from teams_cli.runs import conduct, runs
from teams_cli.runs.conduct import Surroundings
from teams_cli.runs.leader import Ended
from teams_cli.runs.orders import key_of
from teams_cli.teams.permission import Caller
from teams_cli.workflows import files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from teams_cli.records.types import Permissions


def run(
    call: Call,
    workflow: str | None,
    var: tuple[str, ...],
    agents: int | None,
    report: str | None,
    resume: bool,
    harness: str,
    model: str | None,
    permissions: Permissions | None,
) -> Any:
    levels.refuse_more(call.environ, levels.LEVELS[-1], "run a workflow, which runs commands")
    around = _surroundings(call)
    if report:
        report = _writable(around.path(report))
    assert call.person is not None
    with ExitStack() as beside, call.person.progress() as shown:
        shown.on_begin = lambda team: beside.enter_context(console.beside(call, team))
        if resume:
            return _answer(_resumed(call, workflow, var, agents, report or "", around, shown))
        client = (harness, model, permissions)
        return _answer(_started(call, workflow, var, agents, report or "", client, around, shown))


def _surroundings(call: Call) -> Surroundings:
    return Surroundings(call.environ, call.directory, sys.executable)


def _writable(path: str) -> str:
    """The path of the report, if one can be written there: found out before, not after the work."""
    directory = os.path.dirname(path)
    if os.path.isdir(path) or not os.path.isdir(directory) or not os.access(directory, os.W_OK):
        raise errors.InvalidValue(
            f"can't write a report to {path}", "Give a file in a directory that you may write to."
        )
    return path


def _started(
    call: Call,
    word: str | None,
    var: tuple[str, ...],
    agents: int | None,
    report: str,
    client: tuple[str, str | None, Permissions | None],
    around: Surroundings,
    shown: Any,
) -> Ended:
    if not word:
        raise errors.WrongUsage("the workflow is missing", "See: teams list-workflows")
    path = files.path_of(word, around.directory)
    workflow = files.read(path, call.config.agent)
    team, source = call.sources.get("team", ("", ""))
    request = conduct.RunRequest(
        workflow, path, _variables(var), agents, team if source == "flag" else "", report, *client
    )
    caller = call.caller or Caller(conduct.LEADER_NAME, config=call.config)
    return conduct.start(call.store, caller, request, around, shown)


def _resumed(
    call: Call,
    word: str | None,
    var: tuple[str, ...],
    agents: int | None,
    report: str,
    around: Surroundings,
    shown: Any,
) -> Ended:
    if var or agents is not None:
        raise errors.WrongUsage("a resumed run keeps its variables and agents", "Leave --var and --agents out.")
    return conduct.resume(call.store, call.caller, call.config, _interrupted_team(call, word), around, shown, report)


def _interrupted_team(call: Call, word: str | None) -> str:
    if call.sources.get("team", ("", ""))[1] == "flag":
        return call.load_team().name
    name = os.path.basename(word or "").removesuffix(".md")
    found = runs.unfinished(call.store, name)
    if not found and word and os.path.isfile(os.path.join(call.said_directory, word)):
        found = runs.unfinished(
            call.store, files.read(files.path_of(word, call.said_directory), call.config.agent).name
        )
    if not found:
        raise errors.NotFound("no run can be resumed", "See: teams discover-teams; choose with --team NAME.")
    if len(found) > 1:
        raise errors.NoTeam("several runs can be resumed", f"Use --team NAME. Teams: {', '.join(found[:20])}.")
    return found[0]


def _variables(words: tuple[str, ...]) -> dict[str, str]:
    values = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals:
            raise errors.InvalidValue(f"{word!r} is not a variable with a value", "Write: --var NAME=VALUE")
        values[name] = value
    return values


def _answer(ended: Ended) -> Any:
    run = ended.run
    document = {
        "team": ended.team,
        "run": run.id,
        "workflow": run.workflow,
        "status": run.status,
        "report": run.report,
        "text": ended.text,
        "tasks": [{**task.to_document(), "step": key_of(task)} for task in ended.tasks],
        "agents": [agent.to_json() for agent in run.agents],
    }
    if run.verdict:
        document["verdict"] = run.verdict
    return document if run.status == "completed" else Outcome(document, 1)


def list_workflows(call: Call) -> Any:
    rows = [files.describe(path, call.problems) for path in files.paths(call.directory)]
    return [row for row in rows if row]


def check(call: Call, workflow: str) -> Any:
    path = files.path_of(workflow, call.directory)
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
