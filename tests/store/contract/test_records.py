"""What the contract promises about records, on every engine."""

from __future__ import annotations

from datetime import timedelta

import pytest

from teams_cli.errors import AlreadyExists, InvalidValue, NotFound, StaleRevision
from teams_cli.store.contract import update
from tests.store import kinds
from tests.store.contract.conftest import in_threads
from tests.store.kinds import INBOX, MESSAGE, TASK, TEAM, Inbox, Member, Message, Task, chain, make_team, send, titles


class TestCreate:
    def test_numbered_records_count_up_in_each_team_and_hold_their_number(self, store):
        make_team(store, "beta")
        for team in ("alpha", "beta"):
            made = [store.create(team, TASK, None, Task(title=f"t{n}"))[0] for n in range(1, 13)]
            assert made == [Task(id=f"task-{n}", title=f"t{n}") for n in range(1, 13)]
            assert [task for task, _ in store.scan(team, TASK, [])] == made

    @pytest.mark.parametrize("key", ["bob", "BOB", "boB"])
    def test_a_key_that_differs_only_in_case_is_taken(self, store, key):
        store.create("alpha", INBOX, "bob", Inbox(agent="bob", up_to=7))
        with pytest.raises(AlreadyExists):
            store.create("alpha", INBOX, key, Inbox(agent=key))
        assert [inbox.up_to for inbox, _ in store.scan("alpha", INBOX, [])] == [7]

    def test_of_several_that_create_one_key_one_wins(self, store):
        outcomes = in_threads(8, lambda n: store.create("alpha", INBOX, "bob", Inbox(agent="bob", up_to=n))[0].up_to)
        (winner,) = [outcome for outcome in outcomes if isinstance(outcome, int)]
        assert store.get("alpha", INBOX, "bob")[0].up_to == winner
        assert sum(isinstance(outcome, AlreadyExists) for outcome in outcomes) == 7

    def test_several_in_one_go_know_each_others_keys(self, store):
        store.create("alpha", TASK, None, Task(title="first"))
        made = chain(store, "second", "third", "fourth")
        behind = [("task-2", []), ("task-3", ["task-2"]), ("task-4", ["task-3"])]
        assert [(task.id, task.blocked_by) for task in made] == behind
        assert [store.get("alpha", TASK, task.id)[0] for task in made] == made
        assert list(store.labelled("alpha", TASK, "pending")) == ["task-1", "task-2", "task-3", "task-4"]
        assert store.create("alpha", TASK, None, Task(title="fifth"))[0].id == "task-5"

    def test_of_several_in_one_go_none_is_there_when_one_is_refused(self, store):
        with pytest.raises(InvalidValue):
            chain(store, "good", "\ud800")
        assert titles(store) == {} and store.last("alpha", TASK) == 0

    def test_several_that_are_created_at_once_do_not_mix(self, store):
        in_threads(8, lambda n: chain(store, f"{n}", f"{n}", f"{n}"))
        made = list(titles(store).values())
        assert len(made) == 24 and all(len({*made[n : n + 3]}) == 1 for n in range(0, 24, 3))


