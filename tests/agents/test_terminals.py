"""Clients in terminals as members: what their hooks say of them, by themselves, on both engines."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from teams_cli.agents.seats import bindings, channels, sitting, terminals
from teams_cli.agents.seats.channels import Doorbell
from teams_cli.teams import presence
from tests.support.cli import ALPHA, Cli, make_team
from tests.support.seated_client import SeatedClient
from tests.support.waits import until

pytestmark = pytest.mark.slow

NAME = "agentA"


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    return make_team(tmp_path / "root", "bob")


@pytest.fixture
def seat(cli: Cli) -> Iterator[Callable[..., SeatedClient]]:
    """Clients that start in terminals; what is left of them is ended."""
    made: list[SeatedClient] = []

    def start(agent: str = "", **options: Any) -> SeatedClient:
        made.append(SeatedClient(cli.environ(agent, ALPHA), **options))
        return made[-1]

    yield start
    for client in made:
        client.kill()
    cli("close-team", "--force", agent="lea")


def row(cli: Cli, name: str = NAME) -> dict[str, Any]:
    rows = cli.ok("list-agents", agent="lea")["agents"]
    return next((found for found in rows if found["name"] == name), {})


def test_it_joins_at_its_start_and_says_what_it_does(cli: Cli, seat: Callable[..., SeatedClient]) -> None:
    client = seat()
    assert "You are agentA in team alpha" in client.hook("SessionStart", source="startup")
    found = row(cli)
    said = {key: found["terminal"][key] for key in ("client", "sessionId", "pid", "state", "source", "way")}
    expected = {"client": "claude", "sessionId": "s-1", "pid": client.process.pid, "way": "bell"}
    assert said == {**expected, "state": "idle", "source": "hook SessionStart"}
    asks = {"tool_name": "Bash", "tool_input": {"command": "rm -r build"}}
    for event, more, state in (
        ("UserPromptSubmit", {}, "working"),
        ("PermissionRequest", asks, "permission"),
        ("PostToolBatch", {}, "working"),
        ("Stop", {}, "idle"),
        ("Notification", {"notification_type": "permission_prompt"}, "permission"),
        ("Notification", {"notification_type": "other"}, "permission"),
        ("SessionEnd", {"reason": "clear"}, "permission"),
        ("Stop", {}, "idle"),
        ("SessionEnd", {"reason": "prompt_input_exit"}, "gone"),
    ):
        client.hook(event, **more)
        assert row(cli)["state"] == row(cli)["terminal"]["state"] == state
        known = presence.load(cli.store(), "alpha", NAME)
        assert presence.is_in_turn(known) == (state in ("working", "permission"))
        assert row(cli)["terminal"].get("waitsFor") == ("Bash: rm -r build" if more is asks else None)


def test_a_notice_of_a_dialog_says_what_it_asks_for(cli: Cli, seat: Callable[..., SeatedClient]) -> None:
    """As Gemini CLI gives it: a general message, and the command in its details."""
    client = seat()
    client.hook("SessionStart")
    details = {"type": "exec", "title": "Confirm Shell Command", "command": "rm -r build"}
    said = {"notification_type": "ToolPermission", "message": "Tool Confirm Shell Command requires execution"}
    client.hook("Notification", **said, details=details)
    assert row(cli)["terminal"]["waitsFor"] == "rm -r build"


def test_the_bell_of_the_next_client_stays_when_one_is_gone(cli: Cli, seat: Callable[..., SeatedClient]) -> None:
    seat().hook("SessionStart")
    path = bindings.kept(str(cli.root), ALPHA, NAME, "bell")
    bell = Doorbell(path)
    assert bell.take()
    sitting.stand_up(cli.store(), ALPHA, NAME, "its process ended")
    assert channels.ring(path)
    bell.close()


def test_a_stop_that_was_refused_is_none(cli: Cli, seat: Callable[..., SeatedClient]) -> None:
    client = seat()
    client.hook("SessionStart")
    client.hook("UserPromptSubmit")
    cli.ok("send-message", NAME, "one more thing", agent="lea")
    assert json.loads(client.hook("Stop"))["decision"] == "block"
    assert row(cli)["state"] == "working"


def test_who_worked_and_fell_silent_is_unknown(cli: Cli, seat: Callable[..., SeatedClient]) -> None:
    client = seat()
    client.hook("SessionStart")
    client.hook("UserPromptSubmit")
    assert row(cli)["state"] == "working"
    cli.ok("set", "staleAfterSeconds", "1", agent="lea")
    until(lambda: row(cli)["state"] == "unknown")


def test_its_session_has_its_name_again(cli: Cli, seat: Callable[..., SeatedClient]) -> None:
    """Whatever else joins meanwhile; one session in two terminals at once is two agents."""
    first = seat(session="s-1")
    first.hook("SessionStart")
    second = seat(session="s-2")
    second.hook("SessionStart")
    assert row(cli, "agentB")["terminal"]["sessionId"] == "s-2"
    twin = seat(session="s-1")
    twin.hook("SessionStart", source="resume")
    assert row(cli, "agentC")["terminal"]["sessionId"] == "s-1"
    first.hook("SessionStart", source="clear", session_id="s-9")
    assert row(cli)["terminal"]["sessionId"] == "s-9"
    first.kill()
    until(lambda: row(cli)["state"] == "gone")
    again = seat(session="s-9")
    again.hook("SessionStart", source="resume")
    assert row(cli)["terminal"]["pid"] == again.process.pid and row(cli)["state"] == "idle"


def test_a_session_that_is_said_after_joining_can_be_gone_on_with(cli: Cli, seat: Callable[..., SeatedClient]) -> None:
    client = seat(session="")
    client.hook("SessionStart")
    client.session = "s-5"
    client.hook("UserPromptSubmit")
    client.kill()
    until(lambda: row(cli)["state"] == "gone")
    found = sitting.to_reopen(cli.store(), ALPHA, NAME, "claude")
    assert found and found.session_id == "s-5"


def test_one_that_is_told_its_name_has_it(cli: Cli, seat: Callable[..., SeatedClient]) -> None:
    seat("bob").hook("SessionStart")
    assert row(cli, "bob")["terminal"]["state"] == "idle" and not row(cli)


def test_mail_rings_its_bell_once(cli: Cli, seat: Callable[..., SeatedClient]) -> None:
    """For an idle one; who works hears by its hooks, and to one that asks its person nothing is sent."""
    client = seat()
    client.hook("SessionStart")
    bell = Doorbell(bindings.kept(str(cli.root), ALPHA, NAME, "bell"))
    assert bell.take() and not Doorbell(bell.path).take()
    try:
        client.hook("PermissionRequest")
        cli.ok("send-message", NAME, "first", agent="lea")
        assert bell.wait(1.5) == b""
        client.hook("UserPromptSubmit")
        for text in ("second", "third"):
            cli.ok("send-message", NAME, text, agent="lea")
        assert bell.wait(1.5) == b""
        client.hook("Notification", notification_type="idle_prompt")
        assert bell.wait(20) == channels.MAIL
        assert state_of_message(cli, "msg-3") == "woken" and bell.wait(1.5) == b""
        assert "| third" in client.hook("UserPromptSubmit")
        assert state_of_message(cli, "msg-3") == "shown"
    finally:
        bell.close()


def test_interjecting_rings_what_waits_beside_the_client(cli: Cli, seat: Callable[..., SeatedClient]) -> None:
    """Not where it asks its person for a permission, nor where our wrapper listens, which only types: then it is said
    that it can't be, and nothing is sent.
    """
    client = seat(client="opencode")
    client.hook("SessionStart")
    client.hook("UserPromptSubmit")
    path = bindings.kept(str(cli.root), ALPHA, NAME, "bell")
    bell = Doorbell(path)
    assert bell.take()
    try:
        assert cli.refused("interject", NAME, "stop that", agent="lea") == (11, "wrong_state")
    finally:
        bell.close()
    assert bell.take(client.process.pid)
    try:
        client.hook("PermissionRequest")
        assert cli.refused("interject", NAME, "stop that", agent="lea") == (11, "wrong_state")
        assert bell.wait(1.5) == b"" and row(cli)["queueDepth"] == 0
        client.hook("PostToolUse")
        cli.ok("interject", NAME, "stop that", agent="lea")
        assert bell.wait(20) == channels.STOP and row(cli)["queueDepth"] == 1
    finally:
        bell.close()


@pytest.fixture
def inbox(tmp_path: Path) -> Iterator[socket.socket]:
    """The socket of a client, where its sessions write to each other; deep below, as homes may be."""
    far = tmp_path / ("x" * 120)
    far.mkdir()
    with socket.socket(socket.AF_UNIX) as door:
        here = os.open(far, os.O_RDONLY | os.O_DIRECTORY)
        door.bind(f"/proc/self/fd/{here}/sock")
        os.close(here)
        door.listen()
        door.settimeout(20)
        yield door


def test_interjecting_writes_to_the_socket_of_the_client(
    cli: Cli, tmp_path: Path, inbox: socket.socket, seat: Callable[..., SeatedClient]
) -> None:
    """As what it takes up at once. It can't be interrupted without a socket, nor where it would ask its person."""
    reached = {"CLAUDE_CODE_MESSAGING_SOCKET": f"{tmp_path}/{'x' * 120}/sock", "CLAUDE_CODE_MESSAGING_TOKEN": "t-9"}
    bypassing = ["--permission-mode", "bypassPermissions"]
    for name, more, words in ((NAME, {}, []), ("agentB", reached, bypassing), ("agentC", reached, [])):
        client = SeatedClient({**cli.environ("", ALPHA), **more}, session=name, words=words)
        try:
            client.hook("SessionStart")
            client.hook("UserPromptSubmit")
            if name != "agentC":
                assert cli.refused("interject", name, "stop that", agent="lea") == (11, "wrong_state")
                continue
            cli.ok("interject", name, "stop that", agent="lea")
            proof, said = heard_at(inbox)
            assert proof == {"type": "auth", "token": "t-9"} and said["priority"] == "now"
            assert said["message"] == {"role": "user", "content": channels.LINE}
        finally:
            client.kill()


