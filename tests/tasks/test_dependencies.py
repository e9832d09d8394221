"""Dependencies: tasks wait for blockers or are completed after others, also with damaged or old files."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from teams_cli.errors import TeamsError
from teams_cli.store.files.engine import FileStore
from teams_cli.tasks import dependencies, overviews, tasks
from teams_cli.tasks.tasks import TASK, Task
from teams_cli.views import board
from tests.support.cli import ALPHA, TIMEOUT, Cli, add_tasks, complete, make_team
from tests.support.waits import begin, ended, until_asleep


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    """A team with three tasks; only task-2 is blocked, by task-1."""
    made = make_team(tmp_path / "root", "bob")
    made.ok("create-task", "first", agent="lea")
    made.ok("create-task", "second", "--blocked-by", "1", "--priority", "high", agent="lea")
    made.ok("create-task", "third", agent="lea")
    return made


def test_an_unreadable_blocker_blocks_its_task_and_no_other(cli: Cli) -> None:
    """A task whose blocker is damaged is shown as blocked by every command; other tasks are claimed."""
    (cli.root / "tasks/alpha/task-1.json").write_text("{")
    assert cli("claim-task", "--next", "--json", agent="bob").json["id"] == "task-3"
    refused = cli("claim-task", "2", "--json", agent="bob")
    assert refused.status == 11
    assert "task-1 (unreadable)" in refused.error["message"]
    listed = cli("get-tasks", "--json", agent="bob")
    assert {row["id"]: row["openBlockers"] for row in listed.json}["task-2"] == ["task-1"] and "task-1" in listed.stderr
    assert [row["id"] for row in cli("get-tasks", "--ready", "--json", agent="bob").json] == []
    assert cli("brief", "--json", agent="bob").json["next"] != "teams claim-task --next"


def test_a_new_blocker_is_stored_although_an_earlier_one_is_damaged(cli: Cli) -> None:
    """Only a new dependency can make a circle. Before, the change was refused after a part of it was stored."""
    (cli.root / "tasks/alpha/task-1.json").write_text("{")
    changed = cli("update-task", "2", "--blocked-by", "3", "--title", "later", "--json", agent="lea").json
    assert (changed["title"], changed["blockedBy"]) == ("later", ["task-1", "task-3"])


def test_a_task_starts_any_time_and_is_completed_after_others(tmp_path: Path) -> None:
    """An owner is told when its task can be completed; tasks in a circle are refused."""
    cli = make_team(tmp_path / "root", "bob", "ann")
    add_tasks(cli, "one")
    made = cli.ok(
        "create-task", "--from", "-", agent="lea", stdin=b"[{id: b, title: two}, {title: three, after: [b, 1]}]"
    )
    assert [task.get("after") for task in made] == [None, ["task-2", "task-1"]]
    cli.ok("update-task", "1", "--after", "2", agent="lea")
    for words in (("2", "--after", "3"), ("2", "--blocked-by", "1"), ("1", "--after", "1")):
        assert cli.refused("update-task", *words, agent="lea") == (11, "dependency_cycle"), words
    shown = cli("claim-task", "3", agent="bob").stdout
    assert "completes after: task-2 (pending), task-1 (pending); " in shown
    assert (
        "if your work needs theirs on main: teams wait --task task-2 --timeout 540; if not, complete it with" in shown
    )
    cli.ok("claim-task", "2", agent="ann")
    assert (
        "completes after: task-2 (in_progress by ann), task-1 (pending); " in cli("show-task", "3", agent="bob").stdout
    )
    ends = ("--status", "completed", "--result", "r")
    refused = cli("update-task", "3", *ends, agent="bob")
    assert refused.status == 11
    assert "task-3 is to be completed after task-2 (in_progress), task-1 (pending)" in refused.stderr
    one_thing = cli.start("wait", "--task", "2", "--timeout", "60", agent="bob")
    cli.ok("update-task", "3", "--append", "Count from 1.", agent="lea")
    cli.ok("update-task", "2", *ends, agent="ann")
    answer, reminder = one_thing.communicate()
    assert answer.startswith(b"task-2: completed by ann") and b"lea edited task-3 (three): added: Count" in reminder
    assert cli.ok("show-task", "3")["openAfter"] == ["task-1"]
    assert "can be completed" not in str(cli.ok("read-messages", agent="bob"))
    cli.ok("claim-task", "1", agent="ann")
    waiting = begin(cli, "bob", "wait", "--claim", "--timeout", "60")  # bob can't complete its task yet
    cli.ok("update-task", "1", *ends, agent="ann")
    news = ended(waiting)
    said = [each["message"] for each in news["messages"]] + [each["text"] for each in news["happened"]]
    assert said[0] == "task-3 (three) can be completed now: task-1 (one) is completed" or "is yours" in said[0]
    assert news["next"].startswith("teams update-task task-3 --status completed")
    assert cli.ok("update-task", "3", *ends, agent="bob")["status"] == "completed"


def test_a_completion_that_may_wait_waits_for_the_tasks_before_it(tmp_path: Path) -> None:
    """The wait ends early if one of the earlier tasks fails, or if its owner is asked for something. The message is
    shown, and the result is kept for the repeated command. Mere information does not end the wait.
    """
    cli = make_team(tmp_path / "root", "bob", "mia")
    for title in ("one", "two"):
        cli.ok("create-task", title, "--for", "mia", agent="lea")
    cli.ok("create-task", "three", "--after", "1,2", agent="lea")
    cli.ok("claim-task", "3", agent="bob")
    ends = ("--status", "completed", "--result", "r")
    patient = ("update-task", "3", *ends, "--next", "--wait", "60")
    cli.ok("update-task", "3", "--priority", "high", agent="lea")
    assert "lea edited task-3 (three): priority: high" in cli("whoami", agent="bob").stderr
    waiting = begin(cli, "bob", *patient)
    until_asleep(waiting)
    cli.ok("send-message", "bob", "just so you know", "--fyi", agent="lea")
    cli.ok("send-message", "bob", "how far?", agent="lea")
    refused = ended(waiting, 11)["error"]
    assert refused["message"] == "task-3 is not completed yet: msg-5 came while it waited for other tasks"
    assert refused["hint"].startswith("Read what came: teams read-messages. Then repeat: teams update-task task-3 ")
    cli.ok("read-messages", agent="bob")
    waiting = cli.start(*patient, agent="bob")
    until_asleep(waiting)
    cli.ok("send-message", "bob", "and now?", agent="lea")
    said, problem = (stream.decode() for stream in waiting.communicate(timeout=TIMEOUT))
    assert waiting.returncode == 11 and "| and now?\nnext: teams reply msg-6 TEXT\n" in said
    assert "Then repeat: teams update-task task-3 --status completed --next --wait 60 (its result is kept)" in problem
    assert cli.ok("show-task", "3")["result"] == "r"
    short = ("update-task", "3", "--status", "completed", "--next", "--wait")
    refused = cli(*short, "0.2", agent="bob")
    assert refused.status == 11
    assert "it still waits for task-1 (pending), task-2 (pending) after 0.2 s" in refused.stderr
    assert "To wait longer: teams update-task task-3 --status completed --next --wait 0.2 " in refused.stderr
    refused = cli(*short, "0.2", "--evidence", "proof.txt", agent="bob")
    assert "To wait longer: the same command, with all its options" in refused.stderr
    cli.ok("update-task", "3", "--check", "test -f it", agent="human")
    cli.ok("read-messages", agent="bob")
    waiting = cli.start(*short, "60", agent="bob")
    until_asleep(waiting)
    for number in "12":
        cli.ok("claim-task", number, agent="mia")
        assert cli.ok("show-task", "3")["status"] == "in_progress"
        cli.ok("update-task", number, *ends, agent="mia")
    problem = waiting.communicate(timeout=TIMEOUT)[1].decode()
    assert "\n  It waited for task-1 (completed), task-2 (completed). Fix it, commit, and complete it again" in problem
    cli.ok("update-task", "3", "--check", "true", agent="human")
    cli.ok("read-messages", agent="bob")
    assert cli.ok("update-task", "3", "--status", "completed", agent="bob")["result"] == "r"
    cli.ok("create-task", "four", "--for", "mia", agent="lea")
    cli.ok("create-task", "five", "--after", "4", agent="lea")
    cli.ok("claim-task", "5", agent="bob")
    waiting = begin(cli, "bob", "update-task", "5", *ends, "--next", "--wait", "60")
    cli.ok("claim-task", "4", agent="mia")
    cli.ok("update-task", "4", "--status", "failed", "--reason", "no", agent="mia")
    assert "after task-4 (failed)" in ended(waiting, 11)["error"]["message"]


@pytest.mark.usefixtures("each_engine")
def test_an_owner_whose_completion_waits_gets_other_work_meanwhile(tmp_path: Path) -> None:
    """A task whose result is stored, and which only waits for others, does not keep its owner from other tasks."""
    cli = make_team(tmp_path / "root", "bob", "mia")
    cli.ok("create-task", "one", agent="lea")
    cli.ok("create-task", "two", "--after", "1", agent="lea")
    cli.ok("claim-task", "1", agent="mia")
    cli.ok("claim-task", "2", agent="bob")
    ends = ("--status", "completed", "--result", "r", "--next", "--wait", "60")
    waiting = cli.start("update-task", "2", *ends, agent="bob")
    until_asleep(waiting)
    cli.ok("create-task", "three", "--description", "count the birds", agent="lea")
    shown, problem = (stream.decode() for stream in waiting.communicate(timeout=TIMEOUT))
    assert waiting.returncode == 11, problem
    assert "task-3" in shown and "count the birds" in shown
    assert "task-2 is not completed yet: it waits for task-1. Its result is kept, and your --next after that" in problem
    assert "Meanwhile task-3 is yours: teams update-task task-3 --status completed --result RESULT --next" in problem
    assert [row["status"] for row in cli.ok("get-tasks", "--owner", "bob")] == ["in_progress", "in_progress"]
    assert cli.ok("brief", agent="bob")["next"].startswith("teams update-task task-3 --status completed --result")
    waiting = begin(cli, "bob", "update-task", "3", *ends)  # task-2 does not keep bob from waiting for work
    until_asleep(waiting)
    assert cli.ok("brief", agent="bob")["next"] == "teams wait --claim --timeout 540"
    cli.ok("create-task", "four", agent="lea")
    ended_news = ended(waiting)
    assert (ended_news["status"], ended_news["claimed"]["id"]) == ("completed", "task-4")
    cli.ok("release-task", "4", agent="bob")
    cli.ok("claim-task", "4", agent="mia")
    waiting = begin(cli, "bob", "wait", "--claim", "--timeout", "60")
    until_asleep(waiting)
    cli.ok("update-task", "1", "--status", "completed", "--result", "r", agent="mia")
    completed = cli.ok("wait", "--task", "2", "--timeout", "60", agent="lea")["task"]  # bob's wait completes it
    assert (completed["status"], completed["result"]) == ("completed", "r")
    cli.ok("create-task", "five", "--after", "4", "--for", "bob", agent="lea")
    ended_news = ended(waiting)
    assert ended_news["claimed"]["id"] == "task-5" and ended_news["messages"] == []
    assert [task["id"] for task in ended_news["completedToo"]] == ["task-2"]
    cli.ok("create-task", "six", agent="lea")
    refused = cli("update-task", "5", *ends, "--json", agent="bob")  # its answer is one document
    assert refused.status == 11 and "(its text: teams show-task task-6)" in refused.error["hint"]
    cli.ok("update-task", "6", "--status", "completed", agent="bob")
    assert cli.ok("brief", agent="bob")["next"] == "teams wait --claim --timeout 540"
    cli.ok("update-task", "4", "--status", "failed", "--reason", "no", agent="mia")
    assert cli.ok("brief", agent="bob")["next"] == "teams update-task task-5 --unblock task-4"
    assert "--unblock task-4" in cli("update-task", "5", "--status", "completed", agent="bob").stderr
    cli.ok("create-task", "seven", agent="lea")
    told = cli("wait", "--claim", "--timeout", "60", agent="bob")
    assert "task-5 is yours, and waits in vain for task-4 (failed)" in told.stdout and "task-7" not in told.stdout
    assert "To wait no longer for task-4: teams update-task task-5 --unblock task-4\n" in told.stderr
    assert cli("wait", "--claim", "--timeout", "0.2", agent="bob").status == 14


@pytest.mark.usefixtures("each_engine")
def test_a_kept_completion_that_fails_is_left_to_its_owner(tmp_path: Path) -> None:
    """It is tried once, with the owner's next command, which shows why it failed."""
    cli = make_team(tmp_path / "root", "bob", "mia")
    cli.ok("create-task", "one", agent="lea")
    for _ in "23":
        cli.ok("create-task", "late", "--after", "1", "--check", "test -f it", "--check-in", str(tmp_path), agent="lea")
    cli.ok("claim-task", "1", agent="mia")
    ends = ("--status", "completed", "--result", "r", "--next")
    for number in "23":
        cli.ok("claim-task", number, agent="bob")
        assert cli("update-task", number, *ends, "--wait", "0.1", agent="bob").status == 11
    cli.ok("update-task", "1", *ends, agent="mia")
    cli.ok("create-task", "four", "--for", "bob", agent="lea")
    cli.ok("claim-task", "4", agent="bob")
    cli.ok("send-message", "bob", "I moved it", agent="mia")
    refused = cli("update-task", "2", "--status", "completed", agent="bob").stderr
    assert "exit status 1\n" in refused and "\nmsg-5 from mia: I moved it\n" in refused
    failed = cli("update-task", "4", *ends, agent="bob")
    assert failed.status == 0 and "task-2 is not done: `test -f it`: exit status 1" in failed.stderr
    assert failed.stdout.startswith("task-4: completed by bob") and "task-2: in_progress by bob" in failed.stdout
    assert cli.ok("show-task", "2")["notes"][-1]["what"] == "completion-refused"
    (tmp_path / "it").write_text("")
    done = cli("update-task", "2", "--status", "completed", "--next", agent="bob").stdout
    assert done.startswith("task-2: completed by bob, its check passed") and "task-3: in_progress by bob" in done
    cli.ok("create-task", "five", agent="lea")
    cli.ok("claim-task", "5", agent="mia")
    cli.ok("update-task", "3", "--after", "5", agent="lea")
    cli.ok("read-messages", agent="bob")
    assert cli("update-task", "3", *ends, "--wait", "0.1", agent="bob").status == 11
    cli.ok("create-task", "six", "--for", "bob", agent="lea")
    cli.ok("claim-task", "6", agent="bob")
    cli.ok("update-task", "5", *ends, agent="mia")
    cli.ok("create-task", "task-6", "--for", "bob", "--blocked-by", "6", agent="lea")  # a title like an id
    done = cli("update-task", "6", *ends, "--wait", "60", agent="bob").stdout
    assert done.count("task-3: completed by bob, as you asked; its check passed: late\n") == 1


