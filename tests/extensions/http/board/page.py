"""The board in a real browser, used as a person uses it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from selenium import webdriver
from selenium.common.exceptions import StaleElementReferenceException, WebDriverException
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement

from tests.support.waits import until

CHROMIUM = os.environ.get("TEAMS_CHROMIUM", "/usr/bin/chromium")  # read now: tests don't see such variables
DRIVER = os.environ.get("TEAMS_CHROMEDRIVER", "/usr/bin/chromedriver")
ESCAPES = "\x1b[2J\x1b]0;title\x07 \u202egnp.exe \x9b31m \u200bend"
"""Escape sequences and invisible characters, which the board must show as mere text."""
TOP = Path(__file__).parents[4]
AXE = os.environ.get("TEAMS_AXE", f"{TOP}/.browser/node_modules/axe-core/axe.min.js")
PICTURES = TOP / "build" / "board"
_FLAGS = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
]


def open_browser(home: Path) -> webdriver.Chrome:
    """A browser with its own profile, which makes no connections in the background."""
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for flag in [*_FLAGS, f"--user-data-dir={home}/profile"]:
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    return webdriver.Chrome(options, Service(DRIVER, env={**os.environ, "HOME": str(home)}))


_LISTEN = """
    window.wasHit = arguments[0].tagName === 'OPTION';  // the list of a select is no part of the page
    arguments[0].addEventListener('click', () => { window.wasHit = true; }, {capture: true, once: true});
"""


class Page:
    """The board in a browser; its methods wait for what they look for."""

    def __init__(self, browser: webdriver.Chrome) -> None:
        self.browser = browser

    def open(
        self, url: str, token: str = "", query: str = "", width: int = 1440, height: int = 900, live: bool = True
    ) -> None:
        """Open the board without any stored data in a window of that size; if *live*, wait for its connection."""
        self.browser.get("about:blank")
        self.browser.execute_cdp_cmd("Storage.clearDataForOrigin", {"origin": url, "storageTypes": "all"})
        self.resize(width, height)
        self.emulate()
        self.browser.get_log("browser")
        self.browser.get(f"{url}/{query}{f'#token={token}' if token else ''}")
        if live:
            self.until(lambda: self.text("#connection") == "Live", "a live connection")

    def resize(self, width: int, height: int) -> None:
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
        self.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)

    def emulate(self, **features: str) -> None:
        """Set the person's preferences, such as `prefers_color_scheme="dark"`."""
        said = [{"name": name.replace("_", "-"), "value": value} for name, value in features.items()]
        self.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": said})

    def until(self, ready: Callable[[], Any], what: str = "") -> Any:
        """Wait until *ready* returns something, while the page may be changing."""

        def look() -> Any:
            try:
                return ready()
            except (StaleElementReferenceException, LookupError):
                return None

        try:
            return until(look, what)
        except AssertionError:
            self.picture("failed")
            raise

    def all(self, css: str, containing: str = "") -> list[WebElement]:
        """The elements that match now."""
        found = self.browser.find_elements(By.CSS_SELECTOR, css)
        return [element for element in found if containing in element.text] if containing else found

    def one(self, css: str, containing: str = "") -> WebElement:
        """The first visible element that matches, once there is one."""
        return self.until(
            lambda: next((e for e in self.all(css, containing) if e.is_displayed()), None), f"{css} {containing}"
        )

    def gone(self, css: str, containing: str = "") -> None:
        self.until(lambda: not self.all(css, containing), f"no {css} {containing}")

    def text(self, css: str) -> str:
        """The text of the first element that matches; empty if none does."""
        found = self.all(css)
        return found[0].text if found else ""

    def reads(self, css: str, text: str) -> None:
        """Wait until the element contains *text*."""
        self.until(lambda: text in self.text(css), f"{text!r} in {css}")

    def click(self, css: str, containing: str = "") -> None:
        """Click the element once nothing covers it, and again if it moved away from the pointer."""

        def clicked() -> bool:
            try:
                element = self.one(css, containing)
                self.run(_LISTEN, element)
                element.click()
            except StaleElementReferenceException:
                return False
            except WebDriverException as error:
                if "intercepted" not in str(error):
                    raise
                return False
            return self.run("return window.wasHit") is not False  # a page that the click opened has no such variable

        self.until(clicked, f"a click on {css} {containing}")

    def type(self, css: str, text: str) -> None:

        def typed() -> bool:
            field = self.one(css)
            field.clear()
            field.send_keys(text)
            return True

        self.until(typed, f"typing into {css}")

    def choose(self, css: str, value: str) -> None:
        """Choose an option of a select."""
        self.until(lambda: self.all(f"{css} option[value='{value}']"), f"{value} in {css}")
        self.click(f"{css} option[value='{value}']")

    def keys(self, *keys: str) -> None:
        """Press keys one after the other, in the element that has the focus."""
        ActionChains(self.browser).send_keys(*keys).perform()

    def chord(self, held: str, key: str) -> None:
        ActionChains(self.browser).key_down(held).send_keys(key).key_up(held).perform()

    def drag(self, source: str, target: str, release: bool = True) -> None:
        """Drag with the pointer in steps, as a hand does."""
        chain = ActionChains(self.browser).click_and_hold(self.one(source)).move_by_offset(8, 8)
        chain.move_to_element(self.one(target)).move_by_offset(3, 3)
        (chain.release() if release else chain).perform()

    def let_go(self) -> None:
        """Release the button that a drag holds."""
        ActionChains(self.browser).release().perform()

    def run(self, script: str, *arguments: Any) -> Any:
        return self.browser.execute_script(script, *arguments)

    def focused(self) -> str:
        """The element that has the focus: its task, tag, id and classes."""
        found = self.run(
            "const e = document.activeElement, task = e.closest('[data-task]')?.dataset.task ?? '';"
            "return e === document.body ? 'body' : `${task} ${e.tagName.toLowerCase()}#${e.id}.${e.className}`"
        )
        return str(found)

    def tasks_in(self, status: str) -> list[str]:
        """The ids of the tasks in a column, from the top."""
        column = f".column[data-status={status}] .card"
        return list(self.run("return [...document.querySelectorAll(arguments[0])].map(e => e.dataset.task)", column))

    def picture(self, name: str) -> None:
        """Save a screenshot."""
        PICTURES.mkdir(parents=True, exist_ok=True)
        self.browser.save_screenshot(str(PICTURES / f"{name}.png"))

    def complaints(self) -> list[str]:
        """The errors that the browser logged, except for refused requests and unreachable servers."""
        said = [entry["message"] for entry in self.browser.get_log("browser")]
        return [line for line in said if "Failed to load resource" not in line and "net::ERR_" not in line]

    def barriers(self) -> list[str]:
        """The serious and critical findings of axe on the page."""
        if not self.run("return 'axe' in window"):
            self.run(Path(AXE).read_text())
        found = self.browser.execute_async_script(
            "axe.run(document, {resultTypes: ['violations']}).then(arguments[0], e => arguments[0]({error: String(e)}))"
        )
        assert "violations" in found, found
        serious = [v for v in found["violations"] if v["impact"] in ("serious", "critical")]
        return [f"{v['id']}: {json.dumps([n['target'] + [n['failureSummary']] for n in v['nodes']])}" for v in serious]
