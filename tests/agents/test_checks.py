"""Tasks with a check, in real repositories: when they may be completed."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.support.cli import ALPHA
from tests.support.shop import CHECK, Shop, git
from tests.support.waits import until

END = ("update-task", "1", "--status", "completed")


def test_a_task_with_a_check_is_completed_only_if_that_passes(shop: Shop) -> None:
    shop.claimed("bob", "--check", CHECK)
    assert shop.at("bob", "update-task", "1", "--check", "true").returncode == 13
    shop.write(shop.trees["bob"], "broken", "")
    done = shop.at("bob", "update-task", "1", "--status", "completed", "--result", "all is well")
    assert done.returncode == 11 and CHECK in done.stderr
    assert done.stderr.endswith(
        "Fix it, commit, and complete it again (your result is kept): teams update-task task-1 --status completed\n"
    )
    again = shop.at("bob", "update-task", "1", "--status", "completed", "--next", "--wait", "9").stderr
    assert again.endswith("again (your result is kept): teams update-task task-1 --status completed --next --wait 9\n")
    shop.cli.ok("send-message", "bob", "go on", "--fyi", agent="lea")
    step = "next: teams update-task task-1 --status completed --next --wait 540\n"
    assert shop.ok("bob", "wait", "--timeout", "60").endswith(step)
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


@pytest.mark.slow
def test_a_check_leaves_no_process_and_ends_no_command(shop: Shop, tmp_path: Path) -> None:
    """A check's processes end with it, even in another session; a check that kills its parent just fails."""
    shop.claimed("bob", "--check", f"setsid sleep 600 & echo $! >{tmp_path}/pid; kill -9 $PPID; sleep 1")
    done = shop.at("bob", "update-task", "1", "--status", "completed")
    assert done.returncode == 11 and "must not kill the process that runs it" in done.stderr, done
    until(lambda: not Path(f"/proc/{(tmp_path / 'pid').read_text().strip()}").exists())


def test_a_check_whose_command_was_killed_ends_before_the_next_check(shop: Shop, tmp_path: Path) -> None:
    first = f"echo $$ >{tmp_path}/new; mv {tmp_path}/new {tmp_path}/pid; exec sleep 600"
    has_ended = f"! grep -q sleep /proc/$(cat {tmp_path}/pid)/cmdline"
    shop.claimed("bob", "--check", f"if [ -e {tmp_path}/pid ]; then {has_ended}; else {first}; fi")
    with shop.cli.start("update-task", "1", "--status", "completed", agent="bob", cwd=shop.trees["bob"]) as killed:
        until(lambda: (tmp_path / "pid").exists())
        killed.kill()
    shop.complete("bob")


def test_what_is_not_committed_does_not_count(shop: Shop, tmp_path: Path) -> None:
    """In a checkout the check runs on the commit; a directory given by `--check-in` is checked as it is."""
    shop.claimed("bob", "--check", "test -e new")
    (shop.trees["bob"] / "new").write_text("2")
    done = shop.at("bob", "update-task", "1", "--status", "completed")
    assert done.returncode == 11 and "uncommitted changes: new" in done.stderr
    assert shop.task()["status"] == "in_progress"
    shop.cli.ok("create-task", "u", "--check", "test -e new", "--check-in", str(shop.trees["bob"]), agent="lea")
    shop.ok("mia", "claim-task", "2")
    shop.complete("mia", "2")
    assert "commit" not in shop.task("2")["checked"]
    made = shop.at("lea", "create-task", "v", "--check", "test -e new", where=shop.main)
    assert made.stdout == "task-3: pending: v (check on committed work: test -e new)\n"


def test_a_failed_check_says_that_the_work_is_not_merged(shop: Shop) -> None:
    """The check runs in the main checkout, into which the owner forgot to merge its commit."""
    shop.claimed("bob", "--check", "test -e new", "--check-in", str(shop.main))
    shop.write(shop.trees["bob"], "new", "2")
    head = git(shop.trees["bob"], "rev-parse", "HEAD")
    refused = shop.at("bob", "update-task", "1", "--status", "completed")
    assert f"[{shop.main}, where the check ran, lacks your commit {head[:10]}: merge it first]" in refused.stderr
    git(shop.main, "merge", "-q", "bobs")
    shop.complete("bob")