def late(tmp_path: Path) -> Cli:
    """A team in which bob asked to complete task-3 after task-2. Now that is completed, and bob has read about it, and
    waits for an answer to a question. mia has task-1.
    """
    cli = make_team(tmp_path / "root", "bob", "mia")
    add_tasks(cli, "one", "two")
    cli.ok("create-task", "three", "--after", "2", agent="lea")
    for number, name in (("1", "mia"), ("2", "mia"), ("3", "bob")):
        cli.ok("claim-task", number, agent=name)
    ends = ("--status", "completed", "--result", "r")
    assert cli("update-task", "3", *ends, "--next", "--wait", "0.1", agent="bob").status == 11
    cli.ok("send-message", "mia", "is it right?", agent="bob")
    cli("update-task", "2", *ends, agent="mia")
    cli.ok("read-messages", agent="bob")
    return cli


@pytest.mark.usefixtures("each_engine")
def test_the_refusal_of_a_kept_completion_ends_the_wait_and_says_what_to_do(tmp_path: Path) -> None:
    """The owner has other reasons to wait, so nothing else would end its wait soon."""
    cli = late(tmp_path)
    cli.ok("update-task", "3", "--description", "Do it differently.", agent="lea")
    refused = cli("wait", "--claim", "--timeout", "60", agent="bob")
    assert (
        refused.status == 0
        and refused.stdout == "next: teams update-task task-3 --status completed --next --wait 540\n"
    )
    assert "you have not seen this change: lea edited task-3 (three): description: Do it differently." in refused.stderr
    assert "If your work lacks it, add it first; then: teams update-task task-3 --status completed\n" in refused.stderr
    assert cli("update-task", "3", "--status", "completed", agent="bob").status == 0


