"""Many agents at once, and processes killed at random: nothing is lost, told twice, or left behind."""

from __future__ import annotations

import collections
import json
import os
import random
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from teams_cli.agents import ending, sessions
from tests.support.agents import NEEDS_PROC, end_all, keepers, marked, outputs_to, place, session, team_of_agents
from tests.support.cli import ALPHA, COMMAND, TIMEOUT, Cli
from tests.support.waits import until

pytestmark = [pytest.mark.slow, NEEDS_PROC]
MANY = 8
PATIENCE = 5 * TIMEOUT


@pytest.fixture
def cli(tmp_path: Path) -> Iterator[Cli]:
    """A team with the leader lea and the member bob, whose processes are ended after the test."""
    made = team_of_agents(tmp_path, "bob")
    yield made
    end_all(made.root)


def test_many_spawned_at_once_by_an_agent(cli: Cli) -> None:
    """An agent gets every output in its own turns before it is done, so `run-agent` ends after all of them."""
    prompt = f"""
        cat >>$D/given; echo >>$D/given
        test $TEAMS_RESUME || for n in $(seq {MANY}); do $T spawn "echo from $n" >&2 & done; wait
    """
    words = ("run-agent", prompt, "--agent-id", "zoe", "--cwd", str(place(cli)), "--json")
    agents = json.loads(cli.start(*words, agent="lea").communicate(timeout=PATIENCE)[0])["agents"]
    assert len(agents) == MANY + 1
    assert {row["outcome"] for row in agents} == {"completed"}
    assert sorted(said for _, said in outputs_to(cli, "zoe")) == sorted(f"from {n}\n" for n in range(1, MANY + 1))
    given = (place(cli) / "given").read_text()
    assert [given.count(f'"from {n}\\n"') for n in range(1, MANY + 1)] == [1] * MANY
    assert marked(cli.root) == {}
    until(lambda: keepers(cli.root) == [], timeout=PATIENCE)


@pytest.mark.parametrize("seed", range(3))
def test_killing_at_random(cli: Cli, seed: int) -> None:
    """Supervisors, clients, their processes and running commands are killed with SIGKILL at random moments.

    Afterwards every command ends, no process is left, every agent is done, and for each generation that ended
    its caller was told of the output or the failure once.
    """
    dice = random.Random(seed)
    prompt = """
        setsid sleep 300 &
        test $TEAMS_RESUME || for n in 1 2; do $T spawn "sleep 300 & sleep 0.$n; echo leaf" >&2; done
        $T send-message bob "from $TEAMS_AGENT_ID" >&2; sleep 0.2; echo top
    """
    commands = []
    for n in range(8):
        words = ["run-agent", prompt, "--cwd", str(place(cli)), *(["--detach"] if n % 2 else [])]
        commands.append(_start(cli, *words))
        for _ in range(6):
            time.sleep(dice.uniform(0.01, 0.15))
            _kill_one(cli, dice, commands)
        commands += [_start(cli, "send-message", name, "more") for name in _idle(cli, dice)]
    for command in commands:
        if dice.random() < 0.3:
            command.kill()
    for command in commands:
        command.wait(PATIENCE)
    _settles(cli)


def _start(cli: Cli, *words: str) -> subprocess.Popen[bytes]:
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    return subprocess.Popen([*COMMAND, *words], env=cli.environ("lea"), stdin=subprocess.DEVNULL, **quiet)


def _kill_one(cli: Cli, dice: random.Random, commands: list[subprocess.Popen[bytes]]) -> None:
    """Kill a keeper, a process of an agent, or a command that was started."""
    kind = dice.randrange(5)
    if kind == 0:
        dice.choice(commands).kill()
        return
    pids = keepers(cli.root) if kind < 3 else list(marked(cli.root))
    if pids:
        try:
            os.kill(dice.choice(pids), signal.SIGKILL)
        except ProcessLookupError:
            return


def _idle(cli: Cli, dice: random.Random) -> list[str]:
    found = [found.agent for found, _ in cli.store().scan(ALPHA, sessions.SESSION, []) if found.ended]
    return dice.sample(found, min(2, len(found)))


def _settles(cli: Cli) -> None:
    """Check that after the last kill everything ends with no more help than the next command."""

    def all_done() -> bool:
        rows = cli.ok("list-agents")["agents"]
        return all(row["session"]["state"] == "done" for row in rows if "session" in row)

    until(all_done, timeout=PATIENCE)
    until(lambda: keepers(cli.root) == [], "keepers left", PATIENCE)
    until(all_done, timeout=PATIENCE)  # supervisors resume other agents just before they end
    until(lambda: marked(cli.root) == {}, lambda: f"left: {marked(cli.root)}", PATIENCE)
    told = collections.Counter()
    for caller in {found.caller for found in ending.all_of(cli.store(), ALPHA, [])}:
        told.update(sender for sender, _ in outputs_to(cli, caller))
    for found in ending.all_of(cli.store(), ALPHA, []):
        assert found.outcome in ("completed", "failed", "lost"), found
        assert 1 <= told[found.agent] <= found.generation, (told[found.agent], found)
        assert session(cli, found.agent).state == "done"
    assert cli.ok("doctor")["healthy"]
