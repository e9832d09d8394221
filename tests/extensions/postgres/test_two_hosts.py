"""Agents of one team on two machines with one server; each machine has its own processes, name, files and network."""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support import hosts, postgres, waits
from tests.support.hosts import Machine

pytestmark = pytest.mark.slow
ALPHA = "alpha"
until = functools.partial(waits.until, timeout=300)


@pytest.fixture
def two(tmp_path: Path) -> Iterator[list[Machine]]:
    """Two machines, alpha and beta, which reach one server."""
    if why := postgres.missing() or hosts.missing():
        pytest.skip(why)
    made: list[Machine] = []
    server = None
    try:
        for name in ("alpha", "beta"):
            made.append(Machine(name, tmp_path))
        server = hosts.serve(made)
        yield made
    finally:
        for machine in made:
            machine.remove()
        if server:
            server.stop()


def test_agents_are_reached_across_machines(two: list[Machine], tmp_path: Path) -> None:
    """An agent on another machine is listed with its host, can be interrupted, woken by a message and stopped."""
    alpha, beta = two
    alpha.ok("spawn-team", ALPHA, agent="lea")
    prompt = f'echo "$(hostname) ${{TEAMS_RESUME:-first}}" >>{tmp_path}/turns; test -n "$TEAMS_RESUME" || sleep 1000'
    beta.ok("run-agent", prompt, "--agent-id", "bob", "--detach", agent="lea", team=ALPHA)
    turns = tmp_path / "turns"
    until(turns.exists, "the first turn")
    rows = {row["name"]: row for row in alpha.ok("list-agents", team=ALPHA, agent="lea")["agents"]}
    assert (rows["bob"]["host"], rows["bob"]["state"]) == ("beta", "active")
    alpha.ok("interject", "bob", "look here", agent="lea", team=ALPHA)
    until(lambda: turns.read_text().splitlines() == ["beta first", "beta 1"], "the interjection")
    until(lambda: session(alpha, "bob")["state"] == "done", "the end of the turn")
    alpha.ok("send-message", "bob", "more", agent="lea", team=ALPHA)
    until(lambda: turns.read_text().splitlines() == ["beta first", "beta 1", "beta 1"], "the resumption by mail")
    until(lambda: session(alpha, "bob")["state"] == "done", "the end of that turn")
    beta.ok("run-agent", "sleep 1000", "--agent-id", "ann", "--detach", agent="lea", team=ALPHA)
    until(lambda: session(alpha, "ann")["state"] == "running", "the start of ann")
    assert alpha.ok("stop-agent", "ann", agent="lea", team=ALPHA)["outcome"] == "stopped"


def session(machine: Machine, name: str) -> dict[str, Any]:
    rows = machine.ok("list-agents", team=ALPHA, agent="lea")["agents"]
    return next(row for row in rows if row["name"] == name)["session"]


def test_an_agent_of_a_machine_that_was_silent_is_lost_and_ended_when_the_machine_is_back(
    two: list[Machine], tmp_path: Path
) -> None:
    """Meanwhile its task is free."""
    alpha, beta = two
    alpha.ok("spawn-team", ALPHA, agent="lea")
    alpha.ok("set", "staleAfterSeconds", "15", agent="lea", team=ALPHA)
    alpha.ok("create-task", "one", agent="lea", team=ALPHA)
    prompt = f"trap 'echo ended >{tmp_path}/ended; exit' INT TERM; {sys.executable} -m teams_cli claim-task 1"
    prompt += f"; touch {tmp_path}/claimed; while :; do sleep 0.2; done"
    beta.ok("run-agent", prompt, "--agent-id", "bob", "--detach", agent="lea", team=ALPHA)
    until((tmp_path / "claimed").exists, "the claim")
    assert alpha.ok("show-task", "1", team=ALPHA)["owner"] == "bob"
    beta.cut()
    until(lambda: session(alpha, "bob").get("outcome") == "lost", "that bob is lost")
    until(lambda: alpha.ok("show-task", "1", team=ALPHA)["status"] == "pending", "that the task is free")
    assert not (tmp_path / "ended").exists()
    beta.mend()
    until((tmp_path / "ended").exists, "the end of what was given up")
    told = [message["message"] for message in alpha.ok("read-messages", agent="lea", team=ALPHA)]
    assert sum("its machine is silent, beta" in text for text in told) == 1
    assert any("task-1 (one) is free again" in text for text in told)
