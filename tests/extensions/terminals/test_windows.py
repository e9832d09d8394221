"""Clients that are opened in windows of tmux, in the wrapper, and in place of an agent that `teams` runs."""

from __future__ import annotations

import os
import pty
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from teams_cli.agents import ending
from teams_cli.agents.seats import bindings, doorbells
from teams_cli.agents.sessions import Session
from tests.support.agents import agent_row
from tests.support.cli import ALPHA, COMMAND, Cli
from tests.support.terminal import OPEN, Terminal, end_all, team_with_client
from tests.support.waits import until

pytestmark = pytest.mark.slow


@pytest.fixture
def cli(tmp_path: Path) -> Iterator[Cli]:
    """A team, and a client that repeats what it is told."""
    made = team_with_client(tmp_path)
    made.more = {"PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}", "TMUX_TMPDIR": str(tmp_path), "MY_OWN": "kept"}
    yield made
    end_all()
    if TMUX:
        subprocess.run([TMUX, "kill-server"], env=made.environ("lea"), capture_output=True)
    made("close-team", "--force", agent="lea")


TMUX = shutil.which("tmux") or ""


def tmux(cli: Cli, *words: str) -> str:
    done = subprocess.run([TMUX, *words], env=cli.environ("human"), check=True, capture_output=True, text=True)
    return done.stdout


@pytest.mark.skipif(not TMUX, reason="there is no tmux on PATH")
def test_a_detached_client_has_a_window_of_its_team(cli: Cli) -> None:
    """Closing the team closes the window if nobody watches it."""
    for name in ("ann", "cyd"):
        assert cli.ok("open", "claude", "--detach", "--agent-id", name, agent="human")["agent"] == name
    assert tmux(cli, "list-windows", "-t", "=teams-alpha", "-F", "#{window_name}").split() == ["ann", "cyd"]
    until(lambda: not list((cli.root / "terminals").rglob("*.open")))
    terminal = Terminal(cli, "attach", "cyd")
    terminal.until("of cyd kept")
    terminal.type("hello\n")
    terminal.until("said: hello")
    tmux(cli, "detach-client", "-s", "=teams-alpha")
    assert terminal.end() == 0
    assert cli("attach", "dan", agent="human").status == 10
    tmux(cli, "new-window", "-t", "=teams-alpha:", "-n", "mine")
    assert cli.ok("close-team", agent="lea")["endedClients"] == ["ann", "cyd"]
    left = tmux(cli, "list-windows", "-t", "=teams-alpha", "-F", "#{window_name}").split()
    assert left == ["mine"], "a window that its person opened there stays"


def test_the_wrapper_types_its_line_once_for_an_idle_client(cli: Cli) -> None:
    """Not while the client draws, nor into a line that a person has begun."""
    terminal = Terminal(cli, "open", "claude", "--wrap", "--agent-id", "ann", "--", "-x")
    terminal.until("-x of ann kept")
    bell = bindings.terminal_file(str(cli.root), ALPHA, "ann", "bell")
    until(lambda: doorbells.has_listener(bell))
    terminal.type("draw\r")
    terminal.until("said: draw")
    assert doorbells.ring(bell)
    terminal.until("said: [teams] You have messages")
    assert terminal.text.index("drawn") < terminal.text.index("[teams]")
    assert doorbells.ring(bell)
    terminal.read(4)
    assert terminal.text.count("said: [teams]") == 1, "the client did not work since"
    terminal.type("work\rrest\r")
    terminal.until("said: rest")
    terminal.type("half a line")
    terminal.until("half a line")
    assert doorbells.ring(bell)
    terminal.read(4)
    assert terminal.text.count("[teams]") == 2, "what was typed, and what was said of it"
    terminal.type("\r")
    until(lambda: terminal.read(0.1) is None and terminal.text.count("said: [teams]") == 2)
    terminal.type("bye\r")
    assert terminal.end() == 7


def test_ctrl_z_stops_the_wrapper_too_and_both_go_on(cli: Cli) -> None:
    """The wrapper runs under a shell with job control, as people have it."""
    words = " ".join(["exec", *COMMAND, "open", "claude", "--wrap", "--agent-id", "ann"])
    pid, master = pty.fork()
    if pid == 0:
        os.execvpe("bash", ["bash", "--norc", "-i"], {**cli.environ("human"), "TERM": "xterm", "PS1": "shell> "})
    terminal = Terminal.__new__(Terminal)
    terminal.pid, terminal.master, terminal.text = pid, master, ""
    OPEN.append(pid)
    terminal.until("shell> ")
    terminal.type(words.removeprefix("exec ") + "\n")
    terminal.until("of ann kept")
    terminal.type("one\r")
    terminal.until("said: one")
    terminal.type("\x1a")
    terminal.until("Stopped")
    terminal.type("fg\n")

    def goes_on() -> bool:
        terminal.type("two\r")  # lost if the client has not got the terminal again
        terminal.read(2)
        return "said: two" in terminal.text

    until(goes_on)
    terminal.type("bye\r")
    terminal.until("said: bye")
    terminal.text = ""
    terminal.until("shell> ")
    terminal.type("exit 3\n")
    assert terminal.end() == 3


def session(cli: Cli) -> Session:
    found = ending.current(cli.store(), ALPHA, "ann")
    assert found
    return found


def test_an_agent_is_taken_over_and_given_back(cli: Cli) -> None:
    """It takes no turn meanwhile, and afterwards answers what came."""
    assert cli("run-agent", "begin", "--agent-id", "ann", "--harness", "claude", agent="lea").status == 0
    terminal = Terminal(cli, "open", "claude", "--resume", "ann")
    terminal.until("of ann kept")
    assert f"--resume {session(cli).session_id}" in terminal.text
    cli.ok("send-message", "ann", "one more thing", agent="lea")
    assert (session(cli).state, session(cli).taken_by, session(cli).turns) == ("paused", "human", 1)
    for words in (["interject", "ann", "you"], ["resume-agent", "ann"], ["restart-agent", "ann"]):
        assert cli.refused(*words, agent="lea") == (11, "wrong_state")
    twice = Terminal(cli, "open", "claude", "--resume", "ann")
    assert twice.end() == 11 and "was taken over by human" in twice.text
    terminal.type("join\r")
    terminal.until("joined")
    row = agent_row(cli, "ann")
    assert row["state"] == "idle" and row["terminal"]["sessionId"] == "theirs"
    terminal.type("bye\r")
    assert terminal.end() == 7
    until(lambda: session(cli).state == "done" and session(cli).turns == 2)
    assert session(cli).taken_by is None and session(cli).session_id == "theirs"
    assert agent_row(cli, "ann")["state"] == "idle"
