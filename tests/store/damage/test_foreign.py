"""Files edited by hand or put there by others: taken as they are, or named and left alone."""

from __future__ import annotations

import json
import os

import pytest

from teams_cli.errors import DamagedRecord, NotAllowed, StorageFailed, TeamsError
from teams_cli.store.files.engine import FileStore
from teams_cli.store.retrying import update
from tests.store.damage.files import PLACES, all_of, as_directory, as_link_to, as_pipe, as_socket, edit
from tests.store.kinds import INBOX, MESSAGE, TASK, TEAM, Inbox, Task, make_team, send, texts
from tests.store.trees import snapshot

pytestmark = pytest.mark.slow


class TestEditedByHand:
    """A person's edit counts, if it is of the right form."""

    def test_another_value(self, store, root):
        edit(root / "tasks/alpha/task-2.json", title="edited", owner="bob")
        task, _ = store.get("alpha", TASK, "task-2")
        assert (task.title, task.owner) == ("edited", "bob")

    def test_another_layout(self, store, root):
        path = root / "tasks/alpha/task-2.json"
        path.write_text(' {"title":"t",\r\n\t"id":"task-2"} ')
        assert store.get("alpha", TASK, "task-2")[0] == Task(id="task-2", title="t")

    def test_an_unknown_field_survives_later_changes(self, store, root):
        path = root / "tasks/alpha/task-2.json"
        edit(path, **{"x-colour": ["red", {"deep": None}]})
        update(store, "alpha", TASK, "task-2", lambda task: task.having(title="changed"))
        assert json.loads(path.read_bytes())["x-colour"] == ["red", {"deep": None}]

    def test_a_change_from_before_the_edit_is_stale(self, store, root):
        task, revision = store.get("alpha", TASK, "task-2")
        edit(root / "tasks/alpha/task-2.json", title="edited")
        with pytest.raises(TeamsError):
            store.replace("alpha", TASK, "task-2", task.having(title="mine"), revision)
        assert store.get("alpha", TASK, "task-2")[0].title == "edited"

    @pytest.mark.parametrize("depth", [10, 100, 300, 600, 900, 950, 990])
    def test_depth_that_can_be_read_can_be_written_or_is_refused(self, store, root, depth):
        path = root / "tasks/alpha/task-2.json"
        path.write_text('{"id": "task-2", "title": "t", "x": ' + "[" * depth + "]" * depth + "}")
        before = snapshot(root)
        try:
            update(store, "alpha", TASK, "task-2", lambda task: task.having(title="changed"))
        except TeamsError:
            assert snapshot(root) == before
        else:
            assert depth < 100 and store.get("alpha", TASK, "task-2")[0].title == "changed"


class TestForeignFiles:
    """What lies around in the directories breaks nothing and is told of where it pretends to be a record."""

    @pytest.mark.parametrize(
        "name", ["task-0.json", "task-02.json", "task-².json", "TASK-2.json", "task-2 (copy).json", "x.json", ".json"]
    )
    def test_beside_tasks(self, store, root, name):
        (root / "tasks/alpha" / name).write_bytes((root / "tasks/alpha/task-2.json").read_bytes())
        found, problems = all_of(store, TASK)
        assert [task.id for task in found] == ["task-1", "task-2", "task-3"]
        assert len(problems) == 1
        assert store.create("alpha", TASK, None, Task(title="t"))[0].id == "task-4"

    @pytest.mark.parametrize(
        "name", ["0.bob.u.json", "²2.bob.u.json", "4.b b.u.json", "4.json", "4.bob.json", "4.bob.u.json~", "x"]
    )
    def test_beside_messages(self, store, root, name):
        (root / "teams/alpha/messages/0" / name).write_bytes(b"rubbish")
        assert len(texts(store, "bob")) == 3
        assert send(store, "bob", "next").number == 4

    def test_files_of_editors_and_systems(self, store, root):
        for directory in ("tasks/alpha", "teams/alpha", "teams/alpha/inboxes", "teams", "teams/alpha/messages", ""):
            for name in (".DS_Store", "notes.txt", "task-2.json~", ".task-2.json.swp", "Thumbs.db"):
                (root / directory / name).write_bytes(b"rubbish")
        assert store.teams() == ["alpha"]
        assert [len(all_of(store, kind)[0]) for kind in (TASK, INBOX, MESSAGE)] == [3, 3, 3]

    def test_a_file_under_the_key_of_another(self, store, root):
        for kind, copy, original in ((TASK, "task-3", "task-2"), (INBOX, "dan", "cid")):
            directory = (root / PLACES["task" if kind is TASK else "inbox"][2]).parent
            (directory / f"{copy}.json").write_bytes((directory / f"{original}.json").read_bytes())
            with pytest.raises(DamagedRecord, match=original):
                store.get("alpha", kind, copy)

    def test_a_team_under_the_name_of_another(self, store, root):
        make_team(store, "beta")
        (root / "teams/beta/team.json").write_bytes((root / "teams/alpha/team.json").read_bytes())
        with pytest.raises(DamagedRecord, match="alpha"):
            store.get("beta", TEAM, "beta")

    def test_a_message_to_another_than_its_file_says(self, store, root):
        """Else one agent could be shown what was sent to another."""
        path = root / PLACES["message"][2]
        path.rename(path.with_name("2.cid.u-cid.json"))
        found, problems = all_of(store, MESSAGE)
        assert (len(found), len(problems)) == (2, 1)
        assert "to" in problems[0].message

    def test_a_message_with_another_number_than_its_file(self, store, root):
        edit(root / PLACES["message"][2], number=900)
        with pytest.raises(DamagedRecord, match="number"):
            store.get("alpha", MESSAGE, "msg-2")

    def test_a_link_in_the_place_of_a_team(self, store, root):
        (root / "teams/beta").symlink_to("alpha")
        with pytest.raises(TeamsError):
            store.get("beta", TEAM, "beta")

    @pytest.mark.parametrize(
        ("name", "change"),
        [
            ("tasks/alpha/task-999999999999.json", lambda store: store.create("alpha", TASK, None, Task(title="t"))),
            ("teams/alpha/messages/0/999999999999.bob.u.json", lambda store: send(store, "bob", "x")),
        ],
        ids=["task", "message"],
    )
    def test_after_the_highest_number_there_is_no_other(self, store, root, name, change):
        """Refused, rather than acknowledged under a number that no reader looks at."""
        (root / name).write_bytes(b"rubbish")
        before = snapshot(root)
        with pytest.raises(StorageFailed, match="1000000000000"):
            change(store)
        assert {path for path in snapshot(root).keys() - before.keys() if path.endswith(".json")} == set()


