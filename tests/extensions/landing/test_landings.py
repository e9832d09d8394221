"""Landing on real repositories, through the program."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from teams_cli.tasks.changes import Edit, change_task
from teams_cli.teams import teams
from teams_cli.teams.config import Config
from teams_cli.teams.permission import Caller
from teams_cli.views import board
from tests.support.agents import running
from tests.support.cli import ALPHA, TIMEOUT, complete, in_progress, make_team, program
from tests.support.serving import serving
from tests.support.shop import CHECK, Shop, git, no_lander
from tests.support.waits import until
from tests.support.workflow_runs import make_repository

BOTH = (("1", "bob"), ("2", "mia"))


@pytest.mark.slow
def test_a_claim_says_that_the_worktree_is_behind_the_branch(shop: Shop) -> None:
    """The agent is told to merge before it begins, not after a conflict."""
    shop.create("t")
    shop.set("landing", "completed")
    assert "ahead of your worktree" not in shop.ok("bob", "claim-task", "1")
    shop.ok("bob", "release-task", "1")
    shop.write(shop.main, "new", "1")
    line = "trunk is 1 commit ahead of your worktree (new); before you begin: git merge trunk\n"
    assert line in shop.ok("bob", "claim-task", "1")
    git(shop.trees["bob"], "merge", "-q", "trunk")
    shop.ok("bob", "release-task", "1")
    assert line not in shop.ok("bob", "claim-task", "1")


@pytest.mark.slow
def test_a_number_that_means_a_landing_and_another_task_is_refused(shop: Shop) -> None:
    for key, agent in BOTH:
        shop.begin(agent, key=key, file=agent)
    assert shop.landed("mia", "2")["id"] == shop.cli.ok("wait", "--landing", "2", agent="lea")["landing"]["id"]
    assert shop.landed("bob", "1")["id"] == "landing-2"
    refused = shop.cli("wait", "--landing", "1", agent="bob")
    assert "1 can mean landing-1 (of task-2) or landing-2 (of task-1)" in refused.stderr
    assert shop.over("task-1") == shop.over("landing-2") == "landed"


@pytest.mark.slow
def test_a_branch_that_is_checked_out_twice_is_refused_before_the_check(shop: Shop, tmp_path: Path) -> None:
    second = tmp_path / "second"
    git(shop.main, "worktree", "add", "-q", "-f", str(second), "trunk")
    shop.set("landingCheck", f"touch {tmp_path}/checked")
    shop.begin("bob")
    landing = shop.landed("bob", "1")
    assert landing["state"] == "refused" and f"git -C {second} switch --detach" in landing["reason"]
    assert not (tmp_path / "checked").exists()


@pytest.mark.slow
def test_a_trial_merge_has_what_worktrees_need(shop: Shop) -> None:
    """It gets the copied files and the setup; if that fails, the landing is refused."""
    shop.set("worktree.copy", ".env")
    shop.set("worktree.setup", "cp .env ready")
    shop.write(shop.main, ".gitignore", ".env\nready\n")
    (shop.main / ".env").write_text("key")
    shop.set("landingCheck", "grep key ready")
    shop.begin("bob")
    assert shop.landed("bob", "1")["state"] == "landed"
    shop.set("worktree.setup", "false")
    shop.write(shop.trees["bob"], "newer", "2")
    landing = shop.landed("bob", "1")
    assert landing["state"] == "refused" and "worktree.setup failed" in landing["reason"]


@pytest.mark.slow
def test_landings_without_common_files_are_checked_together_and_apart_when_red(shop: Shop) -> None:
    shop.set("landingTogether", "3")
    log = shop.main.parent / "log"
    shop.set("landingCheck", f"echo x >>{log}; test ! -e red")

    def land_both() -> None:
        with no_lander(shop.cli.store()):
            for key, agent in BOTH:
                shop.ok(agent, "land", key, "--no-wait")

    for key, agent in BOTH:
        shop.begin(agent, key=key, file=agent)
    land_both()
    assert [shop.over(key) for key in ("1", "2")] == ["landed", "landed"] and log.read_text() == "x\n"
    assert shop.cli.ok("get-landings", agent="lea")[-1]["merge"] == shop.tip()
    assert git(shop.main, "status", "--porcelain") == "" and (shop.main / "mia").exists()
    shop.write(shop.trees["bob"], "red", "2")
    shop.write(shop.trees["mia"], "mia", "3")
    land_both()
    assert [shop.over(key) for key in ("3", "4")] == ["red", "landed"]
    assert log.read_text() == "x\n" * 4 and not (shop.main / "red").exists()
    second = shop.main.parent / "second"
    git(shop.main, "worktree", "add", "-q", "-f", str(second), "trunk")
    git(shop.trees["bob"], "rm", "-q", "red")
    shop.write(shop.trees["bob"], "newer", "2")
    shop.write(shop.trees["mia"], "mia", "4")
    land_both()
    assert [shop.over(key) for key in ("5", "6")] == ["refused", "refused"]
    for landing in shop.cli.ok("get-landings", agent="lea")[-2:]:
        assert f"git -C {second} switch --detach" in landing["reason"]
    assert log.read_text() == "x\n" * 4


@pytest.mark.slow
def test_a_leader_sees_how_completed_tasks_were_verified(shop: Shop) -> None:
    """Checked, accepted or neither, and landed with other commits."""
    for key, words in (("1", ["--check", CHECK]), ("2", ["--review-by", "mia"]), ("3", [])):
        shop.begin("bob", *words, key=key, file=f"new{key}")
        shop.at("bob", "update-task", key, "--status", "completed")
        shop.complete("bob", key)  # the first time it is refused, as nobody else has the commit
    refused = shop.at("bob", "land", "2").stderr
    assert "task-2 must be accepted by mia before it lands\n  Wait for the review: teams wait --task task-2" in refused
    shop.ok("mia", "review-task", "2", "--accept")
    lines = shop.cli("brief", agent="lea").stdout.splitlines()
    assert "completed: task-1 (bob, checked), task-3 (bob), task-2 (bob, accepted by mia)" in lines
    git(shop.trees["bob"], "reset", "-q", "--soft", "trunk")
    git(shop.trees["bob"], "commit", "-q", "-m", "squashed")
    assert shop.landed("bob", "1")["state"] == "landed"
    assert shop.task()["checked"]["stale"] is True and "stale check" in shop.cli("get-tasks", agent="lea").stdout
    assert "checked on commits that did not land: task-1" in shop.cli("brief", agent="lea").stdout.splitlines()


def test_a_landing_moves_the_branch_and_the_checkout(shop: Shop) -> None:
    """A landing moves the branch and the main checkout; a completed task without commits does not enter the queue."""
    shop.begin("bob", "--check", CHECK)
    shop.complete("bob")
    landing = shop.landed("bob", "1")
    assert (landing["state"], landing["onto"], landing["merge"]) == ("landed", "trunk", shop.tip())
    assert (shop.main / "new").exists() and git(shop.main, "status", "--porcelain") == ""
    store = shop.cli.store()
    tables = board.rows(store, teams.get(store, ALPHA), Config(), 9, [])
    card, row = tables["tasks"]["task-1"], tables["landings"]["landing-1"]
    assert (card["checked"]["status"], card["landing"], row["state"]) == (0, "landing-1", "landed")
    assert row["merge"] == shop.tip() and "output" not in row["checked"]
    shop.set("landing", "completed")
    shop.create("nothing")
    shop.ok("mia", "claim-task", "2")
    shop.complete("mia", "2")
    assert len(shop.cli.ok("get-landings", agent="lea")) == 1


@pytest.mark.slow
def test_over_http_a_task_lands_from_its_owners_worktree(shop: Shop) -> None:
    """A task that is completed over HTTP is checked and landed from its owner's worktree. With a shared
    database, it lands only if a landing was asked for in that repository on this machine before.
    """
    shop.claimed("bob", "--check", "test -e new")
    with serving(shop.cli) as server:
        refused = server.ask("POST", "/api/update-task?as=bob", {"task": "1", "status": "completed"})
        assert refused.refusal == (409, "check_failed")
        shop.write(shop.trees["bob"], "new", "2")
        done = server.post("/api/update-task?as=bob", {"task": "1", "status": "completed"})
        assert done["checked"]["commit"] == git(shop.trees["bob"], "rev-parse", "HEAD")
        if shop.cli.store().host:
            assert server.ask("POST", "/api/land?as=bob", {"task": "1"}).refusal == (400, "invalid_value")
            shop.ok("bob", "land", "1")
        else:
            assert server.post("/api/land?as=bob", {"task": "1"})["branch"] == "bobs"
        assert shop.over("1") == "landed"
        assert [one["state"] for one in server.get("/api/get-landings")] == ["landed"]


def test_branches_that_conflict_are_told_to_both_unless_they_join_different_ones(shop: Shop) -> None:
    git(shop.main, "branch", "release")
    for key, name in BOTH:
        shop.begin(name, "--check", "true", key=key, file="file", text=name)
    (found,) = shop.cli.ok("overlaps", agent="lea")
    assert found["agents"] == ["bob", "mia"] and found["branches"] == ["bobs", "mias"] and found["files"] == ["file"]
    for key, name in BOTH:
        shop.complete(name, key)
    for name, other in (("bob", "mia"), ("mia", "bob")):
        assert [f"conflicts with {other}'s" in text for text in shop.told(name)].count(True) == 1
    shop.ok("bob", "land", "1", "--onto", "release", "--no-wait")
    assert shop.cli.ok("overlaps", agent="lea") == []
    shop.ok("mia", "land", "2", "--onto", "release", "--no-wait")
    assert shop.over("2") == "conflict"


EDITOR = """class Editor:
    def open(self):
        return 1

    def edit(self):
        return 2


