"""Waiting with nothing to do: a wait claims the task that ends it, and calls no leader if all is well."""

from __future__ import annotations

from pathlib import Path

from teams_cli.teams import presence
from tests.support.cli import ALPHA, Cli, add_tasks, complete
from tests.support.waits import begin, ended, until, until_asleep


def test_a_wait_takes_the_task_that_ends_it(cli: Cli) -> None:
    """A wait with `--claim` also shows the results of blockers, and mail that has come."""
    waiting = begin(cli, "bob", "wait", "--claim", "--timeout", "60")
    add_tasks(cli, "one")
    add_tasks(cli, "two", blocked_by=["task-1"])
    found = ended(waiting)
    assert (found["claimed"]["id"], found["claimed"]["owner"], found["happened"]) == ("task-1", "bob", [])
    assert found["next"] == "teams update-task task-1 --status completed --result RESULT --next --wait 540"
    assert cli.ok("wait", "--claim", "--timeout", "0", agent="bob")["happened"][0]["what"] == "held"
    assert cli("wait", "--claim", "--timeout", "0", agent="bob").status == 14
    waiting = begin(cli, "mia", "wait", "--claim", "--timeout", "60")
    until(lambda: presence.load(cli.store(), ALPHA, "mia").waiting)
    done = cli("update-task", "1", "--status", "completed", "--result", "so it is", agent="bob")
    assert done.stdout.endswith("\nnext: teams wait --claim --timeout 540\n")
    assert ended(waiting)["claimed"]["blockers"][0]["result"] == "so it is"
    add_tasks(cli, "three")
    cli.ok("send-message", "bob", "which?", agent="mia")
    said = cli("wait", "--claim", "--timeout", "0", agent="bob").stdout
    assert said.startswith(
        'msg-2\n[From agent "mia"]:\n| which?\nnext: teams reply msg-2 TEXT\ntask-3: in_progress by bob: three\n'
    )
    assert said.endswith("\nnext: teams update-task task-3 --status completed --result RESULT --next --wait 540\n")
    assert cli.refused("wait", "--claim", "--ready", agent="bob") == (2, "wrong_usage")
    assert cli.refused("wait", "--task", "", agent="bob") == cli.refused("wait", "--task", ",", agent="bob")
    assert cli.refused("wait", "--task", "", agent="bob") == (2, "wrong_usage")


def test_nobody_waits_for_a_task_that_is_assigned_to_itself(cli: Cli) -> None:
    add_tasks(cli, "one")
    waiting = begin(cli, "bob", "wait", "--task", "1", "--timeout", "60")
    until_asleep(waiting)
    cli.ok("update-task", "1", "--owner", "bob", agent="lea")
    assert ended(waiting, 11)["error"]["hint"] == "Claim it: teams claim-task task-1"


def test_a_question_comes_before_the_next_task(cli: Cli) -> None:
    """While a question is open, `--claim` claims nothing; mail comes together with a task."""
    cli.ok("set", "broadcast", "agents", agent="lea")
    cli.ok("ask-others", "which?", "--to", "bob", "--no-wait", agent="mia")
    add_tasks(cli, "one")
    found = cli.ok("wait", "--claim", "--timeout", "0", agent="bob")
    assert ("claimed" in found, found["next"]) == (False, "teams answer ask-1 TEXT")
    cli.ok("answer", "1", "the second", agent="bob")
    cli.ok("send-message", "bob", "thanks", agent="mia")
    found = cli.ok("wait", "--claim", "--timeout", "0", agent="bob")
    assert [each["message"] for each in found["messages"]] == ["thanks"] and found["claimed"]["id"] == "task-1"


