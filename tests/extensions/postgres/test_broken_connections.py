"""Changes are made exactly once when a connection to PostgreSQL breaks, also through a pooler."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import psycopg2
import pytest

from teams_cli.errors import Busy, OutcomeUnknown, StaleRevision
from teams_cli.extensions.postgres.engine import PostgresStore
from tests.conftest import server
from tests.store.kinds import INBOX, TASK, TEAM, Inbox, Task, Team, make_team, send, texts
from tests.support.postgres import schema_of
from tests.support.wire import Wire

pytestmark = pytest.mark.slow


@pytest.fixture
def wire() -> Iterator[Wire]:
    made = Wire(f"{server().directory}/.s.PGSQL.5432")
    yield made
    made.close()


def over(wire: Wire, store: PostgresStore, patience: float = 60) -> PostgresStore:
    """*store*, with a team, opened a second time through the *wire*."""
    make_team(store)
    name = schema_of(store.variables["TEAMS_STORE"])
    address = f"postgresql://teams@127.0.0.1:{wire.port}/postgres?schema={name}"
    made = PostgresStore(address, store.root, patience=patience)
    assert made.teams() == ["alpha"]
    return made


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
    return tuple(store.session.look(sql)[0])


class TestBrokenConnections:
    @pytest.mark.parametrize("after", [False, True], ids=["before the server heard", "before the client heard"])
    @pytest.mark.parametrize("what", CHANGES)
    def test_a_change_is_made_once(self, what, after, wire, store):
        """A client that is cut off in a commit looks whether the change was made before it repeats it."""
        mine = over(wire, store)
        change, at = CHANGES[what]
        before = counts(store)
        wire.cut(at, after)
        change(mine)
        assert wire.cuts == 1
        grown = sum(counts(store)) - sum(before)
        assert grown == (what != "replace")
        if what == "replace":
            assert store.get("alpha", TEAM, "alpha")[0].leader == "bob"

    @pytest.mark.parametrize("after", [False, True], ids=["before the server heard", "before the client heard"])
    def test_a_change_is_noted_once_in_the_history(self, after, wire, store):
        mine = over(wire, store)
        wire.cut(b"INTO history", after)
        mine.put_history("alpha", [{"what": "said"}, {"what": "heard"}])
        assert wire.cuts == 1
        assert list(store.history("alpha")) == [(1, {"what": "said"}), (2, {"what": "heard"})]

    @pytest.mark.parametrize("what", ["append", "replace"])
    def test_a_look_whose_answer_is_lost_is_no_sign_that_the_change_was_made(self, what, wire, store):
        """If the answers to two such looks are lost, too, a change that never arrived is still made."""
        mine = over(wire, store)
        change, at = CHANGES[what]
        before = counts(store)
        wire.cut(at, after=False)
        for _ in range(2):
            wire.cut(b"ON CONFLICT DO NOTHING", after=True)
        change(mine)
        assert wire.cuts == 3
        assert sum(counts(store)) - sum(before) == (what != "replace")
        assert store.get("alpha", TEAM, "alpha")[0].leader == ("bob" if what == "replace" else "ann")

    def test_a_change_that_was_found_is_made_although_its_revision_can_not_be_read(self, wire, store):
        mine = over(wire, store, patience=0.5)
        wire.cut(b"INSERT INTO changes", after=True)
        for _ in range(1000):
            wire.cut(b"SELECT xmin::text FROM changes", after=False)
        _, revision = mine.create("alpha", INBOX, "bob", Inbox(agent="bob"))
        assert store.get("alpha", INBOX, "bob")[0].agent == "bob" and wire.cuts > 1
        with pytest.raises(StaleRevision):
            store.replace("alpha", INBOX, "bob", Inbox(agent="bob", up_to=1), revision)
        mine.close()

    def test_a_server_that_refuses_the_look_leaves_the_outcome_unknown(self, wire, store, address):
        mine = over(wire, store)
        wire.cut(b"; COMMIT", after=True)
        table = f'"{schema_of(address)}".changes'
        assert server().psql(f"ALTER TABLE {table} ADD CHECK (team <> '') NOT VALID").returncode == 0
        with pytest.raises(OutcomeUnknown):
            send(mine, "bob", "hello")
        assert texts(store, "bob") == ["hello"]

    def test_logins_whose_answer_is_lost_are_given_with_their_passwords(self, wire, store):
        """The passwords are shown only once."""
        mine = over(wire, store)
        wire.cut(b"; COMMIT", after=True)
        assert list(mine.admit("alpha", {"bob": ""}, [])) == ["bob"]
        assert wire.cuts == 1

    @pytest.mark.parametrize("after", [False, True])
    def test_what_can_not_be_found_out_is_unknown(self, after, wire, store):
        """Repeating the command under the same uid makes the change once."""
        mine = over(wire, store, patience=0.3)
        wire.cut(b"; COMMIT", after, for_good=True)
        with pytest.raises(OutcomeUnknown) as unknown:
            send(mine, "bob", "hello", uid="u")
        assert unknown.value.status == 12
        assert len(texts(store, "bob")) == after
        wire.mend()
        assert send(mine, "bob", "hello", uid="u").number == 1
        assert texts(store, "bob") == ["hello"]

    def test_a_server_that_is_not_there_is_busy_and_nothing_changed(self, wire, store):
        mine = over(wire, store, patience=0.3)
        wire.cut(b"BEGIN", after=False, for_good=True)
        with pytest.raises(Busy) as busy:
            send(mine, "bob", "hello")
        assert type(busy.value) is Busy
        assert texts(store, "bob") == []

    def test_a_client_that_hangs_in_a_commit_blocks_nobody(self, wire, store):
        """The server ends its transaction, which holds the next number."""
        mine = over(wire, store, patience=60)
        wire.freeze_at = b"; COMMIT"
        stuck = threading.Thread(target=send, args=[mine, "bob", "of the one"], daemon=True)
        stuck.start()
        while wire.freeze_at:
            time.sleep(0.01)
        assert send(store, "bob", "of the other").number == 1
        stuck.join(60)
        assert sorted(texts(store, "bob")) == ["of the one", "of the other"]

    def test_a_watch_goes_on_after_the_connection_broke(self, wire, store):
        watch = over(wire, store).watch("alpha")
        assert watch.fileno() is not None
        store.session.look("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'LISTEN%'")
        assert watch.wait(60)  # a watch without a connection looks again
        while watch.wait(0.1):
            pass
        send(store, "bob", "hello")
        assert watch.wait(60)
        watch.close()

    def test_a_watch_behind_a_pooler_looks_again_and_again(self, store):
        """Behind a pooler, which passes on no notifications, a watch finds changes by looking repeatedly."""
        pooler = Wire(f"{server().directory}/.s.PGSQL.5432", pooler=True)
        watch = over(pooler, store).watch("alpha")
        assert watch.fileno() is None and watch.slow
        assert not watch.wait(0.1)
        for change in (
            lambda: send(store, "bob", "hello"),
            lambda: CHANGES["replace"][0](store),
            lambda: store.journal("alpha", {"what": "said"}),
        ):
            changing = threading.Timer(0.05, change)
            changing.start()
            assert watch.wait(60)
            changing.join()
        assert not watch.wait(0.15)
        pooler.close()


def test_a_machine_without_network_waits_for_it(store, monkeypatch):
    """A laptop that wakes up can't look up the name of the server for a moment."""
    make_team(store)
    store.close()
    connect, failures = psycopg2.connect, iter(range(3))

    def connect_later(**options):
        if next(failures, None) is not None:
            reason = 'could not translate host name "db" to address: Temporary failure in name resolution'
            raise psycopg2.OperationalError(reason)
        return connect(**options)

    monkeypatch.setattr(psycopg2, "connect", connect_later)
    assert store.teams() == ["alpha"]


def test_connections_are_given_back(address, tmp_path):
    """Connections that threads have used are reused by the next threads, and closing the store ends them."""
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
    assert store.session.look(sql, [schema_of(address)])[0][0] < 8
    store.close()
    other = PostgresStore(address, str(tmp_path))
    while other.session.look(sql, [schema_of(address)])[0][0]:  # the server takes a moment
        time.sleep(0.01)
