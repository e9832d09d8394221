"""What `teams_cli.store.contract` promises, sentence by sentence, on every engine."""

from __future__ import annotations

import select
import threading
import time
from datetime import timedelta

import pytest

from teams_cli.errors import AlreadyExists, Busy, InvalidValue, NotFound, StaleRevision, WrongState
from teams_cli.store.contract import concerns
from teams_cli.store.retrying import update, upsert
from tests.store.kinds import (
    INBOX,
    MESSAGE,
    TASK,
    TEAM,
    Inbox,
    Member,
    Message,
    Task,
    Team,
    broadcast,
    close_team,
    make_team,
    seen,
    send,
    texts,
    titles,
)


@pytest.fixture(autouse=True)
def team(store):
    assert store.teams() == []
    make_team(store)


class TestTeams:
    def test_are_listed_by_name(self, store):
        for name in ("zeta", "Beta", "gamma"):
            make_team(store, name)
        assert store.teams() == ["Beta", "alpha", "gamma", "zeta"]

    @pytest.mark.parametrize("name", ["alpha", "ALPHA", "Alpha"])
    def test_names_that_differ_only_in_case_are_one(self, store, name):
        with pytest.raises(AlreadyExists):
            make_team(store, name)
        assert store.teams() == ["alpha"]
        assert store.get("alpha", TEAM, "alpha")[0].leader == "ann"

    def test_each_has_records_of_its_own(self, store):
        make_team(store, "beta")
        store.create("alpha", TASK, None, Task(title="of alpha"))
        send(store, "bob", "to alpha", uid="u")
        assert titles(store, "beta") == {}
        assert send(store, "bob", "to beta", uid="u", team="beta").id == "msg-1"
        assert texts(store, "bob") == ["to alpha"]
        assert texts(store, "bob", team="beta") == ["to beta"]

    def test_place_is_said_for_people(self, store):
        assert isinstance(store.address, str)
        assert store.address


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

    def test_text_that_is_not_unicode_is_refused_and_changes_nothing(self, store):
        with pytest.raises(InvalidValue):
            store.create("alpha", TASK, None, Task(title="\ud800"))
        assert titles(store) == {}

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

    def test_nothing_in_an_empty_or_missing_team(self, store):
        assert titles(store) == titles(store, "nobody") == {}


class TestLabels:
    def test_find_the_keys_lowest_number_first(self, store):
        for n in range(12):
            store.create("alpha", TASK, None, Task(title="t", status="pending" if n % 2 else "completed"))
        assert store.labelled("alpha", TASK, "pending") == [f"task-{n}" for n in (2, 4, 6, 8, 10, 12)]

    def test_follow_the_record(self, store):
        task, revision = store.create("alpha", TASK, None, Task(title="t"))
        store.replace("alpha", TASK, task.id, task.having(status="in_progress"), revision)
        assert store.labelled("alpha", TASK, "in_progress") == ["task-1"]
        assert store.labelled("alpha", TASK, "pending") == []

    def test_records_without_a_label_are_not_listed(self, store):
        task, revision = store.create("alpha", TASK, None, Task(title="t"))
        store.replace("alpha", TASK, task.id, task.having(status="failed"), revision)
        assert store.labelled("alpha", TASK, "pending") == store.labelled("alpha", TASK, "failed") == []

    def test_nothing_in_a_missing_team(self, store):
        assert store.labelled("nobody", TASK, "pending") == []


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