def test_json_has_a_kept_completion_although_the_wait_runs_out(tmp_path: Path) -> None:
    cli = late(tmp_path)
    answer = cli("wait", "--claim", "--timeout", "0.2", "--json", agent="bob")
    assert [task["status"] for task in answer.json["completedToo"]] == ["completed"]
    assert "as you asked" not in answer.stderr and "nothing else happened within 0.2 s" in answer.stderr
    assert cli("wait", "--claim", "--timeout", "0.2", agent="bob").status == 14


def test_a_wait_that_is_ended_says_what_it_completed(tmp_path: Path) -> None:
    waiting = late(tmp_path).start("wait", "--claim", "--timeout", "60", agent="bob")
    until_asleep(waiting)
    waiting.terminate()
    assert "task-3: completed by bob, as you asked: three\n" in waiting.communicate(timeout=TIMEOUT)[1].decode()


def test_no_completion_waits_for_the_one_who_waits(tmp_path: Path) -> None:
    """The owner has other tasks that must be completed first; one of them was left to its later commands."""
    cli = make_team(tmp_path / "root", "bob", "mia")
    add_tasks(cli, "one")
    add_tasks(cli, "two", after=["task-1"])
    add_tasks(cli, "three", after=["task-2"])
    cli.ok("claim-task", "1", agent="mia")
    cli.ok("claim-task", "2", agent="bob")
    shown = cli("claim-task", "3", agent="bob").stdout
    assert "completes after: task-2 (in_progress by bob); complete your own first: task-2\n" in shown
    answer = cli("update-task", "3", "--status", "completed", "--next", "--wait", "60", agent="bob")
    assert answer.stderr.startswith(
        "teams: task-3 is not completed yet: it waits for task-2. Its result is kept, and your --next after that "
        "completes it\n  task-2 is yours, so do it first: teams claim-task task-2. "
    )
    assert cli("update-task", "2", "--status", "completed", "--next", "--wait", "0.1", agent="bob").status == 11
    waiting = begin(cli, "bob", "update-task", "3", "--status", "completed", "--next", "--wait", "60")
    until_asleep(waiting)
    cli.ok("update-task", "1", "--status", "completed", agent="mia")
    assert ended(waiting)["status"] == "completed"
    assert cli.ok("show-task", "2", agent="bob")["status"] == "completed"


