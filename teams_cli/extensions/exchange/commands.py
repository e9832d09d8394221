"""The commands `import` and `export`, with their answers."""

from __future__ import annotations

import os

from teams_cli import errors, text
from teams_cli.commands.declaration import Command, argument, in_group, option
from teams_cli.extensions.exchange import exporting, importing
from teams_cli.store.files import disk
from teams_cli.tasks.tasks import FINISHED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from teams_cli.commands.call import Call
    from teams_cli.commands.declaration import Table

    Parts = list[str | Table]

_TOOLS = ("beads", "task-master", "backlog")
_TRACKERS = ("github", "gitlab", "forgejo", "gitea")
_IMPORT = """Import open issues of a tracker, or the tasks of another tool, with their dependencies and priorities.

You can repeat the import at any time: each item still has only one task. If an item was changed, its task is changed
too, unless the task was also changed here. If an item was closed, its task is cancelled. The answer lists what could
not be imported. The tracker itself is never changed.

The tracker is read by your own `gh`, `glab` or `tea`, which runs in your checkout. The text of an issue is always
marked as foreign, because anybody may have written it.

A parent task waits for its subtasks. An item in progress becomes a pending task.

Raises:
    InvalidValue: The file can't be read, or belongs to another tool.
    TeamsError: `gh`, `glab` or `tea` failed; nothing was changed.
    Busy: Another import is running.
"""


def _import(
    call: Call, source: str, path: str | None, label: list[str], milestone: str | None, issue: list[int]
) -> Any:
    call.load_team()  # refuses a missing team before anything is read
    if source in _TOOLS:
        if label or milestone or issue:
            raise errors.WrongUsage("a file has no labels or milestones", "Leave out these options.")
        from teams_cli.extensions.exchange.other_tools import read_backlog, read_beads, read_task_master

        read = {"beads": read_beads, "task-master": read_task_master, "backlog": read_backlog}[source]
        items = read(os.path.join(call.directory, path or "."))
    else:
        if path is not None:
            raise errors.WrongUsage(
                "a tracker takes no path: the repository of your checkout is used", f"teams import {source}"
            )
        if issue and (label or milestone):
            raise errors.WrongUsage("--issue can't be combined with --label or --milestone", "Leave them out.")
        from teams_cli.extensions.exchange import trackers

        tasks_by_key = importing.imported(call.store, call.team, source)
        unfinished = [key for key, task in tasks_by_key.items() if task.status not in FINISHED]
        items = trackers.KINDS[source](call.directory, call.environ).issues(label, milestone, issue, unfinished)
    outcome = importing.bring(call.store, call.team, call.caller, source, items)
    call.try_to(call.set_next_step)  # the tasks are imported, even if the next step can't be found
    return {
        "source": source,
        "created": [
            {"id": task.id, "from": task.source and task.source["id"], "status": task.status, "title": task.title}
            for task in outcome.created
        ],
        "changed": outcome.changed,
        "kept": outcome.kept,
        "unchanged": outcome.unchanged,
        "left": [{"what": what, "of": keys} for what, keys in sorted(outcome.left_out.items())],
    }


_EXPORT = """Export the whole team: every record, a readable text, or the tasks.

`jsonl` has every record and every entry of the history as one JSON object per line, with the same keys as the data
files. `markdown` has tasks, plans, pages and messages. `csv` has the tasks. `otlp` has OpenTelemetry spans of runs,
tasks, turns and landings that have ended, with the GenAI conventions 0.1.0. Secrets are left out.

Raises:
    InvalidValue: The file exists already, or can't be made.
    StorageFailed: The disk is full, for example; no file is left.
"""


def _export(call: Call, format: str, out: str | None) -> Any:
    from teams_cli.teams.permission import require

    team = require(call.store, call.team, call.caller, "export").team
    lines = list(exporting.FORMATS[format](exporting.Team(call.store, team.name, call.problems)))
    if out is None:
        return {"team": team.name, "format": format, "lines": lines}
    path = os.path.join(call.directory, out)
    disk.write_new(path, "".join(f"{line}\n" for line in lines).encode())
    return {"team": team.name, "format": format, "path": path}


_MOST_ITEMS_NAMED = 10
_MOST_TASKS_SHOWN = 20


def _import_words(answer: dict[str, Any]) -> Parts:
    new = answer["created"]
    count = text.counted(len(new), "task")
    lines = [f"{count} created, {len(answer['changed'])} changed, {answer['unchanged']} unchanged"]
    lines += [f"  {task['id']}: {task['status']}: {task['title']}" for task in new[:_MOST_TASKS_SHOWN]]
    if len(new) > _MOST_TASKS_SHOWN:
        lines.append(f"  … up to {new[-1]['id']}")
    lines += [f"  {task}: changed: {', '.join(fields)}" for task, fields in answer["changed"].items()]
    lines += [f"  {task}: changed there and here, kept: {', '.join(fields)}" for task, fields in answer["kept"].items()]
    if answer["left"]:
        lines.append("not taken over:")
    lines += [f"  {row['what']}: {text.listed(row['of'], _MOST_ITEMS_NAMED)}" for row in answer["left"]]
    return [*lines]


def _export_words(answer: dict[str, Any]) -> Parts:
    if "path" in answer:
        return [f"{answer['path']}: {answer['team']} as {answer['format']}"]
    return list(answer["lines"])


COMMANDS = in_group(
    "Tasks",
    Command(
        "import",
        _import,
        argument(
            "SOURCE",
            f"A tracker ({', '.join(_TRACKERS)}) or a tool ({', '.join(_TOOLS)}).",
            name="source",
            choices=_TRACKERS + _TOOLS,
        ),
        argument(
            "PATH",
            "For a tool: its file or repository; the default is the current directory.",
            name="path",
            required=False,
        ),
        option("--label", "For a tracker: only issues that have all these labels.", metavar="LABEL", many=True),
        option("--milestone", "For a tracker: only issues of this milestone.", metavar="NAME"),
        option("--issue", "For a tracker: only the issue with this number.", type=int, metavar="N", many=True),
        doc=_IMPORT,
        words=_import_words,
        traits="repeatable for_person at_shell",
        example="import github --label ready",
        also="import-tasks import-issues foreign issues github migrate beads task-master",
    ),
    Command(
        "export",
        _export,
        option(
            "--format",
            f"The format of the export: {', '.join(exporting.FORMATS)}.",
            choices=exporting.FORMATS,
            default="jsonl",
        ),
        option("--out", "Write the file to this new path.", metavar="FILE"),
        doc=_EXPORT,
        words=_export_words,
        traits="whole for_person at_shell",
        example="export --format markdown --out team.md",
        changes=False,
        also="dump backup csv",
    ),
)