def main():
    return 3
"""


def test_a_completion_that_conflicts_says_with_whose_work_and_how_to_go_on(shop: Shop) -> None:
    """A resolved conflict does not come back."""
    shop.set("landing", "completed")
    shop.write(shop.main, "editor.py", EDITOR)
    for key, name in BOTH:
        git(shop.trees[name], "merge", "-q", "trunk")
        shop.begin(name, key=key, file="editor.py", text=EDITOR.replace("return 2", f"return {name!r}"))
    shop.complete("bob")
    assert shop.over("landing-1") == "landed"
    shop.ok("mia", "heartbeat")
    told = shop.ok("mia", "read-messages")
    assert 'your work conflicts with trunk (bob\'s task-1 "t", which landed) in editor.py Editor.edit' in told
    said = shop.ok("mia", "update-task", "2", "--status", "completed", "--next", "--wait", "100")
    assert said.startswith("task-2: in_progress by mia, not landed: t\n")
    assert 'conflict with bob\'s task-1 "t", landed ' in said and "\n  editor.py Editor.edit (your line 6, " in said
    assert "git merge trunk" in said and "next: teams update-task task-2 --status completed" in said
    assert "no messages" in shop.ok("mia", "read-messages"), "it is told once"
    with pytest.raises(subprocess.CalledProcessError):
        git(shop.trees["mia"], "merge", "-q", "trunk")
    shop.write(shop.trees["mia"], "editor.py", EDITOR.replace("return 2", "return 'both'"))
    shop.write(shop.main, "editor.py", git(shop.main, "show", "trunk:editor.py") + "\n\nprint()\n")
    shop.complete("mia", "2")
    assert shop.over("landing-3") == "landed"
    assert "both" in git(shop.main, "show", "trunk:editor.py"), "what was resolved once is not met again"


@pytest.mark.slow
def test_a_kept_completion_that_conflicts_is_said_once(shop: Shop) -> None:
    """It is not shown as completed, and the notice about the conflict does not repeat it."""
    shop.set("landing", "completed")
    shop.create("first")
    shop.create("second", "--after", "1")
    shop.ok("mia", "claim-task", "1")
    shop.ok("bob", "claim-task", "2")
    shop.write(shop.trees["bob"], "file", "bob's")
    shop.write(shop.main, "file", "theirs")
    ends = ("--status", "completed", "--result", "r")
    assert shop.at("bob", "update-task", "2", *ends, "--next", "--wait", "0.1").returncode == 11
    shop.ok("mia", "update-task", "1", *ends)
    shop.ok("bob", "read-messages")
    said = shop.ok("bob", "wait", "--claim", "--timeout", "60")
    assert said.startswith("task-2: in_progress by bob, not landed: second\n") and "as you asked" not in said
    assert said.count("conflict in:") == 1 and "conflicts with trunk" not in said
    assert "no messages" in shop.ok("bob", "read-messages")


@pytest.mark.slow
def test_a_wait_says_done_only_after_completed_tasks_landed(shop: Shop) -> None:
    """A task is completed before its landing is asked for; until then a wait does not say that all is done."""
    shop.set("landing", "completed")
    shop.claimed("bob")
    change_task(shop.cli.store(), ALPHA, Caller("bob"), "1", Edit(status="completed"))
    assert "settled" not in shop.at("mia", "wait", "--timeout", "0").stdout
    assert "all tasks are settled: you are done" in shop.ok("mia", "wait", "--timeout", "100")


def test_uncommitted_changes_are_compared_function_by_function(shop: Shop) -> None:
    """Uncommitted changes conflict only within a function; who claims a task sees what others are changing."""
    shop.write(shop.main, "editor.py", EDITOR)
    for tree in shop.trees.values():
        git(tree, "merge", "-q", "trunk")
        shop.create("t")
    shop.create("Edit faster", "--touches", "editor.py:Editor")
    shop.create("Another main", "--touches", "editor.py:main")
    shop.ok("bob", "claim-task", "1")
    shop.write(shop.trees["bob"], "editor.py", EDITOR.replace("return 2", "return 4"))
    shop.ok("bob", "heartbeat", "--note", "editing")
    (shop.trees["mia"] / "editor.py").write_text(EDITOR.replace("return 3", "return 5"))
    assert "bob changes editor.py:Editor.edit (task-1)" in shop.ok("mia", "claim-task", "3")
    assert shop.cli.ok("overlaps", agent="lea") == [], "other functions fit together"
    shop.ok("mia", "release-task", "3")
    assert "task-2" in shop.ok("mia", "claim-task", "--next")
    shop.ok("mia", "update-task", "2", "--status", "failed", "--reason", "no")
    assert "task-4" in shop.ok("mia", "claim-task", "--next"), "nobody is at what it touches"
    (shop.trees["mia"] / "editor.py").write_text(EDITOR.replace("return 2", "return 5"))
    (found,) = shop.cli.ok("overlaps", agent="lea")
    assert found["first"] == "bob"
    (place,) = found["places"]
    assert place == {"file": "editor.py", "symbols": ["Editor.edit"], "lines": {"bob": [[6, 6]], "mia": [[6, 6]]}}
    assert "+        return 4" in shop.ok("mia", "diff", "bob", "editor.py")
    assert "+" not in shop.ok("mia", "diff", "bob", "file")
    assert git(shop.trees["mia"], "status", "--porcelain") == "M editor.py"


@pytest.mark.parametrize("is_over", [False, True])
def test_uncommitted_changes_are_compared_with_landed_tasks(shop: Shop, is_over: bool) -> None:
    """An agent is told before it commits, unless its tasks are over."""
    shop.set("landing", "completed")
    shop.write(shop.main, "editor.py", EDITOR)
    for tree in shop.trees.values():
        git(tree, "merge", "-q", "trunk")
    shop.begin("bob", file="editor.py", text=EDITOR.replace("return 2", "return 4"))
    shop.complete("bob")
    assert shop.over("1") == "landed"
    if is_over:
        shop.claimed("mia", key="2")
        shop.ok("mia", "update-task", "2", "--status", "failed", "--reason", "no")
    (shop.trees["mia"] / "editor.py").write_text(EDITOR.replace("return 2", "return 5"))
    shop.ok("mia", "heartbeat")
    warning = 'conflicts with trunk (bob\'s task-1 "t", which landed) in editor.py Editor.edit (your line 6, '
    assert (warning in shop.ok("mia", "read-messages", "--all")) is not is_over
    assert git(shop.trees["mia"], "status", "--porcelain") == "M editor.py"


def test_a_change_at_the_same_time_and_length_is_noticed(shop: Shop) -> None:
    """The time of the index shows that git may have missed it."""
    tree = shop.trees["bob"]
    shop.ok("bob", "heartbeat")
    git(shop.main, "config", "core.trustctime", "false")
    index, noted = shop.main / ".git/worktrees/bob/index", (tree / "file").stat().st_mtime_ns
    (tree / "file").write_text("5")
    for path in (tree / "file", index):
        os.utime(path, ns=(noted, noted))
    assert "+5" in shop.ok("mia", "diff", "bob", "file")


def test_no_filter_of_a_replaced_repository_is_run(shop: Shop) -> None:
    """An agent can point the `.git` of its worktree to a repository with a filter."""
    for key, name in BOTH:
        shop.claimed(name, key=key)
    tree, ran = shop.trees["bob"], shop.main.parent / "ran"
    git(tree, "clone", "-q", str(shop.main), str(tree / "inside"))
    git(tree / "inside", "config", "filter.x.clean", f"touch {ran}; cat")
    (tree / ".gitattributes").write_text("* filter=x\n")
    (tree / "file").write_text("other")
    (tree / ".git").write_text(f"gitdir: {tree}/inside/.git\n")
    assert "not compared: bob" in shop.cli("overlaps", agent="lea").stdout
    assert shop.at("mia", "diff", "bob").returncode == 10
    shop.ok("mia", "heartbeat")
    assert not ran.exists()


def test_a_refused_landing_says_why(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    shop.begin("bob")
    (shop.trees["bob"] / "file").write_text("draft")
    refused = shop.at("bob", "land", "1")
    assert refused.returncode == 11 and "file" in refused.stderr
    git(shop.trees["bob"], "checkout", "-q", "file")
    (shop.main / "file").write_text("mine")
    before = shop.tip()
    landing = shop.landed("bob", "1")
    assert landing["state"] == "refused" and "file" in landing["reason"]
    assert shop.tip() == before and (shop.main / "file").read_text() == "mine"
    assert ["landing-1 of task-1 (t) was refused" in one for one in shop.told("lea")].count(True) == 1
    git(shop.main, "checkout", "-q", "file")
    deadly = program(shop.main.parent / "bin/git", "kill -9 $$\n")
    with monkeypatch.context() as context:
        context.setenv("PATH", f"{deadly.parent}:{os.environ['PATH']}")
        refused = shop.at("bob", "land", "1")
    assert refused.returncode == 12 and "ended by signal 9" in refused.stderr
    refused = shop.at("bob", "land", "1", "--onto", "trunk~0")
    assert refused.returncode == 2 and "no branch 'trunk~0'" in refused.stderr, refused
    lock = shop.main / ".git/refs/heads/trunk.lock"
    lock.touch()
    landing = shop.landed("bob", "1")
    assert landing["state"] == "refused" and "trunk.lock" in landing["reason"], landing
    lock.unlink()
    assert shop.landed("bob", "1")["state"] == "landed" and (shop.main / "new").exists()


@pytest.mark.slow
def test_a_landing_whose_check_fails_on_the_merged_result(shop: Shop) -> None:
    """If the check fails on the merged result, the branch stays as it was, and the owner gets the task back."""
    shop.begin("bob", "--check", "! grep 2 file || ! test -e new")
    shop.complete("bob")
    shop.write(shop.main, "file", "2")
    before = shop.tip()
    landing = shop.landed("bob", "1")
    assert (landing["state"], landing["checked"]["status"]) == ("red", 1)
    assert shop.tip() == before and git(shop.main, "status", "--porcelain") == ""
    assert git(shop.main, "worktree", "list").count("\n") == 2
    assert (shop.task()["status"], shop.task()["owner"]) == ("in_progress", "bob")
    assert "is red on trunk" in shop.ok("bob", "wait", "--timeout", "100")
    assert "completed by bob" not in shop.cli("wait", "--timeout", "0", agent="lea").stdout  # it no longer is
    git(shop.trees["bob"], "rm", "-q", "new")
    shop.write(shop.trees["bob"], "other", "2")
    shop.complete("bob")
    assert shop.cli("wait", "--timeout", "0", agent="lea").stdout.count("completed by bob") == 1


def test_a_conflicting_landing_is_overtaken_at_most_three_times(shop: Shop) -> None:
    with no_lander(shop.cli.store()):
        for key in range(1, 8):
            agent = "bob" if key in (1, 2) else "mia"
            git(shop.trees[agent], "reset", "-q", "--hard", "trunk")
            shop.begin(agent, key=str(key), file="file" if key <= 2 else f"new{key}", text=str(key) * 2)
            shop.ok(agent, "land", str(key), "--no-wait")
    assert [shop.over(str(key)) for key in range(1, 8)] == ["landed", "conflict", *["landed"] * 5]
    subjects = git(shop.main, "log", "--first-parent", "--reverse", "--format=%s", "trunk").splitlines()[1:]
    assert subjects == [f"Land task-{key}: t" for key in (3, 4, 5, 1, 6, 7)]


def test_a_red_branch_is_repaired_by_one_task(shop: Shop) -> None:
    shop.set("landingCheck", CHECK)
    shop.write(shop.main, "broken", "")
    shop.create("t")
    shop.create("u")
    for key, agent in BOTH:
        shop.ok(agent, "claim-task", key)
        shop.write(shop.trees[agent], agent, "2")
        landing = shop.landed(agent, key)
        assert landing["state"] == "red" and "trunk itself is red, and task-3 is" in landing["reason"], landing
    assert len(shop.cli.ok("get-tasks", agent="lea")) == 3


def test_a_closed_team_leaves_nothing_in_the_queue(shop: Shop) -> None:
    shop.begin("bob", "--check", "sleep 60")
    shop.ok("bob", "land", "1", "--no-wait")
    assert shop.cli("close-team", agent="lea").status == 11
    shop.cli.ok("close-team", "--force", agent="lea")
    assert [one["state"] for one in shop.cli.ok("get-landings", agent="lea")] == ["refused"]
    assert git(shop.main, "log", "--oneline").count("\n") == 0


@pytest.mark.parametrize(("check", "outcome"), [("true", "landed"), ("false", "red")])
def test_what_is_in_the_queue_waits_while_its_team_is_down(shop: Shop, check: str, outcome: str) -> None:
    """The next `teams up` starts the queue again, and the task returns to its owner if its landing failed."""
    place = shop.main.parent
    roster = place / "teams.yaml"
    roster.write_text(f"name: {ALPHA}\n")
    shop.set("landing", "completed")
    begun, gate = place / "begun", place / "gate"
    shop.set("landingCheck", f"touch {begun}; until test -e {gate}; do sleep 0.05; done; {check}")
    shop.begin("bob")
    shop.complete("bob")
    until(begun.exists)
    shop.cli.ok("down", "--file", str(roster), agent="lea")
    gate.touch()
    until(lambda: not running(shop.cli.root, "extensions.landing.lander"))
    assert [one["state"] for one in shop.cli.ok("get-landings", agent="lea")] == ["checking"]
    begun.unlink()
    shop.cli.ok("up", "--file", str(roster), agent="lea")
    until(begun.exists)
    assert shop.over("1") == outcome and (shop.main / "new").exists() == (outcome == "landed")
    assert (shop.task()["status"] == "completed") == (outcome == "landed")


NOTHING_READ = """
import errno, os, sys
done = []

