"""Pages: texts that the team shares, with versions; members that have not seen a page are told of it once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from teams_cli.errors import AlreadyExists, Conflict, InvalidValue, TeamsError
from teams_cli.membership import joining
from teams_cli.teams import pages
from teams_cli.teams.pages import PageNotFound, StaleVersion
from teams_cli.teams.permission import Caller
from teams_cli.views import brief, concerns
from tests.support.cli import ALPHA, Cli, add_tasks
from tests.support.waits import at_once

if TYPE_CHECKING:
    from teams_cli.store.contract import Store

LEA, BOB, MIA = Caller("lea"), Caller("bob"), Caller("mia")


@pytest.fixture
def team(team: Store) -> Store:
    joining.join(team, ALPHA, MIA)
    return team


def told(store: Store, caller: Caller) -> list[str]:
    try:
        found = concerns.wait(store, ALPHA, caller, 0.01, at_once)
    except TeamsError:
        return []
    return [each["id"] for each in found["happened"] if each["what"] == "page"]


def test_versions_are_counted_from_one(team: Store) -> None:
    assert pages.share(team, ALPHA, BOB, "api", "one", 0).version == 1
    assert pages.share(team, ALPHA, MIA, "api", "two", 1).version == 2
    for stale in (0, 1, 3):
        with pytest.raises(StaleVersion) as refusal:
            pages.share(team, ALPHA, BOB, "api", "three", stale)
        assert refusal.value.status == 11
    with pytest.raises(StaleVersion):
        pages.share(team, ALPHA, BOB, "other", "text", 1)
    page = pages.get(team, ALPHA, "api")
    assert (page.text, page.version, page.author) == ("two", 2, "mia")


def test_a_page_that_was_taken_away_comes_back_with_the_next_version(team: Store) -> None:
    pages.share(team, ALPHA, BOB, "api", "one")
    assert pages.share(team, ALPHA, MIA, "api", None).text is None
    with pytest.raises(PageNotFound):
        pages.get(team, ALPHA, "api")
    with pytest.raises(PageNotFound):
        pages.share(team, ALPHA, BOB, "api", None)
    assert pages.all_of(team, ALPHA, []) == [] and told(team, LEA) == []
    assert pages.share(team, ALPHA, BOB, "api", "two", 0).version == 3


def test_pages_are_limited_in_size_and_number(team: Store) -> None:
    with pytest.raises(InvalidValue):
        pages.share(team, ALPHA, BOB, "large", "x" * (64 * 1024 + 1))
    pages.share(team, ALPHA, BOB, "large", "x" * 64 * 1024)
    with pytest.raises(InvalidValue):
        pages.share(team, ALPHA, BOB, "blank", " \n")
    with pytest.raises(AlreadyExists):
        pages.share(team, ALPHA, BOB, "Large", "text")
    now = "2026-01-01T00:00:00Z"
    for number in range(199):
        page = pages.Page(key=f"p{number}", text="x", version=1, author="bob", created_at=now, updated_at=now)
        team.create(ALPHA, pages.PAGE, page.key, page)
    with pytest.raises(Conflict):
        pages.share(team, ALPHA, BOB, "more", "text")
    assert pages.share(team, ALPHA, BOB, "p7", "text").version == 2
    pages.share(team, ALPHA, BOB, "p8", None)
    assert pages.share(team, ALPHA, BOB, "more", "text").version == 1


def test_members_that_have_not_seen_a_page_are_told_once(team: Store) -> None:
    pages.share(team, ALPHA, BOB, "api", "\n# The API\nGET /users")
    assert told(team, BOB) == []
    assert told(team, MIA) == ["api"] and told(team, MIA) == []
    assert [page["text"] for page in brief.brief(team, ALPHA, LEA, at_once)["pages"]] == [
        "page api (version 1 by bob): The API"
    ]
    assert "pages" not in brief.brief(team, ALPHA, LEA, at_once) and told(team, LEA) == []
    pages.share(team, ALPHA, BOB, "api", "GET /people")
    pages.note_seen(team, ALPHA, "mia", [pages.get(team, ALPHA, "api")])
    assert told(team, MIA) == [] and told(team, LEA) == ["api"]


def test_the_commands(cli: Cli) -> None:
    page = cli.ok("share", "api", "-", "--if-version", "0", agent="bob", stdin=b"# One\n")
    assert {"key": "api", "text": "# One", "version": 1, "author": "bob"}.items() <= page.items()
    assert cli.refused("share", "api", "x", "--if-version", "0", agent="mia") == (11, "stale_version")
    assert cli.refused("share", "api", "x", "--remove", agent="mia") == (2, "wrong_usage")
    assert cli.refused("share", "a b", "x", agent="mia") == (2, "invalid_value")
    assert cli.refused("shared", "nix") == (10, "page_not_found")
    assert cli.ok("shared", "api")["text"] == "# One"
    assert [(page["key"], page["version"], page["line"]) for page in cli.ok("shared")] == [("api", 1, "One")]
    assert "page api (version 1 by bob): One" in cli("brief", agent="mia").stdout
    assert cli.ok("doctor")["findings"] == []


def test_an_agent_that_claims_or_shares_hears_of_pages_of_others(cli: Cli) -> None:
    add_tasks(cli, "one", "two")
    cli.ok("share", "api", "GET /users", agent="lea")
    told = "page api (version 1 by lea): GET /users: teams shared api\n"
    assert told in cli("claim-task", "1", agent="bob").stdout
    assert "page" not in cli("claim-task", "2", agent="bob").stdout
    cli.ok("share", "api", "GET /people", agent="lea")
    said = cli("share", "ways", "as you like", agent="bob").stdout
    assert said == "ways: version 1\npage api (version 2 by lea): GET /people: teams shared api\n"
    assert [page["key"] for page in cli.ok("share", "more", "text", agent="lea")["pages"]] == ["ways"]
