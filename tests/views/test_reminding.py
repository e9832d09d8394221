"""How far the log is looked through for the line that tells an agent of its mail."""

from __future__ import annotations

from teams_cli.membership import joining
from teams_cli.messages import messages
from teams_cli.store.contract import Store
from teams_cli.teams import presence
from teams_cli.teams.permission import Caller
from teams_cli.views.reminders import reminder
from tests.support.cli import ALPHA


def told(store: Store) -> str:
    """The line for bob, noted as told when it is out."""
    return reminder(store, ALPHA, "bob", lambda note: note()).text


def to_mia(store: Store, count: int) -> None:
    for number in range(count):
        messages.send(store, ALPHA, Caller("lea"), "mia", f"number {number}")


def test_mail_is_told_of_also_behind_many_messages_for_others(team: Store) -> None:
    """Of a few the envelopes are looked at; of more the inbox is asked, and how far that was is noted."""
    joining.join(team, ALPHA, Caller("mia"))
    to_mia(team, 5)
    assert told(team) == ""
    assert presence.load(team, ALPHA, "bob").told_to is None
    messages.send(team, ALPHA, Caller("lea"), "bob", "hello")
    assert told(team) == "msg-6 from lea: hello (teams reply msg-6 TEXT)"
    to_mia(team, 40)
    assert told(team) == ""
    assert presence.load(team, ALPHA, "bob").told_to == 46
    messages.broadcast(team, ALPHA, Caller("lea"), "all of you")
    assert told(team) == "msg-47 from lea: all of you"
    assert told(team) == ""


def test_who_has_read_all_is_asked_once_for_many_messages(team: Store) -> None:
    joining.join(team, ALPHA, Caller("mia"))
    to_mia(team, 40)
    assert told(team) == ""
    assert presence.load(team, ALPHA, "bob").told_to == 40
    messages.send(team, ALPHA, Caller("lea"), "bob", "hello")
    assert told(team) == "msg-41 from lea: hello (teams reply msg-41 TEXT)"
