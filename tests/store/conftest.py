"""Fixtures for the tests of the store of files."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.store.kinds import INBOX, TASK, Inbox, Task, make_team

if TYPE_CHECKING:
    from pathlib import Path

    from teams_cli.store.files.engine import FileStore


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return the directory of `file_store`."""
    return tmp_path / "root"


@pytest.fixture
def used_store(file_store: FileStore) -> FileStore:
    """Provide a store of files in which a team has a task and an inbox."""
    make_team(file_store)
    file_store.create("alpha", TASK, None, Task(title="t"))
    file_store.create("alpha", INBOX, "bob", Inbox(agent="bob"))
    return file_store
