"""What senders are told of their messages: how far they got, and which were not acknowledged in time."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from teams_cli.messages import messages
from teams_cli.teams import presence, teams
from teams_cli.teams.permission import Caller
from teams_cli.views import receipts
from tests.support.cli import ALPHA, Cli
from tests.support.waits import at_once, until

if TYPE_CHECKING:
    from teams_cli.store.contract import Store
    from tests.conftest import FakeClock


def states(cli: Cli, *words: str) -> dict[str, str]:
    found = cli("sent", "--json", *words, agent="lea").json
    return {f"{message['id']} {to['name']}": to["state"] for message in found for to in message["reach"]}


def test_a_message_is_followed_from_the_queue_to_its_end(cli: Cli) -> None:
    for to in ("bob", "bob", "mia", "mia,bob"):
        assert cli("send-message", to, "Look at this", agent="lea").status == 0
    assert set(states(cli).values()) == {"queued"} and len(states(cli)) == 5
    cli("attend", agent="bob")
    assert states(cli)["msg-1 bob"] == "shown"
    cli("read-messages", agent="bob")
    cli("ack", "1", agent="bob")
    assert cli("leave-team", agent="mia").status == 0
    assert states(cli) == {
        "msg-1 bob": "handled",
        "msg-2 bob": "read",
        "msg-3 mia": "will_not_be_read",
        "msg-4 mia": "will_not_be_read",
        "msg-4 bob": "read",
    }
    assert set(states(cli, "--open")) == {"msg-2 bob", "msg-4 mia", "msg-4 bob"}
    assert set(states(cli, "--to", "mia", "--limit", "1")) == {"msg-4 mia", "msg-4 bob"}
    assert cli("sent", "--json", agent="bob").json == []


def test_what_is_not_acknowledged_in_time_is_told_to_its_sender_and_ends_its_wait(cli: Cli) -> None:
    assert cli("set", "ack_timeout", "0.1", agent="lea").status == 0
    sent = cli("send-message", "bob", "Sign this", "--ack-required", "--json", agent="lea").json
    assert sent["ackBy"]
    assert "teams ack msg-1" in cli("read-messages", agent="bob").stdout
    until(lambda: any(row.get("overdue") for row in cli("sent", "--json", agent="lea").json))
    told = [cli("get-tasks", agent="lea").stderr for _ in range(2)]
    assert sum("msg-1 is not acknowledged by bob" in line for line in told) <= 1
    (late,) = cli("brief", "--json", agent="lea").json["overdue"]
    assert late == {"id": "msg-1", "ackBy": sent["ackBy"], "waitsFor": ["bob"]}
    assert "overdue: msg-1" in cli("brief", agent="lea").stdout
    assert cli("ack", "1", agent="bob").status == 0
    assert cli("brief", "--json", agent="lea").json["overdue"] == []
    (row,) = cli("sent", "--json", agent="lea").json
    assert "overdue" not in row
    assert cli("send-message", "bob", "And this", "--ack-required", agent="lea").status == 0
    said = cli("wait", "--timeout", "60", "--json", agent="lea").json
    assert [(each["what"], each["id"]) for each in said["happened"]] == [("overdue", "msg-2")]


def test_what_becomes_overdue_during_an_answer_is_reported_by_the_next_one(team: Store, clock: FakeClock) -> None:
    """What an answer notes about the messages that it reported leaves a later message alone."""
    for _ in range(2):
        ack_by = receipts.due(team, teams.get(team, ALPHA))
        sent = messages.send(team, ALPHA, Caller("lea"), "bob", "Sign this", ack_by=ack_by)
        receipts.expect(team, ALPHA, sent)
        clock.advance(10)

    def reported(once_shown: Callable[[Callable[[], object]], object]) -> list[str]:
        notices = receipts.overdue_notices(team, ALPHA, presence.load(team, ALPHA, "lea"), once_shown)
        return [notice.partition(" ")[0] for notice in notices]

    while not reported(lambda note: None):
        clock.advance(1)
    notes: list[Callable[[], object]] = []
    assert reported(notes.append) == ["msg-1"]
    clock.advance(60)
    notes.pop()()
    assert reported(at_once) == ["msg-2"] and reported(at_once) == []