class TestClosedTeams:
    """What the record of the team says is looked at with the change itself, not before it."""

    CHANGES = (
        lambda store: store.create("alpha", TASK, None, Task(title="late")),
        lambda store: store.create("alpha", INBOX, "cid", Inbox(agent="cid")),
        lambda store: send(store, "bob", "late"),
        lambda store: broadcast(store, ["bob", "cid"], "late", uid="late"),
        lambda store: update(store, "alpha", TASK, "task-1", lambda task: task.having(owner="bob")),
        lambda store: upsert(store, "alpha", INBOX, "bob", Inbox(agent="bob"), lambda inbox: inbox.having(up_to=1)),
        lambda store: update(store, "alpha", TEAM, "alpha", lambda team: team.having(leader="bob")),
    )

    @pytest.fixture(autouse=True)
    def records(self, store):
        store.create("alpha", TASK, None, Task(title="t"))
        send(store, "bob", "hello", uid="early")

    @pytest.mark.parametrize("nth", range(len(CHANGES)))
    def test_nothing_is_changed(self, store, nth):
        close_team(store)
        before = seen(store)
        with pytest.raises(WrongState, match="alpha is closed"):
            self.CHANGES[nth](store)
        assert seen(store) == before
        assert (store.last("alpha", TASK), store.last("alpha", MESSAGE)) == (1, 1)

    @pytest.mark.parametrize("nth", range(len(CHANGES)))
    def test_once_it_is_open_again_everything_is(self, store, nth):
        close_team(store)
        close_team(store, "active")
        before = seen(store)
        self.CHANGES[nth](store)
        assert seen(store) != before

    def test_what_was_begun_comes_to_its_end(self, store):
        close_team(store)
        update(store, "alpha", TASK.also_closed, "task-1", lambda task: task.having(status="completed"))
        upsert(store, "alpha", INBOX.also_closed, "bob", Inbox(agent="bob"), lambda inbox: inbox.having(up_to=1))
        draft = Message(from_="ann", to="bob", message="done")
        assert store.append("alpha", MESSAGE.also_closed, ["bob"], draft, None)[1]
        assert texts(store, "bob") == ["hello", "done"]
        assert store.get("alpha", TASK, "task-1")[0].status == "completed"

    def test_a_message_that_was_sent_before_is_given_back(self, store):
        close_team(store)
        assert send(store, "bob", "hello", uid="early").number == 1

    def test_other_teams_are_not_concerned(self, store):
        make_team(store, "beta")
        close_team(store)
        store.create("beta", TASK, None, Task(title="t"))

    def test_a_change_between_the_look_and_the_write_is_not_missed(self, store):
        """`update` looks, then another closes the team, then it writes."""

        def change(task: Task) -> Task:
            close_team(store)
            return task.having(owner="bob")

        with pytest.raises(WrongState):
            update(store, "alpha", TASK, "task-1", change)
        assert store.get("alpha", TASK, "task-1")[0].owner is None


class TestNumbers:
    def test_the_highest_that_was_given_is_known(self, store):
        assert (store.last("alpha", TASK), store.last("alpha", MESSAGE)) == (0, 0)
        for n in range(1, 4):
            store.create("alpha", TASK, None, Task(title="t"))
            send(store, "bob", "hello")
            assert (store.last("alpha", TASK), store.last("alpha", MESSAGE)) == (n, n)

    def test_reserved_ones_are_not_given(self, store):
        store.reserve("alpha", TASK, 7)
        store.reserve("alpha", MESSAGE, 1500)
        assert store.create("alpha", TASK, None, Task(title="t"))[0].id == "task-8"
        assert send(store, "bob", "hello", uid="u").number == 1501
        assert texts(store, "bob", after=1500) == ["hello"]
        assert send(store, "bob", "hello", uid="u").number == 1501
        assert store.get("alpha", MESSAGE, "msg-1501")[0].message == "hello"

    def test_those_below_the_highest_change_nothing(self, store):
        store.create("alpha", TASK, None, Task(title="t"))
        store.reserve("alpha", TASK, 1)
        assert store.create("alpha", TASK, None, Task(title="t"))[0].id == "task-2"

    def test_each_kind_and_team_has_its_own(self, store):
        make_team(store, "beta")
        store.reserve("alpha", TASK, 7)
        assert store.create("beta", TASK, None, Task(title="t"))[0].id == "task-1"
        assert send(store, "bob", "hello").number == 1


class TestConfirm:
    def test_changes_nothing(self, store):
        _, revision = store.create("alpha", TASK, None, Task(title="t"))
        send(store, "bob", "hello")
        store.confirm("alpha", TASK, "task-1")
        store.confirm("alpha", TEAM, "alpha")
        store.confirm("alpha", MESSAGE, "msg-1")
        assert store.get("alpha", TASK, "task-1")[1] == revision


