"""The report of a run, as Markdown: the outcome, the work of each agent, and the tasks that were not done."""

from __future__ import annotations

import os
from typing import Any

from teams_cli import errors
from teams_cli.agents import budgets
from teams_cli.clock import parse_rfc3339
from teams_cli.names import HUMAN
from teams_cli.runs import runs
from teams_cli.runs.runs import Assigned, Run
from teams_cli.store.contract import Store
from teams_cli.tasks import dependencies, tasks
from teams_cli.tasks.tasks import FINISHED, IN_REVIEW, Task
from teams_cli.teams import teams

_SHOWN = 30
"""The maximum number of lines of a failed task's output in the report."""
_MAX_REPORT = 1 << 20
"""The maximum length of a stored report, in characters. A longer file is not read, because it is not a report of ours.
"""
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
    runs.INCOMPLETE: "Some tasks were left without a worker or a review.",
}


def markdown(
    run: Run,
    team: str,
    all_tasks: list[Task],
    synthesis: str | None,
    troubles: list[str],
    worktrees: list[str],
    usage: dict[str, Any],
) -> str:
    """Return the whole report: first the outcome of the run, then how the run went.

    *synthesis* is the leader's text; if it is None, the report has the result of each task instead. *worktrees* has a
    line for each worktree of the team. *usage* says how many tokens the agents' clients used, by model.
    """
    lacks_answer_only = run.status == runs.FAILED and all(task.status == "completed" for task in all_tasks)
    if lacks_answer_only:
        headline = "All tasks are completed, but the leader gave no valid answer."
    elif run.status == runs.COMPLETED and synthesis is not None:
        headline = ""  # the leader's text says it
    else:
        headline = _HEADLINES[run.status]
    agents = ", ".join(_agent_and_client(run, agent) for agent in run.agents)
    variables = [f"{name}: {code(value)}" for name, value in run.variables.items() if name != "repo" and value]
    lines_about_run = [
        f"team: {team}, led by {run.leader}; agents: {agents}",
        f"repository: {code(run.variables.get('repo', ''))}",
        f"started: {run.started_at}",
        *variables,
    ]
    if synthesis is None:
        completed = [task for task in all_tasks if task.status == "completed"]
        results = [f"## {escaped(task.title)}\n\n{fenced(task.result or 'no output')}\n" for task in completed]
        synthesis = "\n".join(results)
    resuming = ""
    if run.status != runs.COMPLETED:
        aim = "retry the leader's answer" if lacks_answer_only else "retry the failed tasks unchanged"
        if run.status == runs.INCOMPLETE:  # nothing failed
            aim = "do the rest"
        resuming = f"To {aim}: `teams run --resume --team {team}`. To change the workflow, start a new run.\n"
    parts = [
        f"# Report: {run.workflow}\n\n{headline}",
        _bullet_list("Troubles", troubles),
        synthesis,
        _failed_section(all_tasks, team),
        _not_run_section(all_tasks, team),
        resuming,
        _bullet_list("Worktrees", worktrees),
        _bullet_list("The run", lines_about_run),
        _task_table(all_tasks),
        _usage_table(usage),
    ]
    return "\n".join(f"{printable(part).strip()}\n" for part in parts if part.strip())


def _agent_and_client(run: Run, agent: Assigned) -> str:
    harness = run.harness_of(agent)
    model = agent.model or run.model
    if harness == runs.SHELL:
        return agent.name
    return f"{agent.name} ({harness}, {model})" if model else f"{agent.name} ({harness})"


def _bullet_list(title: str, lines: list[str]) -> str:
    return f"## {title}\n\n" + "".join(f"* {line}\n" for line in lines) if lines else ""


def _failed_section(all_tasks: list[Task], team: str) -> str:
    parts = []
    for task in all_tasks:
        if task.status == "failed":
            by = f"By {task.owner}. " if task.owner else ""
            output = fenced(tasks.why_failed(task, _SHOWN))
            command = f"`teams show-task {task.id} --team {team}`"
            parts.append(f"### {escaped(task.title)}\n\n{output}\n\n{by}See all of it: {command}.\n")
    return "## Failed\n\n" + "\n".join(parts) if parts else ""


def waits_for_review(task: Task, team: str) -> str:
    """Return a line that says whose review the task waits for, with the command by which a person reviews it."""
    command = f"teams review-task {task.id} --accept --as {HUMAN} --team {team}"
    return f"{task.id} waits for the review by {task.review_by}; a person accepts it by: {command}"