def test_a_completion_that_may_wait_lets_nobody_wait(tmp_path: Path) -> None:
    cli = make_team(tmp_path / "root", "bob", "mia")
    add_tasks(cli, "one")
    add_tasks(cli, "two", after=["task-1"])
    cli.ok("update-task", "1", "--review-by", "bob", agent="lea")
    cli.ok("claim-task", "1", agent="mia")
    cli.ok("claim-task", "2", agent="bob")
    cli.ok("update-task", "1", "--status", "completed", agent="mia")
    cli.ok("read-messages", agent="bob")
    answer = cli("update-task", "2", "--status", "completed", "--next", "--wait", "60", agent="bob")
    assert (answer.status, answer.stderr) == (
        11,
        "teams: task-2 is not completed yet: it waits for task-1. Its result is kept, and your --next after that "
        "completes it\n  Somebody waits for you: teams review-task task-1 --accept --next --wait 540, or teams "
        "review-task task-1 --reject WHY --next --wait 540\n",
    )
    answer = cli("review-task", "1", "--accept", "--next", "--wait", "60", agent="bob")
    assert "task-2: completed by bob, as you asked: two\n" in answer.stdout


def test_a_completion_also_waits_for_a_blocker_that_was_added_meanwhile(tmp_path: Path) -> None:
    """It does not wait for a task that is assigned to its owner, since nobody else would do that task."""
    cli = make_team(tmp_path / "root", "bob", "mia")
    cli.ok("create-task", "one", "--for", "mia", agent="lea")
    cli.ok("create-task", "two", agent="lea")
    cli.ok("claim-task", "2", agent="bob")
    cli.ok("update-task", "2", "--blocked-by", "1", agent="lea")
    assert "waits for: task-1" in cli("whoami", agent="bob").stderr
    ends = ("--status", "completed", "--result", "r")
    refused = cli("update-task", "2", *ends, agent="bob")
    assert refused.status == 11 and "To wait until it can be: teams update-task task-2 " in refused.stderr
    waiting = begin(cli, "bob", "update-task", "2", *ends, "--next", "--wait", "60")
    until_asleep(waiting)
    cli.ok("claim-task", "1", agent="mia")
    cli.ok("update-task", "1", *ends, agent="mia")
    assert ended(waiting)["status"] == "completed"
    cli.ok("create-task", "three", "--for", "bob", agent="lea")
    cli.ok("create-task", "four", "--after", "3", agent="lea")
    cli.ok("claim-task", "4", agent="bob")
    refused = cli("update-task", "4", *ends, "--next", "--wait", "60", agent="bob")
    assert refused.status == 11
    assert "task-3 is yours, so do it first: teams claim-task task-3." in refused.stderr


