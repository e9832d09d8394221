"""The board, in a real browser on a real server: what the person sees, and what comes of what the person does."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest
from selenium.webdriver.common.keys import Keys

from tests.support.agents import ended, marked, outputs_to, place, session, until
from tests.support.cli import ALPHA, TIMEOUT, add_tasks

if TYPE_CHECKING:
    from tests.board.page import Page
    from tests.board.serving import Serving
    from tests.support.cli import Cli

pytestmark = pytest.mark.browser
INJECTION = "<script>window.ran = true</script><img src=x onerror='window.ran = true'><b>bold</b>"
ESCAPES = "\x1b[2J\x1b]0;title\x07 \u202egnp.exe \x9b31m \u200bend"


def test_a_question_is_answered_in_place(cli: Cli, page: Page) -> None:
    asking = cli.start("ask-others", "Which engine first?\nFiles or memory?", "--human", "--json", agent="bob")
    page.reads(".ask.question .said", "Which engine first?\nFiles or memory?")
    assert page.text(".ask.question h3") == "bob asks"
    left = page.text(".ask.question .due")
    assert re.fullmatch(r"[45]:\d\d", left)
    page.until(lambda: page.text(".ask.question .due") not in ("", left), "the countdown")
    assert page.browser.title.startswith("(1) ")
    page.picture("question")
    page.type(".ask.question textarea", "files first")
    page.click(".ask.question button.primary", "Answer")
    found = json.loads(asking.communicate(timeout=TIMEOUT)[0])
    assert found["responses"] == [{"responder_id": "human", "content": "files first", "is_human": True}]
    page.gone(".ask")
    page.reads("#waiting-none", "Nothing waits for you")


def test_what_is_being_typed_survives_what_happens_meanwhile(cli: Cli, page: Page) -> None:
    cli.ok("ask-others", "Which engine?", "--human", "--no-wait", agent="bob")
    page.type(".ask.question textarea", "half an ans")
    cli.ok("send-message", "human", "something else", agent="mia")
    cli.ok("create-task", "Something else", agent="lea")
    page.reads("#stream", "something else")
    page.one("#card-task-1")
    page.keys("wer")
    assert page.one(".ask.question textarea").get_attribute("value") == "half an answer"


def test_a_question_is_skipped(cli: Cli, page: Page) -> None:
    asking = cli.start("ask-others", "Which engine?", "--human", "--json", agent="bob")
    page.click(".ask.question button", "Skip")
    assert json.loads(asking.communicate(timeout=TIMEOUT)[0])["skipped"] is True
    page.gone(".ask")


@pytest.mark.parametrize(("choice", "status"), [("Allow once", 0), ("Deny", 13)])
def test_permission_is_given_or_not(cli: Cli, page: Page, choice: str, status: int) -> None:
    rules = {"permission": {"tool": {"announce": {"team-member": "ask"}}}}
    (cli.root / "config.json").write_text(json.dumps(rules))
    asking = cli.start("announce", "with leave", agent="bob")
    page.reads(".ask.permission h3", "bob asks leave: announce")
    page.click(".ask.permission button", choice)
    asking.communicate(timeout=TIMEOUT)
    assert asking.returncode == status
    page.gone(".ask")


def test_a_plan_is_rejected_with_feedback_and_another_approved(cli: Cli, page: Page) -> None:
    cli.ok("propose-plan", "Rewrite everything in one go.", agent="mia")
    page.click(".ask.plan button", "Reject")
    assert cli.ok("get-plans")[0]["status"] == "proposed"  # it is not rejected without a word
    page.type(".ask.plan textarea", "Cut it in three.")
    page.click(".ask.plan button", "Reject")
    page.gone(".ask.plan textarea")
    assert cli.ok("get-plans")[0]["feedback"] == "Cut it in three."
    cli.ok("propose-plan", "Three small steps.", "--revises", "1", agent="mia")
    page.reads(".ask.plan .about", "revises plan-1")
    page.click(".ask.plan button", "Approve")
    until(lambda: cli.ok("get-plans")[1]["status"] == "approved")
    page.click("#decided summary")
    page.reads("#decided", "Cut it in three.")


def test_a_task_is_dragged_where_it_may_go(cli: Cli, page: Page) -> None:
    add_tasks(cli, "One", "Two")
    cli.ok("claim-task", "2", agent="bob")
    page.until(lambda: page.tasks_in("in_progress") == ["task-2"])
    page.drag("#card-task-1", ".column[data-status=completed]")
    page.drag("#card-task-1", ".column[data-status=cancelled]", release=False)
    assert page.one(".column.drop-here h3").text.startswith("Cancelled")
    assert "may-not-drop" in str(page.one(".column[data-status=completed]").get_attribute("class"))
    page.picture("dragging")
    page.keys(Keys.ESCAPE)
    page.gone(".ghost")
    page.let_go()
    assert cli.ok("show-task", "1")["status"] == "pending"
    page.drag("#card-task-1", ".column[data-status=cancelled]")
    page.until(lambda: page.tasks_in("cancelled") == ["task-1"])
    assert cli.ok("show-task", "1")["status"] == "cancelled"
    page.drag("#card-task-2", ".column[data-status=pending]")
    page.type("dialog input[name=reason]", "more urgent things")
    page.click("dialog button.danger", "Release")
    page.until(lambda: page.tasks_in("pending") == ["task-2"])
    assert cli.ok("show-task", "2")["notes"][-1]["reason"] == "more urgent things"


def test_a_task_is_moved_by_keyboard_alone(cli: Cli, page: Page) -> None:
    add_tasks(cli, "One", "Two", "Three")
    page.until(lambda: len(page.tasks_in("pending")) == 3)
    page.keys(Keys.TAB, Keys.TAB, Keys.ENTER)  # the second skip link goes to the tasks
    while "task-1" not in page.focused():
        page.keys(Keys.TAB)
    page.keys(Keys.ARROW_DOWN)
    assert page.focused().startswith("task-2")
    page.picture("keyboard")
    page.chord(Keys.SHIFT, Keys.ARROW_RIGHT)
    page.until(lambda: page.tasks_in("cancelled") == ["task-2"])
    page.until(lambda: page.focused().startswith("task-2"), "the focus goes with the task")
    page.chord(Keys.SHIFT, Keys.ARROW_LEFT)
    page.until(lambda: page.tasks_in("cancelled") == [] and len(page.tasks_in("pending")) == 3)
    page.until(lambda: page.focused().startswith("task-2"))
    page.keys(Keys.TAB, Keys.ENTER)  # the menu of the card
    page.one("[role=menu]")
    page.keys(Keys.ARROW_DOWN, Keys.ENTER)
    page.until(lambda: page.tasks_in("cancelled") == ["task-2"])
    assert cli.ok("show-task", "2")["status"] == "cancelled"


def test_a_task_is_created_edited_and_made_to_wait(cli: Cli, page: Page) -> None:
    add_tasks(cli, "First")
    page.click("#new-task")
    page.type("dialog input[name=title]", "Second")
    page.type("dialog input[name=require]", "sql, docs")
    page.choose("dialog select[name=priority]", "high")
    page.type("dialog input[name=blockedBy]", "task-99")
    page.click("dialog button.primary")
    page.reads("dialog [role=alert]", "task-99")  # refused, with what was typed still there
    page.type("dialog input[name=blockedBy]", "1")
    page.click("dialog button.primary")
    page.reads("#card-task-2 .waits", "task-1")
    made = cli.ok("show-task", "2")
    assert (made["title"], made["priority"], made["require"], made["blockedBy"]) == (
        "Second",
        "high",
        ["sql", "docs"],
        ["task-1"],
    )
    page.click("#card-task-2 .open")
    page.click("dialog button", "Edit…")
    page.type("dialog input[name=title]", "Second, better")
    page.choose("dialog select[name=priority]", "low")
    page.click("dialog button", "Save")
    page.reads("dialog.wide h2", "Second, better")
    page.click("dialog button", "Blockers…")
    page.type("dialog input[name=blockers]", " ")
    page.click("dialog button", "Save")
    page.until(lambda: not cli.ok("show-task", "2")["blocked"])
    changed = cli.ok("show-task", "2")
    assert (changed["title"], changed["priority"], changed["createdBy"]) == ("Second, better", "low", "human")


def test_dependencies_leases_and_results_are_seen(cli: Cli, page: Page) -> None:
    add_tasks(cli, "First", "Second")
    add_tasks(cli, "Third", blocked_by=["task-1"])
    cli.ok("claim-task", "1", agent="bob")
    page.one("#card-task-3.blocked")
    left = page.until(lambda: page.text("#card-task-1 .lease"))
    page.until(lambda: page.text("#card-task-1 .lease") != left, "the lease counts down")
    page.click("#card-task-3 .chip", "task-1")
    page.until(lambda: page.focused().startswith("task-1"))
    page.one("#card-task-3.is-waiting")
    page.one("#card-task-1.arrived")
    page.picture("dependencies")
    cli.ok("update-task", "1", "--status", "completed", "--result", INJECTION, agent="bob")
    page.reads("#card-task-1 .result", "<script>")
    page.gone("#card-task-3.blocked")
    page.click("#card-task-1 .open")
    page.reads("dialog", INJECTION)
    page.reads("dialog .timeline", "bob claimed")
    page.keys(Keys.ESCAPE)
    page.gone("dialog")


def test_what_agents_write_is_text_and_never_runs(cli: Cli, page: Page) -> None:
    cli.ok("send-message", "human", INJECTION, agent="bob")
    cli.ok("send-message", "human", ESCAPES, agent="mia")
    cli.ok("announce", INJECTION, agent="zoe")
    add_tasks(cli, INJECTION + ESCAPES)
    cli.ok("ask-others", INJECTION, "--human", "--no-wait", agent="zoe")
    cli.ok("propose-plan", INJECTION + ESCAPES, agent="mia")
    page.reads("#stream", INJECTION)
    page.reads("#asks", INJECTION)
    page.reads("#agent-list", INJECTION)
    shown = page.until(lambda: page.all("#stream .message", "gnp.exe"))[0].text
    assert [c for c in shown if (ord(c) < 32 and c != "\n") or c in "\x9b\u202e\u200b"] == []
    assert all(spelt in shown for spelt in ("ESC[2J", "BEL", r"\u202e", r"\u009b", r"\u200b"))
    page.one("#card-task-1").click()
    page.reads("dialog", INJECTION)
    made = page.run("return document.querySelectorAll('main img, main script, main b b').length")
    assert (page.run("return window.ran ?? null"), made) == (None, 0)
    assert page.run("return document.documentElement.outerHTML.includes('\\u001b')") is False
    page.keys(Keys.ESCAPE)
    page.picture("hostile-text")


def test_messages_are_written_answered_and_followed_in_threads(cli: Cli, page: Page) -> None:
    page.choose("#composer select", "bob")
    page.type("#composer textarea", "Which engine do you use?")
    page.click("#composer button", "Send")
    page.reads("#stream", "Which engine do you use?")
    assert page.one("#composer textarea").get_attribute("value") == ""
    cli.ok("reply", "1", "Files.", agent="bob")
    page.click("#stream .message button", "Reply")
    page.reads(".answering", "Answering bob, msg-2: Files.")
    page.type("#composer textarea", "Good.")
    page.chord(Keys.CONTROL, Keys.ENTER)
    page.until(lambda: len(page.all("#stream .quote")) == 2)
    sent = cli.ok("read-messages", "--all", agent="bob")[-1]
    assert (sent["message"].splitlines()[0], sent["type"], sent["replyTo"]) == ("Good.", "reply", "msg-2")
    page.choose("#composer select", "all")
    page.type("#composer textarea", "Everybody, please commit.")
    page.click("#composer button", "Send")
    page.reads("#stream .message.broadcast", "Everybody, please commit.")
    page.click("#stream button", "Thread, 3 messages")
    page.reads("#thread-bar", "Thread of msg-1, 3 messages")
    assert "please commit" not in page.text("#stream")
    page.picture("thread")
    page.click("#thread-bar button")
    page.reads("#stream", "please commit")


def test_an_agent_is_looked_at_interjected_paused_and_stopped(cli: Cli, page: Page) -> None:
    prompt = "test $TEAMS_RESUME && { cat >>$D/given; echo resumed; exit; }; echo hello from the log; sleep 600"
    cli.ok("run-agent", prompt, "--agent-id", "kim", "--cwd", str(place(cli)), "--detach", agent="lea")
    page.click(".agent-name", "kim")
    page.click("dialog summary", "Log")
    page.reads("dialog .log", "hello from the log")
    page.picture("agent")
    page.click("dialog button", "Interject…")
    page.type("dialog.form textarea", "do this instead")
    page.click("dialog.form button", "Interject")
    assert ended(cli, "kim").turns == 2
    assert [m["message"] for m in json.loads((place(cli) / "given").read_text())] == ["do this instead"]
    page.reads("dialog .log", "resumed")
    page.click("dialog button", "Pause")
    page.reads("dialog .state", "paused")
    assert session(cli, "kim").state == "paused"
    page.click("dialog button", "Resume")
    page.until(lambda: page.text("dialog .state") != "paused")
    page.click("dialog .close")
    cli.ok("run-agent", "sleep 600", "--agent-id", "liv", "--cwd", str(place(cli)), "--detach", agent="lea")
    until(lambda: marked(cli.root))
    page.click("[aria-label='Actions for liv']")
    page.click("[role=menuitem]", "Stop…")
    page.click("dialog button.danger", "Stop liv")
    page.gone("dialog")
    assert ended(cli, "liv").outcome == "stopped" and marked(cli.root) == {}
    page.reads(".agent.stopped", "liv")
    assert outputs_to(cli, "lea")[-1][0] == "liv"


def test_the_page_goes_on_after_the_server_was_killed(cli: Cli, server: Serving, page: Page) -> None:
    add_tasks(cli, "Before")
    page.one("#card-task-1")
    server.kill()
    page.reads("#connection", "Reconnecting")
    page.reads("#banner", "can't be reached")
    page.picture("disconnected")
    page.click("#new-task")
    page.type("dialog input[name=title]", "Typed while the server is away")
    page.click("dialog button.primary")
    page.reads("dialog [role=alert]", "can't be reached")
    cli.ok("create-task", "Meanwhile", agent="lea")
    server.start()
    page.until(lambda: page.text("#connection") == "Live")
    page.one("#card-task-2")
    assert not page.one("#tasks").text.count("Typed while")
    page.click("dialog button.primary")
    page.reads("#card-task-3", "Typed while the server is away")
    cli.ok("announce", "after the restart", agent="bob")
    page.reads("#agent-list", "after the restart")
    page.until(lambda: not page.one("body").text.count("can't be reached"))


def test_without_a_token_the_board_only_shows(cli: Cli, server: Serving, page: Page) -> None:
    add_tasks(cli, "One")
    cli.ok("ask-others", "Which engine?", "--human", "--no-wait", agent="bob")
    page.open(server.url)
    page.reads(".ask.question", "Which engine?")
    page.one("#card-task-1")
    assert [e for e in page.all("[data-change]") if e.is_displayed()] == []
    page.drag("#card-task-1", ".column[data-status=cancelled]")
    page.click("#access", "Read only")
    page.picture("token")
    page.type("dialog input[name=token]", "not the token")
    page.click("dialog button.primary")
    page.reads("dialog [role=alert]", "the token is wrong")
    page.type("dialog input[name=token]", server.token)
    page.click("dialog button.primary")
    page.gone("dialog")
    page.type(".ask.question textarea", "files")
    page.click(".ask.question button.primary")
    page.gone(".ask")
    assert cli.ok("show-task", "1")["status"] == "pending"
    page.browser.refresh()
    page.one("#new-task")
    assert server.token not in page.browser.current_url


def test_a_private_server_shows_nothing_without_the_token(cli: Cli, server: Serving, page: Page) -> None:
    add_tasks(cli, "Secret")
    server.stop()
    server.words = ("--private",)
    server.start("0")
    page.open(server.url, live=False)
    page.reads("#banner", "the token is missing")
    assert page.all(".card") == []
    page.click("#access", "Read only")
    page.type("dialog input[name=token]", server.token)
    page.click("dialog button.primary")
    page.reads("#card-task-1", "Secret")
    page.reads("#connection", "Live")


def test_another_team_is_chosen_and_named_in_the_address(cli: Cli, server: Serving, page: Page) -> None:
    cli.ok("spawn-team", "beta", agent="ben", team="")
    cli.ok("create-task", "Of the other team", agent="ben", team="beta")
    add_tasks(cli, "Of the first team")
    cli.ok("ask-others", "First team?", "--human", "--no-wait", agent="bob")
    cli.ok("ask-others", "Other team?", "--human", "--no-wait", agent="ben", team="beta")
    page.reads("#card-task-1", "Of the first team")
    page.reads("#asks", "First team?")
    page.browser.refresh()
    page.choose("#team", "beta")
    page.reads("#card-task-1", "Of the other team")
    page.reads("#asks", "Other team?")
    page.type(".ask textarea", "this one")
    page.click(".ask button.primary", "Answer")
    page.gone(".ask")
    assert cli.ok("show-question", "1", team="beta")["status"] == "complete"
    assert cli.ok("show-question", "1")["status"] == "pending"
    assert page.browser.current_url.endswith("?team=beta")
    cli.ok("create-task", "One more", agent="ben", team="beta")
    page.reads("#card-task-2", "One more")
    page.browser.back()
    page.reads("#card-task-1", "Of the first team")


def test_in_a_secure_team_the_person_has_a_token_too(cli: Cli, server: Serving, page: Page) -> None:
    tokens = cli.ok("spawn-team", "vault", "--secure", agent="ben", team="")
    page.open(server.url, server.token, query="?team=vault")
    page.type("#composer textarea", "Is this safe?")
    page.choose("#composer select", "ben")
    page.click("#composer button", "Send")
    page.reads("#composer [role=alert]", "asks for a token")
    page.click("#access")
    page.type("dialog input[name=own]", tokens["humanToken"])
    page.click("dialog button.primary")
    page.gone("dialog")
    page.click("#composer button", "Send")
    page.reads("#stream", "Is this safe?")


def test_refusals_are_told_with_their_hint(cli: Cli, page: Page) -> None:
    add_tasks(cli, "One")
    page.one("#card-task-1")
    page.click("#card-task-1 .card-menu")
    page.click("[role=menuitem]", "Give to an agent…")
    cli.ok("update-task", "1", "--status", "cancelled", agent="human")
    page.until(lambda: page.tasks_in("cancelled") == ["task-1"])
    page.click("dialog button.primary", "Give")
    page.reads("dialog [role=alert] .error-message", "task-1 is cancelled")
    page.reads("dialog [role=alert] .error-hint", "--status pending")
    page.keys(Keys.ESCAPE)


def test_many_tasks_are_on_few_cards(cli: Cli, page: Page) -> None:
    add_tasks(cli, *(f"Task of many, {number}" for number in range(1, 301)))
    page.reads(".column[data-status=pending] .count", "300")
    assert len(page.all(".card")) == 50
    page.type("#task-filter", "many, 277")
    page.until(lambda: page.tasks_in("pending") == ["task-277"])
    page.type("#task-filter", " ")
    page.click(".more", "250 not shown")
    page.until(lambda: len(page.all(".card")) == 250)
    page.click(".more", "50 not shown")
    page.until(lambda: len(page.all(".card")) == 300)


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
    cli.ok("send-message", "human", "Shall I look at the other engines too?", agent="bob")
    cli.ok("reply", "msg-2", "Only at the second.", agent="human")
    cli.ok("broadcast-message", f"Nobody change `locks.py` today, please. {ESCAPES}", agent="lea")
    cli.ok("propose-plan", "1. Copy the table.\n2. Write to both for a week.\n3. Drop the old one.", agent="mia")
    cli.ok("request-shutdown", "zoe", "--reason", "Enough hands for now", agent="lea")
    cli.ok("ask-others", "Does the limit count the first try?", "--human", "--no-wait", agent="zoe")
    page.reads("#asks", "count the first try")


VIEWS = {
    "light": (1440, 900),
    "dark": (1440, 900),
    "phone": (360, 740),
    "phone-dark": (360, 740),
    "tablet": (820, 1100),
}


@pytest.mark.parametrize("name", VIEWS)
def test_nobody_is_kept_out(cli: Cli, server: Serving, page: Page, name: str) -> None:
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
