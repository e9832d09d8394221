"""Clients at terminals as members of a team: they join by themselves, are listed, and are woken by mail."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path

import pytest

from tests.e2e.conftest import NEWEST, TO_START, Office, every_client
from tests.e2e.model import Hang, Run, Say, Step, Use
from tests.e2e.sitting import (
    ALLOWING,
    NAME,
    Desk,
    Seat,
    begun,
    history_of,
    install,
    opened_again,
    processes_of,
    row_of,
    seats,
    until,
    wait_for_mail,
    wait_for_state,
    waiting_for,
    without_tmux,
)
from tests.support.cli import ALPHA, Cli


@pytest.mark.parametrize("is_installed", [True, False], ids=["installed", "opened"])
@seats("claude")
def test_commands_and_tools_of_teams_need_no_permission(office: Office, desk: Desk, is_installed: bool) -> None:
    """In its default mode, Claude Code asks a server of its vendor before any other command."""
    if is_installed:
        install(office)
    steps = Say("hello"), Run("teams whoami"), Say("on it"), Use("more_tools", name="list_agents"), Say("seen")
    office.model.script("[me]", *steps)
    words = ("--permission-mode", "auto")
    seat = (desk.start("one", *words) if is_installed else desk.open("one", options=words)).ready()
    for count, text in ((1, "[me] hi"), (3, "go on"), (5, "and now")):
        seat.say(text)
        office.model.wait_for("[me]", count)
        wait_for_state(office, NAME, "idle")
    asked = office.model.requests["[me]"]
    assert "of team alpha" in asked[2].since(asked[1]) and f'"self":"{NAME}"' in asked[4].since(asked[3])


@seats("codex")
def test_the_tools_of_a_client_at_a_terminal_act_as_the_client(office: Office, desk: Desk) -> None:
    """A client's tools act as the client, even if a daemon started their server before the client had
    joined.
    """
    install(office)
    office.model.script("[me]", Say("hello"), Use("more_tools", name="whoami"), Say("seen"))
    seat = desk.start("one").ready()
    for count, text in ((1, "[me] hi"), (3, "go on")):
        seat.say(text)
        office.model.wait_for("[me]", count, TO_START)
        wait_for_state(office, NAME, "idle")
    asked, answered = office.model.requests["[me]"][1:3]
    assert any("claim_task" in name for name in asked.tools)
    assert f'"agentId":"{NAME}"' in answered.since(asked).replace(" ", "").replace("\\", "")


@seats("claude", beside=("codex", "opencode", "qwen", "gemini"))
def test_uninstalling_leaves_nothing(office: Office, desk: Desk) -> None:
    """After uninstalling, no hook waits beside the running client, its settings have nothing of `teams`, and a
    new client joins no team.
    """
    files = [Path(file["path"]) for file in json.loads(office.say("install", office.client, "--print"))["files"]]
    seat = begun(office, desk)
    assert any(ours_in(path) for path in files)
    if office.client in ("claude", "opencode"):
        until(lambda: bool(waiting_for(office)), office.logs)
    office.say("uninstall", office.client)
    until(lambda: not waiting_for(office), lambda: str(waiting_for(office)))
    assert not [path for path in files if ours_in(path)]
    seat.say("go on")
    until(lambda: "go on" in office.model.requests["[me]"][-1].text, lambda: seat.screen)
    wait_for_state(office, NAME, "idle")
    time.sleep(3)  # longer than a hook takes to begin to wait
    assert not waiting_for(office)
    office.model.script("[two]", Say("hello"))
    desk.start("two").ready().say("[two] hi")
    office.model.wait_for("[two]", 1, TO_START)
    assert not row_of(office, "agentB") and "teams" not in office.model.requests["[two]"][0].text


def ours_in(path: Path) -> bool:
    """Whether the settings of a client have anything of `teams`."""
    data = path.read_bytes() if path.exists() else b""
    return any(word in data for word in (b"teams_cli", b"(teams", b"hooks.json:"))


@seats("claude", "codex", "gemini", beside=("opencode", "qwen"))
def test_doctor_sees_mail_wake_the_client(office: Office, desk: Desk) -> None:
    """Doctor opens the client as `teams open` does, with the settings that the client has."""
    install(office)
    for word in ("ready", "woken"):
        office.model.script(word, *[Say(word)] * 9)
    found = json.loads(office.say("doctor", "--client", office.client, patience=480.0))["findings"]
    assert {finding["level"] for finding in found} == {"good"}, found
    assert "was woken by mail" in found[-1]["what"]


@seats("claude", "codex", "opencode", "qwen", beside=("gemini",))
def test_an_agent_is_taken_over_into_a_terminal_and_given_back(office: Office, desk: Desk) -> None:
    """The person gets the agent's mail in its session; after the person has left, the next mail resumes the
    agent.
    """
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
    if office.client != "qwen":  # its session does not keep what hooks added
        assert "the build is red" in went_on
    office.wait_for_state("ann", "done", TO_START)


@every_client
def test_a_detached_client_is_woken_and_shown(office: Office, desk: Desk) -> None:
    """Without tmux, a person can attach, detach and attach again, and then sees the turn for which mail woke
    the client.
    """
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
    """Wait until the client that resumes a session has joined, which Codex does only in its first turn."""
    if office.client == "codex":
        seat.ready().say("go on")
    wait_for_state(office, name, "idle", TO_START)


@seats("claude", "codex", "opencode", "qwen", "gemini")
def test_a_copy_of_a_client_at_a_terminal_answers(office: Office, desk: Desk) -> None:
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


STAYS = "python3 -c 'import time; time.sleep(900)'"


@pytest.mark.parametrize("step", [Run(STAYS), Hang()], ids=["in a command", "in an answer"])
@seats("opencode", beside=("codex", "claude", f"claude{NEWEST}", f"opencode{NEWEST}"))
def test_interjecting_ends_what_the_client_does(office: Office, desk: Desk, step: Step) -> None:
    """The next turn has the mail, and what the person was typing stays. Whether a running command ends is up to
    the client.
    """
    install(office)
    office.model.script("[me]", step, *[Say("on it")] * 6)
    allowing = ["--allowedTools", "Bash(python3:*)"] if office.client == "claude" else ALLOWING.get(office.client, [])
    seat = desk.start("one", *allowing).ready()
    seat.say("[me] hi")
    office.model.wait_for("[me]", 1, TO_START)
    wait_for_state(office, NAME, "working")
    if isinstance(step, Run):
        until(lambda: bool(processes_of(office, "sleep(900)")), lambda: seat.screen)
    seat.type("half a line")
    interject(office, "stop that")
    wait_for_mail(office, seat, "| stop that")
    wait_for_state(office, NAME, "idle")
    assert "half a line" in seat.screen and "half a line" not in office.model.requests["[me]"][-1].text


def interject(office: Office, text: str) -> None:
    """Have the leader interrupt the client, once the process that listens for that is there."""
    refused = []

    def is_done() -> bool:
        refused.append(office.cli("interject", NAME, text, agent="lea"))
        return refused[-1].status == 0

    until(is_done, lambda: f"{refused[-1]}\n{office.logs()}")


@seats("claude", beside=("codex", "opencode", "qwen", "gemini"))
def test_a_client_is_woken_and_opened_again_only_on_its_own_machine(
    on_postgres: str, office: Office, desk: Desk
) -> None:
    """A client is woken on its own machine for messages from another one, and can be opened again only
    there.
    """
    office.variables = {"TEAMS_STORE": on_postgres, "TEAMS_HOST": "desk"}
    away = Cli(office.top / "away/root", "lea", ALPHA, TEAMS_HOST="away")
    seat = begun(office, desk)
    (row,) = [found for found in away.ok("list-agents")["agents"] if found["name"] == NAME]
    assert (row["host"], row["terminal"]["state"]) == ("desk", "idle")
    away.ok("send-message", NAME, "the build is red")
    wait_for_mail(office, seat, "| the build is red")
    wait_for_state(office, NAME, "idle")
    assert history_of(office).count("terminal woken") == 1
    again = f"teams open {office.client} --resume {NAME}"
    os.kill(row["terminal"]["pid"], signal.SIGKILL)
    wait_for_state(office, NAME, "gone")
    refused = away("open", office.client, "--resume", NAME)
    assert refused.status == 11 and f"{NAME} sits on another machine, desk" in refused.stderr, refused
    assert f"There: {again}" in refused.stderr
    back = opened_again(office, desk)
    away.ok("send-message", NAME, "it is green again")
    wait_for_mail(office, back, "| it is green again")
    until(lambda: row_of(office, NAME)["queueDepth"] == 0, office.logs)
