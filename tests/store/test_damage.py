"""Files that are damaged, edited by hand, foreign or hostile: refused with place and field, and left as they are."""

from __future__ import annotations

import json
import os
import signal
import socket
from zlib import crc32

import pytest

from teams_cli.errors import DamagedRecord, InvalidValue, NotAllowed, NotFound, StorageFailed, TeamsError
from teams_cli.names import check_name
from teams_cli.store.files.engine import FileStore
from teams_cli.store.retrying import update
from tests.store.histories import cheap_fsync
from tests.store.kinds import INBOX, MESSAGE, TASK, TEAM, Inbox, Message, Task, broadcast, make_team, send, texts
from tests.store.trees import snapshot


@pytest.fixture(autouse=True)
def no_hanging():
    """A pipe or a device in a record's place must not stop the program."""
    before = signal.signal(signal.SIGALRM, _hangs)
    signal.alarm(10)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def _hangs(*_: object) -> None:
    raise AssertionError("hangs")


@pytest.fixture(autouse=True)
def no_power_cuts():
    with cheap_fsync():
        yield


@pytest.fixture
def root(tmp_path):
    return tmp_path / "root"


@pytest.fixture
def store(file_store):
    make_team(file_store)
    for n in (1, 2, 3):
        file_store.create("alpha", TASK, None, Task(title=f"t{n}"))
    for name in ("bob", "cid", "dan"):
        file_store.create("alpha", INBOX, name, Inbox(agent=name))
        send(file_store, "bob", f"to bob, as to {name}", uid=f"u-{name}")
    return file_store


PLACES = {
    "task": (TASK, "task-2", "tasks/alpha/task-2.json"),
    "inbox": (INBOX, "cid", "teams/alpha/inboxes/cid.json"),
    "message": (MESSAGE, "msg-2", "teams/alpha/messages/0/2.bob.u-cid.json"),
}


def own(body: str) -> bytes:
    """A file that ends as the program's own do, with a checksum that fits."""
    text = body.encode()
    return b'%s,\n  "checksum": "%08x"\n}\n' % (text, crc32(text))


CONTENTS = {
    "empty": b"",
    "cut off": b'{\n  "id": "task-2",\n  "title": "hal',
    "zeros": bytes(300),
    "not UTF-8": b'{"title": "\xff"}',
    "not JSON": b"title: t\n",
    "two documents": b"{}\n{}\n",
    "a list": b"[]",
    "a list of a record": b'[{"id": "task-2", "title": "t"}]',
    "a text": b'"task-2"',
    "a number": b"7",
    "null": b"null",
    "no fields": b"{}",
    "200,000 lists deep": b"[" * 200_000,
    "200,000 objects deep": b'{"a":' * 200_000,
    "deep in an unknown field": b'{"a":' + b"[" * 200_000 + b"]" * 200_000 + b"}",
    "a number of a million digits": b'{"count": ' + b"9" * 1_000_000 + b"}",
    "checksum over what is not JSON": own('{\n  "id": task-2'),
    "checksum over depth": own('{\n  "a": ' + "[" * 200_000),
    "checksum over no fields": own('{\n  "x": 1'),
    "checksum over a list": own("["),
    "17 MiB": b" " * (17 << 20),
}


def as_content(data):
    return lambda path: path.write_bytes(data)


def as_directory(path):
    path.unlink()
    path.mkdir()


def as_pipe(path):
    path.unlink()
    os.mkfifo(path)


def as_link_to(target):
    def replace(path):
        path.unlink()
        path.symlink_to(target)

    return replace


def as_link_to_a_good_file(path):
    path.rename(path.with_name("elsewhere"))
    path.symlink_to(path.with_name("elsewhere"))


def as_socket(path):
    path.unlink()
    before = os.getcwd()
    os.chdir(path.parent)  # the name of a socket is limited to 107 bytes
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(path.name)
    finally:
        os.chdir(before)


