"""What only the PostgreSQL engine has: tables, addresses, changes made with SQL, settings of the server."""

from __future__ import annotations

import pytest

from teams_cli.errors import Busy, DamagedRecord, StorageFailed
from teams_cli.extensions.postgres import schema
from teams_cli.extensions.postgres.engine import PostgresStore
from teams_cli.store.documents import encode
from tests.conftest import new_address, server
from tests.store.kinds import INBOX, MESSAGE, TASK, TEAM, Task, Team, make_team, send, texts, titles
from tests.support.postgres import Postgres, schema_of
from tests.support.waits import until

pytestmark = pytest.mark.slow


class TestTables:
    def test_reading_makes_none(self, store, address):
        assert (store.teams(), titles(store), texts(store, None)) == ([], {}, [])
        assert store.session.look("SELECT 1 FROM pg_namespace WHERE nspname = %s", [schema_of(address)]) == []

    def test_older_ones_are_brought_up_to_date(self, tmp_path):
        body = encode(Team(name="alpha", leader="ann")).decode()
        for version in range(1, schema.VERSION):
            address = new_address()
            make_tables(address, version)
            sql = f"""INSERT INTO "{schema_of(address)}".records (team, kind, key, body)
                VALUES ('alpha', 'team', 'alpha', $${body}$$)"""
            assert server().psql(sql).returncode == 0
            later = PostgresStore(address, str(tmp_path / f"{version}"))
            assert later.teams() == ["alpha"]
            send(later, "bob", "hello")
            assert later.session.look("SELECT version FROM format") == [(schema.VERSION,)]
            later.close()

    def test_newer_ones_are_refused(self, store, address, tmp_path):
        make_team(store)
        server().psql(f'UPDATE "{schema_of(address)}".format SET version = 1000')
        later = PostgresStore(address, str(tmp_path / "later"))
        for do in (later.teams, lambda: send(later, "bob", "hello"), lambda: make_team(later, "beta")):
            with pytest.raises(StorageFailed, match="version 1000"):
                do()

    def test_a_database_in_another_encoding_is_refused(self, tmp_path):
        server().psql("CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'")
        store = PostgresStore(server().address("latin"), str(tmp_path))
        with pytest.raises(StorageFailed, match="LATIN1"):
            make_team(store)


def test_a_search_in_many_messages_uses_the_index_of_words(store: PostgresStore, address: str) -> None:
    """A search uses the index also right after an import, when the server has no statistics of the messages yet."""
    make_team(store)
    server().psql(f"""SET search_path TO "{schema_of(address)}";
        INSERT INTO messages (team, number, uid, recipients, body)
            SELECT 'alpha', n, n, '{{bob}}', json_build_object('id', 'msg-' || n, 'message', 'hay ' || n)
            FROM generate_series(1, 10000) AS n""")
    assert list(store.search("alpha", MESSAGE, ["needle"], [])) == []
    store.close()  # the server counts what a connection did when that ends, at the latest

    def used() -> bool:
        counted = f"SELECT sum(idx_scan) FROM pg_stat_user_indexes WHERE schemaname = '{schema_of(address)}'"
        return server().psql(f"{counted} AND indexrelname = 'messages_words'").stdout.strip() != "0"

    until(used, "a search by the index")


def make_tables(address: str, version: int) -> None:
    """Make the tables as they were at that version of the schema."""
    name = schema_of(address)
    parts = [part for number, part in schema.parts().items() if number <= version]
    kept = ["CREATE TABLE format (version integer NOT NULL, store text NOT NULL)"]
    kept += [f"INSERT INTO format VALUES ({version}, 'x')"]
    made = server().psql("; ".join([f'CREATE SCHEMA "{name}"; SET search_path TO "{name}"', *kept, *parts]))
    assert made.returncode == 0, made


