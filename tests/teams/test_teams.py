"""Teams: making, joining, leaving, handing over, closing and opening them again, and removing old ones."""

from __future__ import annotations

import json
import shlex
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from teams_cli import closing, names
from teams_cli.errors import AlreadyExists, NotAllowed, WrongState, WrongUsage
from teams_cli.membership import joining
from teams_cli.messages import messages
from teams_cli.tasks import claims, tasks
from teams_cli.tasks.tasks import Task
from teams_cli.teams import teams
from teams_cli.teams.permission import Caller
from teams_cli.teams.teams import TEAM
from tests.support.cli import ALPHA, Cli, add_tasks, make_team

if TYPE_CHECKING:
    from teams_cli.store.contract import Store

LEA, BOB = Caller("lea"), Caller("bob")


def test_aliases_go_round_and_are_never_given_twice(team: Store) -> None:
    """Names go from agentA to agentZ, then from agentA1; a name that somebody chose is skipped."""
    joining.join(team, ALPHA, Caller("AGENTb"))
    given = [joining.join(team, ALPHA, None)[0].agent_id for _ in range(3)]
    assert given == ["agentA", "agentC", "agentD"]
    joining.leave(team, ALPHA, Caller("agentD"))
    given = [joining.join(team, ALPHA, None)[0].agent_id for _ in range(50)]
    assert given[:22] == [f"agent{c}" for c in "EFGHIJKLMNOPQRSTUVWXYZ"]
    assert given[22:48] == [f"agent{c}1" for c in "ABCDEFGHIJKLMNOPQRSTUVWXYZ"]
    assert given[48:] == ["agentA2", "agentB2"]
    assert all(names.is_name(names.alias(n)) for n in range(1000))
    assert len({names.alias(n) for n in range(1000)}) == 1000


def test_who_left_may_come_back_in_another_role(team: Store) -> None:
    """A name stays reserved for the agent that left with it, which has lost its task when it comes back."""
    tasks.create(team, ALPHA, LEA, Task(team_name=ALPHA, title="t", created_at=""))
    claims.claim(team, ALPHA, BOB, "1")
    assert joining.leave(team, ALPHA, BOB) == ["task-1"]
    with pytest.raises(AlreadyExists):
        joining.join(team, ALPHA, Caller("BOB"))
    with pytest.raises(NotAllowed):
        messages.send(team, ALPHA, BOB, "lea", "hi")
    assert joining.join(team, ALPHA, BOB, "task-manager")[0].role == "task-manager"
    assert [m.agent_id for m in teams.get(team, ALPHA).members] == ["lea", "bob"]
    assert tasks.get(team, ALPHA, "1").owner is None


def test_the_leader_does_not_leave_before_it_handed_over(team: Store) -> None:
    with pytest.raises(WrongState) as refusal:
        joining.leave(team, ALPHA, LEA)
    assert "hand-over" in refusal.value.hint and "close-team" in refusal.value.hint
    after = joining.hand_over(team, ALPHA, LEA, "bob")
    assert {m.agent_id: m.role for m in after.members} == {"lea": "team-member", "bob": "team-leader"}
    with pytest.raises(NotAllowed):
        joining.hand_over(team, ALPHA, LEA, "lea")
    assert joining.hand_over(team, ALPHA, BOB, "bob") == after
    joining.leave(team, ALPHA, LEA)
    assert teams.get(team, ALPHA).active_names() == ["bob"]


def test_a_closed_team_is_read_and_not_changed(tmp_path: Path) -> None:
    """Closing a team deletes nothing, and after opening it again its messages are there."""
    cli = make_team(tmp_path / "root", "bob")
    add_tasks(cli, "t")
    cli.ok("send-message", "bob", "hi", agent="lea")
    cli.ok("close-team", agent="lea")
    for words in (["create-task", "x"], ["send-message", "bob", "hi"], ["close-team"], ["define-role", "r"]):
        status, code = cli.refused(*words, agent="lea")
        assert (status, code) == (11, "wrong_state")
    assert cli.refused("join-team", agent="zoe") == (11, "wrong_state")
    assert cli.refused("spawn-team", ALPHA, agent="zoe") == (11, "already_exists")
    assert cli.ok("discover-teams") == []
    assert [row["state"] for row in cli.ok("discover-teams", "--all")] == ["closed"]
    assert [task["title"] for task in cli.ok("get-tasks")] == ["t"]
    assert cli.ok("show-team", ALPHA)["state"] == "closed"
    cli.ok("restore-team", ALPHA, agent="lea")
    assert [m["message"] for m in cli.ok("read-messages", agent="bob")] == ["hi"]


