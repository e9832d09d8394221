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
from tests.support.cli import ALPHA, TIMEOUT
from tests.support.shop import Shop, git, shop
from tests.support.waits import until

__all__ = ["shop"]

pytestmark = pytest.mark.slow

URL = "https://forge.example/o/r/pull/7"
LANDER = [sys.executable, "-m", "teams_cli.extensions.landing.lander"]
GH = """#!/bin/sh
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
        gh = place / "bin" / "gh"
        gh.parent.mkdir()
        gh.write_text(GH.format(place=place, url=URL))
        gh.chmod(0o755)
        monkeypatch.setenv("PATH", f"{gh.parent}:{os.environ['PATH']}")
        shop.set("landingVia", "pr", agent="human")

    def merge(self, shop: Shop) -> None:
        """Have the pull request merged, and wait until the program notices."""
        self.state.write_text("MERGED\n")
        for _ in range(300):
            if shop.cli.ok("get-landings", agent="lea")[-1]["state"] == "landed":
                return
        raise AssertionError(shop.cli.ok("get-landings", agent="lea"))


@pytest.fixture
def forge(shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Forge:
    """A forge, and a commit of bob's for a task that he has claimed."""
    shop.begin("bob")
    return Forge(shop, tmp_path, monkeypatch)


def outcome(shop: Shop) -> tuple[str, str | None]:
    """Return the state and the address of the last landing, once it was tried."""
    landing = shop.cli.ok("get-landings", agent="lea")[-1]
    if landing["state"] == "queued":
        landing = shop.cli.ok("wait", "--landing", "task-1", "--timeout", "60", agent="lea")["landing"]
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


def test_any_wait_hears_that_a_request_was_merged_meanwhile(shop: Shop, forge: Forge, tmp_path: Path) -> None:
    """A wait without options looks at the forge, too, again and again."""
    shop.ok("bob", "land", "1")
    assert outcome(shop) == ("checking", URL)
    until(lambda: not running(shop.cli.root, "extensions.landing.lander"))
    (tmp_path / "looks").unlink(missing_ok=True)
    waiting = shop.cli.start("wait", "--timeout", "100", agent="bob", cwd=shop.trees["bob"])
    looks = tmp_path / "looks"
    until(lambda: looks.exists())
    forge.state.write_text("MERGED\n")  # behind the first look of the wait
    said = waiting.communicate(timeout=TIMEOUT)[0].decode()
    assert "was merged" in said or "landed" in said, said


def test_what_was_opened_though_gh_failed_is_not_refused(shop: Shop, forge: Forge) -> None:
    """As when the connection broke behind it, or who opened it was killed then: it is found by its branch."""
    forge.breaks.touch()
    shop.ok("bob", "land", "1")
    assert outcome(shop) == ("checking", URL)
    forge.merge(shop)


@pytest.mark.usefixtures("on_postgres")  # where a machine keeps what it opened, as others write there, too
def test_what_was_opened_is_not_refused_where_that_cant_be_noted(shop: Shop, forge: Forge) -> None:
    """As on a full disk: it is in the store, and found by its branch."""
    trust.trust(shop.cli.store(), ALPHA, str(shop.main))
    temporary = shop.cli.root / "tmp"
    shutil.rmtree(temporary)
    temporary.touch()
    shop.ok("bob", "land", "1")
    assert outcome(shop) == ("checking", URL)
    forge.merge(shop)


@pytest.mark.usefixtures("on_postgres")
@pytest.mark.parametrize("pushed", ["bobs", "trunk"])
def test_what_was_opened_before_machines_kept_that_is_taken_up(shop: Shop, forge: Forge, pushed: str) -> None:
    """If it is a request of the landing's branch and has its commit."""
    shop.ok("bob", "land", "1")
    assert outcome(shop) == ("checking", URL)
    landers = shop.cli.root / "landers" / ALPHA
    (kept,) = until(lambda: [path for path in landers.iterdir() if path.read_text() == URL])  # behind the landing
    until(lambda: not running(shop.cli.root, "extensions.landing.lander"))  # else one may look now, and keep it again
    kept.unlink()
    git(shop.main, "push", "-q", "--force", "origin", f"{pushed}:bobs")
    if pushed == "bobs":
        return forge.merge(shop)
    forge.state.write_text("MERGED\n")
    looked = subprocess.run(LANDER, env=shop.cli.environ("lea"), capture_output=True, text=True, timeout=TIMEOUT)
    assert f"the pull request {URL} was not opened" in looked.stderr and outcome(shop) == ("checking", URL)
