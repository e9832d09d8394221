"""What a person sees and does on the board, in a real browser with a real server."""

from __future__ import annotations

import json
import re
import signal

import pytest
from selenium.webdriver.common.keys import Keys

from teams_cli.messages import messages
from teams_cli.teams.permission import Caller
from tests.extensions.http.board.page import ESCAPES, Page
from tests.support.agents import ended, marked, outputs_to, place, session
from tests.support.cli import ALPHA, TIMEOUT, Cli, add_tasks
from tests.support.serving import Server, serving
from tests.support.waits import until

pytestmark = pytest.mark.browser

INJECTION = "<script>window.ran = true</script><img src=x onerror='window.ran = true'><b>bold</b>"


def test_a_question_is_answered_in_place_or_skipped(cli: Cli, page: Page) -> None:
    asking = cli.start("ask-others", "Which engine first?\nFiles or memory?", "--human", "--json", agent="bob")
    page.reads(".ask.question .said", "Which engine first?\nFiles or memory?")
    assert page.text(".ask.question h3") == "bob asks"
    left = page.text(".ask.question .due")
    assert re.fullmatch(r"\d:\d\d", left)
    page.until(lambda: page.text(".ask.question .due") not in ("", left), "the countdown")
    assert page.browser.title.startswith("(1) ")
    page.type(".ask.question textarea", "files first")
    page.click(".ask.question button.primary", "Answer")
    found = json.loads(asking.communicate(timeout=TIMEOUT)[0])
    assert found["responses"] == [{"responder_id": "human", "content": "files first", "is_human": True}]
    page.gone(".ask")
    page.reads("#waiting-none", "Nothing waits for you")
    cli.ok("ask-others", "Which engine?", "--human", "--no-wait", agent="bob")
    page.click(".ask.question button", "Skip")
    page.reads(".undo", "bob's ask-2 is skipped")
    page.click(".undo button")
    page.one(".ask.question textarea")
    assert cli.ok("show-question", "2")["status"] == "pending"
    page.click(".ask.question button", "Skip")
    page.gone(".ask.question")
    until(lambda: cli.ok("show-question", "2")["status"] != "pending")


@pytest.mark.parametrize(("choice", "status"), [("Allow once", 0), ("Deny", 13)])
def test_permission_is_given_or_not(cli: Cli, page: Page, choice: str, status: int) -> None:
    rules = {"permission": {"tool": {"announce": {"team-member": "ask"}}}}
    (cli.root / "config.json").write_text(json.dumps(rules))
    asking = cli.start("announce", "with leave", agent="bob")
    page.reads(".ask.permission h3", "bob asks for permission: announce")
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
    page.keys(Keys.ESCAPE)
    page.gone(".ghost")
    page.let_go()
    assert cli.ok("show-task", "1")["status"] == "pending"
    page.drag("#card-task-1", ".column[data-status=cancelled]")
    page.until(lambda: page.tasks_in("cancelled") == ["task-1"])
    page.reads(".undo", "task-1 is cancelled.")
    assert cli.ok("show-task", "1")["status"] == "cancelled"
    page.click(".undo button")
    page.until(lambda: page.tasks_in("pending") == ["task-1"])
    page.drag("#card-task-2", ".column[data-status=pending]")
    page.type("dialog input[name=reason]", "more urgent things")
    page.click("dialog button.danger", "Release")
    page.until(lambda: page.tasks_in("pending") == ["task-1", "task-2"])
    assert cli.ok("show-task", "2")["notes"][-1]["reason"] == "more urgent things"


def test_a_task_is_moved_by_keyboard_alone(cli: Cli, page: Page) -> None:
    add_tasks(cli, "One", "Two", "Three")
    page.until(lambda: len(page.tasks_in("pending")) == 3)
    page.keys(Keys.TAB, Keys.TAB, Keys.ENTER)  # the second skip link goes to the tasks
    while "task-1" not in page.focused():
        page.keys(Keys.TAB)
    page.keys(Keys.ARROW_DOWN)
    assert page.focused().startswith("task-2")
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
    page.keys("z")
    page.until(lambda: page.tasks_in("cancelled") == [])


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
    assert (made["title"], made["priority"]) == ("Second", "high")
    assert (made["require"], made["blockedBy"]) == (["sql", "docs"], ["task-1"])
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


def test_messages_are_written_answered_and_followed_in_threads(cli: Cli, page: Page) -> None:
    """A reply goes only to the author of the message, and a broadcast must be chosen anew each time."""
    page.type("#composer textarea", "Which engine do you use?")
    page.click("#composer [type=submit]")
    assert page.run("return document.querySelector('#composer select').validity.valueMissing") is True
    page.choose("#composer select", "bob")
    page.click("#composer [type=submit]", "Send")
    page.reads("#stream", "Which engine do you use?")
    assert page.one("#composer textarea").get_attribute("value") == ""
    cli.ok("reply", "1", "Files.", agent="bob")
    page.click("#stream .message button", "Reply")
    page.reads(".answering", "Answering bob, msg-2: Files.")
    page.reads("#composer [type=submit]", "Send to bob")
    page.type("#composer textarea", "Good.")
    page.chord(Keys.CONTROL, Keys.ENTER)
    page.until(lambda: len(page.all("#stream .quote")) == 2)
    sent = cli.ok("read-messages", "--all", agent="bob")[-1]
    assert (sent["message"].splitlines()[0], sent["type"], sent["replyTo"]) == ("Good.", "reply", "msg-2")
    page.choose("#composer select", "all")
    page.type("#composer textarea", "Everybody, please commit.")
    page.click("#composer [type=submit]")
    page.reads("#stream .message.broadcast", "Everybody, please commit.")
    page.until(lambda: page.one("#composer select").get_attribute("value") == "", "all are chosen anew each time")
    page.click("#stream button", "Thread, 3 messages")
    page.reads("#thread-bar", "Thread of msg-1, 3 messages")
    assert "please commit" not in page.text("#stream")
    page.reads(".answering", "Writing to bob")  # after the reply, the next text is a new message
    page.type("#composer textarea", "One more thing.")
    page.click("#composer [type=submit]")
    until(lambda: cli.ok("read-messages", "--all", agent="bob")[-1]["message"] == "One more thing.")
    assert cli.ok("read-messages", "--all", agent="bob")[-1]["to"] == "bob"
    assert [one["message"] for one in cli.ok("read-messages", "--all", agent="mia")] == ["Everybody, please commit."]
    page.click("#thread-bar button")
    page.reads("#stream", "please commit")


