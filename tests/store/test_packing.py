"""Messages of a closed team in one file: all is read as before, at every moment, whatever breaks on the way."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from teams_cli.errors import DamagedRecord, TeamsError
from teams_cli.messages import messages
from teams_cli.store.contract import Kind
from teams_cli.store.files import packing
from teams_cli.store.files.engine import FileStore
from teams_cli.teams.caller import Caller
from tests.store.crashsim import Killed, Recorder, collecting, durable, put
from tests.store.histories import cheap_fsync, explained
from tests.store.kinds import MESSAGE, Message, broadcast, close_team, make_team, seen, send, texts
from tests.support.cli import ALPHA, Cli
from tests.support.cli import make_team as team_of_cli

LOG = "teams/alpha/messages"


def filled(root: Path) -> FileStore:
    """A team with messages to one and to several, in two directories, one of them in form of a person's own."""
    store = FileStore(str(root))
    make_team(store)
    for n in range(1, 5):
        send(store, "bob", f'"quoted"\n"{n}"\n}}\n', uid=f"u{n}")
    broadcast(store, ["bob", "cid"], "all", uid="several")
    by_hand = json.loads((root / LOG / "0/2.bob.u2.json").read_text())
    (root / LOG / "0/2.bob.u2.json").write_text(json.dumps(by_hand, indent=0))
    store.reserve("alpha", MESSAGE, 999)
    send(store, "bob", "thousandth", uid="last")
    send(store, "cid", "and one")
    return store


def pack(store: FileStore) -> None:
    packing.pack(store.log("alpha"), MESSAGE, worth=1)


def files(root: Path) -> list[str]:
    return sorted(path.name for path in (root / LOG).glob("*/*"))


def all_of(store: FileStore) -> object:
    """What every way to read the log says."""
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


def test_all_is_read_as_before_and_goes_on(tmp_path: Path) -> None:
    store = filled(tmp_path)
    before = all_of(store)
    close_team(store)
    pack(store)
    assert files(tmp_path) == ["2.bob.u2.json", "packed.json", "packed.json"]  # the person's own stays
    close_team(store, "active")
    assert all_of(FileStore(str(tmp_path))) == before
    assert send(store, "bob", "again", uid="u3").number == 3
    assert send(store, "bob", "new", uid="new").number == 1002
    close_team(store)
    pack(store)
    assert texts(store, "bob")[-2:] == ["thousandth", "new"]
    assert files(tmp_path) == ["2.bob.u2.json", "packed.json", "packed.json"]


def test_people_and_programs_read_the_file(tmp_path: Path) -> None:
    """It is a row of JSON values: a heading, and each message behind the name that its file had."""
    store = filled(tmp_path)
    one = (tmp_path / LOG / "0/1.bob.u1.json").read_text()
    pack(store)
    text = (tmp_path / LOG / "0/packed.json").read_text()
    assert text.startswith('"messages to number 5, 4 of them"\n"1.bob.u1.json"\n' + one + '"3.bob.u3.json"\n{\n')
    told = subprocess.run(["jq", "-r", "objects | .id"], input=text, capture_output=True, text=True, check=True)
    assert told.stdout.split() == ["msg-1", "msg-3", "msg-4", "msg-5"]


def test_what_is_damaged_stays_by_itself_and_nothing_is_made_of_it(tmp_path: Path) -> None:
    store = filled(tmp_path)
    (tmp_path / LOG / "0/3.bob.u3.json").write_text("{\n}\n")
    pack(store)
    assert (tmp_path / LOG / "0/3.bob.u3.json").read_text() == "{\n}\n"
    problems: list[TeamsError] = []
    assert len(store.read("alpha", MESSAGE, None, 0, problems)) == 6 and len(problems) == 1


def test_a_packed_message_that_was_damaged_is_named_alone(tmp_path: Path) -> None:
    store = filled(tmp_path)
    pack(store)
    path = tmp_path / LOG / "0/packed.json"
    path.write_bytes(path.read_bytes().replace(b'"msg-3"', b'"msg-x"'))
    problems: list[TeamsError] = []
    assert [m.number for m in store.read("alpha", MESSAGE, None, 0, problems)] == [1, 2, 4, 5, 1000, 1001]
    (problem,) = problems
    assert isinstance(problem, DamagedRecord) and problem.number == 3 and "packed.json/3.bob.u3.json" in problem.message


def test_a_power_cut_at_any_moment(tmp_path: Path) -> None:
    with cheap_fsync():
        store = filled(tmp_path / "root")
    before = all_of(store)
    with Recorder(durable(tmp_path)) as recorder:
        states = collecting(recorder)
        pack(store)
    for n, (said, tree) in enumerate(states.values()):
        place = tmp_path / str(n)
        place.mkdir()
        put(tree, place)
        with explained(said), cheap_fsync():
            store = FileStore(str(place / "root"))
            assert all_of(store) == before
            pack(store)
            assert all_of(store) == before and len(files(place / "root")) == 3
    assert len(states) > 10


