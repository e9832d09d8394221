"""Hand-offs: the results of earlier tasks, as files that a later task reads."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterable

from teams_cli import errors
from teams_cli.runs.orders import key_of
from teams_cli.tasks.tasks import Task


def directory(root: str, team: str, *parts: str) -> str:
    """A directory of the run, made if need be."""
    path = os.path.join(root, "runs", team, *parts)
    try:
        os.makedirs(path, 0o700, exist_ok=True)
    except OSError as error:
        raise errors.StorageFailed(
            f"can't make {path}: {error.strerror}", "Make room, or choose another --root."
        ) from None
    return path


def give(root: str, team: str, agent: str, found: Iterable[Task]) -> str:
    """Put the results of the tasks where the agent's command reads them; the directory."""
    take_back(root, team, agent)
    place = directory(root, team, "given", agent)
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
        for task in found
    ]
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


def _write(path: str, text: str) -> None:
    with open(path, "w", encoding="utf-8", newline="") as file:
        file.write(text)


def take_back(root: str, team: str, agent: str) -> None:
    """Remove what was put there for the agent."""
    shutil.rmtree(os.path.join(root, "runs", team, "given", agent), ignore_errors=True)
