"""A team to be asked for what can't be."""

from __future__ import annotations

import pytest

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
