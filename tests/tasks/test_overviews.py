"""How many tasks stand together: counted by the index as by reading all, also where the index is lost or old."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from teams_cli.store.files.engine import FileStore
from teams_cli.tasks import dependencies, overviews, tasks
from teams_cli.tasks.tasks import TASK, Task
from tests.support.cli import ALPHA, Cli, make_team

MANY = 250
NOW = "2030-01-01T00:00:00.000Z"


@pytest.fixture
def store(tmp_path: Path) -> FileStore:
    """A team of many tasks, of all sorts."""
    cli: Cli = make_team(tmp_path / "root", "bob")
    found = FileStore(str(cli.root))
    found.create_all(ALPHA, TASK, MANY, lambda keys: [_task(number) for number in range(1, len(keys) + 1)])
    return found


def _task(number: int) -> Task:
    status = {1: "failed", 2: "in_progress", 3: "cancelled", 4: "in_review"}.get(
        number, "completed" if number % 2 else "pending"
    )
    blockers = {6: ["task-1"], 8: ["task-6"], 10: ["task-5"], 12: ["task-14"]}.get(number, [])
    skills = ["go"] if number == 16 else []
    return Task(team_name=ALPHA, title=str(number), status=status, created_at=NOW, blocked_by=blockers, require=skills)


def as_read(store: FileStore) -> tuple[dict[str, int], list[str], int]:
    found = list(tasks.all_of(store, ALPHA, []))
    status_of = dependencies.among(found)
    ready = [task for task in found if task.status == "pending" and not dependencies.open_blockers(task, status_of)]
    return tasks.count(found), sorted(dependencies.stuck_tasks(found), key=TASK.number_in), len(ready)


def as_counted(store: FileStore) -> tuple[dict[str, int], list[str], int]:
    found = overviews.overview(store, ALPHA)
    return found.counts, found.stuck, found.free + len(found.ready)


def test_many_are_counted_without_reading_those_that_need_no_look(store: FileStore) -> None:
    assert as_counted(store) == as_read(store)
    assert len(overviews.overview(store, ALPHA).found) == 7  # in progress, in review, waiting, asking for a skill


def test_a_lost_index_is_made_anew(store: FileStore) -> None:
    shutil.rmtree(Path(store.root) / f"tasks/{ALPHA}/index")
    assert as_counted(store) == as_read(store)
    assert len(overviews.overview(store, ALPHA).found) == 7


def test_the_index_of_an_older_version_is_brought_up_to_date(store: FileStore) -> None:
    """It had all that were pending in one place, and none that were finished."""
    index = Path(store.root) / f"tasks/{ALPHA}/index"
    for label in ("completed", "failed", "cancelled"):
        shutil.rmtree(index / label)
    for mark in (index / "free-normal").iterdir():
        mark.rename(index / "pending-normal" / mark.name)
    assert as_counted(store) == as_read(store)
    assert len(overviews.overview(store, ALPHA).found) == 7
