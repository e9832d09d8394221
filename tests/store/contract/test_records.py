"""What the contract promises of records, sentence by sentence, on every engine."""

from __future__ import annotations

from datetime import timedelta

import pytest

from teams_cli.errors import AlreadyExists, InvalidValue, NotFound, StaleRevision, WrongState
from teams_cli.store.retrying import update
from tests.store.contract.threads import in_threads
from tests.store.kinds import (
    INBOX,
    MESSAGE,
    TASK,
    TEAM,
    Inbox,
    Member,
    Message,
    Task,
    broadcast,
    chain,
    close_team,
    make_team,
    send,
    texts,
    titles,
)


class TestCreate:
    def test_gives_back_the_record_and_a_revision_to_replace_it_by(self, store):
        record, revision = store.create("alpha", INBOX, "bob", Inbox(agent="bob"))
        assert record == Inbox(agent="bob")
        store.replace("alpha", INBOX, "bob", Inbox(agent="bob", up_to=3), revision)
        assert store.get("alpha", INBOX, "bob")[0].up_to == 3

    def test_numbered_records_count_up_from_one(self, store):
        made = [store.create("alpha", TASK, None, Task(title=f"t{n}"))[0].id for n in range(1, 13)]
        assert made == [f"task-{n}" for n in range(1, 13)]

    def test_the_number_is_in_the_record_as_stored(self, store):
        made, _ = store.create("alpha", TASK, None, Task(title="t"))
        assert store.get("alpha", TASK, "task-1")[0] == made == Task(id="task-1", title="t")

    def test_numbers_count_in_each_team(self, store):
        make_team(store, "beta")
        for team in ("alpha", "beta"):
            assert store.create(team, TASK, None, Task(title="first"))[0].id == "task-1"

    @pytest.mark.parametrize("key", ["bob", "BOB", "boB"])
    def test_a_key_that_differs_only_in_case_is_taken(self, store, key):
        store.create("alpha", INBOX, "bob", Inbox(agent="bob", up_to=7))
        with pytest.raises(AlreadyExists):
            store.create("alpha", INBOX, key, Inbox(agent=key))
        assert [inbox.up_to for inbox, _ in store.scan("alpha", INBOX, [])] == [7]

    def test_of_several_that_create_one_key_one_wins(self, store):
        outcomes = in_threads(8, lambda n: store.create("alpha", INBOX, "bob", Inbox(agent="bob", up_to=n))[0].up_to)
        winners = [outcome for outcome in outcomes if isinstance(outcome, int)]
        assert len(winners) == 1
        assert store.get("alpha", INBOX, "bob")[0].up_to == winners[0]
        assert sum(isinstance(outcome, AlreadyExists) for outcome in outcomes) == 7

    def test_several_in_one_go_know_each_others_keys(self, store):
        store.create("alpha", TASK, None, Task(title="first"))
        made = chain(store, "second", "third", "fourth")
        assert [(task.id, task.blocked_by) for task in made] == [
            ("task-2", []),
            ("task-3", ["task-2"]),
            ("task-4", ["task-3"]),
        ]
        assert [store.get("alpha", TASK, task.id)[0] for task in made] == made
        assert list(store.labelled("alpha", TASK, "pending")) == ["task-1", "task-2", "task-3", "task-4"]
        assert store.create("alpha", TASK, None, Task(title="fifth"))[0].id == "task-5"

    def test_of_several_in_one_go_none_is_there_when_one_is_refused(self, store):
        with pytest.raises(InvalidValue):
            chain(store, "good", "\ud800")
        close_team(store)
        with pytest.raises(WrongState):
            chain(store, "one", "two")
        assert titles(store) == {}
        assert store.last("alpha", TASK) == 0

    def test_several_that_are_created_at_once_do_not_mix(self, store):
        in_threads(8, lambda n: chain(store, f"{n}", f"{n}", f"{n}"))
        found = list(titles(store).values())
        assert [found[place : place + 3] for place in range(0, 24, 3)] == [
            [found[place]] * 3 for place in range(0, 24, 3)
        ]

    def test_text_that_is_not_unicode_is_refused_and_changes_nothing(self, store):
        with pytest.raises(InvalidValue):
            store.create("alpha", TASK, None, Task(title="\ud800"))
        assert titles(store) == {}

    @pytest.mark.slow
    def test_what_is_too_large_to_be_read_again_is_refused_and_changes_nothing(self, store):
        task, revision = store.create("alpha", TASK, None, Task(title="t"))
        large = task.having(notes={"list": ["a"] * 2_000_000})
        with pytest.raises(InvalidValue, match="bytes"):
            store.create("alpha", TASK, None, large)
        with pytest.raises(InvalidValue, match="bytes"):
            store.replace("alpha", TASK, task.id, large, revision)
        with pytest.raises(InvalidValue, match="bytes"):
            send(store, "bob", "x" * (16 << 20))
        assert titles(store) == {"task-1": "t"}
        assert texts(store, "bob") == []
        assert store.create("alpha", TASK, None, Task(title="t"))[0].id == "task-2"

    def test_a_refused_number_is_not_used_up(self, store):
        with pytest.raises(InvalidValue):
            store.create("alpha", TASK, None, Task(title="\ud800"))
        assert store.create("alpha", TASK, None, Task(title="t"))[0].id == "task-1"


