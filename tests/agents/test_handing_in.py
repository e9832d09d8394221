"""Handing in: what would be lost, or seen by nobody, is refused once when a task is completed in a worktree."""

from __future__ import annotations

from tests.support.shop import Shop, git, shop

__all__ = ["shop"]
END = ("update-task", "1", "--status", "completed")


def test_what_is_not_committed_or_not_shared_is_refused_once(shop: Shop) -> None:
    """With both commands; said again it is completed."""
    shop.create("one")
    shop.create("two")
    shop.cli.ok("claim-task", "1", agent="bob")
    (shop.trees["bob"] / "new").write_text("1")
    done = shop.at("bob", *END, "--next")
    assert (done.returncode, "not committed: new; task-1 is as it was" in done.stderr) == (11, True)
    assert (
        "  git add -A && git commit -m 'task-1'; then teams update-task task-1 --status completed --next\n"
        in done.stderr
    )
    git(shop.trees["bob"], "add", "-A")
    git(shop.trees["bob"], "commit", "-q", "-m", "task-1")
    refused = shop.at("bob", *END)
    assert (refused.returncode, "is on bobs alone" in refused.stderr) == (11, True)
    assert "  teams land task-1; then teams update-task task-1 --status completed\n" in refused.stderr
    assert shop.ok("bob", *END).startswith("task-1: completed by bob")
    shop.ok("bob", "claim-task", "2")
    (shop.trees["bob"] / "left").write_text("1")
    assert shop.at("bob", "update-task", "2", "--status", "completed").returncode == 11
    assert shop.ok("bob", "update-task", "2", "--status", "completed").startswith("task-2: completed by bob")