def test_who_takes_a_task_hears_what_came_of_the_work_of_others(cli: Cli) -> None:
    add_tasks(cli, "one", "two")
    add_tasks(cli, "silent")
    add_tasks(cli, "four", blocked_by=["task-1", "task-2", "task-3"])
    for agent, task in (("mia", "1"), ("bob", "2")):
        complete(cli, agent, task, "--result", f"as {agent} said")
    complete(cli, "mia", "3")
    said = cli("wait", "--claim", agent="bob").stdout
    assert "result of task-1 (mia): as mia said\nresult of task-3 (mia): (none given)\n" in said
    assert "as bob said" not in said
    assert said.endswith("\nnext: teams update-task task-4 --status completed --result RESULT --next --wait 540\n")


def test_who_ends_a_task_takes_the_next_with_that(cli: Cli) -> None:
    """With `--next` the end of a task claims another one; repeating the command shows the same one."""
    add_tasks(cli, "one", "two", "three")
    cli.ok("claim-task", "1", agent="bob")
    for _ in range(2):
        ended_so = ("update-task", "1", "--status", "completed", "--result", "r", "--next")
        found = cli.ok(*ended_so, agent="bob")
        assert found["status"] == "completed"
    assert found["claimed"]["id"] == "task-2", "it is shown again to who repeats the command"
    assert cli.ok("show-task", "2")["owner"] == "bob"
    said = cli("update-task", "2", "--status", "failed", "--reason", "why", "--next", agent="bob").stdout
    assert "task-2: failed by bob: two\ntask-3: in_progress by bob: three\n" in said
    done = cli("update-task", "3", "--status", "completed", "--next", agent="bob").stdout
    assert done == "task-3: completed by bob: three\nall tasks are settled: you are done\n"
    assert cli.refused("update-task", "3", "--priority", "high", "--next", agent="lea") == (2, "wrong_usage")


def test_joining_and_the_first_task_are_one_command(tmp_path: Path) -> None:
    cli = Cli(tmp_path / "root", team=ALPHA)
    joining = ("join-team", "--claim", "--wait", "60")
    bob = begin(cli, "bob", *joining)
    cli.ok("spawn-team", ALPHA, agent="lea")
    add_tasks(cli, "one")
    found = ended(bob)
    assert (found["agentId"], found["claimed"]["id"], found["claimed"]["owner"]) == ("bob", "task-1", "bob")
    assert cli(*joining, agent="bob").stdout.endswith(
        "next: teams update-task task-1 --status completed --result RESULT --next --wait 540\n"
    )
    late = cli("join-team", "--claim", "--wait", "0", agent="mia")
    assert late.stdout == "mia: in team alpha as team-member\nnext: teams wait --claim --timeout 540\n"
    add_tasks(cli, "two")
    assert "\ntask-2: in_progress by mia: two\n" in cli("join-team", "--claim", agent="mia").stdout
    assert cli.refused("join-team", "--claim", agent="human") == (2, "wrong_usage")


def test_a_leader_is_called_once_so_many_tasks_are_completed(cli: Cli) -> None:
    add_tasks(cli, "one", "two", "three", "four")
    complete(cli, "bob", "1")
    waiting = begin(cli, "lea", "wait", "--completed", "2", "--timeout", "60")
    until_asleep(waiting)
    for task in ("2", "3"):
        assert waiting.poll() is None
        complete(cli, "bob", task)
    found = ended(waiting)
    said = "the number of tasks that you waited for is completed: 3 of 4. Nobody has a task: 1 ready; last seen: bob, "
    assert [each["text"].startswith(said) for each in found["happened"]] == [True]
    assert len(found["messages"]) == 3 and found["next"] == "teams wait --needed --timeout 540"
    waiting = begin(cli, "lea", "wait", "--completed", "1", "--timeout", "60")
    cli.ok("send-message", "lea", "which?", agent="bob")
    assert [each["message"] for each in ended(waiting)["messages"]] == ["which?"]
    for words in (("--completed", "0"), ("--completed", "2", "--task", "1")):
        assert cli.refused("wait", *words, agent="lea") == (2, "wrong_usage")