class TestGet:
    def test_what_is_not_there(self, store):
        with pytest.raises(NotFound):
            store.get("alpha", TASK, "task-1")

    def test_in_a_team_that_is_not_there(self, store):
        with pytest.raises(NotFound):
            store.get("nobody", TASK, "task-1")
        with pytest.raises(NotFound):
            store.get("nobody", TEAM, "nobody")

    def test_names_are_looked_up_to_the_letter(self, store):
        store.create("alpha", INBOX, "bob", Inbox(agent="bob"))
        with pytest.raises(NotFound):
            store.get("alpha", INBOX, "Bob")

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

    def test_nested_records_come_back(self, store):
        team, revision = store.get("alpha", TEAM, "alpha")
        store.replace("alpha", TEAM, "alpha", team.having(members=[Member(name="bob")]), revision)
        assert store.get("alpha", TEAM, "alpha")[0].members == [Member(name="bob", active=True)]

    def test_a_message_by_its_id(self, store):
        sent = send(store, "bob", "hello")
        assert store.get("alpha", MESSAGE, "msg-1")[0] == sent
        for missing in ("msg-2", "msg-1000000"):
            with pytest.raises(NotFound):
                store.get("alpha", MESSAGE, missing)


class TestScan:
    def test_numbered_records_come_in_the_order_of_their_numbers(self, store):
        for n in range(1, 13):
            store.create("alpha", TASK, None, Task(title=f"t{n}"))
        assert list(titles(store).values()) == [f"t{n}" for n in range(1, 13)]

    def test_named_records_come_in_the_order_of_their_names(self, store):
        for name in ("cid", "Ann", "bob", "b-2"):
            store.create("alpha", INBOX, name, Inbox(agent=name))
        assert [inbox.agent for inbox, _ in store.scan("alpha", INBOX, [])] == ["Ann", "b-2", "bob", "cid"]

    def test_the_revisions_can_be_replaced_by(self, store):
        store.create("alpha", TASK, None, Task(title="old"))
        for task, revision in store.scan("alpha", TASK, []):
            store.replace("alpha", TASK, task.id, task.having(title="new"), revision)
        assert titles(store) == {"task-1": "new"}

    def test_documents_are_what_the_records_say(self, store):
        store.create("alpha", TASK, None, Task(title="one", weight=0.5, notes={"a": [1, None]}))
        store.create("alpha", TASK, None, Task(title="größer " * 2000, owner="bob", blocked_by=["task-1"]))
        for number in range(3, 12):
            store.create("alpha", TASK, None, Task(title=f"t{number}", extra={"of": "a later version"}))
        found = list(store.documents("alpha", TASK, []))
        assert found == [record.to_json() for record, _ in store.scan("alpha", TASK, [])]
        assert [document["id"] for document in found] == [f"task-{number}" for number in range(1, 12)]
        found[0]["notes"].clear()  # whoever has one may change it
        assert next(iter(store.documents("alpha", TASK, [])))["notes"] == {"a": [1, None]}

    def test_nothing_in_an_empty_or_missing_team(self, store):
        assert titles(store) == titles(store, "nobody") == {}