class TestRefused:
    """A record that could not be read back is refused with the name of its field. It changes nothing and takes no
    number.
    """

    @pytest.mark.parametrize(
        ("values", "problem"),
        [
            ({"count": -5}, "count can't be -5"),
            ({"weight": "heavy"}, "weight can't be 'heavy'"),
            ({"owner": "b b"}, "owner can't be"),
            ({"blocked_by": ["task-0"]}, "blockedBy can't be"),
            ({"title": "\ud800"}, "."),
            pytest.param({"notes": {"list": ["a"] * 2_000_000}}, "bytes", marks=pytest.mark.slow, id="too large"),
        ],
    )
    def test_a_record(self, store, values, problem):
        store.create("alpha", TASK, None, Task(title="t"))
        with pytest.raises(InvalidValue, match=problem) as refused:
            store.create("alpha", TASK, None, Task(**{"title": "u", **values}))
        assert refused.value.hint
        with pytest.raises(InvalidValue, match=problem):
            update(store, "alpha", TASK, "task-1", lambda task: task.having(**values))
        assert titles(store) == {"task-1": "t"}
        assert store.create("alpha", TASK, None, Task(title="t"))[0].id == "task-2"

    @pytest.mark.parametrize(
        ("to", "values"),
        [
            (["bob"], {"to": "b b"}),
            (["bob"], {"message": "\ud800"}),
            (["bob", "cid"], {"message": "\ud800", "recipients": ["bob", "cid"]}),
            pytest.param(["bob"], {"message": "x" * (16 << 20)}, marks=pytest.mark.slow, id="too large"),
        ],
    )
    def test_a_message(self, store, to, values):
        with pytest.raises(InvalidValue):
            store.append("alpha", MESSAGE, to, Message(**{"from_": "ann", "to": "bob", "message": "m", **values}), None)
        assert store.last("alpha", MESSAGE) == 0 and store.read("alpha", MESSAGE, None, 0, []) == []


class TestGet:
    def test_what_is_not_there(self, store):
        store.create("alpha", INBOX, "bob", Inbox(agent="bob"))
        for team, kind, key in (
            ("alpha", TASK, "task-1"),
            ("alpha", INBOX, "Bob"),
            ("alpha", MESSAGE, "msg-2"),
            ("alpha", MESSAGE, "msg-1000000"),
            ("nobody", TASK, "task-1"),
            ("nobody", TEAM, "nobody"),
        ):
            with pytest.raises(NotFound):
                store.get(team, kind, key)

    def test_the_revision_stays_while_the_record_does(self, store):
        _, made = store.create("alpha", INBOX, "bob", Inbox(agent="bob"))
        assert store.get("alpha", INBOX, "bob")[1] == store.get("alpha", INBOX, "bob")[1] == made

    def test_every_type_of_value_comes_back(self, store):
        task = Task(
            title='"\\\n\t\u2028é日本\U0001f600',
            owner="bob",
            count=2**53 - 1,
            weight=1.5,
            blocked_by=["task-9"],
            notes={"deep": [{"er": None, "yes": True, "no": False, "e": 1e300}], "": ""},
        )
        store.create("alpha", TASK, None, task)
        assert store.get("alpha", TASK, "task-1")[0] == task.having(id="task-1")
        update(store, "alpha", TEAM, "alpha", lambda team: team.having(members=[Member(name="bob")]))
        assert store.get("alpha", TEAM, "alpha")[0].members == [Member(name="bob", active=True)]


class TestScan:
    def test_records_come_in_the_order_of_their_numbers_or_names(self, store):
        for n in range(1, 13):
            store.create("alpha", TASK, None, Task(title=f"t{n}"))
        assert list(titles(store).values()) == [f"t{n}" for n in range(1, 13)]
        for name in ("cid", "Ann", "bob", "b-2"):
            store.create("alpha", INBOX, name, Inbox(agent=name))
        assert [inbox.agent for inbox, _ in store.scan("alpha", INBOX, [])] == ["Ann", "b-2", "bob", "cid"]

    def test_gives_some_by_their_keys_and_revisions_to_replace_by(self, store):
        store.create("alpha", TASK, None, Task(title="old"))
        for task, revision in store.scan("alpha", TASK, []):
            store.replace("alpha", TASK, task.id, task.having(title="new"), revision)
        assert titles(store) == {"task-1": "new"}
        chain(store, "two", "three")
        some = store.scan("alpha", TASK, [], {"task-3", "task-1", "task-9"})
        assert [task.title for task, _ in some] == ["new", "three"]

    def test_documents_are_what_the_records_say(self, store):
        store.create("alpha", TASK, None, Task(title="one", weight=0.5, notes={"a": [1, None]}))
        store.create("alpha", TASK, None, Task(title="größer " * 2000, owner="bob", blocked_by=["task-1"]))
        for number in range(3, 12):
            store.create("alpha", TASK, None, Task(title=f"t{number}", extra={"of": "a later version"}))
        documents = list(store.documents("alpha", TASK, []))
        assert documents == [record.to_json() for record, _ in store.scan("alpha", TASK, [])]
        assert [document["id"] for document in documents] == [f"task-{number}" for number in range(1, 12)]
        documents[0]["notes"].clear()  # whoever has one may change it
        assert next(iter(store.documents("alpha", TASK, [])))["notes"] == {"a": [1, None]}

    def test_nothing_in_an_empty_or_missing_team_else_the_kinds_that_there_are(self, store):
        assert titles(store) == titles(store, "nobody") == {}
        assert store.holds("nobody", "task", "inbox", "team") == set()
        assert store.holds("alpha", "inbox", "plan") == set()
        store.create("alpha", TASK, None, Task(title="t"))
        store.create("alpha", INBOX, "bob", Inbox(agent="bob"))
        assert {"task", "inbox", "team"} <= store.holds("alpha", "task", "inbox", "team", "plan")
        assert "plan" not in store.holds("alpha", "task", "plan") and "task" not in store.holds("alpha", "inbox")


