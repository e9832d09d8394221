"""The brief: about its reader, short, and with the right next command in every state."""

from __future__ import annotations

from pathlib import Path

import pytest

from teams_cli.tasks import claims
from teams_cli.tasks.changes import Edit, change_task
from teams_cli.teams.permission import Caller
from tests.support.cli import ALPHA, Cli, add_tasks, complete

DECIDE = "teams approve-plan {0}, or teams approve-plan {0} --note TEXT, or teams reject-plan {0} --feedback WHY"


def after(cli: Cli, agent: str, *words: str, by: str | None = None) -> str:
    """The next command of *agent*, once the command *words* was run by *by*, or by *agent* itself."""
    if words:
        cli.ok(*words, agent=by or agent)
    step: str = cli.ok("brief", agent=agent)["next"]
    return step


@pytest.mark.slow
def test_each_state_of_a_member_has_its_command(cli: Cli) -> None:
    assert after(cli, "bob") == "teams wait --claim --timeout 540"
    assert after(cli, "bob", "send-message", "bob", "hi", by="lea") == "teams read-messages"
    assert after(cli, "bob", "read-messages") == "teams reply msg-1 TEXT"
    assert after(cli, "bob", "create-task", "one", "--plan-required", by="lea") == "teams claim-task --next"
    assert after(cli, "bob", "claim-task", "1") == "teams propose-plan TEXT --task task-1 --wait 540"
    assert after(cli, "bob", "propose-plan", "so", "--task", "1") == "teams wait --timeout 540"
    assert after(cli, "lea") == DECIDE.format("plan-1")
    cli.ok("reject-plan", "1", "--feedback", "why?", agent="lea")
    cli.ok("read-messages", agent="bob")
    assert after(cli, "bob") == "teams propose-plan TEXT --task task-1 --revises plan-1 --wait 540"
    assert after(cli, "bob", "propose-plan", "x" * 300, "--revises", "1") == "teams wait --timeout 540"
    cli.ok("read-messages", agent="lea")
    assert after(cli, "lea") == "teams show-plan plan-2"  # the plan was not shown whole
    cli.ok("approve-plan", "2", agent="lea")
    cli.ok("read-messages", agent="bob")
    assert after(cli, "bob") == "teams update-task task-1 --status completed --result RESULT --next --wait 540"
    assert after(cli, "bob", "create-task", "two", by="lea") == (
        "teams update-task task-1 --status completed --result RESULT --next --wait 540"
    )
    assert after(cli, "bob", "update-task", "1", "--blocked-by", "2", by="lea") == "teams wait --task task-2"
    cli.ok("update-task", "1", "--unblock", "2", agent="lea")
    assert after(cli, "bob", "update-task", "1", "--status", "completed") == "teams claim-task --next"
    assert after(cli, "bob", "claim-task", "2", by="mia") == "teams reply msg-1 TEXT"
    assert after(cli, "bob", "ack", "1") == "teams wait --claim --timeout 540"
    cli.ok("request-shutdown", "bob", agent="lea")
    assert after(cli, "bob") == "teams approve-shutdown shutdown-1, or teams reject-shutdown shutdown-1 WHY"
    cli.ok("approve-shutdown", agent="bob")
    assert after(cli, "bob") == "bob was shut down: you are done"
    cli.ok("leave-team", agent="mia")
    assert after(cli, "mia") == "teams join-team alpha --as mia --claim --wait 540"


def test_the_owner_of_a_blocked_task_is_not_sent_to_a_wait_in_vain(cli: Cli) -> None:
    cli.ok("create-task", "one", agent="lea")
    cli.ok("claim-task", "1", agent="bob")
    cli.ok("create-task", "two", "--for", "bob", agent="lea")
    cli.ok("update-task", "1", "--blocked-by", "2", agent="lea")
    cli.ok("read-messages", agent="bob")
    assert after(cli, "bob") == "teams claim-task task-2"  # a wait for it is refused, because nobody else will do it
    cli.ok("update-task", "2", "--status", "cancelled", agent="human")
    assert after(cli, "bob") == "teams update-task task-1 --unblock task-2"
    cli.ok("update-task", "1", "--unblock", "2", agent="bob")
    assert after(cli, "bob") == "teams update-task task-1 --status completed --result RESULT --next --wait 540"


