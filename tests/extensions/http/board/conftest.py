"""A browser for all tests of the board, and for each test a team, its server and a page.

Needs the extra `browser`, and `eval "$(tests/extensions/http/board/install.sh)"`.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.agents import end_all, team_of_agents
from tests.support.cli import Cli
from tests.support.serving import Server

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

    from tests.extensions.http.board.page import Page

if find_spec("selenium") is None:
    collect_ignore_glob = ["test_*.py"]


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chrome]:
    from tests.extensions.http.board.page import open_browser

    made = open_browser(tmp_path_factory.mktemp("browser"))
    made.set_script_timeout(60)
    yield made
    made.quit()


@pytest.fixture
def cli(tmp_path: Path) -> Iterator[Cli]:
    """A team with the leader lea and the members bob, mia and zoe; all its processes are ended after the test."""
    made = team_of_agents(tmp_path, "bob", "mia", "zoe")
    yield made
    end_all(made.root)


@pytest.fixture
def page(browser: Chrome, server: Server) -> Iterator[Page]:
    """The board, opened at the address that `teams serve` prints; the browser must not report an error."""
    from tests.extensions.http.board.page import Page

    made = Page(browser)
    made.open(server.url, server.token)
    yield made
    complaints = made.complaints()
    browser.get("about:blank")
    assert complaints == []