def test_a_result_is_kept_whatever_else_the_command_changes(tmp_path: Path) -> None:
    """The owner that got other work meanwhile is told of the end of a blocker that was added to its task, too."""
    cli = make_team(tmp_path / "root", "bob", "mia")
    add_tasks(cli, "one", "two")
    cli.ok("claim-task", "1", agent="mia")
    cli.ok("claim-task", "2", agent="bob")
    cli.ok("update-task", "2", "--blocked-by", "1", agent="lea")
    cli.ok("read-messages", agent="bob")
    cli.ok("update-task", "2", "--result", "old", agent="bob")
    ends = ("--status", "completed", "--result", "new", "--append", "more", "--next", "--wait", "60")
    waiting = begin(cli, "bob", "update-task", "2", *ends)
    until_asleep(waiting)
    add_tasks(cli, "three")
    message = ended(waiting, 11)["error"]["message"]
    assert message.endswith("Only its result is kept. You are notified when that is completed; then repeat the command")
    assert cli.ok("show-task", "2")["result"] == "new"
    cli.ok("update-task", "1", "--status", "completed", agent="mia")
    assert "task-2 (two) can be completed now: task-1 (one) is completed" in cli("read-messages", agent="bob").stdout


@pytest.mark.usefixtures("each_engine")
def test_a_wait_ends_when_what_it_waits_for_fails(tmp_path: Path) -> None:
    """Nobody else may decide whether the work can be completed without that, so waiting on would be in vain."""
    cli = make_team(tmp_path / "root", "bob", "mia")
    add_tasks(cli, "one")
    cli.ok("create-task", "two", "--after", "1", agent="lea")
    cli.ok("claim-task", "1", agent="mia")
    cli.ok("claim-task", "2", agent="bob")
    ends = ("--status", "completed", "--result", "r")
    assert cli("update-task", "2", *ends, "--next", "--wait", "0.1", agent="bob").status == 11
    waiting = begin(cli, "bob", "wait", "--claim", "--timeout", "60")
    until_asleep(waiting)
    cli.ok("update-task", "1", "--status", "failed", "--reason", "no", agent="mia")
    assert "task-2 is yours, and waits in vain for task-1 (failed)" in ended(waiting)["happened"][0]["text"]
    refused = cli("update-task", "2", *ends, agent="bob").stderr
    assert "\n  To wait no longer for task-1: teams update-task task-2 --unblock task-1\n" in refused
    cli.ok("update-task", "2", "--unblock", "1", agent="bob")
    cli.ok("update-task", "2", *ends, agent="bob")