def test_closing_names_the_tasks_that_nobody_did(tmp_path: Path) -> None:
    """Closing is refused while a task is in progress; with `--force` the task stays with its owner."""
    cli = make_team(tmp_path / "root", "bob")
    add_tasks(cli, "one", "two", "three", "four")
    cli.ok("update-task", "1", "--status", "cancelled", agent="human")
    cli.ok("claim-task", "4", agent="bob")
    refused = cli("close-team", "--json", agent="lea")
    assert refused.status == 11
    assert "task-4 (bob)" in refused.error["message"] and "--force" in refused.error["hint"]
    assert "still pending: task-2, task-3" in cli("close-team", "--force", agent="lea").stdout.splitlines()
    cli.ok("restore-team", agent="lea")
    assert cli.ok("close-team", "--force", agent="lea")["pendingTasks"] == ["task-2", "task-3"]
    assert cli.ok("show-task", "4")["owner"] == "bob"


def test_the_only_team_need_not_be_named(tmp_path: Path) -> None:
    cli = Cli(tmp_path / "root", agent="lea")
    assert cli.refused("show-team") == (2, "no_team")
    cli.ok("spawn-team", "alpha")
    assert cli.ok("show-team")["name"] == "alpha"
    cli.ok("spawn-team", "beta")
    answer = cli("show-team", "--json")
    assert answer.status == 2 and "alpha, beta" in answer.error["hint"]
    assert json.loads(cli("show-team", "--json", OPENCODE_TEAM_NAME="beta").stdout)["name"] == "beta"
    more = {"OPENCODE_TEAM_NAME": "beta", "TEAMS_TEAM": "alpha"}
    assert json.loads(cli("show-team", "--json", **more).stdout)["name"] == "alpha"
    assert json.loads(cli("show-team", "--json", "-t", "beta", **more).stdout)["name"] == "beta"


def test_of_several_teams_a_member_means_its_own(tmp_path: Path) -> None:
    """A member of one team need not name it, so that `next:` can be pasted; a member of two has to."""
    cli = make_team(tmp_path / "root")
    cli.ok("spawn-team", "beta", agent="mia")
    answer = cli("join-team", "beta", agent="bob", team="")
    assert answer.status == 0 and answer.stdout.rsplit("next: ", 1)[1].startswith("teams wait --claim")
    assert cli("wait", "--claim", "--timeout", "0", agent="bob", team="").status == 14
    assert cli.ok("whoami", agent="bob", team="")["team"] == "beta"
    cli.ok("join-team", "alpha", agent="bob", team="")
    assert cli("get-tasks", agent="bob", team="").status == 2


def test_how_a_caller_is_identified(tmp_path: Path) -> None:
    """`--as` goes before `TEAMS_AGENT_ID`, which goes before `OPENCODE_AGENT_ID`."""
    cli = make_team(tmp_path / "root", "bob", "mia")
    both = {"OPENCODE_AGENT_ID": "bob"}
    assert json.loads(cli("list-agents", "--json", **both).stdout)["self"] == "bob"
    assert json.loads(cli("list-agents", "--json", agent="mia", **both).stdout)["self"] == "mia"
    assert json.loads(cli("list-agents", "--json", "--as", "lea", agent="mia", **both).stdout)["self"] == "lea"
    names = {"OPENCODE_AGENT_NAME": "Zoe Z.", "OPENCODE_AGENT_TYPE": "rust"}
    joined = cli("join-team", "--json", agent="zoe", **names).json
    assert (joined["agentName"], joined["agentType"]) == ("Zoe Z.", "rust")


def test_the_root_is_for_its_owner_alone(tmp_path: Path) -> None:
    cli = make_team(tmp_path / "deep" / "root", "bob")
    cli.ok("send-message", "bob", "hi", agent="lea")
    for path in [cli.root, *cli.root.rglob("*")]:
        assert path.stat().st_mode & 0o077 == 0, path
    assert (cli.root / "README").read_text().strip()