class TestAppend:
    def test_numbers_are_the_order_of_commitment(self, store):
        sent = [send(store, "bob", f"m{n}") for n in range(1, 13)]
        assert [message.number for message in sent] == list(range(1, 13))
        assert [message.id for message in sent] == [f"msg-{n}" for n in range(1, 13)]
        assert texts(store, "bob") == [f"m{n}" for n in range(1, 13)]

    def test_numbers_go_on_across_a_thousand(self, store):
        sent = [send(store, "bob", f"m{n}", uid=f"u{n}").number for n in range(1, 1003)]
        assert sent == list(range(1, 1003))
        assert texts(store, "bob", after=997) == ["m998", "m999", "m1000", "m1001", "m1002"]
        assert store.last("alpha", MESSAGE) == 1002
        assert store.get("alpha", MESSAGE, "msg-999")[0].message == "m999"
        assert send(store, "bob", "again", uid="u1").message == "m1"

    def test_a_message_to_several_is_one_message(self, store):
        sent = broadcast(store, ["bob", "cid"], "hello")
        assert texts(store, "bob") == texts(store, "cid") == texts(store, None) == ["hello"]
        assert texts(store, "dan") == []
        assert sent.number == store.last("alpha", MESSAGE) == 1

    def test_a_message_to_all_where_all_is_one(self, store):
        """A team of two: the list of recipients has one name."""
        sent = broadcast(store, ["bob"], "hello")
        assert texts(store, "bob") == texts(store, None) == ["hello"]
        assert store.get("alpha", MESSAGE, sent.id)[0] == sent

    def test_the_same_uid_gives_the_first_message_and_adds_nothing(self, store):
        draft = Message(from_="ann", to="bob", message="first")
        first, new = store.append("alpha", MESSAGE, ["bob"], draft, "ann~order-1")
        again, new_again = store.append("alpha", MESSAGE, ["bob"], draft.having(message="second"), "ann~order-1")
        assert (new, new_again) == (True, False)
        assert again == first
        assert texts(store, "bob") == ["first"]

    def test_a_uid_that_another_ends_with_is_another(self, store):
        send(store, "bob", "first", uid="order-11")
        assert send(store, "bob", "second", uid="1").message == "second"
        assert send(store, "bob", "third", uid="order-1").message == "third"

    def test_without_a_uid_each_message_is_new(self, store):
        assert [send(store, "bob", "same").number for _ in range(3)] == [1, 2, 3]

    def test_of_several_with_one_uid_one_is_new(self, store):
        draft = Message(from_="ann", to="bob", message="hello")
        outcomes = in_threads(8, lambda n: store.append("alpha", MESSAGE, ["bob"], draft, "one"))
        assert sorted(new for _, new in outcomes) == [False] * 7 + [True]
        assert texts(store, "bob") == ["hello"]

    @pytest.mark.parametrize("to", [["bob"], ["bob", "cid"]])
    def test_text_that_is_not_unicode_adds_nothing(self, store, to):
        draft = Message(from_="ann", to=to[0], message="\ud800", recipients=to if len(to) > 1 else None)
        with pytest.raises(InvalidValue):
            store.append("alpha", MESSAGE, to, draft, None)
        assert store.last("alpha", MESSAGE) == 0


class TestRead:
    @pytest.fixture(autouse=True)
    def sent(self, store):
        for n in range(1, 7):
            send(store, "bob" if n % 2 else "cid", f"m{n}")
        broadcast(store, ["bob", "cid"], "m7")

    def test_each_agent_gets_its_own_in_order(self, store):
        assert texts(store, "bob") == ["m1", "m3", "m5", "m7"]
        assert texts(store, "cid") == ["m2", "m4", "m6", "m7"]
        assert texts(store, None) == [f"m{n}" for n in range(1, 8)]

    def test_after_a_number(self, store):
        assert texts(store, "bob", after=3) == ["m5", "m7"]
        assert texts(store, "bob", after=4) == ["m5", "m7"]
        assert texts(store, None, after=7) == texts(store, None, after=5000) == []

    def test_at_most_so_many(self, store):
        assert texts(store, "bob", limit=2) == ["m1", "m3"]
        assert texts(store, None, after=2, limit=3) == ["m3", "m4", "m5"]
        assert texts(store, "bob", limit=100) == ["m1", "m3", "m5", "m7"]

    def test_what_is_to_several_others_hides_nothing(self, store):
        send(store, "dan", "m8")
        assert texts(store, "dan") == ["m8"]
        assert texts(store, "dan", limit=1) == ["m8"]

    def test_nothing_for_a_stranger_or_in_a_missing_team(self, store):
        assert texts(store, "dan") == texts(store, "bob", team="nobody") == []

    def test_by_numbers(self, store):
        problems = []
        fetched = store.fetch("alpha", MESSAGE, [7, 2, 99, 4], problems)
        assert [message.message for message in fetched] == ["m2", "m4", "m7"]
        assert problems == []
        assert store.fetch("nobody", MESSAGE, [1], problems) == []

    def test_the_last_number(self, store):
        assert store.last("alpha", MESSAGE) == 7
        assert store.last("nobody", MESSAGE) == 0


