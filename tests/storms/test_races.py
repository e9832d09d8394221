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
from teams_cli.tasks import tasks
from teams_cli.teams.permission import Caller
from teams_cli.errors import Busy, NotFound
from teams_cli.store.opening import from_environment

root, name, what, times = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
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
TAKE = """
for n in range(times):
    try:
        claims.claim(store, 'alpha', caller, '1')
        print(n)
        claims.release(store, 'alpha', caller, '1')
    except Exception as error:
        assert type(error).__name__ in ('TaskClaimed', 'NotAllowed', 'WrongState'), error
"""


def workers(cli: Cli, jobs: dict[str, tuple[str, int]]) -> dict[str, list[str]]:
    """Run a long-lived process for each name, all starting together, and return the lines that each printed."""
    running = {
        name: subprocess.Popen(
            [sys.executable, "-c", WORKER + code, str(cli.root), name, "", str(times)],
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
    printed = {name: process.communicate(timeout=TIMEOUT)[0].split("\n")[:-1] for name, process in running.items()}
    assert all(process.returncode == 0 for process in running.values())
    return printed


def one_shots(started: list[Any]) -> list[tuple[int, str, str]]:
    """Wait for commands that were started at once; the status, standard output and standard error of each."""
    found = []
    for process in started:
        out, err = process.communicate(timeout=TIMEOUT)
        assert b"Traceback" not in err
        found.append((process.returncode, out.decode(), err.decode()))
    return found


def test_twelve_spawn_one_team_and_thirty_join_it(tmp_path: Path) -> None:
    """One wins and leads it; the others are told that it is there. Thirty members have an alias each, the first that
    there are.
    """
    cli = Cli(tmp_path / "root")
    done = one_shots([cli.start("spawn-team", ALPHA, "--json", agent=f"a{n}") for n in range(12)])
    assert Counter(status for status, _, _ in done) == {0: 1, 11: 11}
    (winner,) = (json.loads(out) for status, out, _ in done if status == 0)
    assert {json.loads(err)["error"]["code"] for status, _, err in done if status} == {"already_exists"}
    team = cli.ok("show-team", ALPHA)
    assert (team["leader"], len(team["members"])) == (winner["leader"], 1)
    done = one_shots([cli.start("join-team", ALPHA, "--json") for _ in range(30)])
    assert {status for status, _, _ in done} == {0}
    given = {json.loads(out)["agentId"] for _, out, _ in done}
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
    assert given == {f"agent{c}" for c in letters} | {f"agent{c}1" for c in letters[:4]}
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


def test_claim_and_release_in_turns(tmp_path: Path) -> None:
    """The fencing number counts every claim, whoever made it."""
    names = [f"a{n}" for n in range(4)]
    cli = make_team(tmp_path / "root", *names)
    add_tasks(cli, "t")
    printed = workers(cli, {name: (TAKE, 30) for name in names})
    task = cli.ok("show-task", "1")
    assert task["claim"] == sum(len(lines) for lines in printed.values()) > 0
    assert task["status"] == "pending"


def test_broadcasts_while_members_come_and_go(tmp_path: Path) -> None:
    """Each has a whole list of recipients, all of whom have it, and it was complete at one moment."""
    stay, move, speak = ["s1", "s2"], ["m1", "m2", "m3"], ["b1", "b2"]
    cli = make_team(tmp_path / "root", *stay, *speak)
    jobs = {name: (MOVE, 15) for name in move} | {name: (BROADCAST, 25) for name in speak}
    printed = workers(cli, jobs)
    store = cli.store()
    sent = store.read(ALPHA, MESSAGE, None, 0, [])
    assert sorted(m.id for m in sent) == sorted(line for name in speak for line in printed[name])
    for message in sent:
        to = message.recipients or []
        assert len(set(to)) == len(to) and message.from_ not in to
        assert {"lea", *stay, *speak} - {message.from_} <= set(to) <= {"lea", *stay, *speak, *move}
        for name in to:
            assert store.read(ALPHA, MESSAGE, name, message.number - 1, [], 1) == [message]


def test_two_shutdown_requests_at_once(tmp_path: Path) -> None:
    """One stands; the others name it, but for repeats of the same, which are told that it is made."""
    cli = make_team(tmp_path / "root", "bob")
    done = one_shots([cli.start("request-shutdown", "bob", "--json", agent=who) for who in ["lea", "human"] * 4])
    assert {status for status, _, _ in done} == {0, 11}
    made = [json.loads(out) for status, out, _ in done if status == 0]
    assert len({(request["id"], request["requestedBy"]) for request in made}) == 1
    assert cli("approve-shutdown", agent="bob").status == 0


def test_a_decision_on_a_plan_at_once(tmp_path: Path) -> None:
    """It is decided once, approved or rejected, never both; who decided so is told that it is done."""
    cli = make_team(tmp_path / "root", "bob")
    cli.ok("propose-plan", "p", agent="bob")
    words = [["approve-plan", "1"], ["reject-plan", "1", "--feedback", "no"]] * 4
    done = one_shots([cli.start(*w, "--json", agent="lea") for w in words])
    assert Counter(status for status, _, _ in done) == {0: 4, 11: 4}
    assert len({json.loads(out)["status"] for status, out, _ in done if status == 0}) == 1


def test_circles_closed_from_both_sides(tmp_path: Path) -> None:
    """Each of two changes is fine alone; together they would wait for each other."""
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
    senders, claimers, movers = [f"a{n}" for n in range(3)], [f"c{n}" for n in range(3)], ["m1", "m2"]
    cli = make_team(tmp_path / "root", "bob", *senders, *claimers)
    add_tasks(cli, *(f"t{n}" for n in range(150)))
    jobs = {name: (SEND, 150) for name in senders} | {name: (CLAIM, 0) for name in claimers}
    printed = workers(cli, jobs | {name: (MOVE, 40) for name in movers})
    store = cli.store()
    sent = [int(line) for name in senders for line in printed[name]]
    assert sorted(sent) == [m.number for m in store.read(ALPHA, MESSAGE, "bob", 0, [])]
    assert sorted(line for name in claimers for line in printed[name]) == sorted(f"task-{n}" for n in range(1, 151))
    assert [task.status for task in tasks.all_of(store, ALPHA, [])] == ["in_progress"] * 150
    assert joining.join(store, ALPHA, Caller("m1"))[0].active
    assert messages.send(store, ALPHA, Caller("m1"), "bob", "hi").number == 451
