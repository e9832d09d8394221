"""What the contract promises about whole teams, on every engine: creating, closing, packing and dropping them."""

from __future__ import annotations

import pytest

from teams_cli.errors import AlreadyExists, NotFound, StaleRevision, WrongState
from teams_cli.store.contract import update, upsert
from tests.store import kinds
from tests.store.contract.conftest import in_threads
from tests.store.kinds import (
    INBOX,
    MESSAGE,
    TASK,
    TEAM,
    Inbox,
    Message,
    Task,
    Team,
    broadcast,
    chain,
    close_team,
    make_team,
    send,
    texts,
    titles,
)


class TestTeams:
    @pytest.mark.parametrize("name", ["alpha", "ALPHA", "Alpha"])
    def test_names_that_differ_only_in_case_are_one(self, store, name):
        with pytest.raises(AlreadyExists, match="there is a team alpha already"):
            make_team(store, name)
        assert store.teams() == ["alpha"]
        assert store.get("alpha", TEAM, "alpha")[0].leader == "ann"

    def test_are_listed_by_name_and_each_has_records_of_its_own(self, store):
        for name in ("zeta", "Beta", "gamma"):
            make_team(store, name)
        assert store.teams() == ["Beta", "alpha", "gamma", "zeta"] and store.address
        store.create("alpha", TASK, None, Task(title="of alpha"))
        send(store, "bob", "to alpha", uid="u")
        assert titles(store, "zeta") == {}
        assert send(store, "bob", "to zeta", uid="u", team="zeta").id == "msg-1"
        assert (texts(store, "bob"), texts(store, "bob", team="zeta")) == (["to alpha"], ["to zeta"])

    def test_of_several_created_at_once_under_one_name_one_is_made(self, store):
        outcomes = in_threads(8, lambda n: make_team(store, "beta" if n % 2 else "Beta"))
        assert outcomes.count(None) == 1
        assert len(store.teams()) == 2

    def test_the_record_is_like_any_other(self, store):
        team, revision = store.get("alpha", TEAM, "alpha")
        store.replace("alpha", TEAM, "alpha", team.having(leader="bob"), revision)
        with pytest.raises(StaleRevision):
            store.replace("alpha", TEAM, "alpha", team, revision)
        assert store.get("alpha", TEAM, "alpha")[0] == Team(name="alpha", leader="bob")


def revision_of(store):
    return store.get("alpha", TASK, "task-1")[1]