class TestLabels:
    def test_find_the_keys_lowest_number_first(self, store):
        for n in range(12):
            store.create("alpha", TASK, None, Task(title="t", status="pending" if n % 2 else "completed"))
        assert list(store.labelled("alpha", TASK, "pending")) == [f"task-{n}" for n in (2, 4, 6, 8, 10, 12)]

    def test_follow_the_record(self, store):
        task, revision = store.create("alpha", TASK, None, Task(title="t"))
        store.replace("alpha", TASK, task.id, task.having(status="in_progress"), revision)
        assert list(store.labelled("alpha", TASK, "in_progress")) == ["task-1"]
        assert list(store.labelled("alpha", TASK, "pending")) == []

    def test_records_without_a_label_are_not_listed(self, store):
        task, revision = store.create("alpha", TASK, None, Task(title="t"))
        store.replace("alpha", TASK, task.id, task.having(status="failed"), revision)
        assert [*store.labelled("alpha", TASK, "pending", "failed")] == []

    def test_nothing_in_a_missing_team(self, store):
        assert list(store.labelled("nobody", TASK, "pending")) == []
        assert not any(store.by_label("nobody", TASK).values())

    def test_all_keys_by_their_label(self, store):
        for status in ("pending", "in_progress", "failed", "pending"):
            store.create("alpha", TASK, None, Task(title="t", status=status))
        store.mark_anew("alpha", TASK, ["task-1", "task-2", "task-9"])
        found = {label: {*keys} for label, keys in store.by_label("alpha", TASK).items() if keys}
        assert found == {"pending": {"task-1", "task-4"}, "in_progress": {"task-2"}, "": {"task-3"}}
        assert list(store.labelled("alpha", TASK, "in_progress", "pending")) == ["task-1", "task-2", "task-4"]

    def test_some_records_by_their_keys(self, store):
        for title in ("one", "two", "three"):
            store.create("alpha", TASK, None, Task(title=title))
        found = store.scan("alpha", TASK, [], {"task-3", "task-1", "task-9"})
        assert [task.title for task, _ in found] == ["one", "three"]


COUNTED = [
    lambda store: store.create("alpha", TASK, None, Task(title="t")),
    lambda store: store.create("alpha", INBOX, "bob", Inbox(agent="bob")),
    lambda store: update(store, "alpha", TASK, "task-1", lambda task: task.having(title="new")),
    lambda store: send(store, "bob", "hello", uid="one"),
]


class TestHolds:
    def test_the_kinds_of_which_there_are_records(self, store):
        assert store.holds("alpha", "inbox", "plan") == set()
        store.create("alpha", TASK, None, Task(title="t"))
        store.create("alpha", INBOX, "bob", Inbox(agent="bob"))
        assert {"task", "inbox", "team"} <= store.holds("alpha", "task", "inbox", "team", "plan")
        assert "plan" not in store.holds("alpha", "task", "plan") and "task" not in store.holds("alpha", "inbox")

    def test_nothing_in_a_missing_team(self, store):
        assert store.holds("nobody", "task", "inbox", "team") == set()


class TestChanged:
    def test_each_change_is_counted_and_nothing_else(self, store):
        """Whoever has to say what a failure left undone knows by it whether something was done before."""
        before = store.changed
        for number, change in enumerate(COUNTED, start=1):
            change(store)
            assert store.changed == before + number
        send(store, "bob", "hello", uid="one")
        titles(store)
        with pytest.raises(NotFound):
            update(store, "alpha", TASK, "task-7", lambda task: task.having(title="new"))
        assert store.changed == before + len(COUNTED)