def break_off(event, arguments):
    if event == "os.rename" and "/tasks/alpha/task-" in str(arguments[1]):
        done.append(1)
    reads = event == "open" and str(arguments[0]).endswith(".json") and not arguments[2] & (os.O_WRONLY | os.O_RDWR)
    if done and reads:
        raise OSError(errno.EIO, os.strerror(errno.EIO), arguments[0])

sys.addaudithook(break_off)
from teams_cli.cli.main import run
sys.exit(run(sys.argv[1:]))
"""


@pytest.mark.parametrize("words", ["update-task 1 --status completed --result done", "review-task 1 --accept"])
def test_a_change_is_answered_though_nothing_can_be_read_after_it(tmp_path: Path, words: str) -> None:
    """A completion or an acceptance succeeds even if the settings and the next step can't be read after it."""
    cli = make_team(tmp_path / "root", "bob", "mia")
    cli.ok("set", "landing", "completed", agent="lea")
    if "review" in words:
        cli.ok("create-task", "t", "--review-by", "mia", agent="lea")
        complete(cli, "bob", "1")
    else:
        in_progress(cli, "bob", "t")
    agent = "mia" if "review" in words else "bob"
    command = [sys.executable, "-c", NOTHING_READ, *words.split(), "--json"]
    done = subprocess.run(command, env=cli.environ(agent), capture_output=True, timeout=TIMEOUT)
    assert done.returncode == 0 and json.loads(done.stdout)["status"] == "completed", done
    assert b"input/output" in done.stderr.lower(), done


