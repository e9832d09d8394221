"""A conflict that was resolved once does not come back, even if the branch moved on and the agent rewrote its
commits.
"""

from __future__ import annotations

import subprocess

import pytest

from tests.support.shop import Shop, git

LINES = "".join(f"line {number}\n" for number in range(20))
BOTH = LINES.replace("line 9\n", "line of both\n").replace("line 1\n", "line one\n")


@pytest.fixture
def resolved(shop: Shop) -> Shop:
    """A shop in which bob has merged a conflict with mia's landed work, after which mia landed something else."""
    shop.write(shop.main, "text", LINES)
    for key, agent in (("1", "mia"), ("2", "bob"), ("3", "mia")):
        shop.claimed(agent, key=key)
    for tree in shop.trees.values():
        git(tree, "merge", "-q", "trunk")
    git(shop.trees["bob"], "tag", "began")
    shop.write(shop.trees["mia"], "text", LINES.replace("line 9\n", "line of mia\n"))
    shop.write(shop.trees["bob"], "text", LINES.replace("line 9\n", "line of bob\n"))
    git(shop.trees["bob"], "tag", "first")
    assert shop.landed("mia", "1")["state"] == "landed"
    assert shop.landed("bob", "2")["state"] == "conflict"
    with pytest.raises(subprocess.CalledProcessError):
        git(shop.trees["bob"], "merge", "-q", "trunk")
    shop.write(shop.trees["bob"], "text", LINES.replace("line 9\n", "line of both\n"))
    git(shop.trees["mia"], "merge", "-q", "trunk")
    shop.write(shop.trees["mia"], "text", (shop.main / "text").read_text().replace("line 1\n", "line one\n"))
    assert shop.landed("mia", "3")["state"] == "landed"
    return shop


def text_of_both(shop: Shop) -> str:
    return git(shop.main, "show", "trunk:text") + "\n"


REWRITTEN = {
    "merged": [],
    "as after a rebase": ["reset -q --hard first", "commit -q --amend -m reworded"],
    "squashed": ["reset -q --soft began", "commit -q -m squashed"],
}


@pytest.mark.parametrize("how", ["merged", *(pytest.param(how, marks=pytest.mark.slow) for how in [*REWRITTEN][1:])])
def test_a_resolved_conflict_lands_though_the_tip_moved(resolved: Shop, how: str) -> None:
    """A rewritten branch may lack the merge; later commits land, too."""
    for words in REWRITTEN[how]:
        git(resolved.trees["bob"], *words.split())
    resolved.write(resolved.trees["bob"], "new", "1")
    head = git(resolved.trees["bob"], "rev-parse", "HEAD")
    assert resolved.landed("bob", "2")["state"] == "landed" and text_of_both(resolved) == BOTH
    assert git(resolved.main, "rev-parse", "trunk^2") == head
    assert (resolved.main / "new").exists() and git(resolved.main, "status", "--porcelain") == ""


@pytest.mark.slow
def test_another_conflict_is_resolved_by_its_owner(resolved: Shop) -> None:
    git(resolved.trees["bob"], "reset", "-q", "--hard", "began")
    resolved.write(resolved.trees["bob"], "text", LINES.replace("line 9\n", "another line of bob\n"))
    landing = resolved.landed("bob", "2")
    assert (landing["state"], landing["files"]) == ("conflict", ["text"])
    assert "line of mia" in text_of_both(resolved)


@pytest.mark.slow
def test_a_resolution_that_no_reviewer_saw_is_not_used(resolved: Shop) -> None:
    resolved.cli.ok("update-task", "2", "--review-by", "mia", agent="lea")
    git(resolved.trees["bob"], "reset", "-q", "--hard", "first")
    resolved.complete("bob", "2")
    resolved.ok("mia", "review-task", "2", "--accept")
    assert resolved.landed("bob", "2")["state"] == "conflict"
