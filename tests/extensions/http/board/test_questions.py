"""Ten questions of a person who comes back to a team: what is in sight answers each, or what is one click away."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.extensions.http.board.test_course import finished
from tests.support.cli import add_tasks

if TYPE_CHECKING:
    from tests.extensions.http.board.page import Page
    from tests.extensions.http.board.serving import Serving
    from tests.support.cli import Cli

pytestmark = pytest.mark.browser


def morning(cli: Cli) -> None:
    """A team at work: four tasks are done, one is in work, one failed and holds up two, and somebody asks."""
    add_tasks(cli, *(f"Part {number}" for number in range(1, 9)))
    add_tasks(cli, "Join the parts", blocked_by=["task-6"])
    add_tasks(cli, "Ship it", blocked_by=["task-9", "task-7"])
    finished(cli, "bob", 1, 2, 3, 4)
    cli.ok("claim-task", "5", agent="mia")
    cli.ok("claim-task", "6", agent="zoe")
    cli.ok("update-task", "6", "--status", "failed", "--result", "The staging database refuses us", agent="zoe")
    cli.ok("ask-others", "Which database instead?", "--human", "--no-wait", agent="zoe")
    cli.ok("send-message", "human", "Part 4 was harder than it looked.", agent="bob")
    cli.ok("send-message", "mia", "Use the new logo.", agent="human")
    cli.ok("read-messages", agent="mia")
    cli.ok("propose-plan", "Part 5 in two halves.", "--task", "5", agent="mia")
    cli.ok("announce", "at part 5", agent="mia")


def test_the_board_answers_ten_questions(cli: Cli, server: Serving, page: Page) -> None:
    morning(cli)
    page.open(server.url, server.token)
    page.reads("#course", "4 of 10 done")  # 1. How far is it?
    page.reads("#course", "left")  # 2. When will it be done?
    page.reads("#course", "1 failed, blocks 2")  # 3. Is something wrong?
    page.reads(".ask.failed", "task-6 failed: Part 6")  # 4. Who is stuck, and why?
    page.reads(".ask.failed", "The staging database refuses us")
    page.reads("#agent-list", "ask-1 waits for an answer from human")
    page.reads(".ask.question", "Which database instead?")  # 5. What waits for me?
    page.reads(".ask.mail", "Part 4 was harder than it looked.")
    page.reads("#agent-list", "plan-1 waits for a decision")
    page.reads("#stream", "read")
    page.reads("#agent-list", "at part 5")  # 6. Who does what now?
    page.picture("ten-questions")
    page.click(".part.ready")  # 7. What may be done now?
    page.until(lambda: page.tasks_in("pending") == ["task-7", "task-8"] and page.tasks_in("in_progress") == [])
    page.click(".part.ready")
    page.click("#tab-graph")  # 8. What does the failure hold up?
    page.until(lambda: [e.get_attribute("data-task") for e in page.all(".node.held")] == ["task-9", "task-10"])
    page.click(".agent-name", "bob")
    page.reads("dialog", "task-4 Part 4 completed after")
    page.click("dialog button", "All its activity")
    page.until(lambda: page.all("#view-activity select[aria-label=Agent] option[value=bob]:checked"))
    page.click("#tab-activity")  # 9. What did bob do today?
    page.choose("#view-activity select[aria-label=Agent]", "bob")
    page.reads("#view-activity [role=status]", "4 \u00d7 task completed")
    page.type("#search", "staging")  # 10. Where was that database?
    page.reads("#found", "The staging database refuses us")
