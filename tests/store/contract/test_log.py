"""What the contract promises about messages and the history, on every engine."""

from __future__ import annotations

import pytest

from tests.store.contract.conftest import in_threads
from tests.store.kinds import MESSAGE, TASK, Message, Task, broadcast, make_team, send, texts


class TestNumbers:
    def test_the_highest_that_was_given_is_known(self, store):
        assert (store.last("alpha", TASK), store.last("alpha", MESSAGE)) == (0, 0)
        for n in range(1, 4):
            store.create("alpha", TASK, None, Task(title="t"))
            send(store, "bob", "hello")
            assert (store.last("alpha", TASK), store.last("alpha", MESSAGE)) == (n, n)
        assert store.last("nobody", MESSAGE) == 0

    def test_reserved_ones_are_not_given_in_that_team(self, store):
        make_team(store, "beta")
        store.reserve("alpha", TASK, 7)
        store.reserve("alpha", TASK, 1)
        store.reserve("alpha", MESSAGE, 1500)
        assert store.create("alpha", TASK, None, Task(title="t"))[0].id == "task-8"
        assert store.create("beta", TASK, None, Task(title="t"))[0].id == "task-1"
        for _ in range(2):
            assert send(store, "bob", "hello", uid="u").number == 1501
        assert texts(store, "bob", after=1500) == ["hello"]
        assert store.get("alpha", MESSAGE, "msg-1501")[0].message == "hello"


class TestNews:
    def test_what_came_since_and_up_to_where_that_is_all(self, store):
        assert news(store, "bob", 0) == ([], 0)
        send(store, "bob", "one")
        send(store, "ann", "two")
        broadcast(store, ["ann", "bob"], "three")
        assert news(store, "bob", 0) == (["one", "three"], 3)
        assert news(store, "ann", 1) == (["two", "three"], 3)
        assert news(store, "cid", 3) == ([], 3)
        assert news(store, "bob", 9) == ([], 9)

    def test_across_numbers_that_were_reserved(self, store):
        send(store, "bob", "one")
        store.reserve("alpha", MESSAGE, 150)
        assert news(store, "bob", 0) == (["one"], 150)
        send(store, "bob", "two")
        assert news(store, "bob", 0) == (["one", "two"], 151)
        store.reserve("alpha", MESSAGE, 2500)
        send(store, "bob", "three")
        assert news(store, "bob", 0) == (["one", "two", "three"], 2501)
        assert news(store, "bob", 151) == (["three"], 2501)

    def test_none_is_missing_while_many_arrive(self, store):
        """A reader that continues after the last number it saw gets every message once."""
        heard: list[str] = []

        def work(n: int) -> None:
            if n:
                return [send(store, "bob", f"{n}.{i}") for i in range(30)] and None
            last = 0
            while len(heard) < 90:
                came, last = news(store, "bob", last)
                heard.extend(came)

        assert in_threads(4, work) == [None] * 4
        assert heard == texts(store, "bob")


def news(store, agent, after):
    came, last = store.news("alpha", MESSAGE, agent, after, [])
    return [message.message for message in came], last


class TestGlance:
    """A glance may always answer that a closer look is needed."""

    def test_none_that_came_is_passed_over(self, store):
        assert store.glance("alpha", MESSAGE, "bob", 0) is store.glance("alpha", MESSAGE, "bob", 7) is None
        for n in range(1, 4):
            send(store, "cid", f"to another {n}")
            assert {store.glance("alpha", MESSAGE, "bob", after) for after in (n - 1, n)} <= {None, n}
            assert store.glance("alpha", MESSAGE, "cid", n - 1) is None
        send(store, "bob", "one")
        send(store, "cid", "to another")
        assert store.glance("alpha", MESSAGE, "bob", 3) is None

    def test_what_several_get_is_for_each_and_what_is_sent_again_for_whom_it_was(self, store):
        broadcast(store, ["bob", "cid"], "hello")
        assert store.glance("alpha", MESSAGE, "cid", 0) is store.glance("alpha", MESSAGE, "bob", 0) is None
        send(store, "bob", "one", "again")
        send(store, "cid", "one", "again")
        assert store.glance("alpha", MESSAGE, "bob", 1) is None