class TestSearch:
    def found(self, store, *words, kind=MESSAGE, team="alpha"):
        """What has the words, the newest first; engines may give more, which is left out here."""
        problems = []
        records = list(store.search(team, kind, [word.lower() for word in words], problems))
        numbers = [kind.number_in(record.id) for record in records]
        assert numbers == sorted(numbers, reverse=True) and problems == []
        said = [" ".join(str(value) for value in record.to_json().values()).lower() for record in records]
        return [key for key, text in zip(numbers, said, strict=True) if all(w.lower() in text for w in words)]

    def test_messages_with_all_words_the_newest_first(self, store):
        for text in ("the cat sat", "the dog ran", "a cat ran", "nothing"):
            send(store, "bob", text)
        assert self.found(store, "cat") == [3, 1]
        assert self.found(store, "cat", "ran") == [3]
        assert self.found(store, "cow") == []

    @pytest.mark.parametrize(
        ("text", "word"),
        [
            ("Capitals", "capitals"),
            ("the beginning", "begin"),
            ("src/teams/locks.py:17", "locks"),
            ("snake_case and kebab-case", "case"),
            ("a\nline\tand\r\nanother", "another"),
            ('said "quoted"', "quoted"),
            ("C:\\temp\\new", "new"),
            ("Öl für ÄRGER", "öl"),
            ("Öl für ÄRGER", "ärger"),
            ("STRASSE an der Straße", "straße"),
            ("поиск слов", "СЛОВ"),
            ("日本語 テキスト", "テキスト"),
            ("number 1e5x and v2beta", "v2"),
            ("user@example.org and https://example.org/a?b=c", "example"),
            ("x" * 3000 + " behind", "behind"),
            (" ".join(f"w{n}" for n in range(60_000)) + " last", "last"),
            ("control \x01 character", "character"),
        ],
    )
    def test_words_are_found_in_every_text(self, store, text, word):
        send(store, "bob", "before")
        send(store, "bob", text)
        send(store, "bob", "after")
        for kind in (MESSAGE, TASK):
            if kind is TASK:
                store.create("alpha", TASK, None, Task(title="t", notes={"deep": [{"er": text}]}))
            numbers = [kind.number_in(r.id) for r in store.search("alpha", kind, [word.lower()], [])]
            assert (2 if kind is MESSAGE else 1) in numbers

    def test_what_was_changed_is_found_as_it_is_now(self, store):
        task, revision = store.create("alpha", TASK, None, Task(title="the old words"))
        store.replace("alpha", TASK, task.id, task.having(title="the new words"), revision)
        assert (self.found(store, "old", kind=TASK), self.found(store, "new", kind=TASK)) == ([], [1])

    def test_across_thousands(self, store):
        for number in range(1, 1003):
            send(store, "bob", "needle" if number in (1, 998, 1001) else "hay")
        for _ in range(2):
            assert self.found(store, "needle") == [1001, 998, 1]

    def test_nothing_in_a_missing_team(self, store):
        for kind in (MESSAGE, TASK):
            assert list(store.search("nix", kind, ["word"], [])) == []