def test_an_agent_is_looked_at_interjected_paused_and_stopped(cli: Cli, page: Page) -> None:
    prompt = "test $TEAMS_RESUME && { cat >>$D/given; echo resumed; exit; }; echo hello from the log; sleep 600"
    cli.ok("run-agent", prompt, "--agent-id", "kim", "--cwd", str(place(cli)), "--detach", agent="lea")
    page.click(".agent-name", "kim")
    page.click("dialog summary", "Log")
    page.reads("dialog .log", "hello from the log")
    page.click("dialog button", "Interrupt…")
    page.type("dialog.form textarea", "do this instead")
    page.click("dialog.form button", "Interrupt")
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


def test_the_page_goes_on_after_the_server_was_killed(cli: Cli, server: Server, page: Page) -> None:
    add_tasks(cli, "Before")
    page.one("#card-task-1")
    server.end(signal.SIGKILL)
    page.reads("#connection", "Reconnecting")
    page.reads("#banner", "can't be reached")
    page.click("#new-task")
    page.type("dialog input[name=title]", "Typed while the server is away")
    page.click("dialog button.primary")
    page.reads("dialog [role=alert]", "can't be reached")
    cli.ok("create-task", "Meanwhile", agent="lea")
    with serving(cli, port=server.port) as again:
        page.until(lambda: page.text("#connection") == "Live")
        page.one("#card-task-2")
        assert not page.one("#tasks").text.count("Typed while")
        page.click("dialog button.primary")
        page.reads("dialog [role=alert]", "token")  # each start of the server has its own
        page.run("location.hash = arguments[0]", f"token={again.token}")
        page.until(lambda: page.text("#access") == "Token")
        page.click("dialog button.primary")
        page.reads("#card-task-3", "Typed while the server is away")
        cli.ok("announce", "after the restart", agent="bob")
        page.reads("#agent-list", "after the restart")
        page.until(lambda: not page.one("body").text.count("can't be reached"))


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


def test_only_what_the_person_changed_of_a_task_is_changed(cli: Cli, page: Page) -> None:
    """A check of several lines stays as it is when the title is changed, and can be changed itself."""
    cli.ok("create-task", "First", "--check", "true\n  echo done", "--description", "a\r\nb", agent="lea")
    page.click("#card-task-1 .open")
    page.click("dialog button", "Edit…")
    page.type("dialog input[name=title]", "Second")
    page.click("dialog button", "Save")
    page.reads("dialog.wide h2", "Second")
    changed = cli.ok("show-task", "1")
    assert (changed["title"], changed["check"]) == ("Second", "true\n  echo done")
    assert changed["description"] == "a\r\nb"
    page.click("dialog button", "Edit…")
    page.type("dialog [name=check]", "true\nfalse")
    page.click("dialog button", "Save")
    until(lambda: cli.ok("show-task", "1")["check"] == "true\nfalse")


def test_what_somebody_changed_meanwhile_is_shown_before_it_is_replaced(cli: Cli, page: Page) -> None:
    cli.ok("create-task", "First", "--description", "use tabs", agent="lea")
    page.click("#card-task-1 .open")
    page.click("dialog button", "Edit…")
    cli.ok("update-task", "1", "--description", "use blanks", "--priority", "high", agent="lea")
    page.type("dialog [name=description]", "use tabs, please")
    page.click("dialog button", "Save")
    page.reads("dialog.form .refusal", "Meanwhile, description was changed to: use blanks")
    assert cli.ok("show-task", "1")["description"] == "use blanks"
    page.click("dialog button", "Save")
    until(lambda: cli.ok("show-task", "1")["description"] == "use tabs, please")
    assert cli.ok("show-task", "1")["priority"] == "high"


def test_no_message_between_those_on_the_page_is_missing(cli: Cli, page: Page, server: Server) -> None:
    """Neither if more came at once than the page fetches, nor around an old one that was looked up."""

    def send(many: int) -> None:
        for number in range(many):
            messages.send(cli.store(), ALPHA, Caller("bob"), "mia", f"letter {number}")

    def shown() -> list[int]:
        return [
            int(found[4:]) for found in page.run("return [...document.querySelectorAll('.message')].map(e => e.id)")
        ]

    def show_all(last: int) -> None:
        before = 0
        while page.all("#older:not([hidden])"):
            assert len(shown()) > before
            before = len(shown())
            page.click("#older")
            page.gone("#older[aria-busy]")
        assert shown() == list(range(1, last + 1))

    send(3)
    page.until(lambda: shown() == [1, 2, 3])
    server.process.send_signal(signal.SIGSTOP)
    send(210)
    server.process.send_signal(signal.SIGCONT)
    page.until(lambda: 213 in shown())
    show_all(213)
    send(300)
    page.open(server.url, server.token, "?message=msg-120")
    page.until(lambda: 120 in shown())
    show_all(513)
