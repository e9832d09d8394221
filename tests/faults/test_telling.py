"""A kill and an error at every call of the commands that show news: what was not shown is shown by the next command."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from teams_cli.messages import messages
from teams_cli.store.contract import Store
from teams_cli.tasks import plans
from teams_cli.teams import pages
from tests.faults.lab import Answer, Fault, changes, command, warm
from tests.faults.scenes import BOB, LEA, Scene, claimed, prepared
from tests.faults.test_every_change import place  # noqa: F401  # a fixture
from tests.support.cli import ALPHA

NEWS = "NEWS"


def letter(store: Store) -> None:
    messages.send(store, ALPHA, LEA, "bob", NEWS, fyi=True)


def page(store: Store) -> None:
    pages.share(store, ALPHA, LEA, NEWS, "the text", 0)


def rejected(store: Store) -> None:
    plan = plans.propose(store, ALPHA, BOB, "the plan")
    plans.reject(store, ALPHA, LEA, plan.id, NEWS)


def proposed(store: Store) -> None:
    plans.propose(store, ALPHA, BOB, NEWS)


def completed(store: Store) -> None:
    claimed(store)
    page(store)


SCENES = {
    "letter, wait": Scene("bob", "wait --timeout 1", letter),
    "letter, read-messages": Scene("bob", "read-messages", letter),
    "letter, read-messages --wait": Scene("bob", "read-messages --wait 1", letter),
    "rejected plan, wait": Scene("bob", "wait --timeout 1", rejected),
    "ready task, wait": Scene("bob", "wait --timeout 1"),
    "plan, wait --needed": Scene("lea", "wait --needed --timeout 1", proposed),
    "page, brief": Scene("bob", "brief", page),
    "notice, brief": Scene("bob", "brief", rejected),
    "page, wait": Scene("bob", "wait --timeout 1", page),
    "page, update-task --next": Scene("bob", "update-task 1 --status completed --next", completed),
}
_NEEDLES = {"ready task, wait": " is ready: "}  # if the best task can't be read, the answer begins with the next one
_ASKING = ("wait --timeout 0", "read-messages")


def said_by(root: Path, scene: Scene, fault: Fault) -> Answer:
    return command(root, scene.agent, scene.words.split(), fault)


@pytest.mark.slow
@pytest.mark.parametrize("name", SCENES)
def test_news_is_said_or_told_again(place: Path, name: str) -> None:  # noqa: F811
    warm()
    scene, needle = SCENES[name], _NEEDLES.get(name, NEWS)
    root, base = place / "root", place / "base"
    prepared(root, scene)
    shutil.copytree(root, base)
    plain = said_by(root, scene, Fault(""))
    assert plain.status == 0 and needle in plain.said, plain
    lost = []
    faults = [Fault(what, nth) for what in ("kill", "error") for nth in changes(plain.calls)]
    for fault in faults:
        shutil.rmtree(root)
        shutil.copytree(base, root)
        answer = said_by(root, scene, fault)
        if needle not in answer.said:
            again = [command(root, scene.agent, words.split()) for words in (scene.words, *_ASKING)]
            if not any(needle in each.said for each in again):
                lost.append((fault, plain.calls[fault.nth - 1], answer))
    assert not lost, f"{len(lost)} of {len(faults)}: {lost[0]}"