class TestLabels:
    def test_find_the_keys_lowest_number_first(self, store):
        for n in range(12):
            store.create("alpha", TASK, None, Task(title="t", status="pending" if n % 2 else "completed"))
        assert list(store.labelled("alpha", TASK, "pending")) == [f"task-{n}" for n in (2, 4, 6, 8, 10, 12)]
        assert list(store.labelled("nobody", TASK, "pending")) == []

    def test_follow_the_record_until_it_has_none(self, store):
        task, revision = store.create("alpha", TASK, None, Task(title="t"))
        revision = store.replace("alpha", TASK, task.id, task.having(status="in_progress"), revision)
        assert list(store.labelled("alpha", TASK, "in_progress")) == ["task-1"]
        assert list(store.labelled("alpha", TASK, "pending")) == []
        store.replace("alpha", TASK, task.id, task.having(status="failed"), revision)
        assert [*store.labelled("alpha", TASK, "pending", "in_progress", "failed")] == []

    def test_all_keys_by_their_label(self, store):
        for status in ("pending", "in_progress", "failed", "pending"):
            store.create("alpha", TASK, None, Task(title="t", status=status))
        store.correct_hints("alpha", TASK, ["task-1", "task-2", "task-9"])
        by_label = {label: {*keys} for label, keys in store.by_label("alpha", TASK).items() if keys}
        assert by_label == {"pending": {"task-1", "task-4"}, "in_progress": {"task-2"}, "": {"task-3"}}
        assert list(store.labelled("alpha", TASK, "in_progress", "pending")) == ["task-1", "task-2", "task-4"]
        assert not any(store.by_label("nobody", TASK).values())


class TestReplace:
    def test_a_record_that_changed_meanwhile_is_left_alone(self, store):
        task, first = store.create("alpha", TASK, None, Task(title="first"))
        second = store.replace("alpha", TASK, task.id, task.having(title="second"), first)
        with pytest.raises(StaleRevision):
            store.replace("alpha", TASK, task.id, task.having(title="third"), first)
        assert store.get("alpha", TASK, task.id)[1] == second and titles(store) == {"task-1": "second"}
        store.replace("alpha", TASK, task.id, task.having(title="third"), second)
        assert titles(store) == {"task-1": "third"}

    def test_of_several_one_wins(self, store):
        task, revision = store.create("alpha", TASK, None, Task(title="t"))
        outcomes = in_threads(8, lambda n: store.replace("alpha", TASK, task.id, task.having(count=n + 1), revision))
        assert sum(isinstance(outcome, StaleRevision) for outcome in outcomes) == 7

    def test_what_is_not_there(self, store):
        task, revision = store.create("alpha", TASK, None, Task(title="t"))
        for team, kind, key, record in (
            ("alpha", TASK, "task-2", task),
            ("alpha", INBOX, "bob", Inbox(agent="bob")),
            ("nobody", TASK, "task-1", task),
        ):
            with pytest.raises(NotFound):
                store.replace(team, kind, key, record, revision)
        assert titles(store) == {"task-1": "t"} and store.teams() == ["alpha"]

    def test_keeps_fields_that_this_version_does_not_know(self, store):
        store.create("alpha", TASK, None, Task(title="t", extra={"x-later": {"a": [1, None]}}))
        update(store, "alpha", TASK, "task-1", lambda task: task.having(title="u"))
        assert store.get("alpha", TASK, "task-1")[0].extra == {"x-later": {"a": [1, None]}}


