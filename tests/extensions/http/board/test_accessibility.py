"""The board for everybody: on small and dark screens, by keyboard alone, with a screen reader."""

from __future__ import annotations

import pytest
from selenium.webdriver.common.keys import Keys

from tests.extensions.http.board.page import ESCAPES, Page
from tests.support.cli import ALPHA, Cli, add_tasks
from tests.support.serving import Server

pytestmark = pytest.mark.browser


def crowded(cli: Cli, page: Page) -> None:
    """A team in which something of everything is seen."""
    add_tasks(cli, "Read the store's contract and list its promises", priority="high", description="All of it.")
    add_tasks(cli, "Race two claims of one task", blocked_by=["task-1"], require=["concurrency"])
    add_tasks(cli, "Rename the flag in the docs", "Measure a cold start", "Drop support for the old layout")
    for task, agent in (("1", "bob"), ("3", "mia"), ("5", "zoe")):
        cli.ok("claim-task", task, agent=agent)
    cli.ok("update-task", "3", "--status", "completed", "--result", "Renamed in 7 places.", agent="mia")
    cli.ok("update-task", "5", "--status", "failed", "--result", "Two users still need it.", agent="zoe")
    cli.ok("update-task", "4", "--status", "cancelled", agent="human")
    cli.ok("announce", "Reading contract.py, 40% done", agent="bob")
    asked = cli.ok("send-message", "human", "Shall I look at the other engines too?", agent="bob")
    cli.ok("reply", asked["id"], "Only at the second.", agent="human")
    cli.ok("broadcast-message", f"Nobody change `locks.py` today, please. {ESCAPES}", agent="lea")
    cli.ok("propose-plan", "1. Copy the table.\n2. Write to both for a week.\n3. Drop the old one.", agent="mia")
    cli.ok("request-shutdown", "zoe", "--reason", "Enough hands for now", agent="lea")
    cli.ok("ask-others", "Does the limit count the first try?", "--human", "--no-wait", agent="zoe")
    page.reads("#asks", "count the first try")


VIEWS = {"light": (1440, 900), "phone-dark": (360, 740), "tablet": (820, 1100)}


@pytest.mark.parametrize("name", VIEWS)
def test_nobody_is_kept_out(cli: Cli, server: Server, page: Page, name: str) -> None:
    """No serious barrier that axe knows, nothing wider than the window, in every light and at every width."""
    width, height = VIEWS[name]
    crowded(cli, page)
    page.open(server.url, server.token, width=width, height=height)
    page.emulate(prefers_color_scheme="dark" if "dark" in name else "light", prefers_reduced_motion="reduce")
    page.reads("#asks", "count the first try")
    page.reads("#stream", "locks.py")
    page.picture(name)
    ground = page.run("return getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)")
    assert (max(ground) < 60) is ("dark" in name)
    assert page.run("return document.documentElement.scrollWidth - innerWidth") <= 0
    assert page.barriers() == []
    if width < 500:
        page.resize(width, 3000)
        page.picture(f"{name}-whole")
        page.resize(width, height)
    page.click("#card-task-1 .open")
    page.one("dialog")
    page.picture(f"{name}-task")
    assert page.barriers() == []
    page.click("dialog .close")
    page.click("#new-task")
    assert page.barriers() == []
    page.click("dialog .close")
    page.click("#card-task-1 .card-menu")
    page.one("[role=menu]")
    assert page.barriers() == []
    page.keys(Keys.ESCAPE)


def test_the_keyboard_gets_everywhere_and_away_again(cli: Cli, page: Page) -> None:
    """Tab goes once through the page, each stop is seen, and none is a trap."""
    crowded(cli, page)
    seen = []
    page.keys(Keys.TAB)
    while page.focused() != "body" and len(seen) < 200:
        seen.append(page.focused())
        assert page.run(
            "const e = document.activeElement, c = e.closest('.card') ?? e;"
            "return [e, c].some(x => getComputedStyle(x).outlineStyle !== 'none') && e.getClientRects().length > 0"
        ), seen[-1]
        page.keys(Keys.TAB)
    assert 20 < len(seen) < 100, seen
    assert sum("task-" in stop for stop in seen) <= 4  # one card; the arrow keys go to the others
    for part in ("#team", "#access", "#new-task", "agent-name", "#stream", "#message-agent"):
        assert any(part in stop for stop in seen), part
    assert ALPHA in page.browser.title
