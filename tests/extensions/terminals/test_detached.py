"""Clients in detached terminals without tmux: attaching, typing, detaching and waking."""

from __future__ import annotations

import os
import signal
import termios
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from teams_cli.agents.seats import bindings, doorbells, lines
from tests.support.cli import ALPHA, TIMEOUT, Cli
from tests.support.terminal import OPEN, Terminal, end_all, team_with_client
from tests.support.waits import until
from tests.support.workflow_runs import processes_of

pytestmark = pytest.mark.slow


@pytest.fixture
def cli(tmp_path: Path) -> Iterator[Cli]:
    """A team and a client, with no other program on PATH."""
    made = team_with_client(tmp_path)
    made.more = {"PATH": str(tmp_path / "bin"), "MY_OWN": "kept"}
    yield made
    end_all()
    for pid in terminal_processes(made):
        with suppress(ProcessLookupError):  # it ended by itself, when its client had
            os.kill(pid, signal.SIGKILL)
    made("close-team", "--force", agent="lea")


def terminal_processes(cli: Cli) -> list[int]:
    """The process ids of the team's detached terminals and their clients."""
    words = ("terminals.detached", "bin/claude")
    return [pid for pid, line in processes_of(cli.root).items() if any(word in line for word in words)]


def opened(cli: Cli, *words: str) -> str:
    """Open a client detached, and return the path of the socket to which one attaches."""
    cli.ok("open", "claude", "--detach", "--agent-id", "ann", *words, agent="human")
    return bindings.terminal_file(str(cli.root), ALPHA, "ann", "tty")


def attached(cli: Cli) -> Terminal:
    """A terminal that is attached to the client and was shown its earlier output."""
    terminal = Terminal(cli, "attach", "ann")
    terminal.until("of ann kept")
    return terminal


def test_several_look_on_and_type_and_leave(cli: Cli) -> None:
    door = opened(cli)
    assert cli.refused("open", "claude", "--detach", "--agent-id", "ann", agent="human") == (11, "conflict")
    one = attached(cli)
    assert "[teams] ann: Ctrl-\\ detaches" in one.text.splitlines()[0]
    one.type("hello\r")
    one.until("said: hello")
    two = attached(cli)
    assert "said: hello" in two.text
    two.type("from two\r")
    one.until("said: from two")
    os.kill(two.pid, signal.SIGKILL)
    two.end()
    one.type("still\r")
    one.until("said: still")
    one.type("\x1c")
    assert one.end() == 0 and "Detached: ann goes on" in one.text
    assert os.stat(door).st_mode & 0o777 == 0o600
    other = attached(cli)
    other.type("left behind\x1b[92;5unot typed")  # the same key, as some terminals say it
    assert other.end() == 0
    last = attached(cli)
    last.type("!\r")
    last.until("said: left behind!")
    last.type("bye\r")
    assert last.end() == 7
    until(lambda: not terminal_processes(cli))
    assert not os.path.exists(door)
    told = [entry for entry in cli.ok("history", agent="lea") if entry["what"] == "terminal attached"]
    assert [(entry["actor"], entry["agent"]) for entry in told] == [("human", "ann")] * 4
    assert cli("attach", "ann", agent="human").status == 10


def test_one_of_several_commands_at_once_opens_the_terminal(cli: Cli) -> None:
    commands = [cli.start("open", "claude", "--detach", "--agent-id", "ann", agent="human") for _ in range(3)]
    ended = [(command.wait(TIMEOUT), command.communicate()[1]) for command in commands]
    assert sorted(status for status, _ in ended) == [0, 11, 11], ended
    assert all(b"ann has a detached terminal already" in said for status, said in ended if status)


def test_a_client_that_nobody_watches_is_woken(cli: Cli) -> None:
    opened(cli, "--wrap")
    bell = bindings.terminal_file(str(cli.root), ALPHA, "ann", "bell")
    until(lambda: doorbells.ring(bell))
    until(lambda: "said: [teams] You have messages" in look(cli))


def test_the_client_ends_with_its_terminal(cli: Cli) -> None:
    door = opened(cli)
    terminal = attached(cli)
    terminals = [pid for pid in terminal_processes(cli) if b'"socket"' in Path(f"/proc/{pid}/cmdline").read_bytes()]
    (first,) = (pid for pid in terminals if bindings.stat_of(pid)[1] not in terminals)
    os.kill(first, signal.SIGKILL)
    assert terminal.end() in (0, 128 + signal.SIGKILL) and "of ann is gone" in terminal.text
    until(lambda: not terminal_processes(cli))
    assert opened(cli) == door
    attached(cli)


@pytest.mark.parametrize("is_detached", [False, True])
def test_a_long_text_is_pasted_while_the_client_prints(cli: Cli, is_detached: bool) -> None:
    """The client reads no keys before its output was taken, which is more than its terminal holds."""
    if is_detached:
        opened(cli)
        terminal = attached(cli)
    else:
        terminal = Terminal(cli, "open", "claude", "--wrap", "--agent-id", "ann")
        terminal.until("of ann kept")
    text = "much\r" + f"{'Q' * 999}\r" * 60 + "last\r"
    threading.Thread(target=terminal.type, args=[text], daemon=True).start()
    terminal.until("that was much")
    terminal.until("said: last")
    terminal.type("bye\r")
    assert terminal.end() == 7


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_wrapper_that_is_ended_gives_the_terminal_its_modes_back(cli: Cli, number: int) -> None:
    terminal = Terminal(cli, "open", "claude", "--wrap", "--agent-id", "ann")
    terminal.until("of ann kept")
    until(lambda: not termios.tcgetattr(terminal.master)[3] & termios.ICANON)
    os.kill(terminal.pid, number)
    assert terminal.end() == 128 + number
    assert termios.tcgetattr(terminal.master)[3] & termios.ICANON
    until(lambda: not terminal_processes(cli))


def look(cli: Cli) -> str:
    """What somebody sees who attaches now."""
    terminal = attached(cli)
    terminal.read(0.5)
    OPEN.remove(terminal.pid)
    os.kill(terminal.pid, signal.SIGKILL)
    os.waitpid(terminal.pid, 0)
    return terminal.text


def test_an_attached_person_who_reads_nothing_holds_up_nobody(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    door = opened(cli)
    monkeypatch.chdir(cli.root)  # opening the line changes to the directory of its socket
    deaf = lines.open_line(door)
    assert deaf
    deaf.send(lines.SIZE, lines.pack_size(24, 80))
    terminal = attached(cli)
    terminal.type("much\r")
    terminal.until("that was much")
    terminal.type("bye\r")
    assert terminal.end() == 7
    deaf.close()


def test_a_client_ends_with_its_team_unless_somebody_watches_it(cli: Cli) -> None:
    """Those are named, also by `doctor` with the command to end them."""
    opened(cli)
    closed = cli.ok("close-team", agent="lea")
    assert closed["endedClients"] == ["ann"] and "leftClients" not in closed
    until(lambda: not terminal_processes(cli))
    cli.ok("restore-team", agent="lea")
    opened(cli)
    terminal = attached(cli)
    closed = cli.ok("close-team", agent="lea")
    assert closed["leftClients"] == ["ann"] and "endedClients" not in closed
    assert terminal_processes(cli)
    (found,) = (found for found in cli.ok("doctor", agent="lea")["findings"] if "detached" in found["what"])
    assert found["remedy"] == "teams stop-agent ann --team alpha --as human"
    assert cli.ok("stop-agent", "ann", agent="human")["outcome"] == "stopped"
    assert terminal.end() == 128 + signal.SIGHUP
    until(lambda: not terminal_processes(cli))