class TestPack:
    """What `pack` gives, `put` into an empty team makes the same, numbers included."""

    KINDS = (TASK, INBOX, MESSAGE, TEAM)

    def test_what_is_put_reads_the_same(self, store):
        store.create("alpha", INBOX, "bob", Inbox(agent="bob", up_to=2))
        for n in range(1, 13):
            store.create("alpha", TASK, None, Task(title=f"t{n}", status="pending" if n % 2 else "completed"))
            send(store, "bob", f"m{n}", uid=f"u{n}")
        broadcast(store, ["bob", "cid"], "to both")
        packed = [(kind, key, data) for kind in self.KINDS for key, data in store.pack("alpha", kind)]
        for kind, key, data in packed:
            if kind is not TEAM:
                store.put("beta", kind, key, data)
        assert titles(store, "beta") == titles(store)
        assert texts(store, "cid", team="beta") == ["to both"]
        assert store.labelled("beta", TASK, "pending") == store.labelled("alpha", TASK, "pending")
        assert [item for kind in self.KINDS[:3] for item in store.pack("beta", kind)] == [
            (key, data) for kind, key, data in packed if kind is not TEAM
        ]
        assert store.create("beta", TASK, None, Task(title="next"))[0].id == "task-13"
        assert send(store, "bob", "next", team="beta").number == 14
        assert send(store, "bob", "again", uid="u3", team="beta").number == 3

    def test_putting_again_changes_a_record_and_adds_no_message(self, store):
        store.create("alpha", INBOX, "bob", Inbox(agent="bob", up_to=2))
        send(store, "bob", "hello", uid="u")
        ((_, data),) = store.pack("alpha", INBOX)
        ((key, message),) = store.pack("alpha", MESSAGE)
        update(store, "alpha", INBOX, "bob", lambda inbox: inbox.having(up_to=7))
        store.put("alpha", INBOX, "bob", data)
        store.put("alpha", MESSAGE, key, message)
        assert store.get("alpha", INBOX, "bob")[0].up_to == 2
        assert texts(store, "bob") == ["hello"]

    def test_nothing_of_a_missing_team(self, store):
        assert [list(store.pack("nobody", kind)) for kind in self.KINDS[:3]] == [[], [], []]


class TestHistory:
    def test_entries_come_back_in_order(self, store):
        for n in range(5):
            store.journal("alpha", {"what": "done", "n": n, "text": "é\n\ud800"})
        assert [entry["n"] for _, entry in store.history("alpha")] == list(range(5))
        assert next(iter(store.history("alpha")))[1]["text"] == "é\n\ud800"

    def test_goes_on_from_a_position(self, store):
        for n in range(5):
            store.journal("alpha", {"n": n})
        positions = [position for position, _ in store.history("alpha")]
        for index, position in enumerate(positions):
            assert [entry["n"] for _, entry in store.history("alpha", position)] == list(range(index + 1, 5))

    def test_nothing_where_nothing_was_noted(self, store):
        assert list(store.history("alpha")) == list(store.history("nobody")) == []