def test_a_task_of_the_owner_that_is_blocked_itself_is_waited_for(tmp_path: Path) -> None:
    """The owner can't do it first, so it is not told to."""
    cli = make_team(tmp_path / "root", "bob", "mia")
    add_tasks(cli, "one")
    cli.ok("create-task", "mine", "--blocked-by", "1", "--for", "bob", agent="lea")
    cli.ok("create-task", "last", "--after", "2", agent="lea")
    cli.ok("claim-task", "1", agent="mia")
    cli.ok("claim-task", "3", agent="bob")
    cli.ok("read-messages", agent="bob")
    ends = ("--status", "completed", "--result", "r", "--next")
    refused = cli("update-task", "3", "--status", "completed", agent="bob").stderr
    assert "To wait until it can be" in refused and "claim-task task-2" not in refused
    waiting = begin(cli, "bob", "update-task", "3", *ends, "--wait", "60")
    until_asleep(waiting)
    cli.ok("update-task", "1", *ends, agent="mia")
    assert ended(waiting, 11)["error"]["message"].startswith("task-3 is not completed yet: ")
    cli("claim-task", "2", agent="bob")
    done = cli.ok("update-task", "2", *ends, agent="bob")
    assert [task["id"] for task in done["completedToo"]] == ["task-3"]


