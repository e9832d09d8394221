"""An error and a kill at the changing calls of every command that changes something, and the state afterwards.

An acknowledged change is there. A refused one is not, unless the refusal says that the outcome is unknown. An
interrupted one is completed when the command is repeated. Each notice is sent once, and the doctor finds nothing.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from teams_cli import commands, extensions
from tests.faults.judging import State, difference, ill, owing, state
from tests.faults.lab import CHANGING, NONE, Answer, Fault, changes, command, warm
from tests.faults.scenes import ELSEWHERE, SCENES, Scene, prepared
from tests.support.rotation import due_now

BUG, UNKNOWN = 3, 12
SHARES = 3
"""A run in turns tries one of so many shares of the faults."""
_MEMORY = "/dev/shm"


def test_no_command_that_changes_something_is_left_out() -> None:
    """A new command needs a scene, or a reason why it is tested elsewhere."""
    changing = {command.name for command in commands.every().values() if not command.reads}
    missing = {name for name, extension in extensions.BROUGHT_BY.items() if extension not in extensions.every()}
    assert changing - {scene.command for scene in SCENES.values()} == set(ELSEWHERE) - missing


class Stage:
    """A scene that can be played again and again, and its outcome without a fault."""

    def __init__(self, top: Path, scene: Scene) -> None:
        warm()
        self.scene = scene
        self.root, self.other, self._base = top / "root", top / "other", top / "base"
        prepared(self.root, scene)
        shutil.copytree(self.root, self._base)
        self.before = self.state()
        self.plain = self.play()
        assert self.plain.status == 0, self.plain
        self.settle()
        self.once = self.state()
        self.again = self.play()
        self.settle()
        self.twice = self.state()

    def state(self) -> State:
        return state(self.root, self.other)

    def play(self, fault: Fault = NONE) -> Answer:
        return command(self.root, self.scene.agent, self.scene.typed(str(self.root.parent)), fault)

    def settle(self) -> None:
        """Run a command that sends the notices which are still owed."""
        if (self.root / "teams/alpha").exists():
            command(self.root, "max", ["whoami"])

    def set_up(self) -> None:
        for place in (self.root, self.other):
            shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(self._base, self.root)


def judged(stage: Stage, fault: Fault) -> str:
    """Return what is wrong after the command was played with the fault; "" if nothing is."""
    changing = stage.plain.calls[fault.nth - 1] in CHANGING
    answer = stage.play(fault)
    wrong = _of_answer(stage, answer)
    if not (wrong or changing) and answer.status not in (0, UNKNOWN):
        return ""  # what could not be read was refused, and nothing is changed
    stage.settle()
    if unpaid := owing(stage.root):
        wrong += f"owed by {unpaid}\n"
    met = stage.state()
    told = "teams: " in answer.said or "can't " in answer.said  # what could not be read or written is no surprise
    left = difference(met, stage.once, stage.scene.later)
    if answer.status == 0 and left and not (told and met == stage.before):
        wrong += f"acknowledged, but\n{left}\n"
    repeated = stage.play()
    if repeated.status not in (0, stage.again.status):
        wrong += f"repeated: {repeated}\n"
    stage.settle()
    final = stage.state()
    if final not in (stage.once, stage.twice):
        wrong += f"repeated, but\n{difference(final, stage.once)}\n"
    if changing and (found := ill(stage.root)):
        wrong += f"the doctor found {found}\n"
    return f"{answer.status}: {answer.said}\n{wrong}" if wrong else ""


def _of_answer(stage: Stage, answer: Answer) -> str:
    if answer.status in (-9, 0) or (stage.scene.command == "doctor" and answer.status == 1):
        return ""
    if answer.status == BUG or answer.status > 15 or "Traceback" in answer.said:
        return "that is no refusal\n"
    if answer.status != UNKNOWN or "Nothing was changed" in answer.said:
        met = stage.state()
        return "" if met == stage.before else f"refused, but\n{difference(met, stage.before)}\n"
    return "it asks twice for the same\n" if answer.said.lower().count("repeat the command") > 1 else ""


def tried(stage: Stage, faults: Sequence[Fault]) -> list[str]:
    """Return what each fault broke."""
    found = []
    for fault in faults:
        stage.set_up()
        if wrong := judged(stage, fault):
            found.append(f"{fault.what} at call {fault.nth}, {stage.plain.calls[fault.nth - 1]}: {wrong}")
    return found


def every(calls: list[str]) -> list[Fault]:
    """Return the faults to try: a kill and an error at each call that changes something, and an error at the first call
    of each other name. A kill at those leaves the same state as a kill at the last change.
    """
    first = {call: nth for nth, call in reversed(list(enumerate(calls, start=1)))}
    tried = changes(calls)
    return [*(Fault("kill", nth) for nth in tried), *(Fault("error", nth) for nth in sorted({*tried, *first.values()}))]


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    """Provide a directory, in memory if possible, because these tests are not about the disk."""
    if not os.access(_MEMORY, os.W_OK):
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(dir=_MEMORY) as found:
        yield Path(found)


@pytest.mark.slow
@pytest.mark.parametrize("scene", SCENES)
def test_at_every_call(place: Path, scene: str) -> None:
    stage = Stage(place, SCENES[scene])
    faults = due_now(every(stage.plain.calls), SHARES)
    assert not (wrong := tried(stage, faults)), "\n".join(wrong)