class TestWatch:
    @pytest.mark.parametrize(
        "change",
        [
            lambda store: store.create("alpha", TASK, None, Task(title="t")),
            lambda store: store.create("alpha", INBOX, "bob", Inbox(agent="bob")),
            lambda store: update(store, "alpha", TEAM, "alpha", lambda team: team.having(leader="bob")),
            lambda store: send(store, "bob", "hello"),
            lambda store: store.journal("alpha", {"what": "said"}),
        ],
        ids=["create task", "create inbox", "replace team", "append", "journal"],
    )
    def test_a_change_wakes_who_waits(self, store, change):
        watch = store.watch("alpha")
        settle(watch)
        threading.Timer(0.05, change, [store]).start()
        began = time.monotonic()
        assert watch.wait(5)
        assert time.monotonic() - began < 2
        watch.close()

    def test_a_change_before_the_wait_is_not_missed(self, store):
        watch = store.watch("alpha")
        send(store, "bob", "hello")
        assert watch.wait(5)
        watch.close()

    def test_every_message_wakes(self, store):
        """Also the second in a directory that is watched already, and one in a directory that is new."""
        watch = store.watch("alpha")
        for n in range(3):
            settle(watch)
            send(store, "bob", str(n))
            assert watch.wait(5)
        watch.close()

    def test_select_wakes_too_where_it_can(self, store):
        watch = store.watch("alpha")
        settle(watch)
        if watch.fileno() is not None:
            assert select.select([watch.fileno()], [], [], 0)[0] == []
            send(store, "bob", "hello")
            assert select.select([watch.fileno()], [], [], 5)[0]
        watch.close()

    def test_without_a_change_the_time_runs_out(self, store):
        watch = store.watch("alpha")
        settle(watch)
        began = time.monotonic()
        assert not watch.wait(0.1)
        assert time.monotonic() - began >= 0.09
        assert not watch.wait(0)
        watch.close()

    @pytest.mark.parametrize(
        ("topics", "change"),
        [
            (["message/bob"], lambda store: send(store, "bob", "hello")),
            (["message/bob"], lambda store: broadcast(store, ["ann", "bob"], "hello")),
            (["message"], lambda store: send(store, "ann", "hello")),
            (["task:pending"], lambda store: store.create("alpha", TASK, None, Task(title="t"))),
            (["task/task-1"], lambda store: store.create("alpha", TASK, None, Task(title="t"))),
            (["task"], lambda store: store.create("alpha", TASK, None, Task(title="t"))),
            (["inbox/bob"], lambda store: store.create("alpha", INBOX, "bob", Inbox(agent="bob"))),
            (["team"], lambda store: update(store, "alpha", TEAM, "alpha", lambda team: team.having(leader="bob"))),
            (["history"], lambda store: store.journal("alpha", {"what": "said"})),
            (["message/ann", "task"], lambda store: store.create("alpha", TASK, None, Task(title="t"))),
        ],
    )
    def test_a_change_on_a_topic_wakes_who_asked_for_it(self, store, topics, change):
        """Also what goes into a directory that is not there yet."""
        watch = store.watch("alpha", topics)
        settle(watch)
        threading.Timer(0.05, change, [store]).start()
        assert watch.wait(5)
        assert concerns(topics, watch.heard)
        watch.close()

    def test_changes_on_other_topics_wake_nobody(self, store):
        for _ in range(2):  # directories that are new are looked into
            send(store, "bob", "hello")
            store.create("alpha", TASK, None, Task(title="t"))
        store.create("alpha", INBOX, "bob", Inbox(agent="bob"))
        store.journal("alpha", {"what": "said"})
        watch = store.watch("alpha", ["message/ann", "task:in_progress", "task/task-9", "plan"])
        settle(watch)
        send(store, "bob", "hello")
        store.create("alpha", TASK, None, Task(title="t"))
        update(store, "alpha", INBOX, "bob", lambda inbox: inbox.having(up_to=1))
        update(store, "alpha", TASK, "task-1", lambda task: task.having(title="new"))
        store.journal("alpha", {"what": "said"})
        assert not watch.wait(0.1)
        watch.close()

    def test_a_record_that_gets_another_label_wakes_by_that(self, store):
        store.create("alpha", TASK, None, Task(title="t"))
        store.create("alpha", TASK, None, Task(title="u"))
        update(store, "alpha", TASK, "task-2", lambda task: task.having(status="in_progress"))
        now, before = store.watch("alpha", ["task:in_progress"]), store.watch("alpha", ["task:pending"])
        settle(now)
        settle(before)
        update(store, "alpha", TASK, "task-1", lambda task: task.having(status="in_progress"))
        assert now.wait(5)
        assert not before.wait(0.05)
        none = store.watch("alpha", ["task:"])
        settle(none)
        update(store, "alpha", TASK, "task-1", lambda task: task.having(status="completed"))
        assert none.wait(5)
        for watch in (now, before, none):
            watch.close()

    def test_what_came_while_it_was_looked_at_ends_the_next_wait(self, store):
        watch = store.watch("alpha", ["message/bob"])
        settle(watch)
        send(store, "bob", "hello")
        texts(store, "bob")
        assert watch.wait(5)
        watch.close()

    def test_reading_wakes_nobody(self, store):
        send(store, "bob", "hello")
        watch = store.watch("alpha")
        settle(watch)
        texts(store, "bob")
        titles(store)
        store.get("alpha", TEAM, "alpha")
        assert not watch.wait(0.05)
        watch.close()


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


