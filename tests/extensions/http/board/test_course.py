"""The board shows how the work goes: what is stuck and why, what waits for the person, and how to undo a change."""

from __future__ import annotations

import pytest
from selenium.webdriver.common.keys import Keys

from tests.extensions.http.board.page import Page
from tests.support.cli import ALPHA, Cli, add_tasks
from tests.support.serving import Server
from tests.support.waits import until
from tests.support.workflow_runs import write_workflow

pytestmark = pytest.mark.browser


def stuck(cli: Cli) -> None:
    """Create five tasks: one is completed, one is in progress, and one has failed and blocks two more."""
    add_tasks(cli, "Lay the ground", "Build the wall", "Order the bricks")
    add_tasks(cli, "Paint the wall", blocked_by=["task-3"])
    add_tasks(cli, "Hang the pictures", blocked_by=["task-4"])
    for task, agent in (("1", "bob"), ("2", "mia"), ("3", "zoe")):
        cli.ok("claim-task", task, agent=agent)
    cli.ok("update-task", "1", "--status", "completed", "--result", "level", agent="bob")
    cli.ok("update-task", "3", "--status", "failed", "--result", "The shop\nis closed", agent="zoe")


def test_each_part_of_the_summary_line_filters_the_tasks(cli: Cli, page: Page) -> None:
    stuck(cli)
    page.reads("#course", "1 of 5 done")
    for part in ("20 %", "1 in progress", "0 ready", "2 blocked", "1 failed, blocks 2", "no estimate"):
        page.reads("#course", part)
    page.click(".part.failed")
    page.until(lambda: page.tasks_in("failed") == ["task-3"] and page.tasks_in("pending") == ["task-4", "task-5"])
    assert page.tasks_in("completed") == [] and "only=failed" in page.browser.current_url
    page.click(".part.done")
    page.until(lambda: page.tasks_in("completed") == ["task-1"] and page.tasks_in("failed") == [])
    page.browser.refresh()
    page.until(lambda: page.tasks_in("completed") == ["task-1"] and page.tasks_in("in_progress") == [])
    page.click("#filter-clear")
    page.until(lambda: page.tasks_in("in_progress") == ["task-2"])


def test_what_failed_says_why_and_is_opened_again(cli: Cli, page: Page) -> None:
    """The person can open a failed task again, or remove it as a blocker and undo that."""
    stuck(cli)
    page.reads("#card-task-3 .reason", "The shop\nis closed")
    page.reads("#card-task-3 .holds", "blocks 2 tasks")
    page.one("#card-task-4 .chip.failed")
    assert page.one("#card-task-4").get_attribute("class") == "card priority-normal blocked stuck"
    page.reads(".ask.failed", "task-3 failed: Order the bricks")
    page.reads(".ask.failed", "by zoe, blocks 2 tasks")
    assert page.browser.title.startswith("(1) ")
    page.click(".ask.failed button", "Remove the blocker")
    until(lambda: cli.ok("show-task", "4")["blocked"] is False)
    page.reads(".undo", "task-4 is no longer blocked by task-3")
    page.reads("#course", "1 failed")
    page.click(".undo button")
    until(lambda: cli.ok("show-task", "4")["blockedBy"] == ["task-3"])
    page.gone(".undo")
    page.reads("#course", "1 failed, blocks 2")
    page.click(".ask.failed button", "Open again")
    page.gone(".ask.failed")
    assert cli.ok("show-task", "3")["status"] == "pending"
    page.one("#card-task-4 .chip:not(.failed)")
    cli.ok("claim-task", "3", agent="bob")
    page.one("#card-task-4 .chip.in_progress")


def test_letters_are_answered_or_done_where_they_wait(cli: Cli, page: Page) -> None:
    cli.ok("send-message", "human", "Before noon: which engine?", agent="bob")
    cli.ok("send-message", "human", "The wall stands.", agent="mia")
    page.reads("#asks", "bob writes to you")
    page.until(lambda: page.browser.title.startswith("(2) "))
    page.type(".ask[data-ask=msg-1] textarea", "Files.")
    page.click(".ask[data-ask=msg-1] button.primary")
    page.gone(".ask[data-ask=msg-1]")
    assert cli.ok("read-messages", agent="bob")[0]["message"] == "Files."
    page.click(".ask[data-ask=msg-2] button", "Done")
    page.gone(".ask")
    assert cli.ok("read-messages", agent="human") == []


def test_agents_in_trouble_are_marked_with_the_reason(cli: Cli, page: Page) -> None:
    cli.ok("run-agent", "echo no luck >&2; exit 3", "--agent-id", "kim", "--detach", agent="lea")
    page.reads(".agent.trouble-failed .state", "failed")
    page.reads("#agents-trouble", "1 in trouble")
    page.reads(".agent.trouble-failed .agent-why", "exit status 3")
    cli.ok("ask-others", "Which engine?", "--human", "--no-wait", agent="bob")
    page.reads(".agent.trouble-waiting .agent-why", "ask-1 waits for an answer from human")