def test_each_state_of_a_leader_has_its_command(cli: Cli) -> None:
    assert after(cli, "lea").startswith("teams create-task TITLE, or teams create-task --from - <<'.'\n- id: a\n")
    assert after(cli, "lea", "create-task", "one") == "teams wait --needed --timeout 540"
    cli.ok("create-task", "two", "--blocked-by", "1", agent="lea")
    assert after(cli, "lea", "claim-task", "1", by="bob") == "teams wait --needed --timeout 540"
    cli.ok("update-task", "1", "--status", "failed", agent="bob")
    cli.ok("read-messages", agent="lea")
    assert after(cli, "lea") == "teams update-task task-2 --unblock task-1, or teams close-team"
    cli.ok("update-task", "2", "--unblock", "1", agent="lea")
    assert after(cli, "lea") == "teams wait --needed --timeout 540"
    complete(cli, "bob", "2")
    assert after(cli, "lea") == "teams close-team"
    assert after(cli, "lea", "close-team") == "teams show-team alpha"
    assert after(cli, "bob") == after(cli, "bob") == ""
    assert "the team was closed by lea " in cli("brief", agent="mia").stdout


def test_each_state_without_a_team_has_its_command(tmp_path: Path) -> None:
    cli = Cli(tmp_path / "root")
    join = "teams join-team {0} --as bob --claim --wait 540, or teams spawn-team {0}"
    assert after(cli, "bob") == join.format("NAME")
    assert cli.ok("brief", agent="bob", team="beta")["next"] == join.format("beta")
    cli.ok("spawn-team", ALPHA, agent="lea")
    assert after(cli, "bob") == "teams join-team alpha --as bob --claim --wait 540"
    cli.ok("spawn-team", "beta", agent="eve")
    assert after(cli, "bob") == "teams join-team NAME --as bob --claim --wait 540"
    assert "alpha, beta" in cli("brief", agent="bob").stdout


def test_the_brief_is_about_its_reader_and_elides_no_completion(cli: Cli) -> None:
    add_tasks(cli, "first", "second")
    add_tasks(cli, "third", blocked_by=["task-1"])
    complete(cli, "mia", "1", "--result", "see a.py")
    cli.ok("claim-task", "3", agent="bob")
    for n in range(9):
        cli.ok("send-message", "lea", f"chatter {n}", agent="mia")
    lines = cli("brief", agent="bob").stdout.splitlines()
    assert lines[1] == "yours: task-3 third"
    assert lines[2] == "  task-1 (mia): see a.py"
    assert "completed: task-1 (mia)" in lines
    assert any(" other changes: " in line and "teams history --since " in line for line in lines)
    assert not any("chatter" in line or "message sent" in line for line in lines)
    assert lines[-1] == "next: teams update-task task-3 --status completed --result RESULT --next --wait 540"
    again = cli.ok("brief", agent="bob")
    assert (again["finished"], again["moreChanges"]) == ([], 0)


def test_the_brief_has_at_most_1500_characters(cli: Cli) -> None:
    store, mia = cli.store(), Caller("mia")
    add_tasks(cli, *(f"{n} {'long title ' * 8}" for n in range(1, 16)))
    for n in range(1, 16):
        claims.claim(store, ALPHA, mia, str(n))
        if n < 11:
            change_task(store, ALPHA, mia, str(n), Edit(status="completed", result="r" * 300))
    add_tasks(cli, *("x" * 80 for _ in range(5)), blocked_by=[f"task-{n}" for n in range(1, 11)])
    for n in range(16, 21):
        claims.claim(store, ALPHA, Caller("bob"), str(n))
    for n in range(8):
        cli.ok("send-message", "bob", f"{n}", agent="lea")
    cli.ok("propose-plan", "p" * 3000, agent="bob")
    for agent in ("bob", "lea", "mia"):
        said = cli("brief", agent=agent).stdout
        assert len(said) <= 1500, said
        assert said.splitlines()[-1].startswith("next: ")
    assert "yours: task-16" in cli("brief", agent="bob").stdout
