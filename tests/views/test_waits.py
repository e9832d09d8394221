"""Waiting for anything that concerns an agent, for one of several things, and for a task to claim."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from teams_cli.store.pace import Alarm
from teams_cli.teams import presence
from teams_cli.views import conditions
from teams_cli.views.conditions import Condition
from tests.support.cli import ALPHA, TIMEOUT, Cli, add_tasks, complete, in_progress
from tests.support.waits import begin, ended, nothing, until


def texts(found: dict[str, Any]) -> list[str]:
    return [each["text"] for each in found["happened"]]


def test_news_from_before_a_wait_ends_it_once(cli: Cli) -> None:
    add_tasks(cli, "one", "two")
    cli.ok("send-message", "bob", "hello", agent="lea")
    answer = cli("wait", "--timeout", "0", agent="bob")
    assert answer.stdout == (
        'msg-1\n[From agent "lea"]:\n| hello\nnext: teams reply msg-1 TEXT\n'
        "task-1 is ready: one (and 1 more)\nnext: teams claim-task --next\n"
    )
    nothing(cli, "bob")


def test_a_task_that_becomes_ready_ends_the_waits_of_those_who_may_claim_it(cli: Cli) -> None:
    waiting = begin(cli, "bob")
    add_tasks(cli, "one")
    assert texts(ended(waiting)) == ["task-1 is ready: one"]
    cli.ok("claim-task", "1", agent="bob")
    nothing(cli, "bob")  # an agent at work is not told of more work
    nothing(cli, "mia")
    waiting = begin(cli, "mia")
    cli.ok("release-task", "1", agent="bob")
    assert texts(ended(waiting)) == ["task-1 is ready: one"]


@pytest.mark.slow
def test_a_claim_that_runs_out_ends_the_wait_of_another(cli: Cli) -> None:
    cli.ok("set", "staleAfterSeconds", "1", agent="lea")
    in_progress(cli, "bob", "one")
    assert texts(ended(begin(cli, "mia"))) == ["task-1 is ready: one"]
    assert "free again" in ended(begin(cli, "lea"))["messages"][0]["message"]


def test_a_leader_hears_of_plans_and_of_the_end_of_all(cli: Cli) -> None:
    in_progress(cli, "bob", "one")
    waiting = begin(cli, "lea")
    cli.ok("propose-plan", "first this, then that", "--task", "1", agent="bob")
    found = ended(waiting)
    assert texts(found) == ["plan-1 from bob for task-1:\nfirst this, then that"]
    assert found["messages"] == []
    assert found["happened"][0]["next"] == (
        "teams approve-plan plan-1, or teams approve-plan plan-1 --note TEXT, "
        "or teams reject-plan plan-1 --feedback WHY"
    )
    waiting = begin(cli, "bob")
    cli.ok("reject-plan", "1", "--feedback", "too long", agent="lea")
    assert "too long" in ended(waiting)["messages"][0]["message"]
    waiting = begin(cli, "lea", "wait", "--all-tasks", "--timeout", "60")
    cli.ok("update-task", "1", "--status", "completed", "--result", "it works", agent="bob")
    assert ended(waiting)["taskCounts"]["completed"] == 1
    found = ended(begin(cli, "lea"))
    assert texts(found) == ["all tasks are settled: 1 completed"]
    assert [(each["message"], each["next"]) for each in found["messages"]] == [
        ("task-1 (one) completed by bob: it works", None)
    ]
    nothing(cli, "lea")


def test_the_leader_is_told_when_the_last_member_was_shut_down(cli: Cli) -> None:
    add_tasks(cli, "one")
    complete(cli, "bob", "1")
    ended(begin(cli, "lea"))
    for name in ("bob", "mia"):
        assert cli("request-shutdown", name, agent="lea").stdout.endswith("\nnext: teams wait --needed --timeout 540\n")
    waiting = begin(cli, "lea", "wait", "--needed", "--timeout", "60")
    assert cli("approve-shutdown", agent="bob").stdout.endswith("\nbob was shut down: you are done\n")
    assert cli("wait", "--needed", "--timeout", "0", agent="lea").status == 14
    cli.ok("approve-shutdown", agent="mia")
    found = ended(waiting)
    assert [each["message"] for each in found["messages"]] == ["bob approved shutdown-1", "mia approved shutdown-2"]
    assert found["next"] == "teams close-team"


def test_the_human_waits_for_questions_plans_and_mail(cli: Cli) -> None:
    waiting = begin(cli, "human")
    asking = cli.start("ask-others", "which?", "--human", "--timeout", "60", agent="bob")
    found = ended(waiting)
    assert texts(found) == ["ask-1 from bob: which?"]
    assert found["happened"][0]["next"] == "teams answer ask-1 TEXT"
    cli.ok("answer", "ask-1", "this", agent="human")
    asking.communicate(timeout=TIMEOUT)
    waiting = begin(cli, "human")
    cli.ok("propose-plan", "so", agent="bob")
    assert texts(ended(waiting)) == ["plan-1 from bob:\nso"]
    nothing(cli, "human")


def test_an_agent_without_a_team_waits_until_there_is_one(tmp_path: Path) -> None:
    cli = Cli(tmp_path / "root", team=ALPHA)
    assert cli("join-team", "--wait", "0", agent="mia").status == 14
    waiting, joining = begin(cli, "bob"), begin(cli, "mia", "join-team", "--wait", "60")
    cli.ok("spawn-team", ALPHA, agent="lea")
    found = ended(waiting)
    assert found["happened"][0]["next"] == "teams join-team alpha --as bob --claim --wait 540"
    assert ended(joining)["role"] == "team-member"


def test_any_of_several_conditions_ends_it_and_is_named(cli: Cli) -> None:
    in_progress(cli, "bob", "one")
    both = ("wait", "--task", "1", "--message", "--ready", "--timeout", "60")
    waiting = begin(cli, "mia", *both)
    cli.ok("send-message", "mia", "hello", agent="lea")
    found = ended(waiting)
    assert (found["unread"], found["because"], found["messages"][0]["message"]) == (["msg-1"], ["message"], "hello")
    waiting = begin(cli, "mia", *both)
    cli.ok("update-task", "1", "--status", "completed", "--result", "it works", agent="bob")
    found = ended(waiting)
    assert ("task" in found["because"], found["task"]["result"]) == (True, "it works")
    assert cli("wait", "--task", "1", agent="mia").stdout == "task-1: completed by bob\n  it works\n"


def test_a_change_between_two_looks_is_in_the_answer(cli: Cli) -> None:
    in_progress(cli, "bob", "one")
    store = cli.store()

    def complete_and_end(alarm: Alarm) -> dict[str, str]:
        complete(cli, "bob", "1")
        return {"settled": "all"}

    awaited = [conditions.task_finished(store, ALPHA, "1", "mia"), Condition("settled", "", (), complete_and_end)]
    news = conditions.wait(store, ALPHA, awaited, 60)
    assert (news["task"]["status"], news["settled"]) == ("completed", "all")


def test_the_next_task_is_waited_for(cli: Cli) -> None:
    waiting = begin(cli, "bob", "claim-task", "--next", "--wait", "60")
    add_tasks(cli, "one")
    assert ended(waiting)["owner"] == "bob"
    waiting = begin(cli, "mia", "claim-task", "--next", "--wait", "60")
    cli.ok("send-message", "mia", "hello", agent="lea")
    assert "msg-1" in ended(waiting, 14)["error"]["message"]
    cli.ok("read-messages", agent="mia")
    assert cli("claim-task", "--next", "--wait", "0", agent="mia").status == 14
    assert cli("claim-task", "1", "--wait", "1", agent="mia").status == 2


def test_one_of_several_waiting_agents_is_woken_for_a_task(cli: Cli) -> None:
    cli.ok("join-team", agent="tom")
    add_tasks(cli, "one")
    add_tasks(cli, "two", blocked_by=["task-1"])
    cli.ok("claim-task", "1", agent="tom")
    waiting = {name: begin(cli, name) for name in ("bob", "mia")}
    until(lambda: all(presence.load(cli.store(), ALPHA, name).waiting for name in waiting))
    assert cli("update-task", "1", "--status", "completed", agent="tom").stdout.endswith(
        "\nnext: teams wait --claim --timeout 540\n"
    )
    first = until(lambda: next((name for name in waiting if waiting[name].poll() is not None), None))
    assert texts(ended(waiting.pop(first))) == ["task-2 is ready: two"]
    cli.ok("claim-task", "--next", agent=first)
    (other,) = waiting.values()
    assert other.poll() is None
    add_tasks(cli, "three")
    assert texts(ended(other)) == ["task-3 is ready: three"]


def test_an_answer_ends_the_wait_of_an_asker_that_went_on(cli: Cli) -> None:
    cli.ok("set", "broadcast", "agents", agent="lea")
    cli.ok("ask-others", "which?", "--to", "mia", "--no-wait", agent="bob")
    waiting = begin(cli, "bob")
    cli.ok("answer", "1", "this one", agent="mia")
    (told,) = ended(waiting)["messages"]
    assert (told["message"], told["next"]) == ("mia answered ask-1 (which?): this one", None)
    nothing(cli, "bob")
    asking = cli.start("ask-others", "why?", "--to", "mia", "--timeout", "60", agent="bob")
    until(lambda: "ask-2" in cli("wait", "--timeout", "0", agent="mia").stdout)
    cli.ok("answer", "2", "because", agent="mia")
    assert b"because" in asking.communicate(timeout=TIMEOUT)[0]
    nothing(cli, "bob")


def test_an_agent_hears_that_another_is_blocked_waiting_for_its_answer(cli: Cli) -> None:
    """The agent hears this once, with the question, and only if something was asked."""
    add_tasks(cli, "one", "two")
    cli.ok("claim-task", "1", agent="bob")
    cli.ok("send-message", "mia", "the parser is done", agent="bob")
    cli("wait", "--timeout", "0.1", agent="bob")
    assert [one["id"] for one in cli.ok("read-messages", agent="mia")] == ["msg-1"]
    cli.ok("send-message", "mia", "which port?", agent="bob")
    cli("wait", "--timeout", "0.1", agent="bob")
    said = cli("wait", "--claim", "--timeout", "0", agent="mia").stdout
    assert "bob is BLOCKED waiting for your answer to msg-2" in said and "task-2: in_progress by mia: two\n" in said
    assert said.count("next: teams reply msg-2 TEXT") == 1
    waiting = begin(cli, "bob")
    cli.ok("reply", "2", "8080", agent="mia")
    assert ended(waiting)["messages"][0]["message"] == "8080"
    cli.ok("send-message", "mia", "and which host?", agent="bob")
    cli.ok("read-messages", agent="mia")
    waiting = begin(cli, "bob", "wait", "--message", "--timeout", "60")
    (notice,) = ended(begin(cli, "mia"))["messages"]
    assert "BLOCKED" in notice["message"]
    cli.ok("reply", "5", "this one", agent="mia")
    nothing(cli, "mia")
    ended(waiting)
    cli.ok("set", "broadcast", "agents", agent="lea")
    asking = cli.start("ask-others", "which?", "--to", "mia", agent="bob")
    assert "(bob is BLOCKED waiting for your answer. Answer within " in cli("wait", "--message", agent="mia").stdout
    cli.ok("answer", "1", "the second", agent="mia")
    asking.communicate(timeout=TIMEOUT)