def heard_at(door: socket.socket) -> list[dict[str, Any]]:
    """The lines that were written there, by the first who wrote any."""
    while True:
        with door.accept()[0] as line, line.makefile() as file:
            if found := [json.loads(said) for said in file]:
                return found


def test_what_begins_silently_is_unknown_from_its_wake_to_its_next_hook(
    cli: Cli, seat: Callable[..., SeatedClient]
) -> None:
    """It may work by then, so it is not said to be idle; it is woken once more all the same if it does not read."""
    cli.ok("set", "wakeAgainAfter", "1", agent="lea")
    client = seat(client="qwen")
    client.hook("SessionStart")
    bell = Doorbell(bindings.kept(str(cli.root), ALPHA, NAME, "bell"))
    assert bell.take() and row(cli)["terminal"]["state"] == "idle"
    try:
        cli.ok("send-message", NAME, "first", agent="lea")
        assert bell.wait(20) == channels.MAIL
        assert row(cli)["state"] == row(cli)["terminal"]["state"] == "unknown"
        assert bell.wait(20) == channels.MAIL
        assert "| first" in client.hook("Stop")
        assert row(cli)["terminal"]["state"] == "working"
        client.hook("Stop")
        assert row(cli)["terminal"]["state"] == "idle"
    finally:
        bell.close()