def test_what_an_older_version_did_not_write_is_shown_as_it_is_understood(tmp_path: Path) -> None:
    cli = make_team(tmp_path / "root", "bob")
    cli.ok("create-task", "a", agent="lea")
    cli.ok("create-task", "b", "--blocked-by", "1", agent="lea")
    path = cli.root / "tasks/alpha/task-1.json"
    path.write_text(
        json.dumps({"id": "task-1", "teamName": "alpha", "title": "a", "createdAt": "2030-01-01T00:00:00.000Z"})
    )
    first, second = cli.ok("get-tasks", agent="lea")
    assert (first["status"], first["blockedBy"], first["blocked"]) == ("pending", [], False)
    assert second["openBlockers"] == ["task-1"]
    assert cli.ok("show-task", "1", agent="lea")["title"] == "a"
    problems: list[TeamsError] = []
    assert board.frame(cli.store(), ALPHA, problems) and not problems


MANY = 250


NOW = "2030-01-01T00:00:00.000Z"


@pytest.fixture
def store(tmp_path: Path) -> FileStore:
    cli: Cli = make_team(tmp_path / "root", "bob")
    found = FileStore(str(cli.root))
    found.create_all(ALPHA, TASK, MANY, lambda keys: [_task(number) for number in range(1, len(keys) + 1)])
    return found


def _task(number: int) -> Task:
    status = {1: "failed", 2: "in_progress", 3: "cancelled", 4: "in_review"}.get(
        number, "completed" if number % 2 else "pending"
    )
    blockers = {6: ["task-1"], 8: ["task-6"], 10: ["task-5"], 12: ["task-14"]}.get(number, [])
    skills = ["go"] if number == 16 else []
    return Task(team_name=ALPHA, title=str(number), status=status, created_at=NOW, blocked_by=blockers, require=skills)


def as_read(store: FileStore) -> tuple[dict[str, int], list[str], int]:
    found = list(tasks.all_of(store, ALPHA, []))
    status_of = dependencies.among(found)
    ready = [task for task in found if task.status == "pending" and not dependencies.open_blockers(task, status_of)]
    return tasks.count(found), sorted(dependencies.stuck_tasks(found), key=TASK.number_in), len(ready)


def as_counted(store: FileStore) -> tuple[dict[str, int], list[str], int]:
    found = overviews.overview(store, ALPHA)
    return found.counts, found.stuck, found.free + len(found.ready)


def test_many_are_counted_without_reading_those_that_need_no_look(store: FileStore) -> None:
    assert as_counted(store) == as_read(store)
    assert len(overviews.overview(store, ALPHA).tasks_read) == 7  # in progress, in review, waiting, asking for a skill


def test_the_index_of_an_older_version_is_brought_up_to_date(store: FileStore) -> None:
    index = Path(store.root) / f"tasks/{ALPHA}/index"
    for label in ("completed", "failed", "cancelled"):
        shutil.rmtree(index / label)
    for mark in (index / "free-normal").iterdir():
        mark.rename(index / "pending-normal" / mark.name)
    assert as_counted(store) == as_read(store)
    assert len(overviews.overview(store, ALPHA).tasks_read) == 7


def test_work_is_not_accepted_before_a_task_that_was_put_before_it(cli: Cli) -> None:
    key = cli.ok("create-task", "work", "--review-by", "lea", agent="lea")["id"]
    cli.ok("claim-task", key, agent="bob")
    cli.ok("update-task", key, "--status", "completed", "--result", "r", agent="bob")
    other = cli.ok("create-task", "other", "--blocks", key, agent="lea")["id"]
    refused = cli("review-task", key, "--accept", agent="lea").stderr
    assert f"{key} is still in review: it waits for {other} (pending)" in refused
    assert f"teams update-task {key} --unblock {other}" in refused
    complete(cli, "bob", other)
    assert cli.ok("review-task", key, "--accept", agent="lea")["status"] == "completed"
