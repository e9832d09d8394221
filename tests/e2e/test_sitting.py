"""Clients that a person sits in front of, as members: joined from inside, seen, and woken by mail."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from teams_cli.messages import messages
from teams_cli.teams.caller import Caller
from tests.e2e.conftest import NEWEST, TO_START, Office, every_client
from tests.e2e.model import Run, Say
from tests.e2e.sitting import Desk, Seat, install, row_of, until, wait_for_state, without_tmux
from tests.support.cli import ALPHA

NAME = "agentA"
WOKEN_NATIVELY = ("claude", "codex", "opencode", "qwen")
RESUME = {"claude": ["--resume"], "codex": ["resume"], "opencode": ["--session"], "qwen": ["--resume"]}
ALLOWING = {
    "claude": ["--allowedTools", "Bash(teams:*)"],
    "codex": ["-s", "danger-full-access", "-a", "never"],
    "qwen": ["--yolo"],
}
ASKING = {"qwen": ["--approval-mode", "default"]}
ASKING_BY = {"opencode": {"OPENCODE_PERMISSION": '{"bash":"ask"}'}}
"""What has them ask their person before a command, by options or by variables; the others do by themselves."""


def seats(*clients: str) -> pytest.MarkDecorator:
    """Which clients a test is for."""
    return pytest.mark.parametrize("office", clients, indirect=True)


every_seat = seats(*WOKEN_NATIVELY, *(f"{client}{NEWEST}" for client in WOKEN_NATIVELY))


@pytest.fixture
def desk(office: Office) -> Iterator[Desk]:
    made = Desk(office)
    yield made
    made.close()


@every_seat
def test_an_idle_client_is_woken_and_reads_its_mail(office: Office, desk: Desk) -> None:
    """It joined by itself at its start; what its person was typing stays; the mail is in the turn it is woken to."""
    office.model.script("[me]", Say("hello"), Say("seen"))
    install(office)
    seat = desk.start("one").ready()
    seat.say("[me] hi")
    office.model.wait_for("[me]", 1, TO_START)
    row = wait_for_state(office, NAME, "idle")
    assert row["terminal"]["client"] == office.client
    seat.type("half a line")
    office.say("send-message", NAME, "the build is red")
    office.model.wait_for("[me]", 2)
    until(lambda: "| the build is red" in office.model.requests["[me]"][-1].text, lambda: seat.screen)
    assert "half a line" not in office.model.requests["[me]"][-1].text
    wait_for_state(office, NAME, "idle")
    assert "half a line" in seat.screen


@every_client
def test_an_opened_client_is_woken_with_nothing_installed(office: Office, desk: Desk) -> None:
    """Gemini CLI, which knows no way to be woken, runs in the wrapper, and has a line typed for it."""
    if office.client == "gemini":  # takes no settings from below a directory that all may write to
        install(office)
    office.model.script("[me]", Say("hello"), Say("seen"))
    seat = desk.open("one", "--agent-id", "ann").ready()
    seat.say("[me] hi")
    office.model.wait_for("[me]", 1)
    wait_for_state(office, "ann", "idle")
    office.say("send-message", "ann", "the build is red")
    until(lambda: "| the build is red" in office.model.requests["[me]"][-1].text, lambda: seat.screen + office.logs())
    assert office.model.requests["[me]"][-1].text.count("| the build is red") == 1
    wait_for_state(office, "ann", "idle")


@seats("claude", "opencode", "qwen", f"claude{NEWEST}", f"opencode{NEWEST}")
def test_nothing_is_done_at_a_dialog_and_the_mail_comes_after_it(office: Office, desk: Desk) -> None:
    """The person is asked for a permission while mail comes: nobody answers for them; the leader hears of it."""
    office.say("set", "tellPermissionAfter", "0.5")
    install(office)
    office.model.script("[me]", Run("touch made-by-nobody"), Say("then"), Say("seen"), Say("seen"))
    seat = desk.start("one", *ASKING.get(office.client, ()), **ASKING_BY.get(office.client, {})).ready()
    seat.say("[me] hi")
    row = wait_for_state(office, NAME, "permission", TO_START)
    assert "made-by-nobody" in row["terminal"]["waitsFor"] and row["state"] == "permission"
    office.say("send-message", NAME, "the build is red")
    until(lambda: "waits for a permission" in office.say("read-messages", "--peek"), office.logs)
    assert len(office.model.requests["[me]"]) == 1 and not (office.work / "made-by-nobody").exists()
    assert row_of(office, NAME)["terminal"]["state"] == "permission"
    seat.press("Enter")
    wait_for_mail(office, seat, "| the build is red")
    assert (office.work / "made-by-nobody").exists()


@seats(*WOKEN_NATIVELY)
def test_twenty_messages_are_one_wake(office: Office, desk: Desk) -> None:
    install(office)
    office.model.script("[me]", *[Say("on it")] * 9)
    seat = desk.start("one").ready()
    seat.say("[me] hi")
    office.model.wait_for("[me]", 1)
    wait_for_state(office, NAME, "idle")
    store = office.cli.store()
    for number in range(20):
        messages.send(store, ALPHA, Caller("lea"), NAME, f"note {number}.")
    until(lambda: row_of(office, NAME)["queueDepth"] == 0, lambda: seat.screen + office.logs())
    wait_for_state(office, NAME, "idle")
    assert history_of(office).count("terminal woken") == 1
    shown = "\n".join(request.text for request in office.model.requests["[me]"][-1:])
    assert [shown.count(f"| note {number}.") for number in range(20)] == [1] * 20


@seats("claude", "codex")
def test_eleven_wakes_in_a_row(office: Office, desk: Desk) -> None:
    install(office)
    office.model.script("[me]", *[Say("on it")] * 13)
    seat = desk.start("one").ready()
    seat.say("[me] hi")
    office.model.wait_for("[me]", 1)
    for number in range(11):
        wait_for_state(office, NAME, "idle")
        office.say("send-message", NAME, f"note {number}.")
        wait_for_mail(office, seat, f"| note {number}.")
    wait_for_state(office, NAME, "idle")
    assert history_of(office).count("terminal woken") == 11


@seats("claude", "codex")
def test_two_side_by_side_each_get_their_own(office: Office, desk: Desk) -> None:
    install(office)
    words = ("[one]", "[two]")
    seats = []
    for word, name in zip(words, ("agentA", "agentB"), strict=True):
        office.model.script(word, Run("teams whoami"), *[Say("on it")] * 4)
        seats.append(desk.start(word[1:-1], *ALLOWING.get(office.client, ())).ready())
        seats[-1].say(f"{word} hi")
        office.model.wait_for(word, 2)
        wait_for_state(office, name, "idle")
        assert f"{name} in team alpha" in office.model.requests[word][1].text
    for name in ("agentA", "agentB"):
        office.say("send-message", name, f"for {name} alone")
    for word, seat, name in zip(words, seats, ("agentA", "agentB"), strict=True):
        wait_for_mail(office, seat, f"| for {name} alone", word)
    for word, other in zip(words, ("agentB", "agentA"), strict=True):
        assert f"for {other} alone" not in office.model.requests[word][-1].text


@seats("claude", "codex")
def test_a_killed_client_is_gone_and_is_itself_when_it_is_resumed(office: Office, desk: Desk) -> None:
    """Its waiting hook ends with it; who writes to it is told; its session has its name again."""
    install(office)
    office.model.script("[me]", *[Say("on it")] * 4)
    seat = desk.start("one").ready()
    seat.say("[me] hi")
    office.model.wait_for("[me]", 1)
    row = wait_for_state(office, NAME, "idle")
    os.kill(row["terminal"]["pid"], signal.SIGKILL)
    wait_for_state(office, NAME, "gone")
    office.say("send-message", NAME, "are you there?")
    until(lambda: "has not read msg-1" in office.say("read-messages", "--peek"), office.logs)
    until(lambda: not waiting_for(office), lambda: str(waiting_for(office)))
    again = desk.start("two", *RESUME[office.client], row["terminal"]["sessionId"]).ready()
    if office.client == "codex":
        again.say("go on")
    wait_for_mail(office, again, "| are you there?")
    assert row_of(office, NAME)["terminal"]["pid"] != row["terminal"]["pid"] and not row_of(office, "agentB")


@seats("opencode")
def test_one_that_goes_on_with_its_last_session_has_its_name(office: Office, desk: Desk) -> None:
    """Which session that is, nobody names; it is woken in it before anything is said."""
    install(office)
    office.model.script("[me]", *[Say("on it")] * 4)
    desk.start("one").ready().say("[me] hi")
    office.model.wait_for("[me]", 1, TO_START)
    row = wait_for_state(office, NAME, "idle")
    os.kill(row["terminal"]["pid"], signal.SIGKILL)
    wait_for_state(office, NAME, "gone")
    seat = desk.start("two", "--continue")
    again = wait_for_state(office, NAME, "idle", TO_START)
    assert again["terminal"]["sessionId"] == row["terminal"]["sessionId"] and not row_of(office, "agentB")
    office.say("send-message", NAME, "the build is red")
    wait_for_mail(office, seat, "| the build is red")


@seats("claude")
def test_uninstalling_leaves_nobody_waiting(office: Office, desk: Desk) -> None:
    install(office)
    office.model.script("[me]", *[Say("on it")] * 4)
    desk.start("one").ready().say("[me] hi")
    wait_for_state(office, NAME, "idle")
    until(lambda: bool(waiting_for(office)), office.logs)
    office.say("uninstall", office.client)
    until(lambda: not waiting_for(office), lambda: str(waiting_for(office)))


def test_doctor_sees_mail_wake_the_client(office: Office, desk: Desk) -> None:
    """With the settings that it has, whatever they are: opened as `teams open` does."""
    if office.client == "gemini":
        install(office)
    for word in ("ready", "woken"):
        office.model.script(word, *[Say(word)] * 9)
    *_, last = json.loads(office.say("doctor", "--client", office.client, "--wake"))["findings"]
    assert last["level"] == "good" and "was woken by mail" in last["what"], last


@seats("claude")
def test_a_killed_waker_and_a_killed_waiter_are_no_loss(office: Office, desk: Desk) -> None:
    install(office)
    office.model.script("[me]", *[Say("on it")] * 6)
    seat = desk.start("one").ready()
    seat.say("[me] hi")
    office.model.wait_for("[me]", 1)
    wait_for_state(office, NAME, "idle")
    for pid in processes_of(office, "agents.waker"):
        os.kill(pid, signal.SIGKILL)
    office.say("send-message", NAME, "first")
    wait_for_mail(office, seat, "| first")
    wait_for_state(office, NAME, "idle")
    for pid in waiting_for(office):
        os.kill(pid, signal.SIGKILL)
    seat.say("now you")  # a turn, whose end starts a waiter again
    wait_for_state(office, NAME, "idle")
    office.say("send-message", NAME, "second")
    wait_for_mail(office, seat, "| second")


@seats("claude")
def test_who_does_not_read_is_woken_again_and_its_sender_told(office: Office, desk: Desk) -> None:
    """A client that has the waiting hook alone is woken, and never shown its mail."""
    office.say("set", "wakeAgainAfter", "1")
    office.say("set", "staleAfterSeconds", "600")
    install(office)
    office.model.script("[me]", *[Say("what mail?")] * 9)
    seat = desk.start("one").ready()
    seat.say("[me] hi")
    office.model.wait_for("[me]", 1)
    wait_for_state(office, NAME, "idle")
    seen = office.cli.root / "teams/alpha/inboxes/agentA.seen"
    seen.unlink()
    seen.mkdir()  # its hooks fail from now on
    office.say("send-message", NAME, "the build is red")
    until(lambda: "has not read msg-1" in office.say("read-messages", "--peek"), office.logs, 90)
    assert history_of(office).count("terminal woken") == 4 and row_of(office, NAME)["queueDepth"] == 1


@seats("claude", "codex", "opencode", "qwen")
def test_an_agent_is_taken_over_into_a_terminal_and_given_back(office: Office, desk: Desk) -> None:
    """Its person sits in its session, is told of its mail there, and leaves: its next mail resumes it by itself."""
    office.model.script("[ann]", Say("begun"), *[Say("on it")] * 6)
    office.run("[ann] begin")
    seat = desk.open("one", "--resume", "ann")
    wait_for_seat(office, seat, "ann")
    office.say("send-message", "ann", "the build is red")
    wait_for_mail(office, seat, "| the build is red", "[ann]")
    row = wait_for_state(office, "ann", "idle")
    assert row["session"]["takenBy"] == "human" and row["session"]["turns"] == 1
    os.kill(row["terminal"]["pid"], signal.SIGKILL)
    until(lambda: "takenBy" not in row_of(office, "ann")["session"], lambda: seat.screen)
    office.say("send-message", "ann", "once more")
    wait_for_mail(office, seat, "once more", "[ann]")
    went_on = office.model.requests["[ann]"][-1].text
    assert "[ann] begin" in went_on and "on it" in went_on
    if office.client != "qwen":  # whose session keeps what it was asked and what it said, not what hooks added to that
        assert "the build is red" in went_on
    office.wait_for_state("ann", "done", TO_START)


@every_client
def test_a_detached_client_is_woken_and_shown(office: Office, desk: Desk) -> None:
    """Where no tmux is: somebody attaches and says something, leaves, comes back, and sees what mail woke it for."""
    if office.client == "gemini":
        install(office)
    office.model.script("[me]", Say("hello there"), Say("so it is red"))
    path = without_tmux(office)
    opened = desk.open("open", "--detach", "--agent-id", "ann", PATH=path)
    opened.ends()
    seat = desk.run("one", "teams", "attach", "ann", PATH=path).ready()
    seat.say("[me] hi")
    office.model.wait_for("[me]", 1, TO_START)
    wait_for_state(office, "ann", "idle")
    seat.press("C-\\")
    seat.ends()
    office.say("send-message", "ann", "the build is red")
    wait_for_mail(office, desk, "| the build is red")
    wait_for_state(office, "ann", "idle")
    again = desk.run("two", "teams", "attach", "ann", PATH=path)
    again.wait_for("so it is red")
    os.kill(row_of(office, "ann")["terminal"]["pid"], signal.SIGKILL)
    again.ends()
    wait_for_state(office, "ann", "gone")


def wait_for_seat(office: Office, seat: Seat, name: str) -> None:
    """Block until the client that resumes a session has joined. Codex says nothing of itself before its first turn."""
    if office.client == "codex":
        seat.ready().say("go on")
    wait_for_state(office, name, "idle", TO_START)


@seats("claude", "codex", "opencode", "qwen", "gemini")
def test_a_copy_of_a_seated_client_answers(office: Office, desk: Desk) -> None:
    """A question to one that joined from inside is answered from its history, while it is left alone."""
    office.say("set", "broadcast", "agents")
    install(office)
    office.model.script("[me]", Say("hello"))
    office.model.answer("[ask]", "the word is xylophone")
    desk.start("one").ready().say("[me] remember the word xylophone")
    office.model.wait_for("[me]", 1)
    wait_for_state(office, NAME, "idle")
    found = json.loads(office.say("ask-others", "[ask] which word?", "--to", NAME, "--timeout", "60"))
    assert [said["content"] for said in found["responses"]] == ["the word is xylophone"], (found, office.logs())
    (shadow,) = office.model.requests["[ask]"]
    assert "remember the word xylophone" in shadow.text
    assert len(office.model.requests["[me]"]) == 1


@seats("opencode", "claude")
def test_interjecting_reaches_a_client_that_can_be_interrupted(office: Office, desk: Desk) -> None:
    """OpenCode ends its turn for it; of the others it is said that they can't be, and how they are reached."""
    install(office)
    office.model.script("[me]", Run("sleep 50"), *[Say("on it")] * 6)
    seat = desk.start("one", *ALLOWING.get(office.client, ())).ready()
    seat.say("[me] hi")
    office.model.wait_for("[me]", 1, TO_START)
    wait_for_state(office, NAME, "working")
    if office.client != "opencode":
        refused = office.cli("interject", NAME, "stop that", agent="lea")
        assert refused.status == 11 and "claude knows no way" in refused.stderr
        return
    until(lambda: office.cli("interject", NAME, "stop that", agent="lea").status == 0, office.logs)
    wait_for_mail(office, seat, "| stop that")
    wait_for_state(office, NAME, "idle")


def history_of(office: Office) -> str:
    """What happened in the team."""
    return str(office.say("history"))


def wait_for_mail(office: Office, seat: Seat | Desk, text: str, word: str = "[me]") -> None:
    """Block until the model was shown it. A client that just started may be long about its first turn."""

    def why() -> str:
        return f"no {text}\n{seat.screen}\n{office.logs()}"

    until(lambda: text in office.model.requests[word][-1].text, why, TO_START)


def processes_of(office: Office, text: str) -> list[int]:
    """The processes of ours that serve the office and have that in their command line."""
    home = f"TEAMS_HOME={office.cli.root}".encode()
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            words = (path / "cmdline").read_bytes()
            if text.encode() in words and home in (path / "environ").read_bytes().split(b"\0"):
                found.append(int(path.name))
    return found


def waiting_for(office: Office) -> list[int]:
    """The hooks that wait beside clients."""
    return processes_of(office, "--wait")
