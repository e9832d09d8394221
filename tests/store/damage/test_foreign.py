"""Files that were edited by hand or put there by others are read, or named and left alone."""

from __future__ import annotations

import json
import os

import pytest

from teams_cli.errors import DamagedRecord, NotAllowed, StorageFailed, TeamsError
from teams_cli.store.contract import update
from teams_cli.store.files.engine import FileStore
from tests.store.damage.conftest import PLACES, all_of, as_directory, as_link_to, as_pipe, as_socket, edit
from tests.store.kinds import CHANGES, INBOX, MESSAGE, TASK, TEAM, Task, make_team, send, texts
from tests.store.trees import snapshot

pytestmark = pytest.mark.slow


class TestEditedByHand:
    """A person's edit counts if it has the right form."""

    def test_another_value_or_layout(self, store, root):
        path = root / "tasks/alpha/task-2.json"
        _, revision = store.get("alpha", TASK, "task-2")
        edit(path, title="edited", owner="bob", **{"x-colour": ["red", {"deep": None}]})
        task, _ = store.get("alpha", TASK, "task-2")
        assert (task.title, task.owner) == ("edited", "bob")
        with pytest.raises(TeamsError):  # a change from before the edit is stale
            store.replace("alpha", TASK, "task-2", task.having(title="mine"), revision)
        update(store, "alpha", TASK, "task-2", lambda task: task.having(title="changed"))
        assert json.loads(path.read_bytes())["x-colour"] == ["red", {"deep": None}]
        path.write_text(' {"title":"t",\r\n\t"id":"task-2"} ')
        assert store.get("alpha", TASK, "task-2")[0] == Task(id="task-2", title="t")

    def test_depth_that_can_be_read_can_be_written_or_is_refused(self, store, root):
        path = root / "tasks/alpha/task-2.json"
        for depth in (10, 100, 300, 600, 900, 950, 990):
            path.write_text('{"id": "task-2", "title": "t", "x": ' + "[" * depth + "]" * depth + "}")
            before = snapshot(root)
            try:
                update(store, "alpha", TASK, "task-2", lambda task: task.having(title="changed"))
            except TeamsError:
                assert snapshot(root) == before
            else:
                assert depth < 100 and store.get("alpha", TASK, "task-2")[0].title == "changed"


class TestForeignFiles:
    """Other files in the directories break nothing. Those that look like records are reported."""

    def test_beside_tasks_and_messages(self, store, root):
        names = ["task-0", "task-02", "task-²", "TASK-2", "task-2 (copy)", "x", ""]
        for name in names:
            (root / f"tasks/alpha/{name}.json").write_bytes((root / "tasks/alpha/task-2.json").read_bytes())
        tasks, problems = all_of(store, TASK)
        assert [task.id for task in tasks] == ["task-1", "task-2", "task-3"]
        assert len(problems) == len(names)
        assert store.create("alpha", TASK, None, Task(title="t"))[0].id == "task-4"
        for name in ("0.bob.u.json", "²2.bob.u.json", "4.b b.u.json", "4.json", "4.bob.json", "4.bob.u.json~", "x"):
            (root / "teams/alpha/messages/0" / name).write_bytes(b"rubbish")
        assert len(texts(store, "bob")) == 3
        assert send(store, "bob", "next").number == 4

    def test_files_of_editors_and_systems(self, store, root):
        for directory in ("tasks/alpha", "teams/alpha", "teams/alpha/inboxes", "teams", "teams/alpha/messages", ""):
            for name in (".DS_Store", "notes.txt", "task-2.json~", ".task-2.json.swp", "Thumbs.db"):
                (root / directory / name).write_bytes(b"rubbish")
        assert store.teams() == ["alpha"]
        assert [len(all_of(store, kind)[0]) for kind in (TASK, INBOX, MESSAGE)] == [3, 3, 3]

    def test_a_record_under_the_key_of_another(self, store, root):
        make_team(store, "beta")
        (root / "teams/beta/team.json").write_bytes((root / "teams/alpha/team.json").read_bytes())
        with pytest.raises(DamagedRecord, match="alpha"):
            store.get("beta", TEAM, "beta")
        for kind, copy, original in ((TASK, "task-3", "task-2"), (INBOX, "dan", "cid")):
            directory = (root / PLACES["task" if kind is TASK else "inbox"][2]).parent
            (directory / f"{copy}.json").write_bytes((directory / f"{original}.json").read_bytes())
            with pytest.raises(DamagedRecord, match=original):
                store.get("alpha", kind, copy)
        (root / "teams/gamma").symlink_to("alpha")
        with pytest.raises(TeamsError):
            store.get("gamma", TEAM, "gamma")

    def test_a_message_to_another_than_its_file_says(self, store, root):
        """Otherwise one agent could be shown what was sent to another."""
        path = root / PLACES["message"][2]
        path.rename(path.with_name("2.cid.u-cid.json"))
        messages, problems = all_of(store, MESSAGE)
        assert (len(messages), len(problems)) == (2, 1)
        assert "to" in problems[0].message

    def test_a_message_with_another_number_than_its_file(self, store, root):
        edit(root / PLACES["message"][2], number=900)
        with pytest.raises(DamagedRecord, match="number"):
            store.get("alpha", MESSAGE, "msg-2")

    @pytest.mark.parametrize(
        ("name", "change"),
        [
            ("tasks/alpha/task-999999999999.json", "tasks/alpha"),
            ("teams/alpha/messages/0/999999999999.bob.u.json", "teams/alpha/messages"),
        ],
    )
    def test_after_the_highest_number_there_is_no_other(self, store, root, name, change):
        """The message is refused, because no reader would look at a higher number."""
        (root / name).write_bytes(b"rubbish")
        before = snapshot(root)
        with pytest.raises(StorageFailed, match="1000000000000"):
            CHANGES[change](store)
        assert {path for path in snapshot(root).keys() - before.keys() if path.endswith(".json")} == set()


class TestHistory:
    """A damaged history loses lines, but never makes a command fail."""

    def test_a_damaged_line_is_passed_over(self, store, root):
        damaged = (b"{", b"[]", b"7", b"\xff", b"[" * 200_000, b"9" * 100_000, b"x" * (3 << 20), b"", bytes(100))
        for n, line in enumerate(damaged):
            store.journal("alpha", {"n": n})
            with open(root / "teams/alpha/history.jsonl", "ab") as file:
                file.write(line + b"\n")
        store.journal("alpha", {"n": len(damaged)})
        history = list(store.history("alpha"))
        assert [entry["n"] for _, entry in history] == list(range(len(damaged) + 1))
        assert list(store.history("alpha", backwards=True)) == history[::-1]

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


class TestRoot:
    """Files that others could have planted in the root are not believed."""

    @pytest.mark.parametrize("mode", [0o770, 0o707, 0o777, 0o720, 0o700, 0o755, 0o750])
    def test_that_others_may_write_to_is_refused_with_the_remedy(self, root, mode):
        root.mkdir()
        root.chmod(mode)
        if mode & 0o022:
            with pytest.raises(NotAllowed) as refused:
                FileStore(str(root))
            assert f"chmod go-w {root}" in refused.value.hint
        else:
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
