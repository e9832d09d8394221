"""The report of a run, as Markdown: the outcome, the work of each agent, and the tasks that were not done."""

from __future__ import annotations

import os
from typing import Any

from teams_cli import errors
from teams_cli.clock import parse_rfc3339
from teams_cli.runs import runs
from teams_cli.runs.runs import Assigned, Run
from teams_cli.store.contract import Store
from teams_cli.tasks import attempts, dependencies, tasks
from teams_cli.tasks.dependencies import Blocker
from teams_cli.tasks.tasks import FINISHED, Task
from teams_cli.teams import teams
from teams_cli.views import spending

_SHOWN = 30
"""Lines of a failed task's output that the report shows."""
_LONGEST = 1 << 20
_STATUS = {
    "completed": "completed",
    "failed": "FAILED",
    "pending": "not run",
    "in_progress": "not finished",
    "in_review": "in review",
}
_HEADLINES = {
    runs.COMPLETED: "All tasks are completed.",
    runs.FAILED: "Something failed, and tasks blocked by it were not run.",
    runs.INCOMPLETE: "Some tasks were left without a worker.",
}


def markdown(
    run: Run,
    team: str,
    all_tasks: list[Task],
    synthesis: str | None,
    troubles: list[str],
    left: list[str],
    spent: dict[str, Any],
) -> str:
    """Return the whole report: first the outcome, then how the run went.

    *synthesis* is the leader's text, or None for a section with the result of each task. *left* lists the worktrees
    that still have work. *spent* is the usage of the agents' clients.
    """
    only_answer = run.status == runs.FAILED and all(task.status == "completed" for task in all_tasks)
    headline = "" if run.status == runs.COMPLETED and synthesis is not None else _HEADLINES[run.status]
    if only_answer:
        headline = "All tasks are completed, but the leader gave no valid answer."
    parts = [
        f"# Report: {run.workflow}\n\n{headline}",
        _list("Troubles", troubles),
        synthesis if synthesis is not None else _results(all_tasks),
        _failures(all_tasks, team),
        _again(run, team, only_answer),
        _list("Worktrees", left),
        _run(run, team),
        _table(all_tasks),
        _usage(spent),
    ]
    return "\n".join(f"{printable(part).strip()}\n" for part in parts if part.strip())


def _run(run: Run, team: str) -> str:
    repo = run.variables.get("repo", "")
    chosen = "".join(f"* {name}: {code(value)}\n" for name, value in run.variables.items() if name != "repo" and value)
    return (
        f"## The run\n\n* team: {team}, led by {run.leader}; agents: {', '.join(_agent(run, a) for a in run.agents)}\n"
        f"* repository: {code(repo)}\n* started: {run.started_at}\n{chosen}"
    )


def _agent(run: Run, agent: Assigned) -> str:
    """Return the name of the agent. If the agent has a model, the harness and the model are added."""
    harness = run.harness_of(agent)
    model = agent.model or run.model
    return agent.name if harness == runs.SHELL else f"{agent.name} ({harness}{f', {model}' if model else ''})"


def _list(title: str, lines: list[str]) -> str:
    return f"## {title}\n\n" + "".join(f"* {line}\n" for line in lines) if lines else ""


def _results(tasks: list[Task]) -> str:
    done = [task for task in tasks if task.status == "completed"]
    return "\n".join(f"## {escaped(task.title)}\n\n{fenced(task.result or 'no output')}\n" for task in done)


def _again(run: Run, team: str, only_answer: bool) -> str:
    """Return a line with the command that continues the run; "" if the run is completed."""
    if run.status == runs.COMPLETED:
        return ""
    what = "the leader's answer" if only_answer else "the failed tasks unchanged"
    return f"To retry {what}: `teams run --resume --team {team}`. To change the workflow, start a new run.\n"


def _failures(tasks: list[Task], team: str) -> str:
    failed = "\n".join(_failure(task, team) for task in tasks if task.status == "failed")
    titles = {task.id: task for task in tasks}
    waiting = "".join(_not_run(task, titles) for task in tasks if task.status not in FINISHED)
    parts = [f"## Failed\n\n{failed}" if failed else "", f"## Not run\n\n{waiting}" if waiting else ""]
    return "\n".join(part for part in parts if part)


def _failure(task: Task, team: str) -> str:
    by = f"{f'By {task.owner}. ' if task.owner else ''}See all of it: `teams show-task {task.id} --team {team}`."
    return f"### {escaped(task.title)}\n\n{fenced(attempts.why_failed(task, _SHOWN))}\n\n{by}\n"


