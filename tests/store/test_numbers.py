"""A number is given only once, whatever is deleted, put aside or restored."""

from __future__ import annotations

import json
import shutil
import time
from pathlib import Path

import pytest

from teams_cli.messages.messages import MESSAGE
from teams_cli.store.files.engine import FileStore
from teams_cli.store.files.message_log import MessageLog
from tests.conftest import new_address
from tests.store.kinds import send
from tests.support.cli import ALPHA, Cli, make_team

GIVERS = {
    "task": ("tasks/alpha", "lea", "create-task", "a task"),
    "message": ("teams/alpha/messages/0", "lea", "send-message", "bob", "hello"),
    "plan": ("teams/alpha/plans", "bob", "propose-plan", "a plan"),
}


def give(cli: Cli, what: str, count: int = 1) -> list[int]:
    """Have the next *count* numbers of the kind given; return them."""
    _, agent, *words, text = GIVERS[what]
    made = [cli.ok(*words, f"{text} {time.monotonic_ns()}", agent=agent) for _ in range(count)]
    return [int(str(each["id"]).rpartition("-")[2]) for each in made]


def newest(cli: Cli, what: str) -> Path:
    """Return the file of the record with the highest number."""
    paths = (cli.root / GIVERS[what][0]).glob("*.json")
    return max(paths, key=lambda path: int(path.name.partition(".")[0].rpartition("-")[2]))


def put_aside(cli: Cli, what: str) -> None:
    newest(cli, what).write_bytes(b"{")
    assert cli("doctor", "--fix").status == 0


def new(cli: Cli) -> list[str]:
    """Return the messages that bob has not read."""
    return [m["message"] for m in cli.ok("read-messages", agent="bob") if not m.get("readBefore")]


def sent(cli: Cli, *texts: str) -> None:
    for text in texts:
        cli.ok("send-message", "bob", text, agent="lea")


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    return make_team(tmp_path / "root", "bob")


@pytest.mark.parametrize("what", ["task", "message"])
def test_no_number_is_given_again(cli: Cli, what: str) -> None:
    """This includes numbers that an older version gave without a note, and one whose process was killed before the
    note. Such a number may have a digit more than the last noted one, and so a name that sorts before it.
    """
    place = cli.root / GIVERS[what][0]
    for number in (1, 2):
        assert give(cli, what) == [number]
        for mark in cli.root.rglob(".last.*"):
            mark.unlink()
    put_aside(cli, what)
    assert give(cli, what) == [3]
    put_aside(cli, what)
    assert give(cli, what) == [4]
    for path in place.glob("*.json"):
        path.unlink()
    assert give(cli, what, 6) == [5, 6, 7, 8, 9, 10]
    (noted,) = [at / ".last.10" for at in (place, place.parent) if (at / ".last.10").exists()]
    noted.rename(noted.with_name(".last.9"))
    assert give(cli, what) == [11]


@pytest.mark.slow
def test_a_copy_goes_on_behind_what_was_given(cli: Cli) -> None:
    for what in GIVERS:
        give(cli, what, 2)
        newest(cli, what).unlink()
    address = new_address()
    cli.ok("copy-team", ALPHA, "--to", address, agent="lea")
    there = Cli(cli.root, team=ALPHA, TEAMS_STORE=address)
    assert [give(there, what) for what in GIVERS] == [[3], [5], [3]]  # both plans were told of in messages


def test_who_read_a_message_that_was_put_aside_reads_the_next(cli: Cli) -> None:
    """A message is put aside if it is damaged after it was acknowledged."""
    sent(cli, "one")
    cli.ok("ack", "1", agent="bob")
    put_aside(cli, "message")
    sent(cli, "two")
    assert new(cli) == ["two"]


