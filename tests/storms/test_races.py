"""Many processes work on one team at once, and each gets what it was promised, and nobody else does."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from teams_cli.membership import joining
from teams_cli.messages import messages
from teams_cli.messages.messages import MESSAGE
from teams_cli.tasks import tasks
from teams_cli.teams.permission import Caller
from tests.support.cli import ALPHA, TIMEOUT, Cli, add_tasks, make_team

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("each_engine")]

WORKER = """
import os, sys
from teams_cli.tasks import claims
from teams_cli.membership import joining
from teams_cli.messages import messages
from teams_cli.teams.permission import Caller
from teams_cli.errors import NotFound
from teams_cli.store.opening import from_environment

name, times = sys.argv[1], int(sys.argv[2])
store, caller = from_environment(os.environ), Caller(name)
sys.stdin.readline()  # until all are there
"""
SEND = "for n in range(times): print(messages.send(store, 'alpha', caller, 'bob', f'{name}-{n}').number)"
BROADCAST = "for n in range(times): print(messages.broadcast(store, 'alpha', caller, f'{name}-{n}').id)"
MOVE = """
for n in range(times):
    joining.join(store, 'alpha', caller)
    joining.leave(store, 'alpha', caller)
"""
CLAIM = """
try:
    while True: print(claims.claim_next(store, 'alpha', caller).id)
except NotFound:
    pass
"""


def workers(cli: Cli, jobs: dict[str, tuple[str, int]]) -> dict[str, list[str]]:
    """Run a long-lived process for each name, all starting together, and return the lines that each printed."""
    running = {
        name: subprocess.Popen(
            [sys.executable, "-c", WORKER + code, name, str(times)],
            env=cli.environ(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for name, (code, times) in jobs.items()
    }
    for process in running.values():
        assert process.stdin
        process.stdin.write("\n")
        process.stdin.flush()
    printed = {name: process.communicate(timeout=5 * TIMEOUT)[0].split("\n")[:-1] for name, process in running.items()}
    assert all(process.returncode == 0 for process in running.values())
    return printed


def one_shots(started: list[Any]) -> list[tuple[int, str, str]]:
    """Wait for commands that were started at once; the status, standard output and standard error of each."""
    found = []
    for process in started:
        out, err = process.communicate(timeout=5 * TIMEOUT)
        assert b"Traceback" not in err
        found.append((process.returncode, out.decode(), err.decode()))
    return found


def test_twelve_spawn_one_team_and_twelve_join_it(tmp_path: Path) -> None:
    """One process creates the team and leads it; the others are told that it exists. The members get the first
    aliases, one each.
    """
    cli = Cli(tmp_path / "root")
    done = one_shots([cli.start("spawn-team", ALPHA, "--json", agent=f"a{n}") for n in range(12)])
    assert Counter(status for status, _, _ in done) == {0: 1, 11: 11}
    (winner,) = (json.loads(out) for status, out, _ in done if status == 0)
    assert {json.loads(err)["error"]["code"] for status, _, err in done if status} == {"already_exists"}
    team = cli.ok("show-team", ALPHA)
    assert (team["leader"], len(team["members"])) == (winner["leader"], 1)
    done = one_shots([cli.start("join-team", ALPHA, "--json") for _ in range(12)])
    assert {status for status, _, _ in done} == {0}
    given = {json.loads(out)["agentId"] for _, out, _ in done}
    assert given == {f"agent{letter}" for letter in "ABCDEFGHIJKL"}
    agents = cli.ok("list-agents", agent=winner["leader"], team=ALPHA)["agents"]
    assert {row["name"] for row in agents} == given | {winner["leader"]}


def test_twelve_claim_one_task(tmp_path: Path) -> None:
    """One agent gets the task, and the others are told who has it. The owner may repeat the claim, also several
    times at once.
    """
    names = [f"a{n}" for n in range(12)]
    cli = make_team(tmp_path / "root", *names)
    add_tasks(cli, "t")
    done = one_shots([cli.start("claim-task", "1", "--json", agent=name) for name in names])
    assert Counter(status for status, _, _ in done) == {0: 1, 11: 11}
    (winner,) = (json.loads(out)["owner"] for status, out, _ in done if status == 0)
    refusals = {json.loads(err)["error"]["message"] for status, _, err in done if status}
    assert refusals == {f"task-1 is claimed by {winner}"}
    task = cli.ok("show-task", "1")
    assert (task["owner"], task["claim"], len(task["notes"])) == (winner, 1, 1)
    add_tasks(cli, "u")
    done = one_shots([cli.start("claim-task", "2", "--json", agent=winner) for _ in range(6)])
    assert {(status, json.loads(out)["claim"]) for status, out, _ in done} == {(0, 1)}


def test_circular_dependencies_made_from_both_sides(tmp_path: Path) -> None:
    cli = make_team(tmp_path / "root")
    for n in range(5):
        one, two = f"task-{2 * n + 1}", f"task-{2 * n + 2}"
        add_tasks(cli, "a", "b")
        pair = [(one, two), (two, one)]
        done = one_shots([cli.start("update-task", a, "--blocked-by", b, "--json", agent="lea") for a, b in pair])
        assert {status for status, _, _ in done} <= {0, 11}
        waits = {key: cli.ok("show-task", key)["blockedBy"] for key in (one, two)}
        assert not (waits[one] and waits[two]), waits
        assert sum(status == 0 for status, _, _ in done) == sum(map(len, waits.values()))


def test_everything_at_once(tmp_path: Path) -> None:
    """Messages, broadcasts and claims that were acknowledged while members joined and left are there afterwards. All
    recipients that a broadcast lists have it, and all members who stay are among them.
    """
    senders, claimers, speakers, movers = ([f"{letter}{n}" for n in range(2)] for letter in "acbm")
    stay = {"lea", "bob", *senders, *claimers, *speakers}
    cli = make_team(tmp_path / "root", *stay - {"lea"})
    add_tasks(cli, *(f"t{n}" for n in range(50)))
    jobs = {name: (SEND, 50) for name in senders} | {name: (CLAIM, 0) for name in claimers}
    printed = workers(cli, jobs | {name: (MOVE, 15) for name in movers} | {name: (BROADCAST, 15) for name in speakers})
    store = cli.store()
    sent = store.read(ALPHA, MESSAGE, None, 0, [])
    said = [message for message in sent if message.recipients]
    assert sorted(int(line) for name in senders for line in printed[name]) == [
        message.number for message in sent if not message.recipients
    ]
    assert sorted(line for name in speakers for line in printed[name]) == sorted(message.id for message in said)
    for message in said:
        to = message.recipients or []
        assert len(set(to)) == len(to) and message.from_ not in to
        assert stay - {message.from_} <= set(to) <= {*stay, *movers}
        for name in to:
            assert store.read(ALPHA, MESSAGE, name, message.number - 1, [], 1) == [message]
    assert sorted(line for name in claimers for line in printed[name]) == sorted(f"task-{n}" for n in range(1, 51))
    assert {task.status for task in tasks.all_of(store, ALPHA, [])} == {"in_progress"}
    assert joining.join(store, ALPHA, Caller("m1"))[0].active
    assert messages.send(store, ALPHA, Caller("m1"), "bob", "hi").number == len(sent) + 1
