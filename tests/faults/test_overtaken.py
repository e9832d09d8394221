"""Every change loses a race against another writer: its decision is made again, and nothing else is changed by it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from teams_cli.cli.command_line import parse
from teams_cli.commands.call import Call
from teams_cli.errors import StaleRevision
from teams_cli.store.files.engine import FileStore
from teams_cli.teams import config
from teams_cli.teams.permission import Caller
from tests.faults.judging import difference, state
from tests.faults.scenes import SCENES, Scene, prepared
from tests.support.cli import ALPHA

GLOBAL = ("store", "root", "agent", "team", "as_json")
ELSEWHERE = {"a default": "changes a file of the person", "copying": "opens the other store itself"}

MAKERS = {"a new team", "mending", "removing"}
"""Commands that replace no record."""


class Overtaken(FileStore):
    """A store in which each record is changed meanwhile, the first time that somebody replaces it."""

    def __init__(self, root: str) -> None:
        super().__init__(root)
        self.refused: set[tuple[str, str, Any]] = set()

    def replace(self, team: str, kind: Any, key: str, record: Any, revision: Any, lasting: bool = True) -> Any:
        if (kind.name, key, revision) not in self.refused:
            self.refused.add((kind.name, key, revision))
            raise StaleRevision(f"{kind.name} {key} was changed meanwhile", "Read it again.")
        return super().replace(team, kind, key, record, revision, lasting)


def play(store: FileStore, scene: Scene) -> None:
    """Carry out the command of the scene on that store."""
    top = os.path.dirname(store.root)
    found = parse(scene.typed(top))
    assert found, scene.words
    command, values = found
    values = {name: value for name, value in values.items() if name not in GLOBAL}
    own = config.load(store.root, {})
    call = Call(store, own, Caller(scene.agent, config=own), ALPHA, environ={"TEAMS_HOME": store.root}, directory=top)
    command.answer(call, values)
    call.record_shown()
    if (Path(store.root) / "teams/alpha").exists():
        Call(FileStore(store.root), own, Caller("max", config=own), ALPHA).settle()


@pytest.fixture
def top(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    yield tmp_path


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(set(SCENES) - set(ELSEWHERE)))
def test_nothing_is_done_twice(top: Path, name: str) -> None:
    scene = SCENES[name]
    first, second = top / "first/root", top / "second/root"
    first.parent.mkdir()
    prepared(first, scene)
    shutil.copytree(first.parent, second.parent)
    play(FileStore(str(first)), scene)
    overtaken = Overtaken(str(second))
    play(overtaken, scene)
    assert bool(overtaken.refused) == (name not in MAKERS)
    assert not (wrong := difference(state(second), state(first), scene.later)), wrong