class TestReplaceAll:
    def test_replaces_all_or_none(self, store):
        chain(store, "one", "two", "three")
        found = [store.get("alpha", TASK, f"task-{n}") for n in (1, 2, 3)]
        store.replace_all("alpha", TASK, [(task.having(title="new"), revision) for task, revision in found[:2]])
        assert titles(store) == {"task-1": "new", "task-2": "new", "task-3": "three"}
        with pytest.raises(StaleRevision):
            store.replace_all("alpha", TASK, [(task.having(title="newer"), revision) for task, revision in found])
        assert titles(store) == {"task-1": "new", "task-2": "new", "task-3": "three"}

    def test_is_refused_in_a_closed_team(self, store):
        chain(store, "one")
        task, revision = store.get("alpha", TASK, "task-1")
        close_team(store)
        with pytest.raises(WrongState):
            store.replace_all("alpha", TASK, [(task.having(title="new"), revision)])

    def test_what_it_changed_is_found_by_its_label(self, store):
        chain(store, "one", "two")
        found = [store.get("alpha", TASK, key) for key in ("task-1", "task-2")]
        store.replace_all("alpha", TASK, [(task.having(status="in_progress"), revision) for task, revision in found])
        assert sorted(store.labelled("alpha", TASK, "in_progress")) == ["task-1", "task-2"]
        assert list(store.labelled("alpha", TASK, "pending")) == []


class TestReplace:
    def test_a_record_that_changed_meanwhile_is_left_alone(self, store):
        task, first = store.create("alpha", TASK, None, Task(title="first"))
        store.replace("alpha", TASK, task.id, task.having(title="second"), first)
        with pytest.raises(StaleRevision):
            store.replace("alpha", TASK, task.id, task.having(title="third"), first)
        assert titles(store) == {"task-1": "second"}

    def test_gives_the_revision_to_go_on_from(self, store):
        task, revision = store.create("alpha", TASK, None, Task(title="0"))
        for n in range(1, 4):
            revision = store.replace("alpha", TASK, task.id, task.having(title=str(n)), revision)
        assert store.get("alpha", TASK, task.id)[1] == revision
        assert titles(store) == {"task-1": "3"}

    def test_of_several_one_wins(self, store):
        task, revision = store.create("alpha", TASK, None, Task(title="t"))
        outcomes = in_threads(8, lambda n: store.replace("alpha", TASK, task.id, task.having(count=n + 1), revision))
        assert sum(isinstance(outcome, StaleRevision) for outcome in outcomes) == 7

    def test_what_is_not_there(self, store):
        task, revision = store.create("alpha", TASK, None, Task(title="t"))
        with pytest.raises(NotFound):
            store.replace("alpha", TASK, "task-2", task, revision)
        assert titles(store) == {"task-1": "t"}

    def test_where_there_is_no_record_of_the_kind_or_no_team(self, store):
        _, revision = store.create("alpha", TASK, None, Task(title="t"))
        with pytest.raises(NotFound):
            store.replace("alpha", INBOX, "bob", Inbox(agent="bob"), revision)
        with pytest.raises(NotFound):
            store.replace("nobody", TASK, "task-1", Task(id="task-1", title="t"), revision)
        assert store.teams() == ["alpha"]

    def test_keeps_fields_that_this_version_does_not_know(self, store):
        task, revision = store.create("alpha", TASK, None, Task(title="t", extra={"x-later": {"a": [1, None]}}))
        read, revision = store.get("alpha", TASK, task.id)
        store.replace("alpha", TASK, task.id, read.having(title="u"), revision)
        assert store.get("alpha", TASK, task.id)[0].extra == {"x-later": {"a": [1, None]}}

    def test_text_that_is_not_unicode_changes_nothing(self, store):
        task, revision = store.create("alpha", TASK, None, Task(title="t"))
        with pytest.raises(InvalidValue):
            store.replace("alpha", TASK, task.id, task.having(title="\udcff"), revision)
        assert titles(store) == {"task-1": "t"}


