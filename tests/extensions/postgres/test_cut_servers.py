"""A PostgreSQL server that disappears right after a command's first commit, or half-way to the command's end:
the command answers for what it committed, and the next command does what is still owed for it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from teams_cli.cli.command_line import parse
from teams_cli.commands.call import Call
from teams_cli.errors import OutcomeUnknown, TeamsError
from teams_cli.extensions.postgres.engine import PostgresStore
from teams_cli.store.contract import Store
from teams_cli.store.files.engine import FileStore
from teams_cli.teams import config, presence
from teams_cli.teams.permission import Caller
from tests.conftest import new_address, server
from tests.faults.judging import State, difference, of_store
from tests.faults.scenes import BOB, LEA, MAX, MIA, SCENES, Scene
from tests.support.cli import ALPHA, add_tasks, make_team
from tests.support.postgres import schema_of
from tests.support.wire import Wire

pytestmark = pytest.mark.slow

GLOBAL = ("store", "root", "agent", "team", "as_json")
CUT = [
    "a new team", "joining and a task", "leaving", "handing over", "closing", "opening again", "removing", "copying",
    "a default", "a task", "many tasks", "the next claim", "completing and the next task", "giving back", "a note",
    "a message with a uid", "a broadcast", "reading", "a reply", "a question", "an answer",
    "a plan for a task", "approving",
    "asking to shut down", "shutting down", "a page", "accepting", "sending back", "beginning again once",
]  # fmt: skip
"""Scenes whose commits differ from each other. The other scenes commit like one of these, and are cut at every
call on files.
"""


_CHANCE = re.compile(r"\d\d:\d\d:\d\d|/[^']*(?=/other\b)")


class Office:
    """A store in PostgreSQL with the team of a scene, and a second connection to it through a wire that can be cut."""

    def __init__(self, top: Path, scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
        self.scene, self.root = scene, top / "root"
        top.mkdir()
        monkeypatch.chdir(top)
        self.address = new_address()
        monkeypatch.setenv("TEAMS_STORE", self.address)
        add_tasks(make_team(self.root, "bob", "mia", "max", roles={"max": "task-manager"}), "one", "two")
        self.store = PostgresStore(self.address, str(self.root))
        for caller in (LEA, BOB, MIA, MAX):
            presence.announce(self.store, ALPHA, caller, "here")
        scene.prepare(self.store)
        self.wire = Wire(f"{server().directory}/.s.PGSQL.5432")
        place = f"postgresql://teams@127.0.0.1:{self.wire.port}/postgres?sslmode=disable"
        self.far = PostgresStore(f"{place}&schema={schema_of(self.address)}", str(self.root), patience=0.02)

    def play(self, store: Store) -> None:
        """Carry out the command of the scene on *store*."""
        found = parse(self.scene.typed(str(self.root.parent)))
        assert found, self.scene.words
        values = {name: value for name, value in found[1].items() if name not in GLOBAL}
        own, caller = config.load(store.root, {}), self.scene.agent
        call = Call(store, own, Caller(caller, config=own), ALPHA, environ={}, directory=os.getcwd())
        found[0].answer(call, values)

    def settled(self) -> State:
        """The state after another member has run a command."""
        self.far.close()
        self.wire.close()
        if ALPHA in self.store.teams():
            Call(self.store, config.load(str(self.root), {}), Caller("max"), ALPHA).settle()
        return self.state()

    def state(self) -> State:
        """All that is stored here and in the copy, without the times and paths that occur in texts."""
        other = of_store(FileStore(str(self.root.with_name("other"))))
        copied = {f"copied {key}": value for key, value in other.items()}
        return {key: _CHANCE.sub("some", str(value)) for key, value in {**of_store(self.store), **copied}.items()}


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    yield tmp_path
    monkeypatch.chdir("/")


@pytest.mark.parametrize("name", CUT)
def test_a_command_answers_for_what_it_committed(places: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    scene = SCENES[name]
    plain = Office(places / "plain", scene, monkeypatch)
    before = plain.state()
    plain.play(plain.far)
    said, once = plain.wire.heard, plain.settled()
    committed = next((nth for nth, data in enumerate(said, start=1) if b"INSERT INTO changes" in data), len(said))
    for nth in sorted({committed + 1, (committed + len(said)) // 2 + 1}):
        office = Office(places / f"{nth}", scene, monkeypatch)
        office.wire.lose_at = nth
        refusal: TeamsError | None = None
        try:
            office.play(office.far)
        except TeamsError as problem:
            refusal = problem
        met = office.settled()
        missing = difference(met, once, scene.later)
        told = f"cut at {nth} of {len(said)}, {said[nth - 1][-200:] if nth <= len(said) else b''!r}: {refusal}"
        assert bool(missing) == bool(refusal), f"{told}\n{missing}"
        assert refusal is None or isinstance(refusal, OutcomeUnknown) or met == before, told
        if refusal:
            office.play(office.store)
            assert not (wrong := difference(office.settled(), once, scene.later)), f"{told}; repeated:\n{wrong}"
