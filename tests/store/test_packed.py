"""Messages of a closed team that version 0.2 put into one file. They are read and changed as before."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from teams_cli.errors import DamagedRecord, TeamsError
from teams_cli.store.files.engine import FileStore
from tests.store.kinds import MESSAGE, broadcast, make_team, seen, send, texts
from tests.support.cli import ALPHA
from tests.support.cli import make_team as team_of_cli

LOG = "teams/alpha/messages"


def pack(directory: Path) -> None:
    """Put the messages of a directory into one file as version 0.2 did, together with those that are packed already."""
    for name, text in packed(directory).items():
        (directory / name).write_text(text)
    files = sorted(directory.glob("*.*.*.json"), key=lambda path: int(path.name.partition(".")[0]))
    last = files[-1].name.partition(".")[0]
    parts = [f'"{path.name}"\n{path.read_text()}' for path in files]
    (directory / "packed.json").write_text(f'"messages to number {last}, {len(files)} of them"\n' + "".join(parts))
    for path in files:
        path.unlink()


def packed(directory: Path) -> dict[str, str]:
    """Return the packed messages by the names of their files."""
    path = directory / "packed.json"
    parts = path.read_text().split('\n"')[1:] if path.exists() else []
    named = [part.partition('"\n') for part in parts]
    return {name: text.rstrip("\n") + "\n" for name, _, text in named}


def pack_all(root: Path) -> None:
    for directory in (root / LOG).glob("[0-9]*"):
        if list(directory.glob("*.*.*.json")):
            pack(directory)


@pytest.fixture
def store(tmp_path: Path) -> FileStore:
    """Provide a team with messages to one agent and to several, in two directories."""
    store = FileStore(str(tmp_path))
    make_team(store)
    for n in range(1, 5):
        send(store, "bob", f'"quoted"\n"{n}"\n}}\n', uid=f"u{n}")
    broadcast(store, ["bob", "cid"], "all", uid="several")
    store.reserve("alpha", MESSAGE, 999)
    send(store, "bob", "thousandth", uid="last")
    send(store, "cid", "and one")
    return store


def all_of(store: FileStore) -> object:
    """Return the messages by every way to read the log."""
    return (
        seen(store),
        texts(store, "bob"),
        texts(store, "cid", after=4, limit=2),
        sorted(store.envelopes("alpha", MESSAGE, 1)),
        list(store.pack("alpha", MESSAGE)),
        store.last("alpha", MESSAGE),
        [m.message for m in store.fetch("alpha", MESSAGE, [2, 5, 1000], [])],
        [m.message for m in store.search("alpha", MESSAGE, ["all"], [])],
        store.get("alpha", MESSAGE, "msg-3")[0].message,
    )


def test_all_is_read_as_before_and_goes_on(store: FileStore, tmp_path: Path) -> None:
    before = all_of(store)
    pack_all(tmp_path)
    assert all_of(store) == before == all_of(FileStore(str(tmp_path)))
    assert send(store, "bob", "again", uid="u3").number == 3
    assert send(store, "bob", "new", uid="new").number == 1002
    assert texts(store, "bob")[-2:] == ["thousandth", "new"]


def test_what_was_listed_before_is_found_behind(store: FileStore, tmp_path: Path) -> None:
    """An older version may pack messages between the listing and the reading."""
    for read in (lambda: store.envelopes(ALPHA, MESSAGE, 999), lambda: store.pack(ALPHA, MESSAGE)):
        for text in ("to several", "in any order"):  # one of them is read behind the first
            broadcast(store, ["bob", "cid"], text)
        before, reading = sorted(read()), read()
        first = next(reading)
        pack_all(tmp_path)
        assert sorted([first, *reading]) == before


def test_one_that_is_damaged_is_named_alone(store: FileStore, tmp_path: Path) -> None:
    pack_all(tmp_path)
    path = tmp_path / LOG / "0/packed.json"
    path.write_bytes(path.read_bytes().replace(b'"msg-3"', b'"msg-x"'))
    problems: list[TeamsError] = []
    assert [m.number for m in store.read("alpha", MESSAGE, None, 0, problems)] == [1, 2, 4, 5, 1000, 1001]
    (problem,) = problems
    assert isinstance(problem, DamagedRecord) and problem.number == 3 and "packed.json/3.bob.u3.json" in problem.message


def test_commands_go_on_and_the_doctor_says_what_was_taken_out(tmp_path: Path) -> None:
    cli = team_of_cli(tmp_path / "root", "bob")
    for n in range(3):
        cli.ok("send-message", "bob", f"message {n}", agent="lea")
    cli.ok("close-team", agent="lea")
    pack_all(cli.root)
    assert cli.ok("doctor")["findings"] == []
    cli.ok("restore-team", ALPHA, agent="lea")
    assert cli.ok("reply", "msg-2", "well", agent="bob")["replyTo"] == "msg-2"
    assert len(cli.ok("read-messages", "--all", "--peek", agent="bob")) == 3
    path = cli.root / LOG / "0/packed.json"
    path.write_bytes(path.read_bytes().rpartition(b'\n"')[0] + b"\n")
    assert "says that there are 3" in json.loads(cli("doctor", "--json").stdout)["findings"][0]["what"]
