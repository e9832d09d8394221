"""Checked completion, on real repositories, through the program."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.support.cli import ALPHA
from tests.support.shop import CHECK, Shop, git, shop
from tests.support.waits import until

__all__ = ["shop"]


def test_completed_only_by_its_check(shop: Shop) -> None:
    """A claim is no completion, whatever is said: the check is run, and what came of it stays on the task."""
    shop.create("t", "--check", CHECK)
    shop.ok("bob", "claim-task", "1")
    shop.write(shop.trees["bob"], "broken", "")
    done = shop.at("bob", "update-task", "1", "--status", "completed", "--result", "all is well")
    assert done.returncode == 11 and CHECK in done.stderr
    assert done.stderr.endswith(
        "Fix it, commit, and complete it again (your result is kept): teams update-task task-1 --status completed\n"
    )
    again = shop.at("bob", "update-task", "1", "--status", "completed", "--next", "--wait", "9").stderr
    assert again.endswith("again (your result is kept): teams update-task task-1 --status completed --next --wait 9\n")
    task = shop.task()
    assert (task["status"], task["checked"]["status"], task["checked"]["by"]) == ("in_progress", 1, "bob")
    assert task["checked"]["commit"] == git(shop.trees["bob"], "rev-parse", "HEAD") and "result" not in task
    git(shop.trees["bob"], "rm", "-q", "broken")
    git(shop.trees["bob"], "commit", "-q", "-m", "mended")
    os.mkfifo(shop.trees["bob"] / "pipe")
    for name in ("pipe", "/dev/zero", "."):
        assert shop.at("bob", "update-task", "1", "--status", "completed", "--evidence", name).returncode == 2
    os.unlink(shop.trees["bob"] / "pipe")
    shop.ok("bob", "update-task", "1", "--status", "completed", "--evidence", "file")
    task = shop.task()
    assert (task["status"], task["checked"]["status"], task["result"]) == ("completed", 0, "all is well")
    assert "result" not in task["checked"]
    assert [(one["name"], one["size"]) for one in task["evidence"]] == [("file", 1)]
    assert "  checked  " in shop.cli("get-tasks", agent="lea").stdout


def test_a_check_leaves_no_process_and_ends_no_command(shop: Shop, tmp_path: Path) -> None:
    """Though it has left its group and its session, and kills the process that runs it."""
    shop.create("t", "--check", f"setsid sleep 600 & echo $! >{tmp_path}/pid; kill -9 $PPID; sleep 1")
    shop.ok("bob", "claim-task", "1")
    done = shop.at("bob", "update-task", "1", "--status", "completed")
    assert done.returncode == 11 and "must not kill the process that runs it" in done.stderr, done
    until(lambda: not Path(f"/proc/{(tmp_path / 'pid').read_text().strip()}").exists())


def test_who_works_does_not_say_how_it_is_checked(shop: Shop) -> None:
    shop.create("t", "--check", CHECK)
    shop.ok("bob", "claim-task", "1")
    assert shop.at("bob", "update-task", "1", "--check", "true").returncode == 13
    assert shop.task()["check"] == CHECK
    shop.cli.ok("update-task", "1", "--check", "true", agent="lea")
    assert shop.task()["check"] == "true"


def test_what_is_not_committed_does_not_count(shop: Shop, tmp_path: Path) -> None:
    """In a checkout the commit is checked; a directory that the task names is checked as it is."""
    shop.create("t", "--check", "test -e new")
    shop.ok("bob", "claim-task", "1")
    (shop.trees["bob"] / "new").write_text("2")
    done = shop.at("bob", "update-task", "1", "--status", "completed")
    assert (
        done.returncode == 11 and "uncommitted changes: new" in done.stderr and shop.task()["status"] == "in_progress"
    )
    shop.cli.ok("create-task", "u", "--check", "test -e new", "--check-in", str(shop.trees["bob"]), agent="lea")
    shop.ok("mia", "claim-task", "2")
    shop.ok("mia", "update-task", "2", "--status", "completed")
    assert "commit" not in shop.task("2")["checked"]


@pytest.mark.slow
def test_who_stands_in_no_checkout_completes_nothing_that_is_not_in_one(shop: Shop, tmp_path: Path) -> None:
    """What would pass in an empty directory is checked where it was set, or in the worktree that its owner was seen in;
    with no checkout anywhere it is run where its owner is.
    """
    elsewhere, there = tmp_path / "elsewhere", shop.trees["mia"]
    (elsewhere / ".git").mkdir(parents=True)  # which git passes over
    shop.write(there, "bad", "1")
    shop.at("lea", "create-task", "Clean", "--check", "test ! -e bad", where=there)
    shop.at("lea", "create-task", "Empty", where=there)
    shop.at("lea", "update-task", "2", "--check", "test ! -e bad", where=there)
    shop.at("lea", "create-task", "Report", "--check", "test -e report", where=elsewhere)
    for key in ("1", "2"):
        shop.at("bob", "claim-task", key, where=elsewhere)
        done = shop.at("bob", "update-task", key, "--status", "completed", where=elsewhere)
        assert done.returncode == 11 and f"in {there}, where the check was set" in done.stderr, done
        assert "commit" in shop.task(key)["checked"]
    shop.ok("bob", "note", "1", "mine")  # by which it was seen in its worktree
    assert shop.at("bob", "update-task", "1", "--status", "completed", where=elsewhere).returncode == 0
    assert shop.task("1")["checked"]["directory"] == str(shop.trees["bob"])
    shop.at("mia", "claim-task", "3", where=elsewhere)
    assert shop.at("mia", "update-task", "3", "--status", "completed", where=elsewhere).returncode == 11
    (elsewhere / "report").touch()
    assert shop.at("mia", "update-task", "3", "--status", "completed", where=elsewhere).returncode == 0
    assert "commit" not in shop.task("3")["checked"]


HIDINGS = {
    "skipped": "echo 2 >file; git update-index --skip-worktree file",
    "ignored by the branch": "echo new >.gitignore; git add .; git commit -qm ignored; touch new",
    "ignored by its settings": "echo new >../rules; git config core.excludesFile $PWD/../rules; touch new",
}


@pytest.mark.parametrize("how", HIDINGS)
def test_what_git_is_told_not_to_see_does_not_count(shop: Shop, how: str) -> None:
    """The commit is checked alone then; what it ignored all along, as what was built, is there as before."""
    shop.create("t", "--check", "test -e new || grep 2 file")
    shop.ok("bob", "claim-task", "1")
    identity = {f"GIT_{who}_{what}": "e@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    subprocess.run(HIDINGS[how], shell=True, cwd=shop.trees["bob"], check=True, env={**os.environ, **identity})
    done = shop.at("bob", "update-task", "1", "--status", "completed")
    assert done.returncode == 11 and "on the commit alone" in done.stderr, done
    assert shop.task()["status"] == "in_progress"


@pytest.mark.slow
def test_a_result_that_was_kept_is_that_of_who_said_it(shop: Shop) -> None:
    """Under that claim; one that is said later goes before it."""
    shop.create("t", "--check", "test -e new")
    for result in ("mine", "yours"):
        shop.ok("bob", "claim-task", "1")
        assert shop.at("bob", "update-task", "1", "--status", "completed", "--result", result).returncode == 11
        shop.ok("bob", "release-task", "1")
    shop.ok("mia", "claim-task", "1")
    shop.write(shop.trees["mia"], "new", "2")
    shop.ok("mia", "update-task", "1", "--status", "completed")
    assert "result" not in shop.task()
    shop.create("u", "--check", "test -e newer")
    completing = ("update-task", "2", "--status", "completed")
    shop.ok("bob", "claim-task", "2")
    assert shop.at("bob", *completing, "--result", "of another claim").returncode == 11
    shop.ok("bob", "release-task", "2")
    shop.ok("bob", "claim-task", "2")
    assert "result is kept" not in shop.at("bob", *completing).stderr
    assert shop.at("bob", *completing, "--result", "old").returncode == 11
    shop.ok("bob", "update-task", "2", "--result", "new")
    shop.write(shop.trees["bob"], "newer", "2")
    shop.ok("bob", *completing)
    assert shop.task("2")["result"] == "new"


@pytest.mark.slow
def test_what_others_have_not_committed_holds_nobody_up(shop: Shop, tmp_path: Path) -> None:
    """Several may work in the main checkout: the commit alone counts there, and is tried in a tree of its own."""
    shop.trees["bob"] = shop.main
    once = f"[ -e {tmp_path}/begun ] || {{ touch {tmp_path}/begun; until [ -e {tmp_path}/go ]; do sleep 0.05; done; }}"
    shop.create("t", "--check", f"{once}; test -e new -a ! -e half")
    shop.ok("bob", "claim-task", "1")
    (shop.main / "half").write_text("what mia is at")
    with shop.cli.start("update-task", "1", "--status", "completed", agent="bob", cwd=shop.main) as killed:
        until(lambda: (tmp_path / "begun").exists())
        killed.kill()
    (tmp_path / "go").touch()
    done = shop.at("bob", "update-task", "1", "--status", "completed")
    assert done.returncode == 11 and "left out, as not committed here: half" in done.stderr
    for name in ("also", "new"):  # what the check speaks of comes first
        (shop.main / name).write_text("what bob is at")
    done = shop.at("bob", "update-task", "1", "--status", "completed")
    assert "left out, as not committed here: half, new, also; " in done.stderr
    (shop.main / "new").unlink()
    shop.write(shop.main, "new", "2")
    shop.ok("bob", "update-task", "1", "--status", "completed")
    assert (shop.task()["status"], shop.task()["checked"]["commit"]) == ("completed", shop.tip())
    assert len(git(shop.main, "worktree", "list").splitlines()) == 3
    assert os.listdir(shop.cli.root / "worktrees" / ALPHA) == []


@pytest.mark.slow
def test_a_check_that_runs_long_is_told_and_how_long_it_took(shop: Shop) -> None:
    shop.cli.ok("set", "checkTimeout", "4", agent="lea")
    shop.create("t", "--check", "sleep 2.6")
    shop.ok("bob", "claim-task", "1")
    said = shop.ok("bob", "update-task", "1", "--status", "completed")
    assert said.startswith("task-1: completed by bob, its check passed in ")
    assert shop.task()["checked"]["seconds"] >= 3
    told = [message["message"] for message in shop.cli.ok("read-messages", agent="lea")]
    assert any(one.startswith("the check of task-1 (bob) has run for 2 s: sleep 2.6") for one in told)