class TestAppend:
    def test_numbers_are_the_order_of_commitment(self, store):
        sent = [send(store, "bob", f"m{n}") for n in range(1, 13)]
        assert [(message.number, message.id) for message in sent] == [(n, f"msg-{n}") for n in range(1, 13)]
        assert texts(store, "bob") == [f"m{n}" for n in range(1, 13)]

    @pytest.mark.slow
    def test_numbers_go_on_across_a_thousand(self, store):
        needles = (1, 998, 1001)
        for n in range(1, 1003):
            assert send(store, "bob", f"needle{n}" if n in needles else f"m{n}", uid=f"u{n}").number == n
        assert texts(store, "bob", after=997) == ["needle998", "m999", "m1000", "needle1001", "m1002"]
        assert store.last("alpha", MESSAGE) == 1002
        assert store.get("alpha", MESSAGE, "msg-999")[0].message == "m999"
        assert send(store, "bob", "again", uid="u2").message == "m2"
        for _ in range(2):
            assert with_words(store, "needle") == [1001, 998, 1]

    def test_a_message_to_several_is_one_message(self, store):
        sent = broadcast(store, ["bob", "cid"], "hello")
        assert texts(store, "bob") == texts(store, "cid") == texts(store, None) == ["hello"]
        assert texts(store, "dan") == []
        assert sent.number == store.last("alpha", MESSAGE) == 1
        to_one = broadcast(store, ["bob"], "in a team of two")
        assert texts(store, "bob") == texts(store, None) == ["hello", "in a team of two"]
        assert store.get("alpha", MESSAGE, to_one.id)[0] == to_one

    def test_the_same_uid_gives_the_first_message_and_adds_nothing(self, store):
        draft = Message(from_="ann", to="bob", message="first")
        first, new = store.append("alpha", MESSAGE, ["bob"], draft, "ann~order-1")
        again, new_again = store.append("alpha", MESSAGE, ["bob"], draft.having(message="second"), "ann~order-1")
        assert (new, new_again) == (True, False)
        assert again == first
        assert texts(store, "bob") == ["first"]

    def test_another_uid_or_none_makes_another_message(self, store):
        for n, uid in enumerate(("order-11", "1", "order-1", None, None), start=1):
            assert send(store, "bob", "same", uid=uid).number == n

    def test_of_several_with_one_uid_one_is_new(self, store):
        draft = Message(from_="ann", to="bob", message="hello")
        outcomes = in_threads(8, lambda n: store.append("alpha", MESSAGE, ["bob"], draft, "one"))
        assert sorted(new for _, new in outcomes) == [False] * 7 + [True]
        assert texts(store, "bob") == ["hello"]


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
        assert texts(store, "dan") == texts(store, "bob", team="nobody") == []

    def test_after_a_number_and_at_most_so_many(self, store):
        assert texts(store, "bob", after=3) == texts(store, "bob", after=4) == ["m5", "m7"]
        assert texts(store, None, after=7) == texts(store, None, after=5000) == []
        assert texts(store, "bob", limit=2) == ["m1", "m3"]
        assert texts(store, None, after=2, limit=3) == ["m3", "m4", "m5"]
        assert texts(store, "bob", limit=100) == ["m1", "m3", "m5", "m7"]
        send(store, "dan", "m8")  # what is to several others hides nothing
        assert texts(store, "dan", limit=1) == ["m8"]

    def test_envelopes_say_to_whom_without_the_messages(self, store):
        for after in (0, 3, 7, 5000):
            envelopes = sorted(store.envelopes("alpha", MESSAGE, after))
            read = store.read("alpha", MESSAGE, None, after, [])
            assert [(number, sorted(to)) for number, _, to in envelopes] == [
                (message.number, sorted(message.recipients or [message.to])) for message in read
            ]
        send(store, "bob", "known", "lea~again")
        assert [uid for number, uid, _ in store.envelopes("alpha", MESSAGE, 7)] == ["lea~again"]
        assert list(store.envelopes("missing", MESSAGE, 0)) == []

    def test_by_numbers(self, store):
        problems = []
        fetched = store.fetch("alpha", MESSAGE, [7, 2, 99, 4], problems)
        assert [message.message for message in fetched] == ["m2", "m4", "m7"]
        assert problems == store.fetch("nobody", MESSAGE, [1], problems) == []


def with_words(store, *words, kind=MESSAGE):
    """Return the numbers of the messages that have the words, newest first. Engines may also yield others, which are
    left out here.
    """
    problems = []
    records = list(store.search("alpha", kind, [word.lower() for word in words], problems))
    numbers = [kind.number_in(record.id) for record in records]
    assert numbers == sorted(numbers, reverse=True) and problems == []
    said = [" ".join(str(value) for value in record.to_json().values()).lower() for record in records]
    return [key for key, text in zip(numbers, said, strict=True) if all(w.lower() in text for w in words)]


class TestSearch:
    def test_messages_with_all_words_the_newest_first(self, store):
        for text in ("the cat sat", "the dog ran", "a cat ran", "nothing"):
            send(store, "bob", text)
        assert with_words(store, "cat") == [3, 1]
        assert with_words(store, "cat", "ran") == [3]
        assert with_words(store, "cow") == []
        for kind in (MESSAGE, TASK):
            assert list(store.search("nix", kind, ["word"], [])) == []

    TEXTS = (
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
    )

    def test_words_are_found_in_every_text(self, store):
        for text, word in self.TEXTS:
            sent = send(store, "bob", text)
            task, _ = store.create("alpha", TASK, None, Task(title="t", notes={"deep": [{"er": text}]}))
            for kind, record in ((MESSAGE, sent), (TASK, task)):
                assert record.id in [found.id for found in store.search("alpha", kind, [word.lower()], [])], word

    def test_what_was_changed_is_found_as_it_is_now(self, store):
        task, revision = store.create("alpha", TASK, None, Task(title="the old words"))
        store.replace("alpha", TASK, task.id, task.having(title="the new words"), revision)
        assert (with_words(store, "old", kind=TASK), with_words(store, "new", kind=TASK)) == ([], [1])


class TestHistory:
    def test_entries_come_back_in_order_from_any_position(self, store):
        for n in range(5):
            store.journal("alpha", {"what": "done", "n": n, "text": "é\n\ud800"})
        history = list(store.history("alpha"))
        assert [entry["n"] for _, entry in history] == list(range(5))
        assert history[0][1]["text"] == "é\n\ud800"
        for index, (position, _) in enumerate(history):
            assert list(store.history("alpha", position)) == history[index + 1 :]

    def test_comes_back_backwards_too(self, store):
        for n in range(250):
            store.journal("alpha", {"n": n, "text": "x" * (n * 5 if n % 50 else 70_000)})
        history = list(store.history("alpha"))
        assert list(store.history("alpha", backwards=True)) == history[::-1]
        assert list(store.history("alpha", history[99][0], backwards=True)) == history[:99:-1]
        assert next(store.history("alpha", backwards=True)) == history[-1]

    def test_nothing_where_nothing_was_noted(self, store):
        assert list(store.history("alpha")) == list(store.history("nobody")) == []
        assert list(store.history("nobody", backwards=True)) == []