def _not_run_section(tasks: list[Task], team: str) -> str:
    by_id = {task.id: task for task in tasks}
    lines = []
    for task in tasks:
        if task.status == IN_REVIEW:
            lines.append(f"{escaped(task.title)}: {waits_for_review(task, team)}")
        elif task.status not in FINISHED:
            waits_for = []
            for blocker in dependencies.open_blockers(task, dependencies.among(tasks)):
                name = runs.key_of(by_id[blocker.id]) if blocker.id in by_id else blocker.id
                waits_for.append(f"{name} ({_STATUS.get(blocker.status, blocker.status)})")
            reason = f"waits for {', '.join(waits_for)}" if waits_for else "no worker was left to do it"
            lines.append(f"{escaped(task.title)}: {reason}")
    return _bullet_list("Not run", lines)


def _task_table(tasks: list[Task]) -> str:
    table = "## Tasks\n\n| step | task | title | status | by | took |\n|---|---|---|---|---|---|\n"
    for task in tasks:
        took = "-"
        if task.claimed_at and task.completed_at:
            took = f"{(parse_rfc3339(task.completed_at) - parse_rfc3339(task.claimed_at)).total_seconds():.1f} s"
        status = _STATUS.get(task.status, task.status)
        table += f"| {runs.key_of(task)} | {task.id} | {cell(task.title)} | {status} | {task.owner or '-'} | {took} |\n"
    return table


def _usage_table(usage: dict[str, Any]) -> str:
    uncounted = usage["total"]["uncounted"]
    if usage["total"]["turns"] == uncounted:  # the tokens of no turn are known
        return ""
    table = "## Usage\n\n| model | turns | input | of that cached | output |\n|---|---|---|---|---|\n"
    for row in usage["rows"]:
        counts = ["unknown" if row[kind] is None else f"{row[kind]:,}" for kind in ("input", "cached", "output")]
        table += f"| {cell(row['model'])} | {row['turns']} | {' | '.join(counts)} |\n"
    unknown = f"\nThe tokens of {uncounted} turns are unknown.\n" if uncounted else ""
    return f"{table}{unknown}\nCoordination (turns for messages alone): {usage['coordination']:.0%}.\n"


def fenced(text: str) -> str:
    """Return the text as a fenced block. The fence is longer than any fence in the text."""
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}\n{text.strip(chr(10))}\n{fence}"


def code(text: str) -> str:
    """Return the text on one line as inline code."""
    line = " ".join(text.split())
    ticks = "`"
    while ticks in line:
        ticks += "`"
    return f"{ticks} {line} {ticks}" if "`" in line else f"`{line}`"


def escaped(text: str) -> str:
    """Return the text with the special characters of Markdown escaped."""
    return "".join(f"\\{char}" if char in "\\`*_[]<>|#~&" else char for char in text)


def cell(text: str) -> str:
    """Return the text as a cell of a table."""
    return escaped(" ".join(text.split()))


def printable(text: str) -> str:
    """Return the text with each unprintable character, except line feed and tab, replaced by its number in
    hexadecimal.
    """
    if text.isascii() and text.replace("\n", "").isprintable():
        return text
    return "".join(char if char.isprintable() or char in "\n\t" else f"\\u{ord(char):04x}" for char in text)


def report_of(store: Store, team: str) -> dict[str, Any]:
    """Return the run that made the team as JSON, with the report as it was written.

    If the file of the report can't be read, the report is made again, without the leader's text. For a run that is
    still going on or was interrupted, no report is made, and `markdown` in the result is None.
    """
    run = runs.get(store, team)
    report = _read(run.report)
    if report is None and run.status in _HEADLINES:
        usage = budgets.spent(store, teams.get(store, team), by="model", problems=[])
        report = markdown(run, team, list(tasks.all_of(store, team, [])), None, [], [], usage)
    keys = ("id", "workflow", "status", "startedAt", "endedAt", "leader", "report")
    document = run.to_json()
    return {key: document.get(key) for key in keys} | {"markdown": report}


def _read(path: str) -> str | None:
    """Return the report in the file at *path*; None if the file can't be read, or is too long to be a report."""
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read(_MAX_REPORT + 1)
    except (OSError, ValueError):
        return None
    return text if len(text) <= _MAX_REPORT else None


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
