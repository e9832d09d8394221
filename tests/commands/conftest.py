"""A team to be asked for what can't be, and copies of the program with something added."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import teams_cli
from teams_cli import extensions
from teams_cli.membership import shutdowns
from teams_cli.messages import messages
from teams_cli.tasks import claims, plans
from teams_cli.teams.permission import Caller
from tests.support.cli import ALPHA, Cli, add_tasks, make_team


@pytest.fixture(scope="module")
def cli(tmp_path_factory: pytest.TempPathFactory) -> Cli:
    """A team at work. Every command of these tests is refused, so one team serves them all.

    task-1 is bob's, task-2 waits for it, task-3 is free, task-4 is free and asks for a skill.
    """
    cli = make_team(tmp_path_factory.mktemp("bad") / "root", "bob", "mia", roles={"mia": "task-manager"})
    add_tasks(cli, "one")
    add_tasks(cli, "two", blocked_by=["task-1"])
    add_tasks(cli, "three")
    add_tasks(cli, "four", require=["juggling"])
    store = cli.store()
    claims.claim(store, ALPHA, Caller("bob"), "1")
    messages.send(store, ALPHA, Caller("lea"), "bob", "hi", uid="once")
    plans.propose(store, ALPHA, Caller("bob"), "a plan")
    plans.propose(store, ALPHA, Caller("mia"), "another")
    plans.approve(store, ALPHA, Caller("lea"), "2")
    shutdowns.request(store, ALPHA, Caller("lea"), "mia")
    return cli


Edits = list[tuple[str, str]]


def changed_program(top: Path, added: dict[str, str], changed: dict[str, Edits]) -> Cli:
    """A team of lea and bob, and a copy of the program with files added, and texts in others replaced."""
    package = top / "program" / "teams_cli"
    shutil.copytree(Path(teams_cli.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    for path, text in added.items():
        assert not (package / path).exists()
        (package / path).parent.mkdir(exist_ok=True)
        (package / path).write_text(text)
    for path, edits in changed.items():
        if path.startswith("extensions/http") and "http" not in extensions.every():
            continue
        text = (package / path).read_text()
        for old, new in edits:
            assert text.count(old) == 1, f"{path}: {old!r} is there {text.count(old)} times"
            text = text.replace(old, new)
        (package / path).write_text(text)
    root = make_team(top / "root", "bob").root
    return Cli(root, "lea", ALPHA, PYTHONPATH=str(package.parent), PYTHONSAFEPATH="1")
