"""What only the PostgreSQL engine has: tables, connections that break, people with psql, poolers, standbys."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from teams_cli.errors import Busy, DamagedRecord, InvalidValue, NotAllowed, OutcomeUnknown, StorageFailed
from teams_cli.store import opening
from teams_cli.store.documents import encode
from teams_cli.store.polling import PollingWatch
from teams_cli.store.postgres import schema
from teams_cli.store.postgres.engine import PostgresStore
from teams_cli.store.postgres.watches import ListeningWatch
from tests.conftest import new_address, server
from tests.store.kinds import INBOX, MESSAGE, TASK, TEAM, Inbox, Task, Team, make_team, send, texts, titles
from tests.support.postgres import Postgres
from tests.support.wire import Wire


@pytest.fixture
def address() -> str:
    return new_address()


def schema_of(address: str) -> str:
    return address.rpartition("schema=")[2]


@pytest.fixture
def store(address: str, tmp_path: Path) -> Iterator[PostgresStore]:
    made = PostgresStore(address, str(tmp_path / "root"), patience=5.0)
    yield made
    made.close()


@pytest.fixture
def wire() -> Iterator[Wire]:
    made = Wire(f"{server().directory}/.s.PGSQL.5432")
    yield made
    made.close()


def over(wire: Wire, address: str, tmp_path: Path, patience: float = 5.0) -> PostgresStore:
    """The store at *address*, reached over the wire."""
    place = f"postgresql://teams@127.0.0.1:{wire.port}/postgres?schema={schema_of(address)}"
    return PostgresStore(place, str(tmp_path / "root"), patience=patience)


CHANGES = {
    "create": (lambda s: s.create("alpha", INBOX, "bob", Inbox(agent="bob")), b"INSERT INTO changes"),
    "number": (lambda s: s.create("alpha", TASK, None, Task(title="t")), b"; COMMIT"),
    "append": (lambda s: send(s, "bob", "hello"), b"; COMMIT"),
    "replace": (
        lambda s: s.replace("alpha", TEAM, "alpha", Team(name="alpha", leader="bob"), s.get("alpha", TEAM, "alpha")[1]),
        b"INSERT INTO changes",
    ),
}


def counts(store: PostgresStore) -> tuple[int, ...]:
    sql = "SELECT (SELECT count(*) FROM records), (SELECT count(*) FROM messages)"
    return tuple(store.look(sql)[0])


class TestBrokenConnections:
    @pytest.mark.parametrize("after", [False, True], ids=["before the server heard", "before the client heard"])
    @pytest.mark.parametrize("what", CHANGES)
    def test_a_change_is_made_once(self, what, after, wire, store, address, tmp_path):
        """Cut while committing, the client finds out on another connection whether it did, and only then repeats."""
        make_team(store)
        mine = over(wire, address, tmp_path)
        assert mine.teams() == ["alpha"]
        change, at = CHANGES[what]
        before = counts(store)
        wire.cut(at, after)
        change(mine)
        assert wire.cuts == 1
        grown = sum(counts(store)) - sum(before)
        assert grown == (what != "replace")
        if what == "replace":
            assert store.get("alpha", TEAM, "alpha")[0].leader == "bob"

    @pytest.mark.parametrize("looks", [1, 2])
    @pytest.mark.parametrize("what", CHANGES)
    def test_a_look_whose_answer_is_lost_is_no_sign_that_the_change_was_made(
        self, what, looks, wire, store, address, tmp_path
    ):
        """The change never arrives; the look whether it did is made, and its answer cut off; then it is made anew."""
        make_team(store)
        mine = over(wire, address, tmp_path)
        assert mine.teams() == ["alpha"]
        change, at = CHANGES[what]
        before = counts(store)
        wire.cut(at, after=False)
        for _ in range(looks):
            wire.cut(b"ON CONFLICT DO NOTHING", after=True)
        change(mine)
        assert wire.cuts == 1 + looks
        assert sum(counts(store)) - sum(before) == (what != "replace")
        assert store.get("alpha", TEAM, "alpha")[0].leader == ("bob" if what == "replace" else "ann")

    def test_a_server_that_refuses_the_look_leaves_the_outcome_unknown(self, wire, store, address, tmp_path):
        """That nothing was changed would be a guess."""
        make_team(store)
        mine = over(wire, address, tmp_path)
        wire.cut(b"; COMMIT", after=True)
        table = f'"{schema_of(address)}".changes'
        assert server().psql(f"ALTER TABLE {table} ADD CHECK (team <> '') NOT VALID").returncode == 0
        with pytest.raises(OutcomeUnknown):
            send(mine, "bob", "hello")
        assert texts(store, "bob") == ["hello"]

    def test_logins_whose_answer_is_lost_are_given_with_their_passwords(self, wire, store, address, tmp_path):
        """They are shown this once."""
        make_team(store)
        mine = over(wire, address, tmp_path)
        wire.cut(b"; COMMIT", after=True)
        assert list(mine.admit("alpha", {"bob": ""}, [])) == ["bob"]
        assert wire.cuts == 1

    def test_the_revision_of_such_a_change_can_be_replaced_by(self, wire, store, address, tmp_path):
        make_team(store)
        mine = over(wire, address, tmp_path)
        _, revision = mine.create("alpha", INBOX, "bob", Inbox(agent="bob"))
        wire.cut(b"INSERT INTO changes", after=True)
        revision = mine.replace("alpha", INBOX, "bob", Inbox(agent="bob", up_to=1), revision)
        mine.replace("alpha", INBOX, "bob", Inbox(agent="bob", up_to=2), revision)
        assert store.get("alpha", INBOX, "bob")[0].up_to == 2

    @pytest.mark.parametrize("after", [False, True])
    def test_what_can_not_be_found_out_is_unknown(self, after, wire, store, address, tmp_path):
        """It was made or not; asking again, under the same uid, tells."""
        make_team(store)
        mine = over(wire, address, tmp_path, patience=0.3)
        assert mine.teams() == ["alpha"]
        wire.cut(b"; COMMIT", after, for_good=True)
        with pytest.raises(OutcomeUnknown) as unknown:
            send(mine, "bob", "hello", uid="u")
        assert unknown.value.status == 12
        assert len(texts(store, "bob")) == after
        wire.mend()
        assert send(mine, "bob", "hello", uid="u").number == 1
        assert texts(store, "bob") == ["hello"]

    def test_a_server_that_is_not_there_is_busy_and_nothing_changed(self, wire, store, address, tmp_path):
        make_team(store)
        mine = over(wire, address, tmp_path, patience=0.3)
        assert mine.teams() == ["alpha"]
        wire.cut(b"BEGIN", after=False, for_good=True)
        with pytest.raises(Busy) as busy:
            send(mine, "bob", "hello")
        assert type(busy.value) is Busy
        assert texts(store, "bob") == []

    def test_who_goes_away_in_the_middle_wedges_nobody(self, wire, store, address, tmp_path):
        """It holds the number of the next message; the server takes that from it after some seconds."""
        make_team(store)
        mine = over(wire, address, tmp_path, patience=60)
        assert mine.teams() == ["alpha"]
        wire.freeze_at = b"; COMMIT"
        stuck = threading.Thread(target=send, args=[mine, "bob", "of the one"], daemon=True)
        stuck.start()
        while wire.freeze_at:
            time.sleep(0.01)
        assert send(store, "bob", "of the other").number == 1
        stuck.join(60)
        assert sorted(texts(store, "bob")) == ["of the one", "of the other"]

    def test_a_watch_goes_on_after_the_connection_broke(self, wire, store, address, tmp_path):
        make_team(store)
        watch = over(wire, address, tmp_path).watch("alpha")
        assert isinstance(watch, ListeningWatch)
        store.look("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'LISTEN%'")
        assert watch.wait(5)  # who can't hear looks again
        while watch.wait(0.1):
            pass
        send(store, "bob", "hello")
        assert watch.wait(5)
        watch.close()


class TestPoolers:
    def test_behind_one_it_looks_again_and_again(self, store, address, tmp_path):
        """A pooler passes no notifications on, and tells another process id than the server does."""
        make_team(store)
        pooler = Wire(f"{server().directory}/.s.PGSQL.5432", pooler=True)
        watch = over(pooler, address, tmp_path).watch("alpha")
        assert isinstance(watch, PollingWatch)
        assert not watch.wait(0.1)
        for change in (
            lambda: send(store, "bob", "hello"),
            lambda: store.replace("alpha", TEAM, "alpha", Team(name="alpha", leader="b"), revision(store)),
            lambda: store.journal("alpha", {"what": "said"}),
        ):
            threading.Timer(0.05, change).start()
            assert watch.wait(5)
        assert not watch.wait(0.15)
        pooler.close()


def revision(store: PostgresStore) -> str:
    return store.get("alpha", TEAM, "alpha")[1]


class TestTables:
    def test_reading_makes_none(self, store, address):
        assert (store.teams(), titles(store), texts(store, None)) == ([], {}, [])
        assert store.look("SELECT 1 FROM pg_namespace WHERE nspname = %s", [schema_of(address)]) == []

    def test_of_several_that_make_them_each_succeeds(self, address, tmp_path):
        stores = [PostgresStore(address, str(tmp_path / f"{n}")) for n in range(6)]
        made: list[object] = []
        threads = [
            threading.Thread(target=lambda s=s, n=n: made.append(make_team(s, f"t{n}"))) for n, s in enumerate(stores)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(made) == 6
        assert stores[0].teams() == [f"t{n}" for n in range(6)]

    @pytest.mark.parametrize("version", range(1, schema.VERSION))
    def test_older_ones_are_brought_up_to_date(self, version, address, tmp_path):
        """Those of each version, with what is in them."""
        make_tables(address, version)
        body = encode(Team(name="alpha", leader="ann")).decode()
        sql = f"""INSERT INTO "{schema_of(address)}".records (team, kind, key, body)
            VALUES ('alpha', 'team', 'alpha', $${body}$$)"""
        assert server().psql(sql).returncode == 0
        later = PostgresStore(address, str(tmp_path / "later"))
        assert later.teams() == ["alpha"]
        send(later, "bob", "hello")
        assert later.look("SELECT version FROM format") == [(schema.VERSION,)]

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

    def test_a_login_that_may_make_none_is_told_so(self, tmp_path):
        server().psql("CREATE ROLE nobody LOGIN")
        address = server().address(schema="ofnobody", user="nobody")
        with pytest.raises(NotAllowed) as refused:
            make_team(PostgresStore(address, str(tmp_path)))
        assert refused.value.status == 13


def make_tables(address: str, version: int) -> None:
    """Make the tables as a program of that version did."""
    name = schema_of(address)
    parts = [part for number, part in schema.parts().items() if number <= version]
    kept = ["CREATE TABLE format (version integer NOT NULL, store text NOT NULL)"]
    kept += [f"INSERT INTO format VALUES ({version}, 'x')"]
    made = server().psql("; ".join([f'CREATE SCHEMA "{name}"; SET search_path TO "{name}"', *kept, *parts]))
    assert made.returncode == 0, made


class TestPeople:
    """Those who look inside, or change something, with psql."""

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

    @pytest.mark.parametrize("wrong", ['{"id": "task-1", "title": 7}', "[]", '{"id": "task-2", "title": "t"}'])
    def test_a_wrong_change_by_hand_is_named_and_hides_nothing(self, wrong, store, address):
        make_team(store)
        for title in ("one", "two"):
            store.create("alpha", TASK, None, Task(title=title))
        name = schema_of(address)
        server().psql(f"UPDATE \"{name}\".records SET body = '{wrong}' WHERE key = 'task-1'")
        with pytest.raises(DamagedRecord, match="alpha/task/task-1"):
            store.get("alpha", TASK, "task-1")
        problems: list[Exception] = []
        assert [task.title for task, _ in store.scan("alpha", TASK, problems)] == ["two"]
        assert len(problems) == 1
        (finding,) = store.examine([TASK, MESSAGE], fix=False)
        assert finding["level"] == "problem" and "task-1" in finding["what"]

    def test_what_is_no_json_is_refused_by_the_server(self, store, address):
        make_team(store)
        done = server().psql(f"UPDATE \"{schema_of(address)}\".records SET body = 'x'")
        assert done.returncode != 0 and "json" in done.stderr


class TestAddresses:
    def test_a_password_is_never_shown(self):
        address = "postgresql://me:s3cret@127.0.0.1:1/db?password=s3cret&schema=x"
        assert "s3cret" not in opening.without_secrets(address)
        assert "s3cret" not in PostgresStore(address, "/nowhere").address

    @pytest.mark.parametrize(
        "address", ["mysql://x:s3cret@y", "postgresql://x:s3cret@y:zz:1/?a", "postgresql://a/b?schema=;"]
    )
    def test_a_wrong_one_is_refused_without_its_password(self, address):
        with pytest.raises(InvalidValue) as refused:
            opening.open_store("/nowhere", address)
        assert "s3cret" not in refused.value.message + refused.value.hint

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
    @pytest.mark.parametrize(
        ("setting", "level"),
        [("fsync=off", "problem"), ("full_page_writes=off", "problem"), ("synchronous_commit=off", "warning")],
    )
    def test_settings_that_lose_changes_are_told(self, setting, level, tmp_path):
        server()  # skips where there is none
        careless = Postgres(setting)
        try:
            store = PostgresStore(careless.address(), str(tmp_path))
            make_team(store)
            (finding,) = store.examine([TEAM], fix=False)
            assert finding["level"] == level and setting.partition("=")[0] in finding["what"]
        finally:
            careless.stop()

    def test_a_server_at_its_defaults_is_fine(self, store):
        make_team(store)
        assert list(store.examine([TEAM, TASK, INBOX, MESSAGE], fix=False)) == []


def test_the_time_is_the_servers(store):
    make_team(store)
    before = store.look("SELECT extract(epoch FROM clock_timestamp())::float8")[0][0]
    now = store.now().timestamp()
    after = store.look("SELECT extract(epoch FROM clock_timestamp())::float8")[0][0]
    assert before - 0.05 <= now <= after + 0.05
    assert store.steady()[0] == PostgresStore(store.variables["TEAMS_STORE"], "/nowhere").steady()[0] != ""


def test_the_text_is_kept_to_the_byte(store):
    make_team(store)
    store.create("alpha", TASK, None, Task(title="t", weight=1e11, notes={"b": 1.50, "a": [0.1, 10**20]}))
    ((_, data),) = store.pack("alpha", TASK)
    store.create("beta", TASK, None, Task(title="t", weight=1e11, notes={"b": 1.50, "a": [0.1, 10**20]}))
    assert ((_, data),) == tuple(store.pack("beta", TASK))
    assert list(json.loads(data)["notes"]) == ["b", "a"]


def test_connections_are_given_back(address, tmp_path):
    """What eight threads used is kept for the next, and closing ends it."""
    place = f"{address}&application_name={schema_of(address)}"
    store = PostgresStore(place, str(tmp_path))
    sql = "SELECT count(*) FROM pg_stat_activity WHERE application_name = %s AND pid <> pg_backend_pid()"
    make_team(store)
    for _ in range(3):
        threads = [threading.Thread(target=store.teams) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert store.look(sql, [schema_of(address)])[0][0] < 8
    store.close()
    other = PostgresStore(address, str(tmp_path))
    while other.look(sql, [schema_of(address)])[0][0]:  # the server takes a moment
        time.sleep(0.01)
