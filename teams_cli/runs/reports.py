"""The report of a run: what came out, who did what, and what was not done, as Markdown."""

from __future__ import annotations

import os

from teams_cli.clock import parse_rfc3339
from teams_cli.errors import StorageFailed
from teams_cli.runs import records, steps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from teams_cli.runs.records import Run
    from teams_cli.tasks import Task

_SHOWN = 30
"""Lines of a failed task's output that the report shows."""
_STATUS = {"completed": "completed", "failed": "FAILED", "pending": "not run", "in_progress": "not finished"}
_HEADLINES = {
    records.COMPLETED: "All tasks are completed.",
    records.FAILED: "Something failed, and what waits for it was not run.",
    records.INCOMPLETE: "Tasks are left that no worker was there to do.",
}


def markdown(run: Run, team: str, tasks: list[Task], synthesis: str | None, troubles: list[str]) -> str:
    """The whole report. *synthesis* is the leader's, or None for a section with the result of each task."""
    parts = [_head(run, team), _troubles(troubles)]
    parts.append(synthesis if synthesis is not None else _results(tasks))
    parts += [_failures(tasks, team), _again(run, team), _table(tasks)]
    return "\n".join(f"{printable(part).strip()}\n" for part in parts if part.strip())


def _head(run: Run, team: str) -> str:
    repo = run.variables.get("repo", "")
    chosen = "".join(f"* {name}: {code(value)}\n" for name, value in run.variables.items() if name != "repo" and value)
    return (
        f"# Report: {run.workflow}\n\n{_HEADLINES[run.status]}\n\n"
        f"* team: {team}, led by {run.leader}; agents: {', '.join(agent.name for agent in run.agents)}\n"
        f"* repository: {code(repo)}\n* started: {run.started_at}\n{chosen}"
    )


def _troubles(troubles: list[str]) -> str:
    return "## Troubles\n\n" + "".join(f"* {trouble}\n" for trouble in troubles) if troubles else ""


def _results(tasks: list[Task]) -> str:
    done = [task for task in tasks if task.status == "completed"]
    return "\n".join(f"## {escaped(task.title)}\n\n{fenced(task.result or 'no output')}\n" for task in done)


def _again(run: Run, team: str) -> str:
    """How to go on: with the same run, which is kept as it was begun, or with a new one."""
    if run.status == records.COMPLETED:
        return ""
    return (
        f"To try again what failed, as it stands here: `teams run --resume --team {team}`. To change it, run it anew.\n"
    )


def _failures(tasks: list[Task], team: str) -> str:
    failed = "\n".join(_failure(task, team) for task in tasks if task.status == "failed")
    titles = {task.id: task for task in tasks}
    waiting = "".join(_not_run(task, titles) for task in tasks if task.status in ("pending", "in_progress"))
    parts = [f"## Failed\n\n{failed}" if failed else "", f"## Not run\n\n{waiting}" if waiting else ""]
    return "\n".join(part for part in parts if part)


def _failure(task: Task, team: str) -> str:
    by = f"By {task.owner}. See all of it: `teams show-task {task.id} --team {team}`."
    return f"### {escaped(task.title)}\n\n{fenced(_reason(task))}\n\n{by}\n"


def _reason(task: Task) -> str:
    """The end of what it said, in which the reason is last; the reason alone where it said nothing."""
    if task.result and task.result.strip():
        return "\n".join(task.result.strip().splitlines()[-_SHOWN:])
    note = next((note for note in reversed(task.notes) if note.what == "failed"), None)
    return note.reason if note and note.reason else "no reason was given"


def _not_run(task: Task, known: dict[str, Task]) -> str:
    open_ones = [known[key] for key in task.blocked_by if key in known and known[key].status != "completed"]
    waits = ", ".join(f"{steps.key_of(blocker)} ({_STATUS[blocker.status]})" for blocker in open_ones if blocker)
    why = f"waits for {waits}" if waits else "no worker was left to do it"
    return f"* {escaped(task.title)}: {why}\n"


def _table(tasks: list[Task]) -> str:
    rows = [
        f"| {steps.key_of(task)} | {task.id} | {cell(task.title)} | {_STATUS.get(task.status, task.status)} "
        f"| {task.owner or '-'} | {_took(task)} |"
        for task in tasks
    ]
    head = "## Tasks\n\n| step | task | title | status | by | took |\n|---|---|---|---|---|---|\n"
    return head + "\n".join(rows) + "\n"


def _took(task: Task) -> str:
    if not task.claimed_at or not task.completed_at:
        return "-"
    return f"{(parse_rfc3339(task.completed_at) - parse_rfc3339(task.claimed_at)).total_seconds():.1f} s"


def fenced(text: str) -> str:
    """The text as a block that nothing in it can end."""
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}\n{text.strip(chr(10))}\n{fence}"


def code(text: str) -> str:
    """The text as code within a line."""
    line = " ".join(text.split())
    ticks = "`"
    while ticks in line:
        ticks += "`"
    return f"{ticks} {line} {ticks}" if "`" in line else f"`{line}`"


def escaped(text: str) -> str:
    """The text as it stands, whatever marks it holds."""
    return "".join(f"\\{c}" if c in "\\`*_[]<>|#~&" else c for c in text)


def cell(text: str) -> str:
    """The text as a cell of a table."""
    return escaped(" ".join(text.split()))


def printable(text: str) -> str:
    """The text without characters that steer a terminal; they are spelt out."""
    if text.isascii() and text.replace("\n", "").isprintable():
        return text
    return "".join(c if c.isprintable() or c in "\n\t" else f"\\u{ord(c):04x}" for c in text)


def write(path: str, text: str) -> None:
    """Write the report to a file.

    Raises:
        StorageFailed: It can't be written.
    """
    try:
        os.makedirs(os.path.dirname(path), 0o700, exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise StorageFailed(f"can't write {path}: {error.strerror}", "Choose another file with --report.") from None