HIDINGS = {
    "skipped": "echo 2 >file; git update-index --skip-worktree file",
    "ignored by the branch": "echo new >.gitignore; git add .; git commit -qm ignored; touch new",
    "ignored by its settings": "echo new >../rules; git config core.excludesFile $PWD/../rules; touch new",
}


@pytest.mark.parametrize("how", HIDINGS)
def test_a_file_that_git_is_told_to_ignore_does_not_count(shop: Shop, how: str) -> None:
    shop.claimed("bob", "--check", "test -e new || grep 2 file")
    identity = {f"GIT_{who}_{what}": "e@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    subprocess.run(HIDINGS[how], shell=True, cwd=shop.trees["bob"], check=True, env={**os.environ, **identity})
    done = shop.at("bob", "update-task", "1", "--status", "completed")
    assert done.returncode == 11 and "on the commit only" in done.stderr, done
    assert shop.task()["status"] == "in_progress"


@pytest.mark.slow
def test_a_kept_result_is_that_of_the_same_claim(shop: Shop) -> None:
    shop.claimed("bob", "--check", "test -e new")
    assert shop.at("bob", *END, "--result", "mine").returncode == 11
    shop.ok("bob", "release-task", "1")
    shop.ok("bob", "claim-task", "1")
    assert "result is kept" not in shop.at("bob", *END).stderr
    assert shop.at("bob", *END, "--result", "old").returncode == 11
    shop.ok("bob", "update-task", "1", "--result", "new")
    shop.write(shop.trees["bob"], "new", "2")
    shop.complete("bob")
    assert shop.task("1")["result"] == "new"


@pytest.mark.slow
def test_an_edit_during_the_check_refuses_the_completion_once(shop: Shop, tmp_path: Path) -> None:
    shop.claimed("bob", "--check", f"touch {tmp_path}/begun; until [ -e {tmp_path}/go ]; do sleep 0.05; done")
    shop.write(shop.trees["bob"], "new", "2")
    completing = ("update-task", "1", "--status", "completed", "--next")
    with shop.cli.start(*completing, agent="bob", cwd=shop.trees["bob"]) as checking:
        until(lambda: (tmp_path / "begun").exists())
        shop.cli.ok("update-task", "1", "--append", "Count from 1.", agent="lea")
        (tmp_path / "go").touch()
        error = checking.communicate()[1].decode()
    assert checking.returncode == 11 and "you have not seen this change: lea edited task-1 (t): added: Count" in error
    assert shop.task()["status"] == "in_progress"
    shop.ok("bob", *completing)
    assert shop.task()["status"] == "completed"


@pytest.mark.slow
def test_what_others_have_not_committed_holds_nobody_up(shop: Shop, tmp_path: Path) -> None:
    """In the main checkout a check runs on the commit alone, in a worktree of its own."""
    shop.trees["bob"] = shop.main
    once = f"[ -e {tmp_path}/begun ] || {{ touch {tmp_path}/begun; until [ -e {tmp_path}/go ]; do sleep 0.05; done; }}"
    shop.claimed("bob", "--check", f"{once}; test -e new -a ! -e half")
    (shop.main / "half").write_text("what mia is at")
    with shop.cli.start("update-task", "1", "--status", "completed", agent="bob", cwd=shop.main) as killed:
        until(lambda: (tmp_path / "begun").exists())
        killed.kill()
    (tmp_path / "go").touch()
    done = shop.at("bob", "update-task", "1", "--status", "completed")
    assert done.returncode == 11 and "left out, because not committed: half" in done.stderr
    for name in ("also", "new"):  # the answer lists first the files that the check names
        (shop.main / name).write_text("what bob is at")
    done = shop.at("bob", "update-task", "1", "--status", "completed")
    assert "left out, because not committed: half, new, also; " in done.stderr
    (shop.main / "new").unlink()
    shop.write(shop.main, "new", "2")
    shop.complete("bob")
    assert (shop.task()["status"], shop.task()["checked"]["commit"]) == ("completed", shop.tip())
    assert len(git(shop.main, "worktree", "list").splitlines()) == 3
    assert os.listdir(shop.cli.root / "worktrees" / ALPHA) == []


def test_a_check_sees_a_submodule_and_runs_nothing_that_it_names(shop: Shop, tmp_path: Path) -> None:
    tree, inside = shop.trees["bob"], shop.trees["bob"] / "sub"
    subprocess.run(["git", "init", "-q", str(inside)], check=True)
    shop.write(inside, "file", "one")
    git(tree, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(inside), "sub")
    git(tree, "commit", "-q", "-m", "with a submodule")
    shop.claimed("bob", "--check", CHECK)
    (inside / "file").write_text("two")
    ran = tmp_path / "ran"
    git(inside, "config", "filter.own.clean", f"touch {ran}; cat")
    git(inside, "config", "core.fsmonitor", f"touch {ran}; false")
    (inside / ".gitattributes").write_text("* filter=own\n")
    refused = shop.at("bob", "update-task", "1", "--status", "completed")
    assert refused.returncode == 11 and "sub/file" in refused.stderr
    assert not ran.exists()


def test_what_is_not_committed_or_not_shared_is_refused_once(shop: Shop) -> None:
    shop.claimed("bob")
    shop.create("two")
    (shop.trees["bob"] / "new").write_text("1")
    done = shop.at("bob", *END, "--next")
    assert (done.returncode, "uncommitted files: new; task-1 is not completed" in done.stderr) == (11, True)
    commit = "git add -A && git commit -m 'task-1'"
    assert f"  {commit}; then teams update-task task-1 --status completed --next\n" in done.stderr
    git(shop.trees["bob"], "add", "-A")
    git(shop.trees["bob"], "commit", "-q", "-m", "task-1")
    refused = shop.at("bob", *END)
    assert (refused.returncode, "are only on bobs" in refused.stderr) == (11, True)
    assert "  teams land task-1; then teams update-task task-1 --status completed\n" in refused.stderr
    assert shop.ok("bob", *END).startswith("task-1: completed by bob")
    shop.ok("bob", "claim-task", "2")
    (shop.trees["bob"] / "left").write_text("1")
    assert shop.at("bob", "update-task", "2", "--status", "completed").returncode == 11
    assert shop.ok("bob", "update-task", "2", "--status", "completed").startswith("task-2: completed by bob")


@pytest.mark.slow
def test_a_leftover_of_another_repository_makes_git_forget_no_worktree(shop: Shop, tmp_path: Path) -> None:
    """A worktree on a disk that is not there for a while keeps its commits."""
    on_disk, other, away = tmp_path / "on-disk", tmp_path / "other", tmp_path / "away"
    git(shop.main, "worktree", "add", "-q", "--detach", str(on_disk))
    shop.write(on_disk, "new", "1")
    head = git(on_disk, "rev-parse", "HEAD")
    on_disk.rename(away)
    git(tmp_path, "clone", "-q", str(shop.main), str(other))
    leftover = shop.cli.root / "worktrees" / ALPHA / ".own-123"
    leftover.parent.mkdir(parents=True)
    git(other, "worktree", "add", "-q", "--detach", str(leftover))
    Path(f"{leftover}.lock").touch()
    (shop.main / "uncommitted").touch()  # so that the check runs in a temporary checkout
    shop.claimed("bob", "--check", CHECK)
    assert shop.at("bob", "update-task", "1", "--status", "completed", where=shop.main).returncode == 0
    away.rename(on_disk)
    assert not leftover.exists() and git(on_disk, "rev-parse", "HEAD") == head