class TestHistory:
    """The history is derived: a damaged one loses lines, never the command."""

    @pytest.mark.parametrize(
        "line", [b"{", b"[]", b"7", b"\xff", b"[" * 200_000, b"9" * 100_000, b"x" * (3 << 20), b"", bytes(100)]
    )
    def test_a_damaged_line_is_passed_over(self, store, root, line):
        store.journal("alpha", {"n": 1})
        with open(root / "teams/alpha/history.jsonl", "ab") as file:
            file.write(line + b"\n")
        store.journal("alpha", {"n": 2})
        assert [entry["n"] for _, entry in store.history("alpha")] == [1, 2]
        assert list(store.history("alpha", backwards=True)) == list(store.history("alpha"))[::-1]

    def test_a_line_that_was_cut_off_does_not_swallow_the_next(self, store, root):
        with open(root / "teams/alpha/history.jsonl", "ab") as file:
            file.write(b'{"n": 1}\n{"n": 2')
        assert [entry["n"] for _, entry in store.history("alpha")] == [1]
        assert [entry["n"] for _, entry in store.history("alpha", backwards=True)] == [1]
        store.journal("alpha", {"n": 3})
        assert [entry["n"] for _, entry in store.history("alpha")] == [1, 3]

    @pytest.mark.parametrize(
        "damage", [as_directory, as_pipe, as_socket, as_link_to("/dev/zero"), as_link_to("../../README")]
    )
    def test_what_is_no_file_is_passed_over(self, store, root, damage):
        store.journal("alpha", {"n": 1})
        damage(root / "teams/alpha/history.jsonl")
        before = snapshot(root)
        store.journal("alpha", {"n": 2})
        assert list(store.history("alpha")) == []
        assert snapshot(root) == before


@pytest.mark.parametrize(
    "damage", [as_directory, as_pipe, as_socket, as_link_to("/dev/null"), as_link_to("made-by-a-lock")]
)
@pytest.mark.parametrize(
    ("directory", "change"),
    [
        ("tasks/alpha", lambda store: store.create("alpha", TASK, None, Task(title="t"))),
        ("tasks/alpha", lambda store: update(store, "alpha", TASK, "task-1", lambda task: task.having(title="new"))),
        ("teams/alpha/messages", lambda store: send(store, "bob", "hello")),
        ("teams/alpha/inboxes", lambda store: store.create("alpha", INBOX, "eve", Inbox(agent="eve"))),
        ("teams", lambda store: make_team(store, "beta")),
    ],
    ids=["create task", "update task", "append", "create inbox", "create team"],
)
def test_a_lock_that_is_no_lock_file_is_refused(store, root, directory, change, damage):
    lock = root / directory / ".lock"
    damage(lock)
    before = snapshot(root)
    with pytest.raises(StorageFailed) as refused:
        change(store)
    assert str(lock) in refused.value.message
    assert snapshot(root) == before
    assert len(texts(store, "bob")) == 3


class TestRoot:
    """What others could have put there is not believed."""

    @pytest.mark.parametrize("mode", [0o770, 0o707, 0o777, 0o720])
    def test_that_others_may_write_to_is_refused_with_the_remedy(self, root, mode):
        root.mkdir()
        root.chmod(mode)
        with pytest.raises(NotAllowed) as refused:
            FileStore(str(root))
        assert f"chmod go-w {root}" in refused.value.hint

    @pytest.mark.parametrize("mode", [0o700, 0o755, 0o750])
    def test_that_others_may_read_is_accepted(self, root, mode):
        root.mkdir()
        root.chmod(mode)
        make_team(FileStore(str(root)))
        assert FileStore(str(root)).teams() == ["alpha"]

    @pytest.mark.skipif(os.geteuid() != 0, reason="only the superuser can give a directory away")
    def test_of_another_user_is_refused(self, root):
        root.mkdir(mode=0o700)
        os.chown(root, 12345, 12345)
        with pytest.raises(NotAllowed, match="another user"):
            FileStore(str(root))

    def test_that_is_a_file_is_refused(self, root):
        root.write_text("x")
        with pytest.raises(StorageFailed, match="not a directory"):
            FileStore(str(root))

    @pytest.mark.parametrize("name", ["tmp", "teams", "tasks", "teams/alpha", "tasks/alpha"])
    def test_with_a_file_in_the_place_of_a_directory(self, root, name):
        (root / name).parent.mkdir(parents=True, mode=0o700)
        root.chmod(0o700)
        (root / name).write_text("x")
        with pytest.raises(TeamsError) as refused:
            make_team(FileStore(str(root)))
        assert str(root / name) in refused.value.message
        assert (root / name).read_text() == "x"