class TestPeople:
    def test_records_are_read_with_sql(self, store, address):
        make_team(store)
        store.create("alpha", TASK, None, Task(title='say "hi"', blocked_by=["task-9"], notes={"deep": [1, None]}))
        send(store, "bob", "hello \x00 \\u0000 \U0001f600")
        name = schema_of(address)
        sql = f"""SELECT record->>'title', record->'blockedBy'->>0 FROM "{name}".records WHERE key = 'task-1'"""
        shown = server().psql(sql)
        assert shown.stdout.strip() == 'say "hi"|task-9'
        shown = server().psql(f"SELECT record->>'message', recipients FROM \"{name}\".messages")
        assert shown.stdout.strip() == "hello \ufffd \\u0000 \U0001f600|{bob}"
        assert texts(store, "bob") == ["hello \x00 \\u0000 \U0001f600"]

    def test_a_change_by_hand_is_checked_and_taken(self, store, address):
        make_team(store)
        _, old = store.create("alpha", TASK, None, Task(title="t"))
        name = schema_of(address)
        sql = f"UPDATE \"{name}\".records SET body = jsonb_set(record, '{{title}}', '\"by hand\"') WHERE key = 'task-1'"
        assert server().psql(sql).returncode == 0
        assert titles(store) == {"task-1": "by hand"}
        with pytest.raises(Exception, match="changed meanwhile"):
            store.replace("alpha", TASK, "task-1", Task(id="task-1", title="mine"), old)

    def test_a_wrong_change_by_hand_is_named_and_hides_nothing(self, store, address):
        make_team(store)
        for title in ("one", "two"):
            store.create("alpha", TASK, None, Task(title=title))
        change = f"UPDATE \"{schema_of(address)}\".records SET body = '%s' WHERE key = 'task-1'"
        assert "json" in server().psql(change % "x").stderr
        for wrong in ('{"id": "task-1", "title": 7}', "[]", '{"id": "task-2", "title": "t"}'):
            server().psql(change % wrong)
            with pytest.raises(DamagedRecord, match="alpha/task/task-1"):
                store.get("alpha", TASK, "task-1")
            problems: list[Exception] = []
            assert [task.title for task, _ in store.scan("alpha", TASK, problems)] == ["two"]
            assert len(problems) == 1
            (finding,) = store.examine([TASK, MESSAGE], fix=False)
            assert finding["level"] == "problem" and "task-1" in finding["what"]


@pytest.mark.parametrize("change", [make_team, lambda store: send(store, "bob", "hello")])
def test_tables_that_were_removed_are_made_again(store, address, change):
    """A server or a keeper still runs while the schema is removed, for example to restore it from a backup."""
    make_team(store)
    for _ in range(2):
        assert server().psql(f'DROP SCHEMA "{schema_of(address)}" CASCADE').returncode == 0
        store.journal("alpha", {"what": "said"})
        assert store.teams() == []
        make_team(store)
    assert server().psql(f'DROP SCHEMA "{schema_of(address)}" CASCADE').returncode == 0
    with pytest.raises(Busy, match="were removed meanwhile"):
        change(store)
    make_team(store)
    assert store.teams() == ["alpha"]


class TestAddresses:
    def test_a_database_that_is_not_there_is_told_at_once(self, tmp_path):
        store = PostgresStore(server().address("nodb"), str(tmp_path), patience=3600)
        with pytest.raises(StorageFailed, match='"nodb" does not exist'):
            store.teams()

    def test_a_server_that_takes_no_changes_is_refused(self, tmp_path):
        server().psql("CREATE DATABASE readonly; ")
        server().psql("ALTER DATABASE readonly SET default_transaction_read_only = on")
        store = PostgresStore(server().address("readonly"), str(tmp_path), patience=0.2)
        with pytest.raises(Busy, match="read-only"):
            store.teams()


class TestDoctor:
    def test_settings_that_lose_changes_are_told(self, tmp_path):
        server()  # skips where there is none
        levels = {"fsync": "problem", "full_page_writes": "problem", "synchronous_commit": "warning"}
        careless = Postgres(*(f"{setting}=off" for setting in levels))
        try:
            store = PostgresStore(careless.address(), str(tmp_path))
            make_team(store)
            findings = list(store.examine([TEAM], fix=False))
            for setting, level in levels.items():
                assert [each["level"] for each in findings if setting in each["what"]] == [level]
        finally:
            careless.stop()

    def test_a_server_at_its_defaults_is_fine(self, store):
        make_team(store)
        assert list(store.examine([TEAM, TASK, INBOX, MESSAGE], fix=False)) == []


def test_the_time_is_the_servers(store):
    make_team(store)
    before = store.session.look("SELECT extract(epoch FROM clock_timestamp())::float8")[0][0]
    now = store.now().timestamp()
    after = store.session.look("SELECT extract(epoch FROM clock_timestamp())::float8")[0][0]
    assert before - 0.05 <= now <= after + 0.05
    assert store.steady()[0] == PostgresStore(store.variables["TEAMS_STORE"], "/nowhere").steady()[0] != ""
