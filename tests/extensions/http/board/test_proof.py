"""Checks, reviews, landings and used tokens on the board."""

from __future__ import annotations

from pathlib import Path

import pytest

from teams_cli.agents.budgets import USAGE, TurnUsage, Usage
from teams_cli.clients.output import Tokens
from teams_cli.tasks.landings import LANDING, Landing
from teams_cli.tasks.tasks import TASK
from teams_cli.teams import presence, teams
from tests.extensions.http.board.page import Page
from tests.support.cli import ALPHA, Cli
from tests.support.waits import until

pytestmark = pytest.mark.browser


def proven(cli: Cli, place: Path) -> None:
    """Create four tasks: two passed their checks and wait for reviews, by the person and by mia; one failed its
    check; one is not done yet.
    """
    for number, who in enumerate(("human", "mia", "mia", "human"), 1):
        check = ("--check", "echo counted 3 of 4; test ! -e broken", "--check-in", str(place))
        cli.ok("create-task", f"Part {number}", *check, "--review-by", who, agent="lea")
        cli.ok("claim-task", str(number), agent="bob") if number < 4 else None
    for number in ("1", "2"):
        cli.ok("update-task", number, "--status", "completed", "--result", f"Part {number} works", agent="bob")
    (place / "broken").touch()
    assert cli("update-task", "3", "--status", "completed", agent="bob").status == 11
    (place / "broken").unlink()


def landed(cli: Cli) -> None:
    """Store a landing of every state."""
    store = cli.store()
    now = teams.now(store)
    red = {"command": "pytest -q", "status": 1, "output": "2 failed, 7 passed", "by": "bob", "at": now}
    for state, more in {
        "landed": {"merge": "d" * 40},
        "red": {"checked": red},
        "conflict": {"files": ["src/app.py"]},
        "refused": {"reason": "the main checkout has uncommitted changes"},
        "checking": {},
        "queued": {},
    }.items():
        ended = {"ended_at": now, "returned": True} if state not in ("checking", "queued") else {}
        landing = Landing(
            team_name=ALPHA, task="task-1", title="Part 1", owner="bob", by="bob", repository="/shop", onto="trunk",
            head="c" * 40, state=state, host="elsewhere", created_at=now, **more, **ended,
        )  # fmt: skip
        store.create(ALPHA, LANDING, None, landing)


def spent(cli: Cli) -> None:
    """Store the usage of two agents, one of which reported no tokens; it takes nine tenths of the budget."""
    store = cli.store()
    now = teams.now(store)
    counted = TurnUsage(
        turn=1, run="r", at=now, seconds=80.0, tasks=["task-1"],
        tokens=[Tokens(model="large", input=80_000, cached=60_000, output=10_000)],
    )  # fmt: skip
    store.create(ALPHA, USAGE, "bob", Usage(agent="bob", turns=[counted]))
    store.create(ALPHA, USAGE, "mia", Usage(agent="mia", turns=[TurnUsage(turn=1, run="s", at=now, seconds=5.0)]))
    cli.ok("set", "budget", "100000", agent="human")


def test_cards_show_changes_and_conflicts_beside_the_merge_queue(cli: Cli, page: Page) -> None:
    cli.ok("create-task", "Open", agent="lea")
    cli.ok("create-task", "Shut", "--after", "1", agent="lea")
    cli.ok("claim-task", "2", agent="bob")
    landed(cli)
    task, revision = cli.store().get(ALPHA, TASK, "task-2")
    cli.store().replace(ALPHA, TASK, "task-2", task.having(grace_until=task.lease_until), revision)
    conflicts = {"mia": "door.py Door.shut"}
    presence.note_facts(cli.store(), ALPHA, "bob", changing=["door.py:Door.shut"], conflicts=conflicts)
    for words in ("completed after", "changes door.py:Door.shut", "conflicts with mia in door.py Door.shut"):
        page.reads("#card-task-2", words)
    page.reads("#card-task-2 .lease", "grace period")
    for words in ("Part 1", "checking, onto trunk", "queued, onto trunk"):
        page.reads(".lane", words)
    assert page.barriers() == []


def test_the_person_accepts_and_rejects_on_the_board(cli: Cli, page: Page, tmp_path: Path) -> None:
    proven(cli, tmp_path)
    page.until(lambda: page.tasks_in("in_review") == ["task-1", "task-2"])
    page.reads("#course", "2 in review")
    page.reads("#card-task-1", "✓ check passed")
    page.reads("#card-task-3", "✗ check failed")
    page.reads(".ask.review", "task-1 by bob waits for your review")
    page.click(".ask.review button", "Reject…")
    page.type("dialog textarea", "Count the fourth, too.")
    page.click("dialog button[type=submit]")
    page.gone(".ask.review")
    task = cli.ok("show-task", "1")
    assert (task["status"], task["reviewed"]["reason"]) == ("in_progress", "Count the fourth, too.")
    page.click("#tab-reviews")
    page.reads("#view-reviews [role=status]", "1 waiting, 1 rejected, 2 to come")
    page.reads("[data-review=task-1]", "Count the fourth, too.")
    page.click("[data-review=task-2] button", "Accept")
    page.reads("[data-review=task-2]", "accepted")
    assert cli.ok("show-task", "2")["status"] == "completed"
    page.gone(".column[data-status=in_review]:not([hidden])")


def test_checks_and_landings_are_shown_with_their_output(cli: Cli, page: Page, tmp_path: Path) -> None:
    proven(cli, tmp_path)
    page.click("#tab-checks")
    page.reads("#view-checks [role=status]", "1 failed, 1 not run yet, 2 passed")
    page.reads("[data-check=task-3]", "exit status 1")
    page.click("[data-check=task-3] summary")
    page.reads("[data-check=task-3] .output", "counted 3 of 4")
    page.click("[data-check=task-3] .chip")
    page.reads("dialog .facts", "failed, exit status 1")
    page.click("dialog .close")
    landed(cli)
    cli.ok("announce", "landing", agent="bob")
    page.click("#tab-landings")
    page.reads("#view-landings [role=status]", "1 checking, 1 queued, 1 conflict, 1 red, 1 refused, 1 landed")
    rows = [row.get_attribute("data-landing") for row in page.all("#view-landings .row")]
    assert rows[:2] == ["landing-5", "landing-6"]
    page.reads("[data-landing=landing-2]", "2 failed, 7 passed")
    page.reads("[data-landing=landing-3]", "Conflicts: src/app.py")
    page.reads("[data-landing=landing-4]", "uncommitted changes")


def test_used_tokens_are_shown_and_the_budget_is_raised(cli: Cli, page: Page) -> None:
    spent(cli)
    page.click("#tab-usage")
    page.reads("#view-usage [role=status]", "2 turns, 1 of them not reported, 90,000 tokens")
    page.reads("#view-usage tbody", "bob 1 80,000 60,000 10,000 90,000 80 s")
    page.reads("#view-usage tbody", "mia 1 unknown")
    page.reads(".budget", "90,000 of 100,000 tokens, 90 %")
    page.choose("#view-usage select", "model")
    page.reads("#view-usage tbody", "large 1 80,000")
    page.click(".budget button")
    page.type("dialog input", "200000")
    page.click("dialog button[type=submit]")
    page.reads(".budget", "90,000 of 200,000 tokens, 45 %")
    until(lambda: cli.ok("usage")["budgets"][0]["limit"] == 200_000)