def test_one_that_nothing_could_wake_is_tried_again_soon(cli: Cli, seat: Callable[..., SeatedClient]) -> None:
    """What waits beside a client begins anew with the end of each turn, and may be a moment late."""
    cli.ok("set", "wakeAgainAfter", "3600", agent="lea")
    seat().hook("SessionStart")
    cli.ok("send-message", NAME, "are you there?", agent="bob")
    until(lambda: unheard(cli) > 0)
    bell = Doorbell(bindings.kept(str(cli.root), ALPHA, NAME, "bell"))
    assert bell.take()
    try:
        assert bell.wait(60) == channels.MAIL
        until(lambda: unheard(cli) == 0)
        assert state_of_message(cli, "msg-1") == "woken"
    finally:
        bell.close()


def unheard(cli: Cli) -> int:
    """How often in a row nothing took the hint that there is mail."""
    found = terminals.find(cli.store(), ALPHA, NAME)
    return found.unheard if found else 0


def state_of_message(cli: Cli, key: str) -> str:
    """How far the message got with its only recipient."""
    (to,) = cli.ok("show-message", key, agent="lea")["reach"]
    return str(to["state"])


def test_who_reads_not_is_woken_again_and_then_its_sender_is_told(cli: Cli, seat: Callable[..., SeatedClient]) -> None:
    cli.ok("set", "wakeAgainAfter", "0.3", agent="lea")
    seat().hook("SessionStart")
    bell = Doorbell(bindings.kept(str(cli.root), ALPHA, NAME, "bell"))
    assert bell.take()
    try:
        cli.ok("send-message", NAME, "are you there?", agent="bob")
        assert bell.wait(30) == channels.MAIL == bell.wait(30)  # who listens slowly hears several as one
        (told,) = cli.ok("read-messages", "--wait", "30", agent="bob")
        assert "agentA has not read msg-1: it was woken 4 times" in told["message"]
        assert state_of_message(cli, "msg-1") == "woken" and row(cli)["queueDepth"] == 1
    finally:
        bell.close()


