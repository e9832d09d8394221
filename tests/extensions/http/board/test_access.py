"""Access to the board: tokens, private servers, other teams."""

from __future__ import annotations

import pytest

from tests.extensions.http.board.page import Page
from tests.support.cli import Cli, add_tasks
from tests.support.serving import Server, serving

pytestmark = pytest.mark.browser


def test_without_a_token_the_board_only_shows(cli: Cli, server: Server, page: Page) -> None:
    add_tasks(cli, "One")
    cli.ok("ask-others", "Which engine?", "--human", "--no-wait", agent="bob")
    page.open(server.url)
    page.reads(".ask.question", "Which engine?")
    page.one("#card-task-1")
    assert [e for e in page.all("[data-change]") if e.is_displayed()] == []
    page.drag("#card-task-1", ".column[data-status=cancelled]")
    page.click("#access", "Read only")
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


def test_a_private_server_shows_nothing_without_the_token(cli: Cli, server: Server, page: Page) -> None:
    add_tasks(cli, "Secret")
    server.end()
    with serving(cli, "--private") as private:
        page.open(private.url, live=False)
        page.reads("#banner", "the token is missing")
        assert page.all(".card") == []
        page.click("#access", "Read only")
        page.type("dialog input[name=token]", private.token)
        page.click("dialog button.primary")
        page.reads("#card-task-1", "Secret")
        page.reads("#connection", "Live")


def test_another_team_is_chosen_and_named_in_the_address(cli: Cli, server: Server, page: Page) -> None:
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


def test_in_a_secure_team_the_person_has_a_token_too(cli: Cli, server: Server, page: Page) -> None:
    tokens = cli.ok("spawn-team", "vault", "--secure", agent="ben", team="")
    page.open(server.url, server.token, query="?team=vault")
    page.type("#composer textarea", "Is this safe?")
    page.choose("#composer select", "ben")
    page.click("#composer button", "Send")
    page.reads("#composer [role=alert]", "the token of human in team")
    page.click("#access")
    page.type("dialog input[name=own]", tokens["humanToken"])
    page.click("dialog button.primary")
    page.gone("dialog")
    page.click("#composer button", "Send")
    page.reads("#stream", "Is this safe?")
