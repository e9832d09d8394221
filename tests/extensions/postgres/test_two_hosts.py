"""Agents of one team on two machines with a server between them: each its own processes, name, files and network."""

from __future__ import annotations

import functools
import json
import sys
import time
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from teams_cli.agents.seats import bindings, channels
from teams_cli.agents.seats.channels import Doorbell
from tests.support import hosts, postgres, waits
from tests.support.cli import TIMEOUT
from tests.support.hosts import Machine
from tests.support.postgres import Postgres
from tests.support.seated_client import SeatedClient
from tests.support.workflow_runs import write_workflow

pytestmark = pytest.mark.slow
ALPHA = "alpha"
until = functools.partial(waits.until, timeout=300)
READ = ("read-messages", "--all", "--limit", "1000")

# An agent that works with the command line alone: it claims, does, completes, and asks again when told to.
AGENT = """
import json, subprocess, sys
TEAMS = [sys.executable, "-m", "teams_cli"]

def teams(*words):
    while True:
        done = subprocess.run([*TEAMS, *words, "--json"], capture_output=True, text=True, stdin=subprocess.DEVNULL)
        if done.returncode == 12:
            print("told", json.loads(done.stderr)["error"]["code"], flush=True)
            continue
        return done.returncode, json.loads(done.stdout or done.stderr)

assert teams("join-team")[0] == 0
while True:
    status, task = teams("claim-task", "--next")
    if status == 10:
        left = [t for t in teams("get-tasks")[1] if t["status"] in ("pending", "in_progress")]
        if not left:
            break
        teams("wait", "--message", "--timeout", "0.5")
        continue
    if status == 11 and task["error"]["code"] == "wrong_state":
        break  # the run is completed, and its team closed
    assert status == 0, task
    print("claimed", task["id"], flush=True)
    subprocess.run(["sh", "-c", task["run"]], stdout=subprocess.DEVNULL)
    uid = f"beta-{task['id']}-{task['claim']}"
    assert teams("send-message", "leader", uid, "--uid", uid)[0] == 0
    print("sent", uid, flush=True)
    words = ["--status", "completed", "--result", "by beta", "--claim", str(task["claim"])]
    status, answer = teams("update-task", task["id"], *words)
    print("completed" if status == 0 else f"refused-{status}", task["id"], flush=True)
"""


@pytest.fixture
def two(tmp_path: Path) -> Iterator[tuple[Machine, Machine, Postgres]]:
    """Two machines, alpha and beta, and the server that both reach."""
    if why := postgres.missing() or hosts.missing():
        pytest.skip(why)
    made: list[Machine] = []
    server = None
    try:
        made += [Machine("alpha", tmp_path)]
        made += [Machine("beta", tmp_path)]
        server = hosts.serve(made)
        yield made[0], made[1], server
    finally:
        for machine in made:
            machine.remove()
        if server:
            server.stop()


def test_a_workflow_goes_on_across_a_cut_cable(two: tuple[Machine, Machine, Postgres], tmp_path: Path) -> None:
    """A minute without the cable: the other machine takes over what was claimed, and nothing is lost or done twice."""
    alpha, beta, _ = two
    (tmp_path / "repo").mkdir()
    items = "\n".join(f"  - {{id: s{n}, title: step {n}, run: sleep 0.7 && echo {n}}}" for n in range(110))
    repo = f"variables:\n  repo: {{default: {tmp_path}/repo}}"
    path = write_workflow(tmp_path / "flows", f"pattern: swarm\n{repo}\nagents: [{{name: worker}}]\ntasks:\n{items}")
    alpha.ok("set", "--user", "staleAfterSeconds", "20", agent="human")
    run = alpha.start("run", str(path), "--json")
    team = until(lambda: [row["name"] for row in alpha.ok("discover-teams")], "the team")[0]
    until(lambda: len(alpha.ok("get-tasks", team=team)) == 110, "the tasks")
    with open(tmp_path / "beta.out", "wb") as out, open(tmp_path / "beta.err", "wb") as err:
        agent = beta.run([sys.executable, "-c", AGENT], "bea", team, stdout=out, stderr=err)
    said = lambda: (tmp_path / "beta.out").read_text().splitlines()  # noqa: E731
    until(lambda: sum(line.startswith("completed") for line in said()) >= 3, "three tasks of beta")
    until(lambda: said()[-1].startswith("claimed"), "a claim of beta")
    beta.cut()
    cut_at, before = time.monotonic(), len(said())
    until(lambda: time.monotonic() - cut_at > 60, "the end of the minute")
    until(lambda: any(line.startswith("told") for line in said()[before:]), "beta being told")
    beta.mend()
    out, err = run.communicate(timeout=300)
    assert run.returncode == 0, err.decode()
    assert agent.wait(60) == 0, (tmp_path / "beta.err").read_text()
    check(json.loads(out)["tasks"], said(), alpha.ok(*READ, agent="leader", team=team))
    print(Counter(line.split()[0] for line in said()), f"after the cut: {len(said()) - before} lines")


