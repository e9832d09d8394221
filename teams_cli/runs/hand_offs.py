"""Hand-offs: the results of earlier tasks, as files that a later one reads, and a place to work in for all of a run.

<root>/runs/<team>/report.md       what came out
├── work/                          $TEAMS_WORK: for all tasks of the run, to keep what is too large for a result
├── logs/<agent>.log               what a worker's process said
└── given/<agent>/                 $TEAMS_RESULTS: <key>.txt for each result, and index.json, while a task runs
"""

from __future__ import annotations

import json
import os
import shutil

from teams_cli import errors
from teams_cli.runs.steps import key_of
from teams_cli.tasks.tasks import Task

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


def directory(root: str, team: str, *parts: str) -> str:
    """A directory of the run, made if need be.

    Raises:
        StorageFailed: It can't be made.
    """
    path = os.path.join(root, "runs", team, *parts)
    try:
        os.makedirs(path, 0o700, exist_ok=True)
    except OSError as error:
        raise errors.StorageFailed(
            f"can't make {path}: {error.strerror}", "Make room, or choose another --root."
        ) from None
    return path


def give(root: str, team: str, agent: str, found: Iterable[Task]) -> str:
    """Put the results of the tasks where the agent's command reads them; the directory.

    Raises:
        StorageFailed: They can't be written.
    """
    take_back(root, team, agent)
    place = directory(root, team, "given", agent)
    rows = [_row(task) for task in found]
    try:
        for row, task in zip(rows, found, strict=True):
            if task.result is not None:
                _write(os.path.join(place, row["file"]), task.result)
        _write(os.path.join(place, "index.json"), json.dumps(rows, indent=2))
    except OSError as error:
        raise errors.StorageFailed(
            f"can't write the results for {agent}: {error.strerror}", f"Look at {place}."
        ) from None
    return place


def _row(task: Task) -> dict[str, str]:
    return {
        "key": key_of(task),
        "task": task.id,
        "title": task.title,
        "status": task.status,
        "owner": task.owner or "",
        "item": task.item or "",
        "file": f"{key_of(task)}.txt",
    }


def _write(path: str, text: str) -> None:
    with open(path, "w", encoding="utf-8", newline="") as file:
        file.write(text)


def take_back(root: str, team: str, agent: str) -> None:
    """Remove what was put there for the agent."""
    shutil.rmtree(os.path.join(root, "runs", team, "given", agent), ignore_errors=True)
