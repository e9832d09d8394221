"""Submodules of a worktree: what is not committed there counts, and their own configuration runs nothing."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.support.shop import CHECK, Shop, git, shop

__all__ = ["shop"]


def test_a_check_sees_a_submodule_and_runs_nothing_that_it_names(shop: Shop, tmp_path: Path) -> None:
    tree, inside = shop.trees["bob"], shop.trees["bob"] / "sub"
    subprocess.run(["git", "init", "-q", str(inside)], check=True)
    shop.write(inside, "file", "one")
    git(tree, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(inside), "sub")
    git(tree, "commit", "-q", "-m", "with a submodule")
    shop.create("t", "--check", CHECK)
    shop.ok("bob", "claim-task", "1")
    (inside / "file").write_text("two")
    ran = tmp_path / "ran"
    git(inside, "config", "filter.own.clean", f"touch {ran}; cat")
    git(inside, "config", "core.fsmonitor", f"touch {ran}; false")
    (inside / ".gitattributes").write_text("* filter=own\n")
    refused = shop.at("bob", "update-task", "1", "--status", "completed")
    assert refused.returncode == 11 and "sub/file" in refused.stderr
    assert not ran.exists()
