"""The person at a terminal: shown questions beside what runs there, and known without saying who they are."""

from __future__ import annotations

import json
import os
import pty
import select
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.agents import end_all, team_of_agents
from tests.support.cli import COMMAND, TIMEOUT, Cli, make_team
from tests.support.mcp_client import client_of, within


class Terminal:
    """A command on a pseudo-terminal of its own."""

    def __init__(self, cli: Cli, *words: str, **environ: str) -> None:
        self.end, inside = pty.openpty()
        self.process = subprocess.Popen(
            [*COMMAND, *words],
            env=cli.environ(TERM="xterm-256color", COLUMNS="120", LINES="40", **environ),
            stdin=inside,
            stdout=inside,
            stderr=inside,
        )
        os.close(inside)
        self.shown = ""

    def sees(self, text: str) -> str:
        """Wait until the terminal shows *text*; all that it showed up to then."""
        give_up = time.monotonic() + TIMEOUT
        while text not in self.shown:
            assert time.monotonic() < give_up, self.shown
            if select.select([self.end], [], [], 0.5)[0]:
                try:
                    self.shown += os.read(self.end, 65536).decode(errors="replace")
                except OSError:  # the other end was closed
                    assert text in self.shown, self.shown
        return self.shown

    def types(self, keys: str) -> None:
        os.write(self.end, keys.encode())

    def status(self) -> int:
        """The exit status, once it ended; what is shown till then is taken, so that it can go on."""
        while self.process.poll() is None:
            if select.select([self.end], [], [], 0.1)[0]:
                try:
                    self.shown += os.read(self.end, 65536).decode(errors="replace")
                except OSError:
                    break
        status = self.process.wait(TIMEOUT)
        os.close(self.end)
        return status


@pytest.fixture
def agents(tmp_path: Path) -> Iterator[Cli]:
    cli = team_of_agents(tmp_path, "bob")
    yield cli
    end_all(cli.root)


def test_the_person_in_front_of_run_agent_is_asked_there(agents: Cli, tmp_path: Path) -> None:
    """And the agent goes on with the answer."""
    asks = "teams ask-others 'Which colour?' --human --json"
    words = ["run-agent", asks, "--agent-id", "kim", "--cwd", str(tmp_path), "--as", "human"]
    terminal = Terminal(agents, *words)
    terminal.sees("BROADCAST FROM KIM")
    terminal.sees("Enter to skip): ")
    terminal.types("blue\n")
    terminal.sees("ask-1: answered")
    assert terminal.status() == 0
    assert '"content": "blue"' in terminal.shown


def test_the_person_in_front_of_watch_answers_there(tmp_path: Path) -> None:
    cli = make_team(tmp_path / "root", "bob")
    cli.ok("ask-others", "Which colour?", "--human", "--no-wait", agent="bob")
    terminal = Terminal(cli, "watch")
    terminal.sees("Which colour?")
    terminal.types("abluu\x7fe")
    terminal.sees("blue")
    terminal.types("\r")
    terminal.sees("ask-1: answered")
    terminal.types("q")
    assert terminal.status() == 0
    assert cli.ok("show-question", "1")["answers"][0]["content"] == "blue"


@pytest.mark.slow
def test_who_types_at_a_terminal_is_the_human(tmp_path: Path) -> None:
    """Unless they say otherwise; a program without an identity stays nobody."""
    cli = make_team(tmp_path / "root", "bob")
    cli.ok("propose-plan", "First this.", agent="bob")
    cli.ok("ask-others", "Which?", "--human", "--no-wait", agent="bob")
    cli.ok("ask-others", "What?", "--human", "--no-wait", agent="bob")
    for words in (
        ["set", "broadcast", "human"],
        ["create-task", "Work"],
        ["approve-plan", "1"],
        ["answer", "1", "this"],
        ["skip-question", "2"],
    ):
        assert cli(*words).status == 2
        terminal = Terminal(cli, *words)
        assert terminal.status() == 0, terminal.shown
    assert cli.ok("show-task", "1")["createdBy"] == "human"
    assert cli.ok("get-plans")[0]["status"] == "approved"
    assert cli.ok("show-question", "1")["answers"][0]["responder"] == "human"
    assert Terminal(cli, "answer", "1", "that", TEAMS_AGENT_ID="bob").status() == 13


@pytest.mark.slow
def test_agents_are_told_that_they_can_ask(tmp_path: Path) -> None:
    """At the start of a session, and by the tools; not where questions are off."""
    cli = make_team(tmp_path / "root", "bob")
    started = json.dumps({"hook_event_name": "SessionStart", "session_id": "s"}).encode()

    async def tools() -> None:
        async with client_of(cli, "bob", "--tools", "daily") as client:
            offered = {tool.name: tool.description or "" for tool in (await client.list_tools()).tools}
            found.append((offered.get("ask_others", ""), client.instructions or ""))

    found: list[tuple[str, str]] = []
    assert "ask-others" not in cli("hook", "claude", agent="bob", stdin=started).stdout
    within(tools)
    assert found[0][0] == "" and "ask_others" not in found[0][1]
    for level, word in (("low", "critical"), ("high", "often")):
        cli.ok("set", "broadcast", "agents", agent="lea")
        cli.ok("set", "broadcast_sensitivity", level, agent="lea")
        assert word in cli("hook", "claude", agent="bob", stdin=started).stdout
        within(tools)
        assert word in found[-1][0] and word in found[-1][1] and "ask_others" in found[-1][1]
