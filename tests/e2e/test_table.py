"""Every client at a terminal is woken by mail, and loses no message whatever comes between.

Two clients are tested by default; the others, and the newest versions, are tested with the slow tests: `python
-m pytest -m "" tests/e2e/test_table.py`.
"""

from __future__ import annotations

import os
import signal
import time

from teams_cli.agents.seats.doorbells import LINE
from teams_cli.messages import messages
from teams_cli.teams.permission import Caller
from tests.e2e.apis import Outside
from tests.e2e.conftest import NEWEST, TO_START, Office
from tests.e2e.model import Run, Say
from tests.e2e.sitting import (
    ASKING,
    ASKING_BY,
    NAME,
    WOKEN_NATIVELY,
    Desk,
    back_in_session,
    begun,
    history_of,
    install,
    row_of,
    seated,
    seats,
    until,
    wait_for_mail,
    wait_for_state,
    waiting_for,
)
from tests.support.cli import ALPHA

RESUME = {
    "claude": ["--resume"],
    "codex": ["resume"],
    "opencode": ["--session"],
    "qwen": ["--resume"],
    "gemini": ["--resume"],
}
EVERY = (*WOKEN_NATIVELY, "gemini")
NEW = tuple(f"{client}{NEWEST}" for client in EVERY)
TYPED_FOR = ("gemini", f"gemini{NEWEST}")
"""Clients that can be woken only by typing a line for them."""


@seats(*WOKEN_NATIVELY, *(f"{client}{NEWEST}" for client in WOKEN_NATIVELY))
def test_an_idle_client_is_woken_and_reads_its_mail(office: Office, desk: Desk) -> None:
    """The mail is in the turn for which the client is woken, and what its person was typing stays. The client
    is not called idle during that turn.
    """
    seat = begun(office, desk)
    office.model.scripts["[me]"] = [Say("so it is red", held=True)] * 15
    assert row_of(office, NAME)["terminal"]["client"] == office.client
    seat.type("half a line")
    office.say("send-message", NAME, "the build is red")
    until(lambda: LINE in office.model.requests["[me]"][-1].text, lambda: seat.screen)
    assert row_of(office, NAME)["terminal"]["state"] == ("unknown" if office.client == "qwen" else "working")
    office.model.release()
    until(lambda: "| the build is red" in office.model.requests["[me]"][-1].text, lambda: seat.screen)
    assert "half a line" not in office.model.requests["[me]"][-1].text
    wait_for_state(office, NAME, "idle")
    assert "half a line" in seat.screen


@seats(beside=TYPED_FOR)
def test_nothing_is_typed_into_a_line_that_is_half_typed(office: Office, desk: Desk) -> None:
    """The wrapper leaves a half-typed line alone; when the person sends the line, the mail comes with it."""
    seat = begun(office, desk)
    seat.type("half a line")
    office.say("send-message", NAME, "the build is red")
    time.sleep(5)  # more than twice as long as the wrapper waits after a key
    assert len(office.model.requests["[me]"]) == 1
    assert "half a line" in seat.screen and "[teams]" not in seat.screen
    seat.press("Enter")
    wait_for_mail(office, seat, "| the build is red")
    assert "half a line" in office.model.requests["[me]"][-1].text


@seats("claude", "opencode", "qwen", f"claude{NEWEST}", f"opencode{NEWEST}", beside=("codex", *TYPED_FOR))
def test_mail_waits_until_a_permission_dialog_is_answered(office: Office, desk: Desk) -> None:
    """While a client asks its person for a permission, mail does not answer for them, and the leader is told of
    the wait.
    """
    office.say("set", "tellPermissionAfter", "0.5")
    install(office)
    office.model.script("[me]", Run(Outside("touch made-by-nobody")), Say("then"), Say("seen"), Say("seen"))
    seat = seated(office, desk, "one", *ASKING.get(office.client, ()), **ASKING_BY.get(office.client, {}))
    seat.say("[me] hi")
    row = wait_for_state(office, NAME, "permission", TO_START)
    assert "made-by-nobody" in row["terminal"]["waitsFor"] and row["state"] == "permission"
    office.say("send-message", NAME, "the build is red")
    until(lambda: "waited for a permission" in office.say("read-messages", "--peek"), office.logs)
    assert len(office.model.requests["[me]"]) == 1 and not (office.work / "made-by-nobody").exists()
    assert row_of(office, NAME)["terminal"]["state"] == "permission"
    seat.press("Enter")
    wait_for_mail(office, seat, "| the build is red")
    assert (office.work / "made-by-nobody").exists()


