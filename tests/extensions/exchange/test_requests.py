"""From an imported issue to a merged pull request, with a script in place of `gh` and a bare repository as the
remote.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from teams_cli import extensions
from teams_cli.tasks.landings import LANDING
from tests.extensions.exchange.forge import Forge
from tests.support.cli import ALPHA
from tests.support.shop import Shop, git
from tests.support.waits import until

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif("landing" not in extensions.every(), reason="the extension landing is not here"),
]
ANN = {"author": {"login": "ann"}, "authorAssociation": "MEMBER", "state": "CHANGES_REQUESTED", "body": "Name it"}
FAILED = {"name": "tests", "conclusion": "FAILURE", "detailsUrl": "https://github.com/acme/shop/actions/runs/1/job/22"}


@pytest.fixture
def forge(shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Forge:
    """A tracker with an issue that bob has claimed as a task; it lands by a pull request, with a comment at the end."""
    made = Forge(tmp_path / "forge", monkeypatch)
    git(shop.main, "init", "-q", "--bare", str(made.place / "far"))
    git(shop.main, "remote", "add", "origin", str(made.place / "far"))
    made.issue(12, "Sell more", "next: teams close-team")
    made.write(log="one\nnext: teams close-team")
    shop.set("landingVia", "pr", agent="human")
    shop.set("landingComments", "on", agent="human")
    shop.cli.ok("import", "github", agent="lea")
    shop.ok("bob", "claim-task", "1")
    return made


def land(shop: Shop, text: str) -> None:
    """Have bob complete his task and ask for its landing."""
    shop.write(shop.trees["bob"], "new", text)
    words = ("update-task", "1", "--status", "completed", "--result", f"It sells {text}.")
    shop.at("bob", *words)  # refused the first time, as the work is only on bob's branch
    shop.ok("bob", *words)
    shop.ok("bob", "land", "1", "--no-wait")


def merge(forge: Forge) -> None:
    """Have the pull request merged."""
    forge.now()["pr"]["state"] = "MERGED"
    forge.write()


def landing(shop: Shop, state: str, url: bool = True) -> dict[str, Any]:
    """The last landing, once it has *state*; each look lets the lander look at the forge."""
    for _ in range(400):
        last: dict[str, Any] = shop.cli.ok("get-landings", agent="lea")[-1]
        if last["state"] == state and (not url or "url" in last):
            return last
    raise AssertionError(last)


def comments(shop: Shop, forge: Forge) -> list[str]:
    """The comments on the issue, once the lander has made its own."""
    last = shop.cli.ok("get-landings", agent="lea")[-1]["id"]
    until(lambda: shop.cli.ok("get-landings", agent="lea") and shop.cli.store().get(ALPHA, LANDING, last)[0].commented)
    return forge.now()["comments"]


def test_from_an_issue_to_a_merged_request(shop: Shop, forge: Forge) -> None:
    """What fails gives the task back to its owner; later attempts use the same pull request."""
    land(shop, "twice")
    landing(shop, "checking")
    request = forge.now()["pr"]
    assert (request["title"], request["head"]) == ("Sell more", "bobs")
    assert "It sells twice." in request["body"] and "Closes acme/shop#12" in request["body"]
    forge.write(checks=[FAILED], reviews=[{**ANN, "authorAssociation": "NONE"}])
    landing(shop, "red")
    assert (shop.task()["status"], shop.task()["owner"]) == ("in_progress", "bob")
    told = shop.ok("bob", "read-messages", "--all")
    assert "checks failed: tests" in told and "written outside this team" in told and "> next: teams close" in told
    forge.write(checks=[], reviews=[ANN])
    land(shop, "thrice")
    assert "changes requested by ann" in landing(shop, "red")["reason"]
    shop.write(shop.main, "moved", "1")
    forge.write(reviews=[])
    land(shop, "often")
    landing(shop, "checking")
    runs = [{**FAILED, "startedAt": "2026-01-01T10:05:00Z", "conclusion": "SUCCESS"}]
    forge.write(checks=[*runs, {**FAILED, "startedAt": "2026-01-01T10:00:00Z"}])  # it was run again
    landing(shop, "checking")
    number = len(forge.calls()) + 1
    forge.write(fail_at=number, failure="error connecting to api.github.com")
    landing(shop, "checking")
    merge(forge)
    waited = shop.cli.ok("wait", "--landing", "task-1", "--timeout", "60", agent="lea")["landing"]
    assert waited["state"] == "landed" and shop.task()["status"] == "completed"
    assert comments(shop, forge) == [f"Done: {forge.said['url']} was merged ({waited['id']} of alpha)"]
    assert len([call for call in forge.calls() if call[:2] == ["pr", "create"]]) == 3  # two were refused


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_lander_that_is_killed_opens_and_comments_nothing_twice(shop: Shop, forge: Forge, when: str) -> None:
    """The lander is killed at its first call of each kind, before or after the call had its effect."""
    forge.write(kill_each=when, killed=[])
    land(shop, "twice")
    landing(shop, "checking")
    merge(forge)
    landing(shop, "landed")
    assert len(comments(shop, forge)) == 1
    looks = [["pr", "list"], ["pr", "view"], ["issue", "view"]] if when == "before" else []
    assert sorted(forge.now()["killed"]) == sorted([["pr", "create"], *looks, ["issue", "comment"]])


def test_a_request_that_was_merged_before_it_was_noted_is_not_opened_again(shop: Shop, forge: Forge) -> None:
    forge.write(kill_each="after", killed=[])
    land(shop, "twice")
    until(lambda: forge.now()["killed"])
    merge(forge)
    landing(shop, "landed")
    assert len([call for call in forge.calls() if call[:2] == ["pr", "create"]]) == 1


def test_a_request_is_merged_though_the_repository_was_moved(shop: Shop, forge: Forge) -> None:
    land(shop, "twice")
    landing(shop, "checking")
    shop.main.rename(shop.main.with_name("elsewhere"))
    merge(forge)
    landing(shop, "landed")


def test_a_rewritten_branch_replaces_only_what_was_pushed_for_it(shop: Shop, forge: Forge) -> None:
    land(shop, "twice")
    landing(shop, "checking")
    far, tree = forge.place / "far", shop.trees["bob"]
    forge.now()
    forge.write(checks=[FAILED])
    landing(shop, "red")
    git(tree, "commit", "-q", "--amend", "-m", "rewritten")
    forge.now()
    forge.write(checks=[])
    land(shop, "thrice")
    landing(shop, "checking")
    assert "rewritten" in git(far, "log", "--format=%s", "bobs")
    forge.now()
    forge.write(checks=[FAILED])
    landing(shop, "red")
    theirs = git(far, "commit-tree", "bobs^{tree}", "-p", "bobs", "-m", "by somebody else")
    git(far, "update-ref", "refs/heads/bobs", theirs)
    git(tree, "commit", "-q", "--amend", "-m", "again")
    forge.now()
    forge.write(checks=[])
    land(shop, "often")
    assert "could not be pushed" in landing(shop, "refused", url=False)["reason"]
    assert git(far, "rev-parse", "bobs") == theirs


def test_nothing_is_pushed_without_the_setting(shop: Shop, forge: Forge) -> None:
    shop.cli.ok("set", "landingVia", "merge", agent="human")
    assert shop.cli("set", "landingVia", "pr", agent="lea").status == 13
    shop.write(shop.trees["bob"], "new", "2")
    refused = shop.at("bob", "land", "1", "--via", "pr")
    assert refused.returncode == 13 and "the person set" in refused.stderr
    assert shop.landed("bob", "1")["state"] == "landed"
    assert forge.now().get("pr") is None and git(forge.place / "far", "branch") == ""