def test_the_history_is_told_in_words(tmp_path: Path) -> None:
    cli = make_team(tmp_path / "root", "bob", "mia")
    cli.ok("set", "broadcast", "agents", agent="lea")
    cli.ok("ask-others", "which?", "--to", "lea", "--to", "mia", "--no-wait", agent="bob")
    cli.ok("create-task", "one", agent="lea")
    cli.ok("update-task", "1", "--title", "two", "--priority", "high", agent="lea")
    said = cli("history").stdout
    assert cli("history", "--limit", "1").stdout == said.splitlines(keepends=True)[-1]
    assert cli("history", "--limit", "2", "--since", "1d").stdout.splitlines() == said.splitlines()[-2:]
    assert cli("history", "--limit", "0").status == WrongUsage.status
    assert "bob: question asked ask-1 to lea, mia\n" in said and "lea: task edited task-1 title, priority\n" in said


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    return Cli(tmp_path / "root")


def made(cli: Cli, name: str, closed: bool = True) -> None:
    cli.ok("spawn-team", name, agent="lea")
    cli.ok("join-team", name, agent="bob")
    cli.ok("create-task", "a secret plan", agent="lea", team=name)
    cli.ok("send-message", "bob", "a secret word", agent="lea", team=name)
    if closed:
        cli.ok("close-team", agent="lea", team=name)


def team_names(cli: Cli) -> set[str]:
    return {row["name"] for row in cli.ok("discover-teams", "--all", agent="lea")}


def test_only_closed_teams_of_that_age_are_removed_and_only_after_a_yes(cli: Cli) -> None:
    """No file of a removed team is left, and its name can be used again."""
    made(cli, "old")
    made(cli, "going-on", closed=False)
    assert cli.ok("prune", "--yes", agent="lea") == []
    rows = cli.ok("prune", "--older-than", "0s", agent="lea")
    assert [(row["team"], row["removed"], row["kept"]) for row in rows] == [("old", False, None)]
    assert team_names(cli) == {"old", "going-on"}
    rows = cli.ok("prune", "--older-than", "0", "--yes", agent="lea")
    assert [(row["team"], row["removed"]) for row in rows] == [("old", True)]
    assert team_names(cli) == {"going-on"}
    assert cli.refused("show-team", "old", agent="lea")[1] == "team_not_found"
    assert not [path for path in cli.root.rglob("*") if "old" in path.name]
    cli.ok("spawn-team", "old", agent="zed")
    assert cli.ok("get-tasks", agent="zed", team="old") == []
    assert cli.ok("create-task", "anew", agent="zed", team="old")["id"] == "task-1"


@pytest.mark.parametrize("age", ["0", "0.5", "12h", "90m"])
def test_the_list_of_what_would_be_removed_names_a_command_that_removes_it(cli: Cli, age: str) -> None:
    made(cli, "old")
    team, revision = cli.store().get("old", TEAM, "old")
    cli.store().replace("old", TEAM.even_in_closed_team, "old", team.having(closed_at="2026-01-01T00:00:00Z"), revision)
    listed = cli("prune", "--older-than", age, "--as", "human", agent="").stdout
    command = listed.rpartition("To remove them: teams ")[2]
    assert "--older-than" in command and cli.ok(*shlex.split(command), agent="")[0]["removed"]