@seats(*WOKEN_NATIVELY, beside=("gemini", *NEW))
def test_twenty_messages_are_one_wake(office: Office, desk: Desk) -> None:
    seat = begun(office, desk)
    store = office.cli.store()
    for number in range(20):
        messages.send(store, ALPHA, Caller("lea"), NAME, f"note {number}.")
    until(lambda: row_of(office, NAME)["queueDepth"] == 0, lambda: seat.screen + office.logs())
    wait_for_state(office, NAME, "idle")
    assert history_of(office).count("terminal woken") == 1
    shown = "\n".join(request.text for request in office.model.requests["[me]"][-1:])
    assert [shown.count(f"| note {number}.") for number in range(20)] == [1] * 20


@seats("claude", "codex", beside=("opencode", "qwen", *NEW[:-1]))
def test_a_killed_client_is_gone_and_has_its_name_when_it_is_resumed(office: Office, desk: Desk) -> None:
    """The waiting hook ends with the client, the sender of a message is told, and the resumed session has its
    name again.
    """
    begun(office, desk)
    row = row_of(office, NAME)
    os.kill(row["terminal"]["pid"], signal.SIGKILL)
    wait_for_state(office, NAME, "gone")
    office.say("send-message", NAME, "are you there?")
    until(lambda: "has not read msg-1" in office.say("read-messages", "--peek"), office.logs)
    until(lambda: not waiting_for(office), lambda: str(waiting_for(office)))
    resume = [*RESUME[office.client], row["terminal"]["sessionId"]]
    again = back_in_session(office, desk.start("two", *resume))
    wait_for_mail(office, again, "| are you there?")
    assert row_of(office, NAME)["terminal"]["pid"] != row["terminal"]["pid"] and not row_of(office, "agentB")


@seats("claude", beside=("opencode", f"claude{NEWEST}", f"opencode{NEWEST}"))
def test_mail_arrives_though_the_waiter_was_killed(office: Office, desk: Desk) -> None:
    seat = begun(office, desk)
    until(lambda: bool(waiting_for(office)), office.logs)
    killed = waiting_for(office)
    for pid in killed:
        os.kill(pid, signal.SIGKILL)
    if office.client == "opencode":  # its plugin starts another waiter
        until(lambda: not {*waiting_for(office)} <= {*killed}, office.logs)
    office.say("send-message", NAME, "first")
    if office.client != "opencode":
        seat.say("now you")  # the end of a turn starts another waiter
    wait_for_mail(office, seat, "| first")
    wait_for_state(office, NAME, "idle")
    office.say("send-message", NAME, "second")
    wait_for_mail(office, seat, "| second")


@seats(beside=TYPED_FOR)
def test_a_client_ends_with_its_wrapper_and_the_sender_hears_of_it(office: Office, desk: Desk) -> None:
    seat = begun(office, desk)
    client = row_of(office, NAME)["terminal"]["pid"]
    os.kill(seat.pid, signal.SIGKILL)
    wait_for_state(office, NAME, "gone")
    until(lambda: not os.path.exists(f"/proc/{client}"), office.logs)
    office.say("send-message", NAME, "are you there?")
    until(lambda: "has not read msg-1" in office.say("read-messages", "--peek"), office.logs)
