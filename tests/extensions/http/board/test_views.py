"""The tasks as a graph, as a timeline and as a list of activities: updated live, usable by keyboard, readable
as tables.
"""

from __future__ import annotations

import pytest
from selenium.webdriver.common.keys import Keys

from teams_cli.store.documents import encode
from teams_cli.tasks.tasks import Task
from teams_cli.teams import teams
from tests.extensions.http.board.page import Page
from tests.extensions.http.board.test_course import stuck
from tests.support.cli import ALPHA, Cli, add_tasks

pytestmark = pytest.mark.browser


def drawn(page: Page) -> dict[str, str]:
    """The classes of each box of the graph, by task."""
    found = page.run(
        "return [...document.querySelectorAll('.node')].map(e => [e.dataset.task, e.getAttribute('class')])"
    )
    return dict(found)


def test_the_graph_of_dependencies_follows_the_work(cli: Cli, page: Page) -> None:
    """The graph is updated live, can be used by keyboard, and can be read as a table."""
    stuck(cli)
    add_tasks(cli, "Sweep", blocked_by=["task-2"])
    add_tasks(cli, "Celebrate", blocked_by=["task-6"])
    page.click("#tab-graph")
    page.until(lambda: len(drawn(page)) == 6)
    assert drawn(page) == {
        "task-2": "node in_progress critical",
        "task-3": "node failed",
        "task-4": "node held",
        "task-5": "node held",
        "task-6": "node blocked critical",
        "task-7": "node blocked critical",
    }
    assert page.run("return document.querySelectorAll('.line').length") == 4
    assert page.run("return document.querySelectorAll('.line.critical').length") == 2
    assert page.barriers() == []
    cli.ok("update-task", "2", "--status", "completed", agent="mia")
    page.until(lambda: drawn(page).get("task-6") == "node ready critical")
    cli.ok("create-task", "Sleep", "--blocked-by", "task-7", agent="lea")
    page.until(lambda: drawn(page).get("task-8") == "node blocked critical")
    page.run("document.querySelector('.node[data-task=task-3]').focus()")
    page.keys(Keys.ARROW_RIGHT)
    page.until(lambda: page.focused().startswith("task-4"))
    page.keys(Keys.ARROW_RIGHT, Keys.ARROW_LEFT, Keys.ENTER)
    page.reads("dialog h2", "task-4")
    page.keys(Keys.ESCAPE)
    page.gone("dialog")
    page.click("#view-graph summary")
    page.reads("#view-graph tbody", "task-4 Paint the wall")
    assert "Blocked by a failed task" in page.text("#view-graph tbody")
    assert page.barriers() == []


def test_five_hundred_tasks_are_laid_out(cli: Cli, page: Page) -> None:
    now = teams.now(cli.store())
    for number in range(1, 501):
        after = [f"task-{number - step}" for step in (7, 11) if number % step and number > step]
        draft = Task(id=f"task-{number}", team_name=ALPHA, title=f"Task {number}", created_at=now, blocked_by=after)
        (cli.root / "tasks" / ALPHA / f"task-{number}.json").write_bytes(encode(draft))
    page.browser.refresh()
    page.one("#card-task-1")
    page.click("#tab-graph")
    page.until(lambda: len(drawn(page)) == 494)  # the others are alone
    boxes = page.run("return [...document.querySelectorAll('.node')].map(e => e.getAttribute('transform'))")
    assert len(set(boxes)) == 494
    page.keys("f")
    page.until(lambda: not page.text("#messages"))
    page.click("#view-graph button", "Fit")
    room = "const f = document.querySelector('.graph-frame'), s = f.querySelector('svg').getBoundingClientRect();"
    assert page.run(f"{room} return s.width <= f.clientWidth + 1 && s.height <= f.clientHeight + 1")
    assert page.barriers() == []
    page.keys("f")
    page.one("#messages")
    page.choose("#filter-priority", "high")
    page.reads("#view-graph [role=status]", "These tasks have no dependencies.")
    page.resize(360, 740)
    page.run("document.querySelectorAll('.sections .count').forEach(count => (count.textContent = '12345'))")
    assert page.run("return document.documentElement.scrollWidth - innerWidth") <= 0


def test_the_timeline_shows_work_failures_and_questions(cli: Cli, page: Page) -> None:
    stuck(cli)
    cli.ok("ask-others", "Which colour?", "--human", "--no-wait", agent="mia")
    page.click("#tab-timeline")
    page.reads("#view-timeline [role=status]", "3 attempts, 1 failed")
    assert page.one(".bar.failed").get_attribute("aria-label").startswith("task-3 Order the bricks: ")
    page.one("[aria-label=mia] .question-mark")
    page.one("[aria-label=mia] .bar.in_progress")
    assert page.barriers() == []
    cli.ok("update-task", "2", "--status", "completed", agent="mia")
    page.one("[aria-label=mia] .bar.completed")
    page.click("#view-timeline summary")
    page.reads("#view-timeline tbody", "task-3 Order the bricks")
    page.run("document.querySelector('.bar[tabindex=\"0\"]').focus()")
    assert "task-1" in page.run("return document.activeElement.ariaLabel")  # the only one that Tab comes to
    page.keys(Keys.ARROW_DOWN, Keys.ARROW_DOWN)
    assert "task-3" in page.run("return document.activeElement.ariaLabel")
    page.one(".bar.failed").send_keys(Keys.ENTER)
    page.reads("dialog h2", "task-3")


def test_the_activity_of_an_agent_is_listed(cli: Cli, page: Page) -> None:
    stuck(cli)
    page.click("#tab-activity")
    page.reads(".activity", "zoe failed task-3")
    page.choose("#view-activity select[aria-label=Agent]", "bob")
    page.until(lambda: "zoe" not in page.text(".activity"))
    page.reads(".activity", "bob completed task-1")
    assert page.barriers() == []
    cli.ok("announce", "at the next wall", agent="bob")
    page.reads(".activity", "at the next wall")
    page.click(".activity .chip", "task-1")
    page.reads("dialog h2", "task-1")