def check(tasks: list[dict[str, Any]], said: list[str], messages: list[dict[str, Any]]) -> None:
    """Each task completed once, by who had its last claim; each message that was acknowledged is there once."""
    assert Counter(task["status"] for task in tasks) == {"completed": 110}
    for task in tasks:
        assert [note["what"] for note in task["notes"]].count("completed") == 1, task
    by_beta = {line.split()[1] for line in said if line.startswith("completed")}
    assert {task["id"] for task in tasks if task.get("result") == "by beta"} == by_beta
    bodies = Counter(message["message"] for message in messages)
    assert all(bodies[line.split()[1]] == 1 for line in said if line.startswith("sent"))
    expired = [task["id"] for task in tasks if any(note["what"] == "expired" for note in task["notes"])]
    refused = [line.split()[1] for line in said if line.startswith("refused-11")]
    assert refused and set(refused) <= set(expired)  # what it had when the cable was cut, another did meanwhile


def test_agents_are_reached_across_machines(two: tuple[Machine, Machine, Postgres], tmp_path: Path) -> None:
    """Seen with their hosts, written to, interrupted and stopped from the other machine; resumed where they live."""
    alpha, beta, _ = two
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


def test_a_client_at_a_terminal_is_woken_from_another_machine(two: tuple[Machine, Machine, Postgres]) -> None:
    """By the waker of its own machine, which alone has its bell; seen with what it does, and when it is gone."""
    alpha, beta, _ = two
    alpha.ok("spawn-team", ALPHA, agent="lea")
    client = SeatedClient({}, start=partial(beta.run, team=ALPHA))
    bell = Doorbell(bindings.kept(str(beta.root), ALPHA, "agentA", "bell"))
    try:
        client.hook("SessionStart")
        assert (seated(alpha)["host"], seated(alpha)["state"]) == ("beta", "idle")
        assert bell.take()
        alpha.ok("send-message", "agentA", "from afar", agent="lea", team=ALPHA)
        assert bell.wait(TIMEOUT) == channels.MAIL
        until(lambda: reached(alpha) == "woken", "that it was woken")
        assert "| from afar" in client.hook("UserPromptSubmit")
        assert reached(alpha) == "shown" and seated(alpha)["state"] == "working"
        assert alpha("interject", "agentA", "now", agent="lea", team=ALPHA).status == 11
    finally:
        bell.close()
        client.kill()
    beta.ok("list-agents", team=ALPHA, agent="lea")
    until(lambda: seated(alpha)["state"] == "gone", "that it is gone")


def seated(machine: Machine) -> dict[str, Any]:
    rows = machine.ok("list-agents", team=ALPHA, agent="lea")["agents"]
    found: dict[str, Any] = next(row for row in rows if row["name"] == "agentA")
    return found


def reached(machine: Machine) -> str:
    (to,) = machine.ok("show-message", "msg-1", team=ALPHA, agent="lea")["reach"]
    return str(to["state"])


def session(machine: Machine, name: str) -> dict[str, Any]:
    rows = machine.ok("list-agents", team=ALPHA, agent="lea")["agents"]
    found: dict[str, Any] = next(row for row in rows if row["name"] == name)["session"]
    return found


def test_a_machine_that_dies_is_noticed(two: tuple[Machine, Machine, Postgres], tmp_path: Path) -> None:
    """Its agents are told as lost, and what they had claimed is free."""
    alpha, beta, _ = two
    alpha.ok("spawn-team", ALPHA, agent="lea")
    alpha.ok("set", "staleAfterSeconds", "15", agent="lea", team=ALPHA)
    alpha.ok("create-task", "one", agent="lea", team=ALPHA)
    prompt = f"{sys.executable} -m teams_cli claim-task 1; touch {tmp_path}/claimed; sleep 1000"
    beta.ok("run-agent", prompt, "--agent-id", "bob", "--detach", agent="lea", team=ALPHA)
    until((tmp_path / "claimed").exists, "the claim")
    assert alpha.ok("show-task", "1", team=ALPHA)["owner"] == "bob"
    beta.die()
    assert session(alpha, "bob")["state"] == "running"  # nobody can know yet
    until(lambda: session(alpha, "bob").get("outcome") == "lost", "that bob is lost")
    until(lambda: alpha.ok("show-task", "1", team=ALPHA)["status"] == "pending", "that the task is free")
    told = [message["message"] for message in alpha.ok("read-messages", agent="lea", team=ALPHA)]
    assert any("its machine is silent, beta" in text for text in told)
    assert any("task-1 (one) is free again" in text for text in told)


def test_a_machine_that_comes_back_stops_what_was_given_up(
    two: tuple[Machine, Machine, Postgres], tmp_path: Path
) -> None:
    """Cut off for longer than the lease, its agent was told as lost; the keeper ends it when it hears of that."""
    alpha, beta, _ = two
    alpha.ok("spawn-team", ALPHA, agent="lea")
    alpha.ok("set", "staleAfterSeconds", "12", agent="lea", team=ALPHA)
    prompt = f"trap 'echo ended >{tmp_path}/ended; exit' INT TERM; touch {tmp_path}/begun; while :; do sleep 0.2; done"
    beta.ok("run-agent", prompt, "--agent-id", "bob", "--detach", agent="lea", team=ALPHA)
    until((tmp_path / "begun").exists, "the beginning")
    beta.cut()
    until(lambda: session(alpha, "bob").get("outcome") == "lost", "that bob is lost")
    assert not (tmp_path / "ended").exists()
    beta.mend()
    until((tmp_path / "ended").exists, "the end of what was given up")
    told = [message["message"] for message in alpha.ok("read-messages", agent="lea", team=ALPHA)]
    assert len([text for text in told if "bob" in text]) == 1