class TestUpdate:
    def test_gives_the_old_and_the_new(self, store):
        store.create("alpha", TASK, None, Task(title="t"))
        old, new = update(store, "alpha", TASK, "task-1", lambda task: task.having(count=task.count + 1))
        assert (old.count, new.count) == (0, 1)
        assert store.get("alpha", TASK, "task-1")[0] == new

    def test_starts_anew_when_another_was_first(self, store):
        store.create("alpha", TASK, None, Task(title="t"))
        seen = []

        def change(task: Task) -> Task:
            seen.append(task.count)
            if len(seen) < 3:
                update(store, "alpha", TASK, "task-1", lambda task: task.having(count=task.count + 1))
            return task.having(title=f"{task.title}!")

        _, new = update(store, "alpha", TASK, "task-1", change)
        assert (new.count, new.title, seen) == (2, "t!", [0, 1, 2])

    def test_the_record_itself_means_no_change(self, store):
        _, revision = store.create("alpha", TASK, None, Task(title="t"))
        assert update(store, "alpha", TASK, "task-1", lambda task: task)[1].title == "t"
        assert store.get("alpha", TASK, "task-1")[1] == revision

    def test_gives_up_when_others_are_always_first(self, store):
        store.create("alpha", TASK, None, Task(title="t"))

        def change(task: Task) -> Task:
            update(store, "alpha", TASK, "task-1", lambda task: task.having(count=task.count + 1))
            return task.having(title="mine")

        with pytest.raises(Busy):
            update(store, "alpha", TASK, "task-1", change, patience=0.05)
        assert titles(store) == {"task-1": "t"}

    def test_what_is_not_there(self, store):
        with pytest.raises(NotFound):
            update(store, "alpha", TASK, "task-1", lambda task: task)

    def test_upsert_makes_what_is_not_there_and_changes_what_is(self, store):
        for expected in (1, 2):
            upsert(store, "alpha", INBOX, "bob", Inbox(agent="bob"), lambda inbox: inbox.having(up_to=inbox.up_to + 1))
            assert store.get("alpha", INBOX, "bob")[0].up_to == expected

    def test_upsert_of_several_loses_no_change(self, store):
        in_threads(
            8,
            lambda n: upsert(
                store, "alpha", INBOX, "bob", Inbox(agent="bob"), lambda inbox: inbox.having(up_to=inbox.up_to + 1)
            ),
        )
        assert store.get("alpha", INBOX, "bob")[0].up_to == 8

    def test_upsert_without_a_change_makes_nothing(self, store):
        upsert(store, "alpha", INBOX, "bob", Inbox(agent="bob"), lambda inbox: inbox)
        with pytest.raises(NotFound):
            store.get("alpha", INBOX, "bob")


def test_two_teams_created_at_once_under_one_name(store):
    outcomes = in_threads(8, lambda n: make_team(store, "beta" if n % 2 else "Beta"))
    assert outcomes.count(None) == 1
    assert len(store.teams()) == 2


def test_a_closed_store_keeps_its_records(store):
    """`close` gives back what the engine holds, not what it keeps."""
    store.create("alpha", TASK, None, Task(title="t"))
    store.close()
    assert titles(store) == {"task-1": "t"}


def test_a_closed_team_is_dropped_with_all_it_has(store):
    """What is not closed, or was changed meanwhile, stays; the name is free then, and numbers begin anew."""
    make_team(store, "beta")
    store.create("alpha", TASK, None, Task(title="t"))
    revision = store.get("alpha", TEAM, "alpha")[1]
    with pytest.raises(StaleRevision):
        store.drop("alpha", TEAM, revision)
    close_team(store)
    closed = store.get("alpha", TEAM, "alpha")[1]
    with pytest.raises(StaleRevision):
        store.drop("alpha", TEAM, revision)
    assert titles(store) == {"task-1": "t"}
    store.drop("alpha", TEAM, closed)
    assert store.teams() == ["beta"]
    with pytest.raises(NotFound):
        store.drop("alpha", TEAM, closed)
    make_team(store, "alpha")
    assert titles(store) == {} and store.last("alpha", TASK) == 0


def test_a_team_record_is_like_any_other(store):
    team, revision = store.get("alpha", TEAM, "alpha")
    store.replace("alpha", TEAM, "alpha", team.having(leader="bob"), revision)
    with pytest.raises(StaleRevision):
        store.replace("alpha", TEAM, "alpha", team, revision)
    assert store.get("alpha", TEAM, "alpha")[0] == Team(name="alpha", leader="bob")


def settle(watch):
    """Use up what the making of the watch and earlier changes still announce."""
    while watch.wait(0.02):
        pass


def in_threads(count, job):
    """What `job(0)`, `job(1)`, … returned or raised when all began at once."""
    outcomes = [None] * count
    barrier = threading.Barrier(count)

    def run(n):
        barrier.wait()
        try:
            outcomes[n] = job(n)
        except Exception as error:
            outcomes[n] = error

    threads = [threading.Thread(target=run, args=[n]) for n in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return outcomes
