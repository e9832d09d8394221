"""Inboxes: a message is shown to each recipient until that recipient has handled it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from teams_cli.errors import AlreadyHandled, MessageNotFound, StorageFailed, TeamsError
from teams_cli.membership import joining
from teams_cli.messages import inboxes, messages, reading
from teams_cli.messages.inboxes import INBOX, Inbox, Open
from teams_cli.messages.messages import MESSAGE
from teams_cli.messages.reading import Selection
from teams_cli.store.files.engine import FileStore
from teams_cli.teams.permission import Caller
from tests.support.cli import ALPHA, TIMEOUT, Cli
from tests.support.waits import at_once, until_asleep

if TYPE_CHECKING:
    from teams_cli.store.contract import Store
    from tests.conftest import FakeClock

LEA, BOB, MIA = Caller("lea"), Caller("bob"), Caller("mia")


@pytest.fixture
def team(team: Store) -> Store:
    joining.join(team, ALPHA, MIA)
    return team


def shown(store: Store, caller: Caller = BOB, peek: bool = False, **selection: Any) -> list[dict[str, Any]]:
    """The messages that the caller reads, none of which may be damaged."""
    problems: list[TeamsError] = []
    found = reading.read(store, ALPHA, caller, Selection(**selection), problems, None if peek else at_once)
    assert problems == []
    return found


def numbers(store: Store, caller: Caller = BOB, peek: bool = False, **selection: Any) -> list[int]:
    return [message["number"] for message in shown(store, caller, peek, **selection)]


def say(store: Store, *texts: str, to: str = "bob", sender: Caller = LEA) -> list[int]:
    return [messages.send(store, ALPHA, sender, to, text).number for text in texts]


def test_a_message_is_shown_until_it_is_handled(team: Store) -> None:
    """Each recipient of a broadcast handles it separately."""
    say(team, "a", "b", "c")
    for _ in range(3):
        assert numbers(team) == [1, 2, 3]
    reading.handle(team, ALPHA, BOB, ["2"])
    assert numbers(team) == [1, 3]
    reading.reply(team, ALPHA, BOB, "1", "yes", [])
    assert numbers(team) == [3]
    say(team, "d")
    assert numbers(team) == [3, 5]
    messages.broadcast(team, ALPHA, LEA, "for all")
    reading.handle(team, ALPHA, BOB, ["6"])
    assert (numbers(team, BOB), numbers(team, MIA)) == ([3, 5], [6])


def test_reading_marks_and_peeking_does_not(team: Store, clock: FakeClock) -> None:
    """A message keeps the time at which it was read first."""
    say(team, "a")
    assert "readAt" not in shown(team, peek=True)[0]
    assert inboxes.unread(team, ALPHA, "bob") == [1]
    first = shown(team)[0]["readAt"]
    clock.advance(60)
    assert shown(team)[0]["readAt"] == first and inboxes.unread(team, ALPHA, "bob") == []
    reading.handle(team, ALPHA, BOB, ["1"])
    (old,) = shown(team, handled=True)
    assert (old["readAt"], old["handledAt"] > first) == (first, True)


def test_selections(team: Store) -> None:
    say(team, "a", "b")
    say(team, "c", sender=MIA)
    say(team, "d")
    assert numbers(team, sender="mia") == [3]
    assert numbers(team, since=2) == [3, 4]
    assert numbers(team, limit=2) == [1, 2]
    assert numbers(team, sender="lea", since=1, limit=1) == [2]
    reading.handle(team, ALPHA, BOB, ["1", "3"])
    assert numbers(team, handled=True) == [1, 2, 3, 4]
    assert numbers(team, handled=True, sender="lea", limit=2) == [1, 2]
    assert numbers(team, handled=True, since=3) == [4]


def test_ack_twice_is_safe_and_all_or_none(team: Store, clock: FakeClock) -> None:
    say(team, "a", "b")
    reading.handle(team, ALPHA, BOB, ["1", "msg-1"])
    at = shown(team, handled=True)[0]["handledAt"]
    clock.advance(5)
    reading.handle(team, ALPHA, BOB, ["#1"])
    assert shown(team, handled=True)[0]["handledAt"] == at
    with pytest.raises(MessageNotFound):
        reading.handle(team, ALPHA, BOB, ["2", "99"])
    with pytest.raises(MessageNotFound):
        reading.handle(team, ALPHA, MIA, ["2"])
    assert numbers(team) == [2]


def test_a_reply_goes_to_the_sender_once(team: Store) -> None:
    say(team, "what?")
    answer, original = reading.reply(team, ALPHA, BOB, "1", "that", [])
    assert (answer.to, answer.type, answer.reply_to, original.message) == ("lea", "reply", "msg-1", "what?")
    for text in ("that", "other"):
        with pytest.raises(AlreadyHandled) as refusal:
            reading.reply(team, ALPHA, BOB, "1", text, [])
        assert refusal.value.status == 11
    with pytest.raises(MessageNotFound):
        reading.reply(team, ALPHA, MIA, "1", "not mine", [])
    assert team.last(ALPHA, MESSAGE) == 2


def test_a_damaged_message_is_named_and_not_passed_over(cli: Cli) -> None:
    """Other messages are shown, and so is the damaged one once it is repaired."""
    for text in ("a", "b", "c"):
        cli.ok("send-message", "bob", text, agent="lea")
    (file,) = (cli.root / "teams/alpha/messages/0").glob("2.bob.*.json")
    good = file.read_bytes()
    file.write_bytes(good[:20])
    for _ in range(2):
        answer = cli("read-messages", "--json", agent="bob")
        assert [m["number"] for m in answer.json] == [1, 3] and str(file) in answer.stderr
    cli("ack", "1", "3", agent="bob")
    assert file.read_bytes() == good[:20]
    file.write_bytes(good)
    assert [m["number"] for m in cli.ok("read-messages", agent="bob")] == [2]
    assert [m["number"] for m in cli.ok("read-messages", "--all", agent="bob")] == [1, 2, 3]


def test_waiting_in_another_process(cli: Cli) -> None:
    """`--wait` shows new messages at once, else the next that comes, and exits with 14 if none comes."""
    waiting = cli.start("read-messages", "--wait", "60", agent="bob")
    until_asleep(waiting)
    cli.ok("send-message", "bob", "wake", agent="lea")
    out, err = waiting.communicate(timeout=TIMEOUT)
    assert (waiting.returncode, err) == (0, b"") and b"| wake" in out
    cli.ok("send-message", "bob", "again", agent="lea")
    found = cli.ok("read-messages", "--wait", "60", agent="bob")
    assert [(message["message"], "readBefore" in message) for message in found] == [("wake", True), ("again", False)]
    assert cli.refused("read-messages", "--wait", "0.1", agent="bob") == (14, "wait_ran_out")


def test_an_inbox_behind_a_damaged_message_does_not_grow(cli: Cli) -> None:
    say(cli.store(), *(str(n) for n in range(420)))
    (file,) = (cli.root / "teams/alpha/messages/0").glob("1.bob.*.json")
    good = file.read_bytes()
    file.write_bytes(good[:20])
    for first in range(2, 420, 209):
        reading.handle(cli.store(), ALPHA, BOB, [str(n) for n in range(first, first + 209)])
    inbox = cli.store().get(ALPHA, INBOX, "bob")[0]
    assert (inbox.up_to, inbox.damaged, len(inbox.handled)) == (420, [1], 200)
    file.write_bytes(good)
    assert [m["number"] for m in cli.ok("read-messages", agent="bob")] == [1, 420]


def test_more_mail_than_an_inbox_holds_is_left_in_the_log(cli: Cli) -> None:
    store = cli.store()
    say(store, "old", "new", "newer")
    full = Inbox(agent="bob", open=[Open(number=10**6 + n) for n in range(19_999)])
    ahead = inboxes.with_new_messages(store, ALPHA, full, [])
    assert (ahead.up_to, len(ahead.open)) == (1, 20_000)
    assert inboxes.with_new_messages(store, ALPHA, ahead, []) == ahead
    handled = inboxes.with_handled(ahead, {10**6, 10**6 + 1}, "2030-01-01T00:00:00.000Z")
    assert inboxes.with_new_messages(store, ALPHA, handled, []).up_to == 3


def test_what_was_looked_at_is_marked_as_read_and_nothing_else(team: Store) -> None:
    """Marking messages as read changes nothing that was done since they were looked up."""
    say(team, "a", "b", "handled")
    mailbox = inboxes.Mailbox(team, ALPHA, "bob")
    reading.handle(team, ALPHA, BOB, ["3"])
    say(team, "c")
    mailbox.mark_read({1, 3})
    assert mailbox.unread() == [1, 2, 3] and [m.message for m in mailbox.messages([2, 1])] == ["a", "b"]
    assert numbers(team, peek=True) == [1, 2, 4]
    assert inboxes.unread(team, ALPHA, "bob") == [2, 4]


def test_a_message_is_handled_even_if_the_disk_fails_after_it_was_read(cli: Cli) -> None:
    cli.ok("send-message", "bob", "hello", agent="lea")

    class Failing(FileStore):
        def news(self, team: str, kind: Any, agent: str, after: int, problems: list[Any]) -> tuple[list[Any], int]:
            problems.append(StorageFailed("can't read it: Input/output error"))
            return [], self.last(team, kind)

    reading.handle(Failing(str(cli.root)), ALPHA, BOB, ["1"])
    inbox = cli.store().get(ALPHA, INBOX, "bob")[0]
    assert [entry.number for entry in inbox.handled] == [1]
    assert cli.ok("read-messages", agent="bob") == []
