"""Closing and removing a team exclude every change of it, also where no change made a lock file yet."""

from __future__ import annotations

from pathlib import Path

import pytest

from teams_cli.errors import Busy
from teams_cli.membership import joining
from teams_cli.store.files.engine import FileStore
from teams_cli.store.files.locks import LOCK
from teams_cli.store.files.whole_team import Closing
from teams_cli.teams import settings
from teams_cli.teams.permission import Caller
from tests.support.cli import ALPHA

LEA = Caller("lea")


def test_a_lock_whose_file_was_not_there_is_held(tmp_path: Path) -> None:
    store = FileStore(str(tmp_path / "root"), lock_timeout=0.05)
    joining.spawn_team(store, ALPHA, LEA)
    lock_file = tmp_path / f"root/teams/{ALPHA}/.lock"
    lock_file.unlink(missing_ok=True)
    with Closing(store.address, ALPHA, lambda directory: LOCK(directory, 1.0)), pytest.raises(Busy):
        settings.change(store, ALPHA, LEA, "staleAfterSeconds", "9")