def test_the_sender_hears_of_one_that_is_gone(cli: Cli, seat: Callable[..., SeatedClient]) -> None:
    client = seat()
    client.hook("SessionStart")
    client.kill()
    until(lambda: row(cli)["state"] == "gone")
    cli.ok("send-message", NAME, "are you there?", agent="bob")
    (told,) = cli.ok("read-messages", "--wait", "30", agent="bob")
    assert "its client ended at" in told["message"] and state_of_message(cli, "msg-1") == "queued"


def test_the_leader_hears_of_a_permission_that_is_waited_for(cli: Cli, seat: Callable[..., SeatedClient]) -> None:
    cli.ok("set", "tellPermissionAfter", "0.5", agent="lea")
    client = seat()
    client.hook("SessionStart")
    client.hook("PermissionRequest", tool_name="Bash", tool_input={"command": "rm -r build"})
    (told,) = cli.ok("read-messages", "--wait", "30", agent="lea")
    assert "agentA waits for a permission" in told["message"] and "Bash: rm -r build" in told["message"]


def test_a_directory_belongs_to_a_team(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that starts below it joins, with no team in its environment; so do commands know theirs."""
    other, below = tmp_path / "other", tmp_path / "work/below"
    other.mkdir()
    below.mkdir(parents=True)
    cli.ok("spawn-team", "beta", agent="zed")
    monkeypatch.chdir(tmp_path / "work")
    assert cli.ok("here", ALPHA, team="")["team"] == ALPHA
    monkeypatch.chdir(below)
    assert cli.ok("here", team="") == {"directory": str(below), "team": ALPHA}
    assert cli.ok("whoami", agent="lea", team="")["team"] == ALPHA
    client = SeatedClient(cli.environ("", ""))
    try:
        assert "You are agentA in team alpha" in client.hook("SessionStart")
    finally:
        client.kill()
    monkeypatch.chdir(other)
    stranger = SeatedClient(cli.environ("", ""))
    try:
        assert stranger.hook("SessionStart") == "" and not row(cli, "agentB")
    finally:
        stranger.kill()
    assert cli("here", "gamma", team="").status == 10
    monkeypatch.chdir(tmp_path / "work")
    assert cli.ok("here", "--forget", team="")["team"] is None
    cli("close-team", "--force", agent="lea")


def test_what_its_tools_run_knows_who_it_is(cli: Cli, seat: Callable[..., SeatedClient]) -> None:
    """By the process above it, or by its thread, which beats the name that a shared daemon inherited."""
    root = str(cli.root)
    store = cli.store()
    assert store.root == root
    for name, thread in (("bob", "t-1"), ("lea", "t-2")):
        bindings.bind(root, bindings.Binding(ALPHA, name), os.getpid(), thread)
    assert cli.ok("whoami", agent="", team="")["agentId"] == "lea"
    assert cli("whoami", "--json", agent="lea", CODEX_THREAD_ID="t-1").json["agentId"] == "bob"
    assert cli("whoami", "--json", "--as", "lea", CODEX_THREAD_ID="t-1").json["agentId"] == "lea"
    assert cli("whoami", "--json", agent="bob").json["agentId"] == "bob"


def test_a_token_stands_in_files_of_its_owner_alone(tmp_path: Path) -> None:
    cli = Cli(tmp_path / "root", team=ALPHA)
    tokens = cli.ok("spawn-team", ALPHA, "--secure", agent="lea")
    client = SeatedClient(cli.environ("", ALPHA))
    try:
        client.hook("SessionStart")
        assert row(cli)["terminal"]["state"] == "idle"
        kept = [path for path in (cli.root / "terminals").rglob("*") if path.is_file()]
        secret = json.loads(Path(bindings.kept(str(cli.root), ALPHA, NAME, "json")).read_text())["token"]
        assert secret and {path.stat().st_mode & 0o077 for path in kept} == {0}
        cli.ok("send-message", NAME, "hi", agent="lea") if not tokens.get("token") else None
        assert "agentA" in client.hook("SessionStart", source="resume")
    finally:
        client.kill()
        cli("close-team", "--force", agent="lea", TEAMS_TOKEN=str(tokens.get("token", "")))
