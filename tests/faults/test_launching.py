"""A command that starts an agent is killed at any call: the agent runs or its name can be used again, and its caller is
notified once.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from teams_cli.agents import ending, sessions
from teams_cli.agents.sessions import Session
from tests.faults.lab import NONE, PATIENCE, Fault, changes, command, warm
from tests.support.agents import end_all, outputs_to
from tests.support.cli import ALPHA, Cli, make_team
from tests.support.waits import until

pytestmark = pytest.mark.slow

LAUNCHES = {
    "run-agent": ("lea", ["run-agent", "echo done", "--agent-id", "kid", "--detach"]),
    "spawn": ("bob", ["spawn", "echo done", "--agent-id", "kid"]),
}
EXISTS = 11


def over(cli: Cli) -> Session | None:
    """Return the session of the agent once it has ended and its keeper is gone."""
    found = ending.current(cli.store(), ALPHA, "kid")
    return found if found and found.ended and not found.keeper_lives else None


@pytest.mark.parametrize("launch", LAUNCHES)
def test_a_launcher_that_is_killed_leaves_no_name_behind(tmp_path: Path, launch: str) -> None:
    warm()
    cli = make_team(tmp_path / "root", "bob")
    shutil.copytree(cli.root, tmp_path / "base")
    agent, words = LAUNCHES[launch]
    calls = command(cli.root, agent, words).calls
    until(lambda: over(cli), timeout=PATIENCE)
    points = changes(calls)
    for nth in points:
        end_all(cli.root)
        shutil.rmtree(cli.root)
        shutil.copytree(tmp_path / "base", cli.root)
        killed = command(cli.root, agent, words, Fault("kill", nth))
        repeated = command(cli.root, agent, words, NONE)
        assert repeated.status in (0, EXISTS), f"killed at call {nth}, {calls[nth - 1]}: {killed} {repeated}"
        found = until(lambda: over(cli), f"the end, killed at call {nth}", PATIENCE)
        assert found.outcome == "completed", f"killed at call {nth}: {found}"
        told = [text for name, text in outputs_to(cli, agent) if name == "kid"]
        assert told.count("done\n") == 1, f"killed at call {nth}: {told}"
        assert sessions.get(cli.store(), ALPHA, "kid").generation == found.generation
    assert len(points) > 10
