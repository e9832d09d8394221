"""After a lander was killed between two steps, the next command brings the task, the branch and the checkout
into order. The tests make the state that the killed lander left, while this process holds the lander's lock.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from teams_cli.agents import merging
from teams_cli.store.contract import update
from teams_cli.tasks import landings
from teams_cli.tasks.landings import LANDING, Landing
from tests.support.cli import ALPHA, TIMEOUT
from tests.support.shop import CHECK, Shop, git, no_lander
from tests.support.waits import begin, until, until_asleep

pytestmark = pytest.mark.slow


def note(shop: Shop, key: str, **fields: Any) -> Landing:
    """Write to the landing what the killed lander had written."""
    return update(shop.cli.store(), ALPHA, LANDING, key, lambda found: found.having(**fields))[1]


def moved(shop: Shop, agent: str) -> str:
    """Move the branch as for landing-1, of *agent*, without the steps that follow, and return the new commit."""
    base, head = shop.tip(), git(shop.trees[agent], "rev-parse", "HEAD")
    commit = merging.make_merge(str(shop.main), base, head, "Land task-1")
    note(shop, "landing-1", state="checking", base=base, merge=commit)
    assert merging.move(str(shop.main), "trunk", base, commit, "teams: landing-1")
    return commit


@pytest.fixture
def red(shop: Shop) -> Shop:
    """A landing of bob's that was decided as red by a lander that was killed before it gave the task back."""
    shop.begin("bob", "--check", CHECK)
    shop.complete("bob")
    with no_lander(shop.cli.store()):
        shop.ok("bob", "land", "1", "--no-wait")
        note(shop, "landing-1", state="red", reason="it does not fit", ended_at="2030-01-02T03:04:05Z")
    return shop


def test_the_next_wait_gives_the_task_back_to_its_owner(red: Shop) -> None:
    red.ok("bob", "wait", "--landing", "1", "--timeout", "100")
    task = red.task()
    assert (task["status"], task["claim"], task["landing"]) == ("in_progress", 2, "landing-1")


def test_completing_again_checks_and_lands_the_new_commit(red: Shop) -> None:
    red.write(red.trees["bob"], "new", "mended")
    red.complete("bob")
    task, head = red.task(), git(red.trees["bob"], "rev-parse", "HEAD")
    assert (task["status"], task["claim"], task["checked"]["commit"]) == ("completed", 2, head)
    assert red.landed("bob", "1")["head"] == head
    assert (red.main / "new").read_text() == "mended" and red.task()["status"] == "completed"


def test_the_checkout_is_updated_though_the_branch_moved_again(shop: Shop) -> None:
    shop.begin("bob")
    with no_lander(shop.cli.store()):
        shop.ok("bob", "land", "1", "--no-wait")
        moved(shop, "bob")
        git(shop.trees["mia"], "merge", "-q", "trunk")
        shop.write(shop.trees["mia"], "more", "2")
        git(shop.main, "update-ref", "refs/heads/trunk", "mias")
    landing = shop.landed("bob", "1")
    assert (landing["state"], landing["merge"], landing.get("reason")) == ("landed", shop.tip(), None)
    assert git(shop.main, "status", "--porcelain") == "" and (shop.main / "more").read_text() == "2"


def test_a_landing_that_moved_the_branch_is_finished_before_an_urgent_one(shop: Shop) -> None:
    """A landing that has moved the branch is finished first, so that its outdated checkout hinders no other landing."""
    shop.begin("bob", file="bob", text="new")
    shop.begin("mia", "--priority", "high", key="2", file="mia", text="new")
    with no_lander(shop.cli.store()):
        shop.ok("bob", "land", "1", "--no-wait")
        commit = moved(shop, "bob")
        shop.ok("mia", "land", "2", "--no-wait")
    shop.ok("mia", "wait", "--landing", "2", "--timeout", "100")
    found = landings.all_of(shop.cli.store(), ALPHA, [])
    assert [(one.state, one.reason) for one in found] == [("landed", None)] * 2
    assert found[0].merge == commit and git(shop.main, "status", "--porcelain") == ""
    assert (shop.main / "bob").read_text() == (shop.main / "mia").read_text() == "new"


def test_a_wait_starts_the_lander_later_if_it_can_not_be_started_now(shop: Shop) -> None:
    shop.begin("bob")
    store = shop.cli.store()
    with no_lander(store):
        shop.ok("bob", "land", "1", "--no-wait")
    landers = Path(store.root, "landers")
    landers.rename(f"{landers}.aside")
    landers.write_text("not a directory, so the lander's lock can't be made")
    waiting = begin(shop.cli, "mia")
    until_asleep(waiting)
    landers.unlink()
    Path(f"{landers}.aside").rename(landers)
    until(lambda: landings.get(store, ALPHA, "landing-1").state == "landed", timeout=60)
    waiting.terminate()
    waiting.communicate(timeout=TIMEOUT)
