"""An error and a kill at the calls of a command that asks for a landing, and of the lander.

A merge that was made is not called refused, the next command finishes the landing, the task and its owner are
informed, and nothing is left behind in the repository.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from pathlib import Path

import pytest

from teams_cli.extensions.landing import lander
from teams_cli.store.files.engine import FileStore
from teams_cli.tasks import claims, landings, tasks
from teams_cli.tasks.landings import Landing
from teams_cli.teams import settings
from tests.faults.judging import State, difference, ill, owing, state
from tests.faults.lab import NONE, Answer, Fault, changes, command, warm
from tests.faults.scenes import BOB, LEA
from tests.faults.test_every_change import SHARES, every, place
from tests.support.cli import ALPHA, add_tasks, make_team
from tests.support.rotation import due_now
from tests.support.shop import git, no_lander

__all__ = ["place"]

pytestmark = pytest.mark.slow(first=True)

DATED = {f"GIT_{who}_DATE": "2026-01-02T03:04:05Z" for who in ("AUTHOR", "COMMITTER")}
NAMED = {f"GIT_{who}_{what}": "n@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}


def landing_process(words: list[str]) -> int:
    """Run the lander as `teams land` starts it."""
    os.environ.pop("TEAMS_AGENT_ID", None)
    try:
        lander.main()
    except SystemExit as why:
        sys.stderr.write(f"{why}\n")
    return 0


class Yard:
    """A team whose member bob has a commit to land on `trunk` in a worktree, which can be set up again and again."""

    def __init__(self, top: Path) -> None:
        warm()
        self.root, self.main, self.tree = top / "root", top / "main", top / "bob"
        self._places, self._base = [self.root, self.main, self.tree], top / "base"
        self.main.mkdir()
        git(self.main, "init", "-q", "-b", "trunk")
        git(self.main, "commit", "-q", "--allow-empty", "-m", "first")
        git(self.main, "worktree", "add", "-q", "-b", "bobs", str(self.tree))
        (self.tree / "new").write_text("new")
        git(self.tree, "add", "new")
        git(self.tree, "commit", "-q", "-m", "new")
        add_tasks(make_team(self.root, "bob", "max", roles={"max": "task-manager"}), "one")
        store = FileStore(str(self.root))
        settings.change(store, ALPHA, LEA, "landingCheck", "test -e new")
        claims.claim(store, ALPHA, BOB, "1")
        self.keep()

    def keep(self) -> None:
        """Take the present state as the one that `set_up` restores."""
        shutil.rmtree(self._base, ignore_errors=True)
        for each in self._places:
            shutil.copytree(each, self._base / each.name, symlinks=True)

    def set_up(self) -> None:
        for each in self._places:
            shutil.rmtree(each, ignore_errors=True)
            shutil.copytree(self._base / each.name, each, symlinks=True)
        time.sleep(_SETTLING)

    def play(self, agent: str, *words: str, fault: Fault = NONE) -> Answer:
        return command(self.root, agent, list(words), fault, directory="../bob")

    def land(self, fault: Fault = NONE) -> Answer:
        return command(self.root, "", [], fault, program=landing_process)

    def settle(self) -> None:
        """Land what is queued and send what is owed, as the next commands would."""
        for done in (self.land(), self.play("max", "whoami")):
            assert done.status == 0, done

    def landings(self) -> list[Landing]:
        return landings.all_of(FileStore(str(self.root)), ALPHA, [])

    def repository(self) -> State:
        """The state of the repository, and what trials have left behind."""
        return {
            "tip": git(self.main, "log", "--format=%T %s", "trunk"),
            "files": git(self.main, "status", "--porcelain") + "".join(sorted(os.listdir(self.main))),
            "trees": git(self.main, "worktree", "list").count("\n") + 1,
            "left": sorted(str(found) for found in self.root.glob("worktrees/*/.landing-*")),
            "locks": sorted(str(found) for found in self.main.glob(".git/**/*.lock")),
        }

    def met(self) -> State:
        return {**state(self.root), **self.repository()}


@pytest.fixture
def yard(place: Path, monkeypatch: pytest.MonkeyPatch) -> Yard:
    for name, value in {**DATED, **NAMED}.items():
        monkeypatch.setenv(name, value)
    return Yard(place)


ASK = ("land", "1", "--no-wait")
_LOCK = 2
"""The number of calls that try the lock of the lander."""
_SETTLING = 0.03
"""Seconds after which a file is no longer read a second time because it may just have changed, so that each run
of a command makes the same calls.
"""


def told(fault: Fault, calls: list[str], answer: Answer) -> str:
    return f"{fault.what} at call {fault.nth}, {calls[fault.nth - 1]}: {answer.status}: {answer.said}"


def test_faults_while_a_landing_is_asked_for(yard: Yard) -> None:
    def ask(fault: Fault = NONE) -> Answer:
        with no_lander(FileStore(str(yard.root))):
            return yard.play("bob", *ASK, fault=fault)

    before, plain = yard.met(), ask()
    assert plain.status == 0, plain
    asked = yard.met()
    yard.settle()
    once, wrong = yard.met(), list[str]()
    assert [one.state for one in yard.landings()] == ["landed"], yard.landings()
    for fault in due_now(every(plain.calls), SHARES):
        yard.set_up()
        answer = ask(fault)
        said = told(fault, plain.calls, answer)
        met = yard.met()
        if answer.status == 0 and met != asked:
            wrong.append(f"{said}\nacknowledged, but\n{difference(met, asked)}")
        if answer.status not in (0, -9, 12) and met != before:
            wrong.append(f"{said}\nrefused, but\n{difference(met, before)}")
        if (again := ask()).status != 0 or "Traceback" in answer.said:
            wrong.append(f"{said}\nrepeated: {again}")
        wrong += _of_end(yard, said, once)
    assert not wrong, "\n".join(wrong)


def test_faults_while_the_lander_is_started(yard: Yard) -> None:
    """A command that has asked for a landing succeeds even if it fails to start the lander; the next wait lands it."""
    yard.set_up()
    with no_lander(FileStore(str(yard.root))):
        other_lands = yard.play("bob", *ASK).calls
    yard.set_up()
    calls = yard.play("bob", *ASK).calls
    alike = next(nth for nth, pair in enumerate(zip(other_lands, calls, strict=False)) if pair[0] != pair[1])
    starting = range(alike - _LOCK + 1, alike + len(calls) - len(other_lands) + 1)
    assert yard.play("lea", "wait", "--landing", "1", "--timeout", "100").status == 0
    once, wrong = yard.met(), list[str]()
    faults = [fault for fault in every(calls) if fault.nth in starting]
    for fault in faults:
        yard.set_up()
        answer = yard.play("bob", *ASK, fault=fault)
        said = told(fault, calls, answer)
        assert yard.play("lea", "wait", "--landing", "1", "--timeout", "100").status == 0, said
        if answer.status not in (0, -9):
            wrong.append(said)
        wrong += _of_end(yard, said, once)
    assert len(faults) > 5 and not wrong, "\n".join(wrong)


@pytest.mark.parametrize("agent", ["bob", "max", "human"])
def test_a_task_whose_completion_was_killed_lands_with_the_next_claim(yard: Yard, agent: str) -> None:
    store = FileStore(str(yard.root))
    settings.change(store, ALPHA, LEA, "landing", "completed")
    done = ["update-task", "1", "--status", "completed"]
    if agent != "bob":
        assert yard.play("lea", "update-task", "1", "--review-by", agent).status == 0
        assert yard.play("bob", *done).status == 0
        done = ["review-task", "1", "--accept"]
    yard.keep()
    with no_lander(FileStore(str(yard.root))):
        plain = yard.play(agent, *done)
    assert plain.status == 0, plain
    wrong, completed = list[str](), 0
    for nth in due_now(changes(plain.calls), SHARES):
        yard.set_up()
        with no_lander(FileStore(str(yard.root))):
            assert yard.play(agent, *done, fault=Fault("kill", nth)).status == -9
            if tasks.get(store, ALPHA, "1").status != "completed":
                continue
        completed += 1
        again = yard.play("bob" if agent == "human" else agent, "claim-task", "--next")
        yard.play("lea", "wait", "--landing", "1", "--timeout", "100")  # the claim may have started a lander
        yard.settle()
        if [one.state for one in yard.landings()] != ["landed"]:
            wrong.append(f"kill at call {nth}, {plain.calls[nth - 1]}: completed, and not landed: {again}")
    assert completed and not wrong, "\n".join(wrong)


def _of_end(yard: Yard, said: str, once: State) -> list[str]:
    """What is wrong after the next commands have finished the landing."""
    yard.settle()
    found = [f"{said}\nin the end\n{left}"] if (left := difference(yard.met(), once)) else []
    if unpaid := owing(yard.root):
        found.append(f"{said}\nowed by {unpaid}")
    if problems := ill(yard.root):
        found.append(f"{said}\nthe doctor found {problems}")
    return found


def test_faults_in_the_lander(yard: Yard) -> None:
    with no_lander(FileStore(str(yard.root))):
        assert yard.play("bob", *ASK).status == 0
    yard.keep()
    plain = yard.land()
    assert plain.status == 0, plain
    yard.settle()
    once, wrong = yard.met(), list[str]()
    assert [one.state for one in yard.landings()] == ["landed"], yard.landings()
    for fault in due_now(every(plain.calls), SHARES):
        yard.set_up()
        answer = yard.land(fault)
        said = told(fault, plain.calls, answer)
        yard.settle()
        met = yard.repository()
        if "Traceback" in answer.said:
            wrong.append(said)
        if [one.state for one in yard.landings()] == ["refused"]:
            if " Land " in met["tip"] or fault.what == "kill":
                wrong.append(f"{said}\nrefused: {yard.landings()[0].reason}, but {met}")
            continue
        wrong += _of_end(yard, said, once)
    assert not wrong, "\n".join(wrong)