def test_a_new_team_keeps_its_files_while_the_old_one_of_that_name_is_removed(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Removing logs and worktrees may take long."""
    made(cli, "old")
    old_files = [cli.root / directory / "old/bob/file" for directory in ("logs", "started")]
    new_file = cli.root / "worktrees/old/zed/work"
    for file in old_files:
        file.parent.mkdir(parents=True)
        file.touch()
    removed = shutil.rmtree

    def slowly(path: str, **more: bool) -> None:
        if cli("spawn-team", "old", agent="zed").status == 0:  # the first time
            new_file.parent.mkdir(parents=True)
            new_file.touch()
        removed(path, **more)

    monkeypatch.setattr(shutil, "rmtree", slowly)
    closing.remove(cli.store(), "old", LEA)
    assert new_file.exists() and not any(file.exists() for file in old_files)
    assert not list((cli.root / "tmp").glob("dropped-*"))


def test_who_does_not_lead_a_team_removes_nothing(cli: Cli) -> None:
    made(cli, "old")
    rows = cli.ok("prune", "--older-than", "0", "--yes", agent="bob")
    assert not rows[0]["removed"] and "may not prune" in rows[0]["kept"]
    assert team_names(cli) == {"old"}
    assert (
        cli.ok("prune", "--older-than", "1d", agent="bob") == cli.ok("prune", "--older-than", "24h", agent="bob") == []
    )
    assert cli.refused("prune", "--older-than", "-1", agent="lea") == (2, "invalid_value")


def test_a_person_without_a_name_gets_one_from_each_answer(cli: Cli) -> None:
    """Errors, `whoami` and commands to paste tell a person that its name is `human`."""
    made(cli, "old", closed=False)
    for words in ("sent", "interject bob hi", "stop-agent bob", "worktree merge bob", "close-team --force"):
        refused = cli(*words.split(), agent="")
        assert refused.status == 2 and "--as human" in refused.stderr and "read-messages" not in refused.stderr
    shown = cli("whoami", agent="").stdout
    assert "`human`" in shown and f"root: {cli.root}" in shown
    closed = cli("close-team", "--force", "--as", "human", agent="")
    assert closed.stdout.startswith("old: closed; to reopen it: teams restore-team old --as human\n")


def test_a_copy_names_commands_that_work(cli: Cli, tmp_path: Path) -> None:
    """Copying a team is refused while a task is in progress; a copy names the command to continue with."""
    made(cli, "old", closed=False)
    cli.ok("create-task", "x", agent="lea", team="old")
    cli.ok("claim-task", "1", agent="bob", team="old")
    words = ("copy-team", "old", "--to", str(tmp_path / "other place"))
    refused = cli(*words, "--json", agent="lea")
    assert refused.error["hint"] == "Wait for them: teams wait --all-tasks"
    assert "--force" in cli("close-team", "--json", agent="lea", team="old").error["hint"]
    cli.ok("release-task", "1", agent="bob", team="old")
    command = cli(*words, agent="lea").stdout.rpartition("continue there: teams ")[2]
    assert cli.ok(*shlex.split(command), agent="lea", team="")["team"] == "old"


@pytest.mark.parametrize(
    "key",
    ["max_depth", "max_broadcasts_per_agent", "max_shadows", "max_resumes_per_hour", "budget"],
)
def test_a_setting_that_counts_is_a_whole_number(cli: Cli, key: str) -> None:
    """Times may have fractions; older configurations may, too, and their whole part counts."""
    made(cli, "old", closed=False)
    (cli.root / "config.json").write_text(json.dumps({"settings": {key: 2.5}}))
    assert cli.ok("spawn-team", "new", agent="zoe", team="new")["settings"][key] == 2
    refused = cli("set", key, "1.5", "--json", agent="lea", team="old")
    assert refused.status == 2 and "a whole number from" in refused.error["hint"]
    assert cli.ok("set", key, "2.0", agent="lea", team="old")["value"] == 2
    assert cli.ok("set", "circlingAfter", "1.5m", agent="lea", team="old")["value"] == 90


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("rules", "Be kind"),
        ("worktree.copy", ".env"),
        ("onLimit", "wait"),
        ("budget", "100"),
    ],
)
def test_an_empty_value_brings_the_default_back(cli: Cli, key: str, value: str) -> None:
    def row() -> tuple[str, str]:
        found = next(row for row in cli.ok("settings", agent="human")["settings"] if row["key"] == key)
        return found["value"], found["source"]

    default = row()
    assert default[1] == "default"
    for user in (["--user"], []):
        if not user:
            made(cli, "old", closed=False)
        cli.ok("set", *user, key, value, agent="human")
        assert row()[1] == ("user" if user else "team")
        assert cli.refused("set", *user, key, " ", agent="human") == (2, "invalid_value")
        assert cli.ok("set", *user, key, "", agent="human") == {"key": key, "value": default[0], "source": "default"}
        assert row() == default
        cli.ok("set", *user, key, "", agent="human")


def test_a_history_without_changes_says_so(cli: Cli) -> None:
    made(cli, "old", closed=False)
    assert cli("history", "--since", "9999-01-01", agent="lea", team="old").stdout == "no changes\n"
    assert cli.ok("history", "--since", "9999-01-01", agent="lea", team="old") == []


def test_a_member_of_a_closed_team_is_not_told_to_write_to_the_leader(cli: Cli) -> None:
    """Nobody can send messages there."""
    made(cli, "old")
    for operation in ("restore-team", "export"):
        assert cli(operation, "--json", agent="bob", team="old").error["hint"] == "Allowed to: team-leader, human."