def test_a_tag_with_the_name_of_the_branch_hinders_no_landing(shop: Shop) -> None:
    git(shop.main, "tag", "trunk")
    shop.set("landing", "completed")
    shop.begin("bob")
    shop.complete("bob")
    (landing,) = shop.cli.ok("get-landings", agent="lea")
    assert landing["onto"] == "trunk" and shop.over("1") == "landed" and (shop.main / "new").exists()


@pytest.mark.slow
def test_a_file_that_replaces_a_submodule_deletes_nothing_in_it(shop: Shop) -> None:
    library = make_repository(shop.main.parent / "library", {"l": "l"})
    git(shop.main, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(library), "lib")
    git(shop.main, "commit", "-qm", "with a submodule")
    (shop.main / "lib/mine").write_text("mine")
    git(shop.trees["bob"], "merge", "-q", "trunk")
    git(shop.trees["bob"], "rm", "-q", "lib")
    shop.begin("bob", file="lib")
    before = shop.tip()
    landing = shop.landed("bob", "1")
    assert landing["state"] == "refused" and (shop.main / "lib/mine").exists() and shop.tip() == before
    command = landing["reason"].partition("there: ")[2]
    assert subprocess.run(["sh", "-c", command], capture_output=True).returncode != 0  # git protects the new file
    (shop.main / "lib/mine").unlink()
    subprocess.run(["sh", "-c", command], check=True, capture_output=True)
    assert shop.landed("bob", "1")["state"] == "landed" and (shop.main / "lib").read_text() == "1"