def _blocker(blocker: Blocker, by_id: dict[str, Task]) -> str:
    name = runs.key_of(by_id[blocker.id]) if blocker.id in by_id else blocker.id
    return f"{name} ({_STATUS.get(blocker.status, blocker.status)})"


def _not_run(task: Task, by_id: dict[str, Task]) -> str:
    blockers = dependencies.open_blockers(task, dependencies.among(by_id.values()))
    waits = ", ".join(_blocker(blocker, by_id) for blocker in blockers)
    why = f"waits for {waits}" if waits else "no worker was left to do it"
    return f"* {escaped(task.title)}: {why}\n"


def _table(tasks: list[Task]) -> str:
    rows = [
        f"| {runs.key_of(task)} | {task.id} | {cell(task.title)} | {_STATUS.get(task.status, task.status)} "
        f"| {task.owner or '-'} | {_took(task)} |"
        for task in tasks
    ]
    head = "## Tasks\n\n| step | task | title | status | by | took |\n|---|---|---|---|---|---|\n"
    return head + "\n".join(rows) + "\n"


def _usage(spent: dict[str, Any]) -> str:
    """Return a table of the usage by model; "" if no client reported tokens."""
    if not spent["total"]["turns"] - spent["total"]["uncounted"]:
        return ""
    rows = [
        f"| {cell(row['model'])} | {row['turns']} | {_count(row, 'input')} | {_count(row, 'cached')} "
        f"| {_count(row, 'output')} |"
        for row in spent["rows"]
    ]
    head = "## Usage\n\n| model | turns | input | of that cached | output |\n|---|---|---|---|---|\n"
    unknown = spent["total"]["uncounted"]
    more = f"\nThe tokens of {unknown} turns are unknown.\n" if unknown else ""
    return (
        f"{head}{chr(10).join(rows)}\n{more}\nCoordination (turns for messages alone): {spent['coordination']:.0%}.\n"
    )


def _count(row: dict[str, Any], kind: str) -> str:
    return "unknown" if row[kind] is None else f"{row[kind]:,}"


def _took(task: Task) -> str:
    if not task.claimed_at or not task.completed_at:
        return "-"
    return f"{(parse_rfc3339(task.completed_at) - parse_rfc3339(task.claimed_at)).total_seconds():.1f} s"


def fenced(text: str) -> str:
    """Return the text as a fenced block. The fence is longer than any in the text."""
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}\n{text.strip(chr(10))}\n{fence}"


def code(text: str) -> str:
    """Return the text as code within a line."""
    line = " ".join(text.split())
    ticks = "`"
    while ticks in line:
        ticks += "`"
    return f"{ticks} {line} {ticks}" if "`" in line else f"`{line}`"


def escaped(text: str) -> str:
    """Return the text with the special characters of Markdown escaped."""
    return "".join(f"\\{c}" if c in "\\`*_[]<>|#~&" else c for c in text)


def cell(text: str) -> str:
    """Return the text as a cell of a table."""
    return escaped(" ".join(text.split()))


def printable(text: str) -> str:
    """Return the text with control characters spelt out."""
    if text.isascii() and text.replace("\n", "").isprintable():
        return text
    return "".join(c if c.isprintable() or c in "\n\t" else f"\\u{ord(c):04x}" for c in text)


def report_of(store: Store, team: str) -> dict[str, Any]:
    """Return the run that made the team, with its report as it was written.

    If the report can't be read, it is made anew, without the leader's text. While the run goes on, it is None.

    Raises:
        NotFound: No run made the team.
    """
    run = runs.get(store, team)
    text = _written(run.report)
    if text is None and run.status in _HEADLINES:
        spent = spending.spent(store, teams.get(store, team), "model", [])
        text = markdown(run, team, list(tasks.all_of(store, team, [])), None, [], [], spent)
    shown = ("id", "workflow", "status", "startedAt", "endedAt", "leader", "report")
    document = run.to_json()
    return {key: document.get(key) for key in shown} | {"markdown": text}


def _written(path: str) -> str | None:
    """Return the content of the file at *path*; None if it is missing, too large, or not text."""
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read(_LONGEST + 1)
    except (OSError, ValueError):
        return None
    return text if len(text) <= _LONGEST else None


def write(path: str, text: str) -> None:
    """Write the report to a file."""
    try:
        os.makedirs(os.path.dirname(path), 0o700, exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise errors.StorageFailed(
            f"can't write {path}: {error.strerror}", "Choose another file with --report."
        ) from None