DAMAGES = {
    **{name: as_content(data) for name, data in CONTENTS.items()},
    "a directory": as_directory,
    "a pipe": as_pipe,
    "a socket": as_socket,
    "a link to a good file": as_link_to_a_good_file,
    "a link to nothing": as_link_to("/nonexistent/file"),
    "a link to /dev/zero": as_link_to("/dev/zero"),
    "a link to itself": as_link_to("task-2.json"),
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file_is_named_and_left_alone(store, root, damage, place):
    kind, key, name = PLACES[place]
    path = root / name
    others = len(all_of(store, kind)[0]) - 1
    DAMAGES[damage](path)
    before = snapshot(root)

    for ask in (store.get, lambda *a: update(store, *a, lambda record: record.having())):
        with pytest.raises(DamagedRecord) as refused:
            ask("alpha", kind, key)
        assert str(path) in refused.value.message
        assert refused.value.hint

    found, problems = all_of(store, kind)
    assert len(found) == others
    assert [type(problem) for problem in problems] == [DamagedRecord]
    assert str(path) in problems[0].message
    assert snapshot(root) == before


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file_is_not_replaced_by_an_earlier_revision(store, root, damage):
    task, revision = store.get("alpha", TASK, "task-2")
    DAMAGES[damage](root / "tasks/alpha/task-2.json")
    before = snapshot(root)
    with pytest.raises(TeamsError):
        store.replace("alpha", TASK, "task-2", task.having(title="new"), revision)
    assert snapshot(root) == before


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_team_is_not_made_anew(store, root, damage):
    DAMAGES[damage](root / "teams/alpha/team.json")
    before = snapshot(root)
    with pytest.raises(DamagedRecord):
        store.get("alpha", TEAM, "alpha")
    with pytest.raises(TeamsError):
        make_team(store)
    assert store.teams() == ["alpha"]
    assert snapshot(root) == before


@pytest.mark.parametrize("damage", DAMAGES)
def test_the_same_uid_as_a_damaged_message_adds_nothing(store, root, damage):
    DAMAGES[damage](root / PLACES["message"][2])
    before = snapshot(root)
    with pytest.raises(DamagedRecord):
        send(store, "bob", "again", uid="u-cid")
    assert snapshot(root) == before


def test_beside_damage_new_records_are_made(store, root):
    as_content(b"")(root / "tasks/alpha/task-3.json")
    as_content(b"")(root / "teams/alpha/messages/0/3.bob.u-dan.json")
    assert store.create("alpha", TASK, None, Task(title="t"))[0].id == "task-4"
    assert send(store, "bob", "next").number == 4


WRONG = {
    "id": [None, 2, "", "task-1", "task-02", "task-²", "TASK-2", "task-2\n", ["task-2"]],
    "title": [None, 7, True, ["t"], {}, "\ud800"],
    "status": [None, "done", "", 1, ["pending"]],
    "owner": [7, "", "b b", "../bob", "b\u043eb", "a" * 65, ["bob"]],
    "count": [None, -1, 1.5, "1", True, 2**53, 10**4000, [1]],
    "weight": [None, -1.0, "1", float("nan"), float("inf"), [1]],
    "blockedBy": [None, "task-1", {}, ["1"], [1], [["task-1"]]],
    "notes": [None, [], "x", 1],
}


@pytest.mark.parametrize(
    ("field", "value"), [pytest.param(f, v, id=f"{f}={v!r:.20}") for f, values in WRONG.items() for v in values]
)
def test_a_value_of_the_wrong_form_is_refused_by_the_name_of_its_field(store, root, field, value):
    path = root / "tasks/alpha/task-2.json"
    edit(path, **{field: value})
    with pytest.raises(DamagedRecord) as refused:
        store.get("alpha", TASK, "task-2")
    assert str(path) in refused.value.message
    if value not in ("\ud800", 10**4000) and value == value and value != float("inf"):  # JSON refuses these whole
        assert field in refused.value.message


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('"count": NaN', "NaN"),
        ('"count": -Infinity', "Infinity"),
        ('"weight": 1e999', "1e999"),
        ('"title": "a", "title": "b"', "twice"),
        ('"notes": {"x": 1, "x": 1}', "twice"),
        ('"notes": {"x": {"y": NaN}}', "NaN"),
    ],
)
def test_what_json_readers_disagree_about_is_refused(store, root, text, problem):
    path = root / "tasks/alpha/task-2.json"
    path.write_text(f'{{"id": "task-2", "title": "t", {text}}}'.replace('"title": "t", "title"', '"title"'))
    with pytest.raises(DamagedRecord, match=problem):
        store.get("alpha", TASK, "task-2")


def test_a_nested_record_of_the_wrong_form_is_refused(store, root):
    path = root / "teams/alpha/team.json"
    edit(path, members=[{"name": "bob"}, {"name": 7}])
    with pytest.raises(DamagedRecord, match=r"members\.1\.name"):
        store.get("alpha", TEAM, "alpha")


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
            assert store.get("alpha", TASK, "task-2")[0].title == "changed"


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

    def test_a_line_that_was_cut_off_does_not_swallow_the_next(self, store, root):
        with open(root / "teams/alpha/history.jsonl", "ab") as file:
            file.write(b'{"n": 1}\n{"n": 2')
        assert [entry["n"] for _, entry in store.history("alpha")] == [1]
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


