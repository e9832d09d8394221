"""Landing by pull requests, with a script in place of `gh`. A pull request that was opened is never called
refused, and is followed even if the program could not note that it opened it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from teams_cli.extensions.landing import trust
from tests.support.agents import running
from tests.support.cli import ALPHA, TIMEOUT, program
from tests.support.shop import Shop, git, no_lander
from tests.support.waits import until, until_asleep

pytestmark = pytest.mark.slow

URL = "https://forge.example/o/r/pull/7"
LANDER = [sys.executable, "-m", "teams_cli.extensions.landing.lander"]
GH = """
case "$2" in
create)
    test ! -e {place}/state || {{ echo a pull request exists already >&2; exit 1; }}
    echo OPEN >{place}/state
    test ! -e {place}/breaks || {{ echo connection reset >&2; exit 1; }}
    echo {url} ;;
view) printf '{{"state": "%s"}}' $(cat {place}/state); echo looked >>{place}/looks ;;
list) case "$*" in
    *--head=bobs*) test ! -e {place}/state || echo {url} $(git --git-dir={place}/far rev-parse bobs) ;;
    esac ;;
esac
"""


class Forge:
    """A remote for branches, and a forge with at most one pull request."""

    def __init__(self, shop: Shop, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.state, self.breaks = place / "state", place / "breaks"
        git(shop.main, "init", "-q", "--bare", str(place / "far"))
        git(shop.main, "remote", "add", "origin", str(place / "far"))
        gh = program(place / "bin/gh", GH.format(place=place, url=URL))
        monkeypatch.setenv("PATH", f"{gh.parent}:{os.environ['PATH']}")
        shop.set("landingVia", "pr", agent="human")

    def merge(self, shop: Shop) -> None:
        """Have the pull request merged, and wait until the program notices."""
        self.state.write_text("MERGED\n")
        until(lambda: shop.cli.ok("get-landings", agent="lea")[-1]["state"] == "landed")


@pytest.fixture
def forge(shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Forge:
    """A forge, and a commit of bob's for a task that he has claimed."""
    shop.begin("bob")
    return Forge(shop, tmp_path, monkeypatch)


def outcome(shop: Shop) -> tuple[str, str | None]:
    """Return the state and the address of the last landing, once it was tried."""
    until(lambda: shop.cli.ok("get-landings", agent="lea")[-1]["state"] != "queued")
    landing = shop.cli.ok("get-landings", agent="lea")[-1]
    return landing["state"], landing.get("url")


def test_a_request_has_the_commits_and_the_branch_here_stays(
    shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.begin("bob")
    shop.set("landingVia", "pr", agent="human")
    landing = shop.landed("bob", "1")
    assert landing["state"] == "refused" and "By hand: git push" in landing["reason"]
    forge, before = Forge(shop, tmp_path, monkeypatch), shop.tip()
    shop.ok("bob", "land", "1")
    assert outcome(shop) == ("checking", URL) and shop.tip() == before
    assert git(tmp_path / "far", "rev-parse", "bobs") == git(shop.trees["bob"], "rev-parse", "HEAD")
    forge.merge(shop)
    assert f"{URL} was merged" in str(shop.task()["notes"])


def test_any_wait_notices_that_a_request_was_merged(shop: Shop, forge: Forge, tmp_path: Path) -> None:
    """A wait without options asks the forge, too, and more than once."""
    shop.ok("bob", "land", "1")
    assert outcome(shop) == ("checking", URL)
    until(lambda: not running(shop.cli.root, "extensions.landing.lander"))
    looks = tmp_path / "looks"
    looks.unlink(missing_ok=True)
    waiting = shop.cli.start("wait", "--timeout", "100", agent="bob", cwd=shop.trees["bob"])
    until(looks.exists)
    forge.state.write_text("MERGED\n")  # after the first look of the wait
    said = waiting.communicate(timeout=TIMEOUT)[0].decode()
    assert "was merged" in said or "landed" in said, said


def test_a_wait_for_a_landing_goes_on_when_its_request_is_opened(shop: Shop, forge: Forge) -> None:
    """A wait that began before the request was opened ends when the request is merged."""
    with no_lander(shop.cli.store()):
        shop.ok("bob", "land", "1", "--no-wait")
        waiting = shop.cli.start("wait", "--landing", "1", "--timeout", "100", agent="bob", cwd=shop.trees["bob"])
        until_asleep(waiting)
    until(lambda: outcome(shop) == ("checking", URL))
    forge.merge(shop)
    said = waiting.communicate(timeout=TIMEOUT)[0].decode()
    assert "landing-1: landed" in said, said


def test_a_request_that_was_opened_though_gh_failed_is_not_refused(shop: Shop, forge: Forge) -> None:
    """A request that `gh` opened before it failed is found by its branch."""
    forge.breaks.touch()
    shop.ok("bob", "land", "1")
    assert outcome(shop) == ("checking", URL)
    forge.merge(shop)


@pytest.mark.usefixtures("on_postgres")  # there a machine notes what it opened, as other machines write to the store
def test_an_opened_request_is_not_refused_if_it_cant_be_noted(shop: Shop, forge: Forge) -> None:
    trust.trust(shop.cli.store(), ALPHA, str(shop.main))
    temporary = shop.cli.root / "tmp"
    shutil.rmtree(temporary)
    temporary.touch()
    shop.ok("bob", "land", "1")
    assert outcome(shop) == ("checking", URL)
    forge.merge(shop)


@pytest.mark.usefixtures("on_postgres")
@pytest.mark.parametrize("pushed", ["bobs", "trunk"])
def test_an_opened_request_that_was_not_noted_is_followed(shop: Shop, forge: Forge, pushed: str) -> None:
    """It must be of the landing's branch and have its commit."""
    shop.ok("bob", "land", "1")
    assert outcome(shop) == ("checking", URL)
    landers = shop.cli.root / "landers" / ALPHA
    (kept,) = until(lambda: [path for path in landers.iterdir() if path.read_text() == URL])
    until(lambda: not running(shop.cli.root, "extensions.landing.lander"))  # a running lander might note it again
    kept.unlink()
    git(shop.main, "push", "-q", "--force", "origin", f"{pushed}:bobs")
    if pushed == "bobs":
        return forge.merge(shop)
    forge.state.write_text("MERGED\n")
    looked = subprocess.run(LANDER, env=shop.cli.environ("lea"), capture_output=True, text=True, timeout=TIMEOUT)
    assert f"the pull request {URL} was not opened" in looked.stderr and outcome(shop) == ("checking", URL)
