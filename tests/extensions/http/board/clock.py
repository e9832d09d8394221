"""How long a person waits for the board of a large team: `python -m tests.extensions.http.board.clock
[ROUNDS]`.

Prints a table. Run it on a quiet machine; it needs the browser that the tests of the board need.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from pathlib import Path

from selenium.webdriver import Chrome

from teams_cli.clock import parse_rfc3339
from tests.extensions.http.board.page import Page, open_browser
from tests.extensions.http.test_board_rows import large_team
from tests.support.agents import end_all, team_of_agents
from tests.support.cli import Cli
from tests.support.serving import Server

TASKS, MESSAGES = 2000, 5000
FIRST, SHOWN = 1.0, 0.3
"""The most seconds until the first cards are there, and until a change is shown."""

_CARDS = """
window.__first = 0
new MutationObserver(() => {
  if (window.__first || !document.querySelector('.card')) return
  requestAnimationFrame(() => { window.__first ||= performance.now() })
}).observe(document, { childList: true, subtree: true })
"""
_SHOWN = """
const title = arguments[0]
window.__shown = 0
new MutationObserver((_, observer) => {
  if (!document.body.textContent.includes(title)) return
  observer.disconnect()
  requestAnimationFrame(() => { window.__shown = performance.timeOrigin + performance.now() })
}).observe(document.body, { childList: true, subtree: true, characterData: true })
"""


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 7
    with tempfile.TemporaryDirectory() as directory:
        cli = team_of_agents(Path(directory), "bob", "mia", "zoe")
        large_team(cli, TASKS, MESSAGES)
        browser = open_browser(Path(directory) / "home")
        browser.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": _CARDS})
        server = Server(cli)
        try:
            print(f"{TASKS:,} tasks, {MESSAGES:,} messages; median, worst of {rounds}, s")
            _show("first cards", [_opened(browser, server) for _ in range(rounds)], FIRST)
            _show("a change shown", [_changed(cli, browser, number) for number in range(rounds)], SHOWN)
        finally:
            browser.quit()
            server.end()
            end_all(cli.root)


def _show(what: str, seconds: list[float], limit: float) -> None:
    middle = statistics.median(seconds)
    print(f"  {what:<16}{middle:8.2f}{max(seconds):8.2f}   at most {limit} {'ok' if middle <= limit else 'MISSED'}")


def _opened(browser: Chrome, server: Server) -> float:
    """Seconds from opening the address to the first cards."""
    page = Page(browser)
    page.open(server.url, server.token)
    return float(page.until(lambda: browser.execute_script("return window.__first"), "cards")) / 1000


def _changed(cli: Cli, browser: Chrome, number: int) -> float:
    """Seconds from the start of a command that creates a task until its card is on the board."""
    title = f"The newest of all, {number}"
    browser.execute_script(_SHOWN, title)
    made = cli.ok("create-task", title, "--priority", "high", agent="lea")["createdAt"]
    shown = Page(browser).until(lambda: browser.execute_script("return window.__shown"), "the new card")
    return float(shown) / 1000 - parse_rfc3339(made).timestamp()


if __name__ == "__main__":
    main()