@pytest.mark.parametrize("mender", ["doctor", "reader"])
def test_an_inbox_that_read_further_than_the_log_goes_is_reported(cli: Cli, mender: str) -> None:
    """The numbers that the inbox has as read are given to no other message."""
    sent(cli, "one", "two")
    cli.ok("ack", "1", "2", agent="bob")
    shutil.rmtree(cli.root / "teams/alpha/messages")
    if mender == "reader":
        answer = cli("read-messages", "--json", agent="bob")
        assert answer.status == 0 and "up to msg-2" in answer.stderr and "ends with msg-0" in answer.stderr
    else:
        assert "up to msg-2" in cli("doctor", "--json").stdout
        assert cli("doctor", "--fix").status == 0
    sent(cli, "three")
    assert new(cli) == ["three"]
    assert cli("doctor").status == 0


def forge(cli: Cli, **fields: object) -> None:
    """Edit bob's inbox by hand."""
    inbox = cli.root / "teams/alpha/inboxes/bob.json"
    said = {key: value for key, value in json.loads(inbox.read_text()).items() if key != "checksum"}
    inbox.write_text(json.dumps({**said, **fields}))


@pytest.mark.slow
@pytest.mark.parametrize(("field", "number"), [("open", 3), ("handled", 2_000_000)])
def test_no_message_is_hidden_by_a_number_that_was_called_handled_beforehand(cli: Cli, field: str, number: int) -> None:
    """Nobody can have read a number that was not given yet. It is reported, and is never given, or is removed."""
    sent(cli, "one")
    cli.ok("read-messages", agent="bob")
    then = "2030-01-01T00:00:00.000Z"
    forge(cli, **{field: [{"number": number, "readAt": then, **({"handledAt": then} if field == "handled" else {})}]})
    assert f"up to msg-{number}" in cli("doctor", "--json").stdout
    assert f"up to msg-{number}" in cli("read-messages", "--json", agent="bob").stderr
    sent(cli, "two", "three")
    assert new(cli) == ["two", "three"]
    assert cli("doctor").status == 0


@pytest.mark.parametrize(("mender", "forged"), [("doctor", 5000), ("reader", 10**12 - 1), ("reader", 5 * 10**15)])
def test_no_forged_inbox_loses_a_message_or_takes_the_numbers_of_all(cli: Cli, mender: str, forged: int) -> None:
    """This holds for messages before and after somebody notices."""
    sent(cli, "one")
    cli.ok("read-messages", agent="bob")
    forge(cli, upTo=forged)
    sent(cli, "two")
    if mender == "doctor":
        assert cli("doctor", "--fix").status == 0
    found = cli("read-messages", "--json", agent="bob").json
    assert [m["message"] for m in found if not m.get("readBefore")] == ["two"]
    sent(cli, "three")
    assert new(cli) == ["three"]
    assert cli("doctor").status == 0


def test_what_a_listing_passed_over_is_found(cli: Cli) -> None:
    """A directory that is listed while messages arrive may show a later message without an earlier one."""
    sent(cli, "one", "two")
    passed_over = ["1.bob."]

    class Racing(MessageLog):
        def listed(self, segment: int) -> list[str]:
            hidden = passed_over.pop() if passed_over else "-"
            return [name for name in super().listed(segment) if not name.startswith(hidden)]

    class Raced(FileStore):
        def log(self, team: str) -> MessageLog:
            return Racing(self.layout.messages(team), self.address, self._lock, self._contents)

    came, last = Raced(str(cli.root)).news(ALPHA, MESSAGE, "bob", 0, [])
    assert not passed_over and ([message.message for message in came], last) == (["one", "two"], 2)


def test_a_glance_tells_what_is_noted(cli: Cli) -> None:
    """Without a note, as older versions left it, a glance looks closer."""
    store = FileStore(str(cli.root))

    def glances(*after: int) -> list[int | None]:
        return [store.glance(ALPHA, MESSAGE, "bob", number) for number in after]

    sent(cli, "one")
    assert glances(0, 1, 2) == [None, 1, None]
    send(store, "lea", "own")
    assert glances(0, 1, 2) == [None, 2, 2]
    cli.ok("send-message", "lea", "of another process", agent="bob")
    assert glances(1, 2, 3) == [None, None, 3]
    for note in (cli.root / "teams/alpha/messages").glob(".last.*"):
        note.unlink()
    assert glances(0, 1) == [None, None]