class TestClosedTeams:
    """Whether the team is closed is checked together with the change, not before it."""

    CHANGES = (
        lambda store: store.create("alpha", TASK, None, Task(title="late")),
        lambda store: chain(store, "late", "later"),
        lambda store: store.replace_all("alpha", TASK, [(Task(id="task-1", title="new"), revision_of(store))]),
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

    def test_nothing_is_changed_until_it_is_open_again(self, store):
        make_team(store, "beta")
        close_team(store)
        assert store.create("beta", TASK, None, Task(title="of another team"))[0].id == "task-1"
        before = kinds.seen(store)
        for change in self.CHANGES:
            with pytest.raises(WrongState, match="alpha is closed"):
                change(store)
            assert kinds.seen(store) == before
        assert (store.last("alpha", TASK), store.last("alpha", MESSAGE)) == (1, 1)
        assert send(store, "bob", "hello", uid="early").number == 1
        close_team(store, "active")
        for change in self.CHANGES:
            before = kinds.seen(store)
            change(store)
            assert kinds.seen(store) != before

    def test_what_was_begun_comes_to_its_end(self, store):
        close_team(store)
        update(store, "alpha", TASK.even_in_closed_team, "task-1", lambda task: task.having(status="completed"))
        upsert(
            store, "alpha", INBOX.even_in_closed_team, "bob", Inbox(agent="bob"), lambda inbox: inbox.having(up_to=1)
        )
        draft = Message(from_="ann", to="bob", message="done")
        assert store.append("alpha", MESSAGE.even_in_closed_team, ["bob"], draft, None)[1]
        assert texts(store, "bob") == ["hello", "done"]
        assert store.get("alpha", TASK, "task-1")[0].status == "completed"

    def test_a_change_between_the_look_and_the_write_is_not_missed(self, store):
        """`update` reads, then another process closes the team, then `update` writes."""

        def change(task: Task) -> Task:
            close_team(store)
            return task.having(owner="bob")

        with pytest.raises(WrongState):
            update(store, "alpha", TASK, "task-1", change)
        assert store.get("alpha", TASK, "task-1")[0].owner is None


class TestPack:
    """`put` into an empty team makes what `pack` returned, including the numbers."""

    KINDS = (TASK, INBOX, MESSAGE)

    def test_what_is_put_reads_the_same(self, store):
        store.create("alpha", INBOX, "bob", Inbox(agent="bob", up_to=2))
        for n in range(1, 13):
            store.create("alpha", TASK, None, Task(title=f"t{n}", status="pending" if n % 2 else "completed"))
            send(store, "bob", f"m{n}", uid=f"u{n}")
        broadcast(store, ["bob", "cid"], "to both")
        packed = {kind.name: list(store.pack("alpha", kind)) for kind in self.KINDS}
        for kind in (TASK, INBOX):
            for key, data in packed[kind.name]:
                store.put("beta", kind, key, data)
        store.put_messages("beta", MESSAGE, packed["message"][:5])
        store.put_messages("beta", MESSAGE, packed["message"][3:])
        assert titles(store, "beta") == titles(store)
        assert texts(store, "cid", team="beta") == ["to both"]
        assert [*store.labelled("beta", TASK, "pending")] == [*store.labelled("alpha", TASK, "pending")]
        assert {kind.name: list(store.pack("beta", kind)) for kind in self.KINDS} == packed
        assert store.create("beta", TASK, None, Task(title="next"))[0].id == "task-13"
        assert send(store, "bob", "next", team="beta").number == 14
        assert send(store, "bob", "again", uid="u3", team="beta").number == 3
        assert [key for key, _ in store.pack("alpha", TEAM)] == ["alpha"]
        assert [list(store.pack("nobody", kind)) for kind in self.KINDS] == [[], [], []]

    def test_putting_again_changes_a_record_and_adds_no_message(self, store):
        store.create("alpha", INBOX, "bob", Inbox(agent="bob", up_to=2))
        send(store, "bob", "hello", uid="u")
        ((_, data),) = store.pack("alpha", INBOX)
        messages = list(store.pack("alpha", MESSAGE))
        update(store, "alpha", INBOX, "bob", lambda inbox: inbox.having(up_to=7))
        store.put("alpha", INBOX, "bob", data)
        store.put_messages("alpha", MESSAGE, messages)
        assert store.get("alpha", INBOX, "bob")[0].up_to == 2
        assert texts(store, "bob") == ["hello"]

    def test_a_history_comes_before_anything_else_is_there(self, store):
        store.put_history("beta", [{"what": "created"}, {"what": "agent joined"}])
        store.put_history("beta", [{"what": "agent left"}])
        assert [entry["what"] for _, entry in store.history("beta")] == ["created", "agent joined", "agent left"]


def test_a_closed_team_is_dropped_with_all_it_has(store):
    """A team that is open, or was changed meanwhile, stays. After the drop, the name is free and numbers begin
    again.
    """
    make_team(store, "beta")
    task, revision = store.create("alpha", TASK, None, Task(title="t"))
    opened = store.get("alpha", TEAM, "alpha")[1]
    with pytest.raises(StaleRevision):
        store.drop("alpha", TEAM, opened)
    close_team(store)
    closed = store.get("alpha", TEAM, "alpha")[1]
    with pytest.raises(StaleRevision):
        store.drop("alpha", TEAM, opened)
    assert titles(store) == {"task-1": "t"}
    store.drop("alpha", TEAM, closed)
    assert store.teams() == ["beta"]
    with pytest.raises(NotFound):
        store.drop("alpha", TEAM, closed)
    with pytest.raises(NotFound):
        store.replace("alpha", TASK, "task-1", task.having(title="u"), revision)
    make_team(store, "alpha")
    assert titles(store) == {} and store.last("alpha", TASK) == 0
