"""The board on small and dark screens, by keyboard alone, and as checked by axe."""

from __future__ import annotations

from pathlib import Path

import pytest
from selenium.webdriver.common.keys import Keys

from tests.extensions.http.board.page import ESCAPES, Page
from tests.extensions.http.board.test_proof import landed, proven, spent
from tests.support.cli import ALPHA, Cli, add_tasks
from tests.support.serving import Server

pytestmark = pytest.mark.browser


def crowded(cli: Cli, page: Page, place: Path) -> None:
    """Fill every part of the board."""
    proven(cli, place)
    landed(cli)
    spent(cli)
    add_tasks(cli, "Race two claims of one task", blocked_by=["task-3"], require=["concurrency"])
    add_tasks(cli, "Drop support for the old layout", "Measure a cold start", priority="high", description="All of it.")
    cli.ok("claim-task", "6", agent="zoe")
    cli.ok("update-task", "6", "--status", "failed", "--result", "Two users still need it.", agent="zoe")
    cli.ok("update-task", "7", "--status", "cancelled", agent="human")
    cli.ok("share", "api", "GET /users gives a list", agent="bob")
    cli.ok("announce", "Reading contract.py, 40% done", agent="bob")
    asked = cli.ok("send-message", "human", "Shall I look at the other engines too?", agent="bob")
    cli.ok("reply", asked["id"], "Only at the second.", agent="human")
    cli.ok("broadcast-message", f"Nobody change `locks.py` today, please. {ESCAPES}", agent="lea")
    cli.ok("propose-plan", "1. Copy the table.\n2. Write to both for a week.\n3. Drop the old one.", agent="mia")
    cli.ok("request-shutdown", "zoe", "--reason", "Enough hands for now", agent="lea")
    cli.ok("ask-others", "Does the limit count the first try?", "--human", "--no-wait", agent="zoe")
    page.reads("#asks", "count the first try")


LOOKS = [("light", 1920, 1080), ("dark", 820, 1100), ("dark", 360, 740)]
"""Colour schemes and window sizes that together show every layout."""
VIEWS = {
    "graph": ".node", "timeline": ".bar", "activity": ".activity li", "landings": ".row", "checks": ".row",
    "reviews": ".row", "usage": "td", "pages": ".page", "board": ".card",
}  # fmt: skip


@pytest.mark.parametrize(("light", "width", "height"), LOOKS)
def test_every_view_is_accessible_and_fits_its_window(
    cli: Cli, server: Server, page: Page, tmp_path: Path, light: str, width: int, height: int
) -> None:
    crowded(cli, page, tmp_path)
    for view, shown in VIEWS.items():
        page.open(server.url, server.token, query=f"?team={ALPHA}&view={view}", width=width, height=height)
        page.emulate(prefers_color_scheme=light, prefers_reduced_motion="reduce")
        page.until(lambda view=view, shown=shown: page.all(f"#view-{view} {shown}"), shown)
        page.reads("#asks", "task-1 by bob")
        page.reads("#asks", "count the first try")
        assert page.run("return document.documentElement.scrollWidth - innerWidth") <= 0, view
        page.picture(f"{view}-{width}-{light}")
        assert page.barriers() == [], view
    page.reads("#stream", "locks.py")
    ground = page.run("return getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)")
    assert (max(ground) < 60) is (light == "dark")
    for opening, shown in (("#card-task-1 .open", "dialog"), ("#new-task", "dialog"), ("#card-task-1 .card-menu", "")):
        page.click(opening)
        page.one(shown or "[role=menu]")
        assert page.barriers() == [], opening
        page.keys(Keys.ESCAPE)
        page.gone("dialog, [role=menu]")


def test_the_keyboard_gets_everywhere_and_away_again(cli: Cli, page: Page, tmp_path: Path) -> None:
    """The Tab key goes once through the page; each stop is visible, and none keeps the focus."""
    crowded(cli, page, tmp_path)
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