@pytest.mark.slow
@pytest.mark.parametrize("together", ["1", "2"])
@pytest.mark.parametrize("before", ["trunk", "feature"])
def test_a_branch_that_is_switched_during_the_check_keeps_its_own_files(shop: Shop, before: str, together: str) -> None:
    """The checkout follows only the branch that it has now."""
    after = {"trunk": "feature", "feature": "trunk"}[before]
    git(shop.main, "branch", "feature")
    git(shop.main, "switch", "-q", before)
    shop.set("landingTogether", together)
    shop.set("landingCheck", f"git -C {shop.main} switch -q {after}")
    with no_lander(shop.cli.store()):
        for key, agent in BOTH:
            shop.begin(agent, key=key, file=agent)
            shop.ok(agent, "land", key, "--onto", "trunk", "--no-wait")
    assert [shop.over(key) for key in ("1", "2")] == ["landed", "landed"]
    assert git(shop.main, "status", "--porcelain") == "" and git(shop.main, "branch", "--show-current") == after
    assert (shop.main / "bob").exists() is (shop.main / "mia").exists() is (after == "trunk")


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["submodule", "separate"])
def test_a_checkout_whose_data_is_elsewhere_keeps_its_ignored_files(tmp_path: Path, kind: str) -> None:
    """git lists the directory with the data as the main checkout."""
    shop = Shop(tmp_path)
    if kind == "submodule":
        around = make_repository(tmp_path / "around", {"a": "a"})
        source, main = str(shop.main), around / "lib"
        git(around, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", "-b", "trunk", source, "lib")
        git(main, "switch", "-q", "trunk")
    else:
        main = tmp_path / "separate"
        git(tmp_path, "clone", "-q", "--separate-git-dir", str(tmp_path / "data"), str(shop.main), str(main))
    shop.trees["bob"] = tmp_path / "own"
    git(main, "worktree", "add", "-q", "-b", "own", str(shop.trees["bob"]))
    exclude = Path(git(main, "rev-parse", "--path-format=absolute", "--git-path", "info/exclude"))
    exclude.write_text("secret\n")
    (main / "secret").write_text("mine")
    shop.begin("bob")
    landing = shop.landed("bob", "1")
    if kind == "separate":
        assert landing["state"] == "refused"
        command = landing["reason"].partition("Say it: ")[2].replace("DIRECTORY", str(main))
        subprocess.run(["sh", "-c", command], check=True)
        landing = shop.landed("bob", "1")
    assert landing["state"] == "landed" and (main / "new").exists() and git(main, "status", "--porcelain") == ""
    (shop.trees["bob"] / "secret").write_text("bob")
    git(shop.trees["bob"], "add", "-f", "secret")
    git(shop.trees["bob"], "commit", "-q", "-m", "secret")
    landing = shop.landed("bob", "1")
    assert landing["state"] == "refused" and str(main) in landing["reason"] and "secret" in landing["reason"]
    assert (main / "secret").read_text() == "mine"


@pytest.mark.slow
@pytest.mark.parametrize("seconds", ["0.2", "5"])
def test_a_checkout_that_is_locked_when_its_branch_moves_is_updated_or_named(shop: Shop, seconds: str) -> None:
    """Editors lock the index for a moment, whenever they show the changed files."""
    hook, lock = shop.main / ".git/hooks/reference-transaction", shop.main / ".git/index.lock"
    hook.parent.mkdir(exist_ok=True)
    condition = 'test "$1" = committed && grep -q refs/heads/trunk || exit 0'
    unlock = f"(sleep {seconds}; rm {lock}) >/dev/null 2>&1 &"
    hook.write_text(f"#!/bin/sh\n{condition}\ntouch {lock}\n{unlock}\n")
    shop.begin("bob")
    hook.chmod(0o755)
    landing = shop.landed("bob", "1")
    assert landing["state"] == "landed"
    is_updated = (shop.main / "new").exists()
    assert is_updated is (seconds == "0.2") is ("reason" not in landing)
    warned = [f"{shop.main} was not updated" in text for text in shop.told("bob")]
    assert any(warned) is not is_updated


@pytest.mark.slow
@pytest.mark.parametrize("words", [(), ("--check", "true")])
def test_half_of_a_rebased_branch_is_neither_completed_nor_landed(shop: Shop, words: tuple[str, ...]) -> None:
    """No file is uncommitted while the rebase waits."""
    tree = shop.trees["bob"]
    shop.begin("bob", *words, file="one")
    shop.write(tree, "two", "2")
    git(tree, "-c", "sequence.editor=sed -i '1a break'", "rebase", "-q", "-i", "trunk")
    assert git(tree, "status", "--porcelain") == "" and not (tree / "two").exists()
    for command in (("update-task", "1", "--status", "completed"), ("land", "1")):
        for _ in range(2):
            refused = shop.at("bob", *command)
            assert refused.returncode == 11 and "a rebase is unfinished there" in refused.stderr
    assert shop.task()["status"] == "in_progress" and not shop.cli.ok("get-landings", agent="lea")
    git(tree, "rebase", "--continue")
    assert shop.landed("bob", "1")["state"] == "landed" and (shop.main / "two").exists()
    shop.complete("bob")


@pytest.mark.slow
def test_a_checkout_that_is_locked_for_a_moment_does_not_refuse_a_landing(shop: Shop) -> None:
    lock = shop.main / ".git/index.lock"
    shop.set("landingCheck", f"touch {lock}")  # after the check, the checkout is looked at again
    shop.begin("bob")
    shop.ok("bob", "land", "1", "--no-wait")
    until(lock.exists)
    time.sleep(0.1)
    lock.unlink()
    assert shop.over("1") == "landed" and (shop.main / "new").exists()