def test_what_could_not_be_read_again_is_not_written(store):
    """A value that its field does not allow is refused by its name, and nothing is changed."""
    store.create("alpha", TASK, None, Task(title="t"))
    for values, problem in (
        ({"count": -5}, "count can't be -5"),
        ({"weight": "heavy"}, "weight can't be 'heavy'"),
        ({"owner": "b b"}, "owner can't be"),
        ({"blocked_by": ["task-0"]}, "blockedBy can't be"),
    ):
        with pytest.raises(InvalidValue, match=problem) as refused:
            store.create("alpha", TASK, None, Task(**{"title": "u", **values}))
        assert refused.value.hint.startswith("Give ")
        with pytest.raises(InvalidValue, match=problem):
            update(store, "alpha", TASK, "task-1", lambda task, values=values: task.having(**values))
    with pytest.raises(InvalidValue, match="to can't be"):
        store.append("alpha", MESSAGE, ["bob"], Message(from_="ann", to="b b", message="hello"), None)
    assert titles(store) == {"task-1": "t"} and store.last("alpha", MESSAGE) == 0


class TestRecordsAreValues:
    """Nothing that a caller does to a record reaches the store but through `replace`."""

    def test_changing_what_was_handed_in(self, store):
        task = Task(title="t", notes={"a": 1})
        store.create("alpha", TASK, None, task)
        task.notes["a"] = 2
        assert store.get("alpha", TASK, "task-1")[0].notes == {"a": 1}

    def test_changing_what_was_read(self, store):
        store.create("alpha", TASK, None, Task(title="t", notes={"a": 1}))
        store.get("alpha", TASK, "task-1")[0].notes["a"] = 2
        next(iter(store.scan("alpha", TASK, [])))[0].notes["a"] = 3
        assert store.get("alpha", TASK, "task-1")[0].notes == {"a": 1}

    def test_changing_a_message(self, store):
        broadcast(store, ["bob", "cid"], "hello").recipients.append("eve")
        store.read("alpha", MESSAGE, None, 0, [])[0].recipients.append("eve")
        assert store.get("alpha", MESSAGE, "msg-1")[0].recipients == ["bob", "cid"]

    def test_changing_an_entry_of_the_history(self, store):
        entry = {"what": "made", "list": [1]}
        store.journal("alpha", entry)
        entry["list"].append(2)
        next(iter(store.history("alpha")))[1]["list"].append(3)
        assert [noted for _, noted in store.history("alpha")] == [{"what": "made", "list": [1]}]


class TestConfirm:
    def test_changes_nothing(self, store):
        _, revision = store.create("alpha", TASK, None, Task(title="t"))
        send(store, "bob", "hello")
        store.confirm("alpha", TASK, "task-1")
        store.confirm("alpha", TEAM, "alpha")
        store.confirm("alpha", MESSAGE, "msg-1")
        assert store.get("alpha", TASK, "task-1")[1] == revision


class TestTime:
    def test_is_the_one_of_the_clock_aware_and_utc(self, store, clock):
        assert store.now() == clock.now()
        assert store.now().utcoffset() == timedelta(0)
        clock.advance(3600)
        assert store.now() == clock.now()

    def test_the_steady_clock_has_an_epoch(self, store, clock):
        before = store.steady()
        clock.advance(60)
        assert store.steady() == (before[0], before[1] + 60)
        clock.restart()
        assert store.steady()[0] != before[0]


def test_a_closed_store_keeps_its_records(store):
    """`close` gives back what the engine holds, not what it keeps."""
    store.create("alpha", TASK, None, Task(title="t"))
    store.close()
    assert titles(store) == {"task-1": "t"}
