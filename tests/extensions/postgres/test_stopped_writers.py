"""Writers that pause between reading and writing while the team is closed or copied.

A write that comes after the closing is refused; closing waits for a write that has begun.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg2
import pytest

from teams_cli import closing, copying, kinds
from teams_cli.errors import WrongState
from teams_cli.extensions.postgres.engine import PostgresStore
from teams_cli.messages import messages
from teams_cli.store.contract import Store
from teams_cli.store.files.engine import FileStore
from teams_cli.tasks import claims, tasks
from teams_cli.tasks.tasks import Task
from teams_cli.teams.permission import Caller
from tests.conftest import server
from tests.support.cli import ALPHA, add_tasks, make_team
from tests.support.postgres import schema_of
from tests.support.wire import Wire

pytestmark = pytest.mark.slow

LEA, BOB = Caller("lea"), Caller("bob")
LATE = Task(team_name=ALPHA, title="late", created_at="")
WRITERS: dict[str, tuple[Callable[[Store], Any], bytes]] = {
    "sends": (lambda store: messages.send(store, ALPHA, LEA, "bob", "late"), b"INSERT INTO messages"),
    "creates": (lambda store: tasks.create(store, ALPHA, LEA, LATE), b"INSERT INTO counters"),
    "claims": (lambda store: claims.claim(store, ALPHA, BOB, "1"), b"UPDATE records"),
}


def content(store: Store) -> list[tuple[str, str, bytes]]:
    """The bytes of all records of the team."""
    return [(kind.name, key, data) for kind in kinds.IN_A_TEAM for key, data in store.pack(ALPHA, kind)]


@pytest.fixture
def here(on_postgres: str, tmp_path: Path) -> Store:
    cli = make_team(tmp_path / "root", "bob")
    add_tasks(cli, "one", "two")
    return cli.store()


@pytest.mark.parametrize(("writer", "during"), [*((writer, "close") for writer in WRITERS), ("sends", "copy")])
def test_a_writer_that_paused_meanwhile_is_refused(
    here: Store, on_postgres: str, tmp_path: Path, writer: str, during: str
) -> None:
    change, at = WRITERS[writer]
    wire = Wire(f"{server().directory}/.s.PGSQL.5432")
    place = f"postgresql://teams@127.0.0.1:{wire.port}/postgres?schema={schema_of(on_postgres)}"
    there = FileStore(str(tmp_path / "there"))
    answers: list[Any] = []

    def write() -> None:
        try:
            answers.append(change(PostgresStore(place, str(tmp_path / "mine"))))
        except WrongState as refusal:
            answers.append(refusal.message)

    thread = threading.Thread(target=write, daemon=True)
    wire.hold(at)
    thread.start()
    wire.wait_held()
    if during == "close":
        closing.close(here, ALPHA, LEA)
    else:
        copying.copy(here, there, ALPHA, LEA)
    before = content(here)
    wire.go_on()
    thread.join(60)
    assert answers == ["team alpha is closed"]
    assert content(here) == before
    if during == "copy":
        assert content(there) == before
    wire.close()


def test_closing_waits_for_a_change_that_has_begun(here: Store, on_postgres: str) -> None:
    link = psycopg2.connect(server().address())
    with link.cursor() as cursor:
        cursor.execute(f'SET search_path TO "{schema_of(on_postgres)}"')
        cursor.execute("INSERT INTO records (team, kind, key, body) VALUES ('alpha', 'inbox', 'zed', '{}')")
    closer = threading.Thread(target=closing.close, args=[here, ALPHA, LEA], daemon=True)
    closer.start()
    waiting = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
    while server().psql(waiting).stdout == "0\n":
        assert closer.is_alive(), "it was closed all the same"
        time.sleep(0.01)
    link.commit()
    closer.join(60)
    assert not closer.is_alive()
    link.close()
