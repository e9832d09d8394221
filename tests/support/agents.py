"""Teams with agents for tests: their script commands, their output files, and the processes that they leave behind."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from teams_cli.agents import ending, sessions
from teams_cli.agents.sessions import Session
from teams_cli.messages import inboxes, messages
from tests.support.cli import ALPHA, TIMEOUT, Cli, make_team
from tests.support.waits import until
from tests.support.workflow_runs import processes_of

NEEDS_PROC = pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="processes are found through /proc")
BUSY = "touch $D/ready; until test -e $D/go; do sleep 0.02; done; "
"""The script of an agent that works until the test calls `go`."""
CLIENT = Path(__file__).with_name("scripted_client.py")
SCRIPTED = {
    "start": [sys.executable, str(CLIENT), "start"],
    "resume": [sys.executable, str(CLIENT), "resume", "{session_id}"],
    "sessionId": {"from": "lines", "match": {"type": "started"}, "path": "session"},
    "output": {"from": "lines", "match": {"type": "answer"}, "path": "item.text"},
    "failed": {"status": True, "lines": {"type": "error"}},
    "interrupt": [["INT", 1], ["KILL", 1]],
}


def team_of_agents(tmp_path: Path, *members: str, **roles: Any) -> Cli:
    """Return a team whose agents have the variables `$T` (the command `teams`) and `$D` (a directory to write to, in
    which they also work).
    """
    place = tmp_path / "work"
    place.mkdir()
    cli = make_team(tmp_path / "root", *members, **roles)
    cli.more.update(T=f"{sys.executable} -m teams_cli", D=str(place), CLIENT_SESSIONS=str(place))
    return cli


def with_client(cli: Cli) -> Cli:
    """Return the team with the harness `scripted` in the user's configuration."""
    (cli.root / "config.json").write_text(json.dumps({"harness": {"scripted": SCRIPTED}}))
    return cli


def place(cli: Cli) -> Path:
    return Path(cli.more["D"])


def lines(cli: Cli, name: str) -> list[str]:
    """Return the lines of a file in the agents' directory; empty without such a file."""
    path = place(cli) / name
    return path.read_text().splitlines() if path.exists() else []


def session(cli: Cli, agent: str) -> Session:
    found = sessions.find(cli.store(), ALPHA, agent)
    assert found is not None
    return found


def ended(cli: Cli, agent: str, generation: int = 1) -> Session:
    """Wait until the keeper of the agent is gone and its *generation*, or a later one, has ended. Return the
    session.
    """

    def over() -> Session | None:
        found = ending.current(cli.store(), ALPHA, agent)
        ready = found and found.generation >= generation and found.ended and not found.keeper_lives
        return found if ready else None

    found = until(over, f"the end of {agent}: {sessions.find(cli.store(), ALPHA, agent)}")
    assert isinstance(found, Session)
    return found


def outputs_to(cli: Cli, agent: str) -> list[tuple[str, str]]:
    """Return the senders and texts of all outputs that were ever sent to the agent, in order."""
    found = cli.store().read(ALPHA, messages.MESSAGE, agent, 0, [])
    return [(message.from_, message.message) for message in found if message.type == "output"]


def unread(cli: Cli, agent: str) -> list[int]:
    return inboxes.unread(cli.store(), ALPHA, agent)


def marked(root: Path) -> dict[int, str]:
    """Return all processes of agents of the root *root*, clients and what they left behind, each with its mark."""
    found = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            entries = Path("/proc", pid, "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        variables = dict(entry.split(b"=", 1) for entry in entries if b"=" in entry)
        if variables.get(b"TEAMS_HOME") == str(root).encode() and b"TEAMS_RUN_ID" in variables:
            found[int(pid)] = variables[b"TEAMS_RUN_ID"].decode()
    return found


def keepers(root: Path) -> list[int]:
    """Return the keepers of the agents of the root."""
    return running(root, "agents.keeper")


def running(root: Path, program: str) -> list[int]:
    """Return the processes of the root that run the module *program* of ours in the background, such as
    `agents.keeper`.
    """
    return [pid for pid, line in processes_of(root).items() if f"teams_cli.{program}" in line]


def end_all(root: Path) -> None:
    """End all processes of the root. Fixtures call this after a test, also if the test failed."""
    for pid in [*keepers(root), *marked(root)]:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue


def run_agent(cli: Cli, prompt: str, *words: str, agent: str = "lea", status: int = 0) -> dict[str, Any]:
    """Run an agent as the leader, and wait until it has ended."""
    answer = cli("run-agent", prompt, "--cwd", str(place(cli)), "--json", *words, agent=agent)
    assert answer.status == status, answer
    found: dict[str, Any] = json.loads(answer.stdout)
    return found


def detach(cli: Cli, name: str, prompt: str, *words: str) -> None:
    """Start an agent as the leader, without waiting for it."""
    told = cli.ok("run-agent", prompt, "--agent-id", name, "--cwd", str(place(cli)), "--detach", *words, agent="lea")
    assert told["state"] == "starting"


def is_busy(cli: Cli) -> None:
    """Wait until an agent carries out BUSY."""
    until((place(cli) / "ready").exists)


def at_work(cli: Cli, name: str, prompt: str, *words: str) -> None:
    """Start an agent as the leader, and wait until it carries out BUSY."""
    detach(cli, name, prompt, *words)
    is_busy(cli)


def statuses(started: list[Any]) -> list[int]:
    """Return the exit statuses of commands that run at the same time, once they have ended."""
    for process in started:
        process.communicate(timeout=TIMEOUT)
    return [process.returncode for process in started]


def go(cli: Cli) -> None:
    """Let the agents continue that carry out BUSY."""
    (place(cli) / "go").touch()


def agent_row(cli: Cli, name: str) -> dict[str, Any]:
    """Return the row of the agent from `list-agents`."""
    return next(row for row in cli.ok("list-agents")["agents"] if row["name"] == name)