HOSTILE = [
    "",
    " ",
    "\n",
    "bob\n",
    "\nbob",
    "b\x00b",
    ".",
    "..",
    "../bob",
    "../../../../tmp/bob",
    "a/b",
    "/tmp/bob",
    "a\\b",
    ".hidden",
    "a.b",
    "a b",
    "-rf",
    "~",
    "b\u043eb",  # the o is Cyrillic
    "bob²",
    "é",
    "\ud800",
    "b\u202eb",
    "b\x1b[31m",
    "a" * 300,
    "*",
]


@pytest.mark.parametrize("name", HOSTILE, ids=ascii)
class TestHostileNames:
    """The front ends check names too; the engine makes paths of them, so it does not rely on that."""

    def test_of_teams_make_nothing(self, file_store, tmp_path, name):
        before = snapshot(tmp_path)
        for change in (
            lambda: make_team(file_store, name),
            lambda: file_store.create(name, TASK, None, Task(title="t")),
            lambda: file_store.create(name, INBOX, "bob", Inbox(agent="bob")),
            lambda: send(file_store, "bob", "hello", team=name),
            lambda: update(file_store, name, TASK, "task-1", lambda task: task.having(title="x")),
            lambda: file_store.journal(name, {"n": 1}),
        ):
            with pytest.raises((NotFound, InvalidValue)):
                change()
            assert snapshot(tmp_path) == before

    def test_of_teams_find_nothing(self, store, name):
        for ask in (
            lambda: store.get(name, TEAM, name),
            lambda: list(store.scan(name, TASK, [])),
            lambda: store.labelled(name, TASK, "pending"),
            lambda: store.read(name, MESSAGE, None, 0, []),
            lambda: store.last(name, MESSAGE),
            lambda: list(store.history(name)),
            lambda: store.watch(name),
        ):
            with pytest.raises((NotFound, InvalidValue)):
                ask()

    def test_of_records(self, store, tmp_path, name):
        before = snapshot(tmp_path)
        for kind, record in ((INBOX, Inbox(agent="bob")), (TASK, Task(title="t"))):
            with pytest.raises((NotFound, InvalidValue)):
                store.create("alpha", kind, name, record)
            with pytest.raises((NotFound, InvalidValue)):
                store.replace("alpha", kind, name, record, b"")
            with pytest.raises((NotFound, InvalidValue)):
                store.get("alpha", kind, name)
        assert snapshot(tmp_path) == before

    def test_of_recipients_and_senders_uids(self, store, tmp_path, name):
        before = snapshot(tmp_path)
        draft = Message(from_="ann", to="bob", message="hello")
        for to, uid in (([name], None), (["bob"], name), (["bob", name], name)):
            if uid != "":  # which means none
                with pytest.raises((NotFound, InvalidValue)):
                    store.append("alpha", MESSAGE, to, draft, uid)
        assert snapshot(tmp_path) == before

    def test_can_name_nothing_new(self, name):
        with pytest.raises(InvalidValue):
            check_name(name, "team")


@pytest.mark.parametrize("name", ["con", "NUL", "Aux", "com1", "LPT9", "all", "human", "System"])
def test_names_of_devices_and_reserved_words_can_name_nothing_new(name):
    with pytest.raises(InvalidValue):
        check_name(name, "agent")


@pytest.mark.parametrize(
    "key", ["msg-", "msg", "1", "msg-²", "msg-0", "msg-01", "msg--1", "msg-1\n", "task-1", "msg-" + "9" * 5000, "x-1-1"]
)
def test_what_is_no_id_of_a_message_finds_none(store, key):
    with pytest.raises(NotFound):
        store.get("alpha", MESSAGE, key)
    with pytest.raises(NotFound):
        store.confirm("alpha", MESSAGE, key)


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


def test_a_message_to_several_is_checked_too(store, root):
    broadcast(store, ["bob", "cid"], "hello", uid="b")
    edit(root / "teams/alpha/messages/0/4.@.b.json", recipients=["bob", "../x"])
    found, problems = all_of(store, MESSAGE)
    assert len(found) == 3
    assert "recipients.1" in problems[0].message


def all_of(store, kind):
    """All records of the kind, and the problems beside them."""
    problems = []
    if kind is MESSAGE:
        return store.read("alpha", MESSAGE, None, 0, problems), problems
    return [record for record, _ in store.scan("alpha", kind, problems)], problems


def edit(path, **values):
    """Change fields of a file as a person with an editor would."""
    path.write_text(json.dumps({**json.loads(path.read_bytes()), **values}, indent=2) + "\n")