def test_everything_has_a_link(cli: Cli, server: Server, page: Page) -> None:
    stuck(cli)
    cli.ok("send-message", "mia", "A letter to link to", agent="bob")
    cli.ok("ask-others", "Which engine?", "--human", "--no-wait", agent="bob")
    page.click("#card-task-3 .open")
    page.reads("dialog h2", "Order the bricks")
    assert "task=task-3" in page.browser.current_url
    page.browser.refresh()
    page.reads("dialog h2", "Order the bricks")
    page.click("dialog .close")
    page.until(lambda: "task=" not in page.browser.current_url)
    for query, css in (("message=msg-1", "#msg-1.arrived"), ("question=ask-1", "[data-ask=ask-1].arrived")):
        page.open(server.url, server.token, query=f"?team={ALPHA}&{query}")
        page.one(css)
    page.open(server.url, server.token, query=f"?team={ALPHA}&agent=bob")
    page.reads("dialog h2", "bob")


def test_everything_is_searched_and_found(cli: Cli, page: Page) -> None:
    stuck(cli)
    cli.ok("send-message", "mia", "The bricks are red", agent="bob")
    page.keys("/")
    page.keys("bricks")
    page.until(lambda: len(page.all("#found li")) == 3)  # the task, the letter, the notice of the failure
    assert page.barriers() == []
    page.keys(Keys.ARROW_DOWN, Keys.ENTER)
    page.one(".message.arrived", "The bricks are red")
    page.type("#search", "shop closed")
    page.reads("#found", "The shop is closed")
    page.click("#found .id", "task-3")  # the notice of it names it, too
    page.reads("dialog h2", "Order the bricks")
    page.click("dialog .close")
    page.type("#search", "unicorn")
    page.reads("#found", "Nothing found for")
    page.keys(Keys.ESCAPE)
    page.until(lambda: not page.one("body").text.count("Nothing found for"))


def test_single_keys_work_unless_one_types_or_turned_them_off(cli: Cli, page: Page) -> None:
    add_tasks(cli, "One", "Two")
    page.one("#card-task-2")
    page.keys("j")
    page.until(lambda: page.focused().startswith("task-1"))
    page.keys("j", "k", "j")
    page.until(lambda: page.focused().startswith("task-2"))
    page.keys("n")
    page.reads("dialog h2", "New task")
    page.keys("n?")
    assert page.one("dialog input[name=title]").get_attribute("value") == "n?"
    page.keys(Keys.ESCAPE)
    page.gone("dialog")
    page.keys("?")
    page.reads("dialog h2", "Keys")
    assert page.barriers() == []
    page.click("#single-keys")
    page.keys(Keys.ESCAPE)
    page.gone("dialog")
    page.keys("n")
    page.click("#help")
    page.reads("dialog h2", "Keys")


def test_tasks_are_filtered_by_owner_priority_and_skill(cli: Cli, page: Page) -> None:
    add_tasks(cli, "One", priority="high")
    add_tasks(cli, "Two", require=["sql"])
    add_tasks(cli, "Three")
    cli.ok("claim-task", "3", agent="bob")
    for which, value, shown in (
        ("owner", "bob", ["task-3"]),
        ("priority", "high", ["task-1"]),
        ("skill", "sql", ["task-2"]),
    ):
        page.choose(f"#filter-{which}", value)
        page.until(lambda shown=shown: page.tasks_in("pending") + page.tasks_in("in_progress") == shown)
        page.click("#filter-clear")
    page.choose("#filter-owner", "bob")
    page.choose("#filter-priority", "high")
    page.reads("#no-tasks", "No task matches")
    page.click("#no-tasks button")
    page.until(lambda: len(page.all(".card")) == 3)


def test_finished_runs_are_apart_from_what_is_alive(cli: Cli, page: Page) -> None:
    path = write_workflow(cli.root.parent / "flows", "agents: 1\ntasks:\n- {id: a, title: Greet, run: echo hello}")
    run = cli("run", str(path), "--json").json["team"]
    page.browser.refresh()
    page.until(lambda: page.all(f"#team optgroup[label='Finished runs'] option[value='{run}']"))
    assert page.all(f"#team optgroup[label=Active] option[value={ALPHA}]")
    page.choose("#team", run)
    page.click("#tab-report")
    page.reads(".report", "Report: small")
    page.reads(".report", "hello")
    assert page.barriers() == []


def test_the_person_sees_how_far_a_message_got(cli: Cli, page: Page) -> None:
    """A message is shown as not read yet, as read but overdue, and at last as handled."""
    cli.ok("set", "ack_timeout", "1", agent="human")
    cli.ok("send-message", "bob", "Sign this", "--ack-required", agent="human")
    page.reads("#msg-1 .reach", "not read yet")
    cli.ok("read-messages", agent="bob")
    page.reads("#msg-1 .reach.lost", "read; not acknowledged in time")
    cli.ok("ack", "1", agent="bob")
    page.reads("#msg-1 .reach", "handled")
    cli.ok("send-message", "mia", "Freeze on Friday", "--ack-required", agent="bob")
    page.reads("#msg-2 .reach.lost", "not acknowledged in time")  # between agents, too