class TestReplaceAll:
    def test_replaces_all_or_none(self, store):
        chain(store, "one", "two", "three")
        tasks = [store.get("alpha", TASK, f"task-{n}") for n in (1, 2, 3)]
        changed = [(task.having(title="new", status="in_progress"), revision) for task, revision in tasks]
        store.replace_all("alpha", TASK, changed[:2])
        for _ in range(2):
            assert titles(store) == {"task-1": "new", "task-2": "new", "task-3": "three"}
            assert sorted(store.labelled("alpha", TASK, "in_progress")) == ["task-1", "task-2"]
            assert list(store.labelled("alpha", TASK, "pending")) == ["task-3"]
            with pytest.raises(StaleRevision):
                store.replace_all("alpha", TASK, changed)


def test_each_change_is_counted_and_nothing_else(store):
    """By this count a caller knows, after a failure, whether anything was changed before."""
    before = store.changed
    store.create("alpha", TASK, None, Task(title="t"))
    store.create("alpha", INBOX, "bob", Inbox(agent="bob"))
    update(store, "alpha", TASK, "task-1", lambda task: task.having(title="new"))
    send(store, "bob", "hello", uid="one")
    assert store.changed == before + 4
    send(store, "bob", "hello", uid="one")
    titles(store)
    with pytest.raises(NotFound):
        update(store, "alpha", TASK, "task-7", lambda task: task.having(title="new"))
    assert store.changed == before + 4


def test_a_thread_counts_its_own_changes(store):
    """A server's requests share a store. A request that failed before its change must not count those of others."""

    def counts(n):
        before = store.changed
        for _ in range(n):
            store.create("alpha", TASK, None, Task(title="t"))
        return store.changed - before

    assert in_threads(3, counts) == [0, 1, 2]


def test_nothing_that_is_done_to_a_value_reaches_the_store(store):
    """The values that were written or read, and entries of the history, are copies."""
    task = Task(title="t", notes={"a": 1})
    store.create("alpha", TASK, None, task)
    task.notes["a"] = 2
    store.get("alpha", TASK, "task-1")[0].notes["a"] = 3
    next(iter(store.scan("alpha", TASK, [])))[0].notes["a"] = 4
    assert store.get("alpha", TASK, "task-1")[0].notes == {"a": 1}
    kinds.broadcast(store, ["bob", "cid"], "hello").recipients.append("eve")
    store.read("alpha", MESSAGE, None, 0, [])[0].recipients.append("eve")
    assert store.get("alpha", MESSAGE, "msg-1")[0].recipients == ["bob", "cid"]
    entry = {"what": "made", "list": [1]}
    store.journal("alpha", entry)
    entry["list"].append(2)
    next(iter(store.history("alpha")))[1]["list"].append(3)
    assert [noted for _, noted in store.history("alpha")] == [{"what": "made", "list": [1]}]


def test_to_confirm_changes_nothing(store):
    _, revision = store.create("alpha", TASK, None, Task(title="t"))
    send(store, "bob", "hello")
    for kind, key in ((TASK, "task-1"), (TEAM, "alpha"), (MESSAGE, "msg-1")):
        store.confirm("alpha", kind, key)
    assert store.get("alpha", TASK, "task-1")[1] == revision


def test_time_is_that_of_the_clock(store, clock):
    """The time is aware and UTC. The steady clock has an epoch, which ends when the machine restarts."""
    epoch, seconds = store.steady()
    clock.advance(3600)
    assert store.now() == clock.now() and store.now().utcoffset() == timedelta(0)
    assert store.steady() == (epoch, seconds + 3600)
    clock.restart()
    assert store.steady()[0] != epoch
