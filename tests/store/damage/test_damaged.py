"""Damaged files are named and left alone, and hide nothing of the other files."""

from __future__ import annotations

from zlib import crc32

import pytest

from teams_cli.errors import DamagedRecord, TeamsError
from teams_cli.store.contract import update
from tests.store.damage.conftest import (
    PLACES,
    all_of,
    as_content,
    as_directory,
    as_link_to,
    as_link_to_a_good_file,
    as_pipe,
    as_socket,
    edit,
)
from tests.store.kinds import MESSAGE, TASK, TEAM, Task, broadcast, make_team, send
from tests.store.trees import snapshot


def own(body: str) -> bytes:
    """Return a file as the program writes it, with a correct checksum."""
    text = body.encode()
    return b'%s,\n  "checksum": "%08x"\n}\n' % (text, crc32(text))


CONTENTS = {
    "empty": b"",
    "cut off": b'{\n  "id": "task-2",\n  "title": "hal',
    "zeros": bytes(300),
    "not UTF-8": b'{"title": "\xff"}',
    "not JSON": b"title: t\n",
    "two documents": b"{}\n{}\n",
    "a list of a record": b'[{"id": "task-2", "title": "t"}]',
    "a number": b"7",
    "no fields": b"{}",
    "200,000 lists deep": b"[" * 200_000,
    "deep in an unknown field": b'{"a":' + b"[" * 200_000 + b"]" * 200_000 + b"}",
    "a number of a million digits": b'{"count": ' + b"9" * 1_000_000 + b"}",
    "checksum over what is not JSON": own('{\n  "id": task-2'),
    "checksum over depth": own('{\n  "a": ' + "[" * 200_000),
    "checksum over no fields": own('{\n  "x": 1'),
    "17 MiB": b" " * (17 << 20),
}
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
SOME = ("cut off", "17 MiB", "a pipe", "a link to a good file")
"""One of each way in which damage is found: by the content, the size, the type of the file, and a link."""
OTHERS = [(place, damage) for place in ("inbox", "message") for damage in SOME]


@pytest.mark.parametrize(("place", "damage"), [*(("task", damage) for damage in DAMAGES), *OTHERS])
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
    records, problems = all_of(store, kind)
    assert len(records) == others
    assert [type(problem) for problem in problems] == [DamagedRecord]
    assert str(path) in problems[0].message
    assert snapshot(root) == before


@pytest.mark.parametrize("damage", SOME)
def test_what_is_damaged_is_not_written_over(store, root, damage):
    """Neither an update, nor a new team of that name, nor a message with that uid writes over it."""
    task, revision = store.get("alpha", TASK, "task-2")
    for name in (PLACES["task"][2], PLACES["message"][2], "teams/alpha/team.json"):
        DAMAGES[damage](root / name)
    before = snapshot(root)
    with pytest.raises(TeamsError):
        store.replace("alpha", TASK, "task-2", task.having(title="new"), revision)
    with pytest.raises(DamagedRecord):
        send(store, "bob", "again", uid="u-cid")
    with pytest.raises(DamagedRecord):
        store.get("alpha", TEAM, "alpha")
    with pytest.raises(TeamsError):
        make_team(store)
    assert store.teams() == ["alpha"]
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


@pytest.mark.parametrize("field", WRONG)
def test_a_value_of_the_wrong_form_is_refused_by_the_name_of_its_field(store, root, field):
    path = root / "tasks/alpha/task-2.json"
    good = path.read_bytes()
    for value in WRONG[field]:
        path.write_bytes(good)
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


def test_nested_records_and_recipients_are_checked_too(store, root):
    edit(root / "teams/alpha/team.json", members=[{"name": "bob"}, {"name": 7}])
    with pytest.raises(DamagedRecord, match=r"members\.1\.name"):
        store.get("alpha", TEAM, "alpha")
    edit(root / "teams/alpha/team.json", members=[])
    broadcast(store, ["bob", "cid"], "hello", uid="b")
    edit(root / "teams/alpha/messages/0/4.@.b.json", recipients=["bob", "../x"])
    messages, problems = all_of(store, MESSAGE)
    assert len(messages) == 3
    assert "recipients.1" in problems[0].message
