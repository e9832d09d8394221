"""Clients in terminals are members; their hooks say what they do."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from teams_cli.agents.seats import bindings, doorbells
from teams_cli.agents.seats.doorbells import Doorbell
from teams_cli.store.files import locks
from tests.support.cli import ALPHA, Cli, make_team
from tests.support.seated_client import SeatedClient
from tests.support.waits import until

pytestmark = pytest.mark.slow

NAME = "agentA"
Seat = Callable[..., SeatedClient]


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    return make_team(tmp_path / "root", "bob")


@pytest.fixture
def seat(cli: Cli) -> Iterator[Seat]:
    """A function that starts a client in a terminal; the clients are ended after the test."""
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


@pytest.fixture
def bell(cli: Cli) -> Callable[..., closing[Doorbell]]:
    """A function that waits at the bell of the client, as the waker does."""

    def listen(*pid: int) -> closing[Doorbell]:
        heard = Doorbell(bindings.terminal_file(str(cli.root), ALPHA, NAME, "bell"))
        assert heard.listen(*pid)
        return closing(heard)

    return listen


def test_a_client_joins_at_its_start_and_says_what_it_does(cli: Cli, seat: Seat) -> None:
    client = seat()
    assert "You are agentA in team alpha" in client.hook("SessionStart", source="startup")
    expected = {"client": "claude", "sessionId": "s-1", "pid": client.process.pid, "way": "bell"}
    assert expected.items() <= row(cli)["terminal"].items()
    asks = {"tool_name": "Bash", "tool_input": {"command": "rm -r build"}}
    of_gemini = {"notification_type": "ToolPermission", "details": {"type": "exec", "command": "rm -r lib"}}
    for event, more, state, waits_for in (
        ("UserPromptSubmit", {}, "working", None),
        ("PermissionRequest", asks, "permission", "Bash: rm -r build"),
        ("PostToolBatch", {}, "working", None),
        ("Stop", {}, "idle", None),
        ("Notification", {"notification_type": "permission_prompt"}, "permission", None),
        ("SessionEnd", {"reason": "clear"}, "permission", None),
        ("Notification", of_gemini, "permission", "rm -r lib"),
        ("Stop", {}, "idle", None),
        ("SessionEnd", {"reason": "prompt_input_exit"}, "gone", None),
    ):
        client.hook(event, **more)
        assert row(cli)["state"] == row(cli)["terminal"]["state"] == state
        assert row(cli)["terminal"].get("waitsFor") == waits_for


def test_a_client_that_falls_silent_at_work_is_unknown(cli: Cli, seat: Seat) -> None:
    """A client whose stop was refused is still at work."""
    client = seat()
    client.hook("SessionStart")
    client.hook("UserPromptSubmit")
    cli.ok("send-message", NAME, "one more thing", agent="lea")
    assert json.loads(client.hook("Stop"))["decision"] == "block"
    assert row(cli)["state"] == "working"
    cli.ok("set", "staleAfterSeconds", "1", agent="lea")
    until(lambda: row(cli)["state"] == "unknown")


def test_the_client_of_the_leader_has_a_seat_too(cli: Cli, seat: Seat) -> None:
    cli.ok("send-message", "lea", "which colour?", agent="bob")
    client = seat("lea")
    assert "which colour?" in client.hook("UserPromptSubmit")
    client.hook("Stop")
    assert row(cli, "lea")["terminal"]["state"] == "idle"


def test_a_resumed_session_has_its_name_again(cli: Cli, seat: Seat) -> None:
    """A session that is resumed has its name again; one session in two terminals at once is two agents."""
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


def test_interjecting_rings_what_waits_beside_the_client(cli: Cli, seat: Seat, bell: Any) -> None:
    """Interjecting is refused while the client asks for a permission, or if only our wrapper waits."""
    client = seat(client="opencode")
    client.hook("SessionStart")
    client.hook("UserPromptSubmit")
    with bell():
        assert cli.refused("interject", NAME, "stop that", agent="lea") == (11, "wrong_state")
    with bell(client.process.pid) as heard:
        client.hook("PermissionRequest")
        assert cli.refused("interject", NAME, "stop that", agent="lea") == (11, "wrong_state")
        assert heard.wait(1.5) == b"" and row(cli)["queueDepth"] == 0
        client.hook("PostToolUse")
        cli.ok("interject", NAME, "stop that", agent="lea")
        assert heard.wait(100) == doorbells.STOP and row(cli)["queueDepth"] == 1


def test_interjecting_writes_to_the_socket_of_the_client(cli: Cli, tmp_path: Path) -> None:
    """Interjecting is refused if the client has no socket, or would ask its person about the message."""
    path = tmp_path / ("x" * 120) / "sock"
    path.parent.mkdir()
    reached = {"CLAUDE_CODE_MESSAGING_SOCKET": str(path), "CLAUDE_CODE_MESSAGING_TOKEN": "t-9"}
    bypassing = ["--permission-mode", "bypassPermissions"]
    with socket.socket(socket.AF_UNIX) as door:
        directory = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
        door.bind(f"/proc/self/fd/{directory}/sock")
        os.close(directory)
        door.listen()
        door.settimeout(100)
        for name, more, words in ((NAME, {}, []), ("agentB", reached, bypassing), ("agentC", reached, [])):
            client = SeatedClient({**cli.environ("", ALPHA), **more}, session=name, words=words)
            client.hook("SessionStart")
            client.hook("UserPromptSubmit")
            if name == "agentC":
                cli.ok("interject", name, "stop that", agent="lea")
            else:
                assert cli.refused("interject", name, "stop that", agent="lea") == (11, "wrong_state")
            client.kill()
        lines: list[Any] = []
        while not lines:
            with door.accept()[0] as line, line.makefile() as file:
                lines = [json.loads(text) for text in file]
    proof, message = lines
    assert proof == {"type": "auth", "token": "t-9"} and message["priority"] == "now"
    assert message["message"] == {"role": "user", "content": doorbells.LINE}


def state_of_message(cli: Cli, key: str) -> str:
    (to,) = cli.ok("show-message", key, agent="lea")["reach"]
    return str(to["state"])


def test_an_agent_that_does_not_read_is_woken_again_and_then_its_sender_is_told(
    cli: Cli, seat: Seat, bell: Any
) -> None:
    cli.ok("set", "wakeAgainAfter", "0.3", agent="lea")
    seat().hook("SessionStart")
    with bell() as heard:
        cli.ok("send-message", NAME, "are you there?", agent="bob")
        assert heard.wait(100) == doorbells.MAIL == heard.wait(100)  # several rings may be heard as one
        (notice,) = cli.ok("read-messages", "--wait", "100", agent="bob")
        assert "agentA has not read msg-1: it was woken 4 times" in notice["message"]
        assert state_of_message(cli, "msg-1") == "woken" and row(cli)["queueDepth"] == 1


def test_the_leader_hears_of_a_permission_that_is_waited_for(cli: Cli, seat: Seat) -> None:
    cli.ok("set", "tellPermissionAfter", "0.5", agent="lea")
    client = seat()
    client.hook("SessionStart")
    client.hook("PermissionRequest", tool_name="Bash", tool_input={"command": "rm -r build"})
    (told,) = cli.ok("read-messages", "--wait", "100", agent="lea")
    assert "agentA has waited for a permission" in told["message"] and "Bash: rm -r build" in told["message"]


def test_a_directory_belongs_to_a_team(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other, below = tmp_path / "other", tmp_path / "work/below"
    other.mkdir()
    below.mkdir(parents=True)
    cli.ok("spawn-team", "beta", agent="zed")
    monkeypatch.chdir(tmp_path / "work")
    assert cli.ok("here", ALPHA, team="")["team"] == ALPHA
    for directory, greeting in ((other, ""), (below, "You are agentA in team alpha")):
        monkeypatch.chdir(directory)
        client = SeatedClient(cli.environ("", ""))
        answer = client.hook("SessionStart")
        client.kill()
        assert answer == "" if not greeting else greeting in answer
    assert cli.ok("here", team="") == {"directory": str(below), "team": ALPHA}
    assert cli.ok("whoami", agent="lea", team="")["team"] == ALPHA
    assert cli("here", "gamma", team="").status == 10
    monkeypatch.chdir(tmp_path / "work")
    assert cli.ok("here", "--forget", team="")["team"] is None
    cli("close-team", "--force", agent="lea")


def test_directories_linked_at_once_are_all_linked(cli: Cli, tmp_path: Path) -> None:
    """Each command writes all links, so none may miss those of another."""
    directories = [tmp_path / f"work{number}" for number in range(16)]
    for directory in directories:
        directory.mkdir()
    commands = [cli.start("here", ALPHA, agent="", team="", cwd=directory) for directory in directories]
    assert [command.communicate() and command.returncode for command in commands] == [0] * 16
    linked = bindings.linked_directories(str(cli.root))
    assert {directory for directory in map(str, directories) if linked.get(directory) != ALPHA} == set()


@pytest.mark.parametrize("name", ["a\u2028b", "a\x0bb", "a\rb", "a\x85b", " a ", "\udcff"])
def test_a_directory_with_a_strange_name_belongs_to_a_team(
    name: str, cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / name).mkdir()
    (tmp_path / "a").mkdir()
    monkeypatch.chdir(tmp_path / name)
    assert cli.ok("here", ALPHA, team="")["team"] == ALPHA
    monkeypatch.chdir(tmp_path / "a")
    assert cli.ok("here", team="")["team"] is None
    assert cli.ok("here", ALPHA, team="")["team"] == ALPHA
    monkeypatch.chdir(tmp_path / name)
    assert cli.ok("here", team="")["team"] == ALPHA


def test_the_waker_ends_with_its_team_though_a_client_waits_for_a_permission(cli: Cli, seat: Seat) -> None:
    """It first looks at the client when the team is closed already, as after a suspended machine wakes up."""
    cli.ok("set", "tellPermissionAfter", "0.1", agent="lea")
    client = seat()
    client.hook("SessionStart")
    waker = until(lambda: locks.holder_of(f"{cli.root}/wakers/{ALPHA}.lock"))
    os.kill(waker, signal.SIGSTOP)
    client.hook("PermissionRequest", tool_name="Bash", tool_input={"command": "rm -r build"})
    cli("close-team", "--force", agent="lea")
    os.kill(waker, signal.SIGCONT)
    until(lambda: not bindings.is_locked(f"{cli.root}/wakers/{ALPHA}.lock"))
    assert not (cli.root / f"logs/{ALPHA}/.waking.log").read_text()


def test_commands_of_a_client_know_their_agent(cli: Cli) -> None:
    """A process above the command names its agent; its thread counts more than an inherited name."""
    for name, thread in (("bob", "t-1"), ("lea", "t-2")):
        bindings.bind(str(cli.root), bindings.Binding(ALPHA, name), os.getpid(), thread)
    assert cli.ok("whoami", agent="", team="")["agentId"] == "lea"
    assert cli("whoami", "--json", agent="lea", CODEX_THREAD_ID="t-1").json["agentId"] == "bob"
    assert cli("whoami", "--json", "--as", "lea", CODEX_THREAD_ID="t-1").json["agentId"] == "lea"
    assert cli("whoami", "--json", agent="bob").json["agentId"] == "bob"


def test_a_token_stands_in_files_of_its_owner_alone(tmp_path: Path) -> None:
    cli = Cli(tmp_path / "root", team=ALPHA)
    token = cli.ok("spawn-team", ALPHA, "--secure", agent="lea")["token"]
    client = SeatedClient(cli.environ("", ALPHA))
    client.hook("SessionStart")
    assert row(cli)["terminal"]["state"] == "idle"
    kept = [path for path in (cli.root / "terminals").rglob("*") if path.is_file()]
    assert json.loads(Path(bindings.terminal_file(str(cli.root), ALPHA, NAME, "json")).read_text())["token"]
    assert {path.stat().st_mode & 0o077 for path in kept} == {0}
    assert "agentA" in client.hook("SessionStart", source="resume")
    client.kill()
    cli("close-team", "--force", agent="lea", TEAMS_TOKEN=token)


def test_mail_rings_the_bell_of_an_idle_client_once(cli: Cli, seat: Seat, bell: Any) -> None:
    client = seat()
    client.hook("SessionStart")
    with bell() as heard:
        client.hook("PermissionRequest")
        cli.ok("send-message", NAME, "first", agent="lea")
        assert heard.wait(1.5) == b""
        client.hook("UserPromptSubmit")
        cli.ok("send-message", NAME, "second", agent="lea")
        assert heard.wait(1.5) == b""
        client.hook("Notification", notification_type="idle_prompt")
        assert heard.wait(100) == doorbells.MAIL
        assert state_of_message(cli, "msg-2") == "woken" and heard.wait(1.5) == b""
        assert "| second" in client.hook("UserPromptSubmit")
        assert state_of_message(cli, "msg-2") == "shown"


def test_the_daemon_of_codex_is_no_client_of_the_terminal_that_started_it(tmp_path: Path) -> None:
    """A daemon that a member's client starts is not that member, unlike any other program, as it serves all
    terminals.
    """
    member = bindings.Binding(ALPHA, NAME, "")
    bindings.bind(str(tmp_path), member, os.getpid())
    words = [sys.executable, "-c", "import time; time.sleep(60)"]
    with subprocess.Popen(words) as client, subprocess.Popen([*words, "app-server"]) as daemon:
        try:
            for each in (client, daemon):
                until(lambda pid=each.pid: b"sleep(60)" in Path(f"/proc/{pid}/cmdline").read_bytes())
            below = bindings.parent_of(str(tmp_path), client.pid, {})
            assert below is not None and (below.team, below.agent) == (ALPHA, NAME)
            assert bindings.parent_of(str(tmp_path), daemon.pid, {}) is None
        finally:
            client.kill()
            daemon.kill()