def test_a_kill_at_any_step(tmp_path: Path) -> None:
    for step in itertools.count(1):
        top = tmp_path / str(step)
        top.mkdir()
        with cheap_fsync():
            store = filled(top / "root")
        before = all_of(store)
        recorder = Recorder(durable(top), kill_before=step)
        with recorder, explained(f"killed before step {step}"):
            with contextlib.suppress(Killed):
                pack(store)
            if not recorder.dead:
                break
            recorder.revive()
            store = FileStore(str(top / "root"), lock_timeout=0.5)
            assert all_of(store) == before
            pack(store)
            assert all_of(store) == before and len(files(top / "root")) == 3
    assert step > 10


@pytest.mark.parametrize("read", [FileStore.envelopes, lambda store, team, kind, _: store.pack(team, kind)])
def test_what_was_listed_before_is_found_behind(
    read: Callable[[FileStore, str, Kind[Message], int], Iterator[object]], tmp_path: Path
) -> None:
    store = FileStore(str(tmp_path))
    make_team(store)
    for n in range(3):
        broadcast(store, ["bob", "cid"], str(n))
    before, reading = sorted(read(store, ALPHA, MESSAGE, 0)), read(store, ALPHA, MESSAGE, 0)
    first = next(reading)
    pack(FileStore(str(tmp_path)))
    assert files(tmp_path) == ["packed.json"]
    assert sorted([first, *reading]) == before


def test_who_reads_meanwhile_misses_none(tmp_path: Path) -> None:
    """Files are listed, and read, while they go."""
    store = FileStore(str(tmp_path))
    make_team(store)
    with cheap_fsync():
        for n in range(300):
            send(store, "bob", str(n))
    expected, wrong, packed = [str(n) for n in range(300)], [], threading.Event()

    def read() -> None:
        mine = FileStore(str(tmp_path))
        while not packed.is_set():
            found = texts(mine, "bob")
            if found != expected:
                wrong.append(found)

    readers = [threading.Thread(target=read) for _ in range(2)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for reader in readers:
            reader.start()
        pack(store)
        packed.set()
        for reader in readers:
            reader.join()
    finally:
        packed.set()
        sys.setswitchinterval(interval)
    assert wrong == [] and files(tmp_path) == ["packed.json"]


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    """A team of two that has said much."""
    cli = team_of_cli(tmp_path / "root", "bob")
    with cheap_fsync():
        for n in range(packing.WORTH + 1):
            messages.send(FileStore(str(cli.root)), ALPHA, Caller("lea"), "bob", f"message {n}")
    return cli


def test_closing_packs_and_all_goes_on(cli: Cli) -> None:
    count, log = packing.WORTH + 1, cli.root / LOG / "0"
    cli.ok("close-team", agent="lea")
    assert os.listdir(log) == ["packed.json"]
    assert len(cli.ok("read-messages", "--all", "--peek", "--limit", "500", agent="bob")) == count
    assert [hit["id"] for hit in cli.ok("search", "100", agent="bob")] == [f"msg-{count}"]
    assert cli.ok("doctor")["findings"] == []
    cli.ok("restore-team", ALPHA, agent="lea")
    told = cli("hook", "claude", agent="bob", stdin=b'{"session_id": "s", "hook_event_name": "PostToolBatch"}')
    assert "message 0" in told.stdout
    assert cli.ok("send-message", "bob", "more", agent="lea")["id"] == f"msg-{count + 1}"
    assert cli.ok("reply", "msg-7", "well", agent="bob")["replyTo"] == "msg-7"
    cli.ok("close-team", agent="lea")
    assert sorted(os.listdir(log))[-1] == "packed.json" and len(os.listdir(log)) == 3


def test_the_doctor_packs_what_an_older_version_left(cli: Cli) -> None:
    """And puts a packed message that is damaged aside, alone."""
    team = cli.root / "teams/alpha/team.json"
    team.write_text(team.read_text().replace('"state": "active"', '"state": "closed"'))
    (found,) = cli.ok("doctor")["findings"]
    assert found["level"] == "warning" and "packed" in found["what"]
    assert [f["level"] for f in cli.ok("doctor", "--fix")["findings"]] == ["fixed"]
    path = cli.root / LOG / "0/packed.json"
    path.write_bytes(path.read_bytes().replace(b'"msg-3"', b'"msg-x"'))
    assert "3.bob." in json.loads(cli("doctor", "--json").stdout)["findings"][0]["what"]
    assert [f["level"] for f in cli.ok("doctor", "--fix")["findings"]] == ["fixed"]
    assert cli.ok("doctor")["findings"] == []
    assert len(cli.ok("read-messages", "--all", "--peek", "--limit", "500", agent="bob")) == packing.WORTH
    (aside,) = (cli.root / "quarantine").iterdir()
    assert b'"msg-x"' in aside.read_bytes()
    path.write_bytes(path.read_bytes().rpartition(b'\n"')[0] + b"\n")
    assert "says that there are 100" in json.loads(cli("doctor", "--json").stdout)["findings"][0]["what"]
