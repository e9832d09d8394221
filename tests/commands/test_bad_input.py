"""Whatever can't be: refused with the documented status, saying what, why and what to do, and changing nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from teams_cli.cli.main import run
from tests.support.cli import Cli, make_team, tree

LONG_LINE = "x" * 501
REFUSED = [
    # words, who asks, exit status, code
    ("frobnicate", "bob", 2, "wrong_usage"),
    ("claim-task --frob", "bob", 2, "wrong_usage"),
    ("claim-task", "bob", 2, "wrong_usage"),
    ("claim-task 1 --next", "bob", 2, "wrong_usage"),
    ("send-message", "bob", 2, "wrong_usage"),
    ("send-message lea", "bob", 2, "wrong_usage"),
    ("update-task 1", "bob", 2, "wrong_usage"),
    ("update-task 1 --status done", "bob", 2, "wrong_usage"),
    ("update-task 1 --status in_progress", "bob", 2, "invalid_value"),
    ("create-task t --priority urgent", "lea", 2, "wrong_usage"),
    ("create-task t --blocked-by x", "lea", 2, "invalid_value"),
    ("create-task t --blocked-by task-99", "lea", 10, "task_not_found"),
    (f"create-task t --require {'s' * 300}", "lea", 2, "invalid_value"),
    (f"create-task {LONG_LINE}", "lea", 2, "invalid_value"),
    ("get-tasks --status open", "bob", 2, "wrong_usage"),
    ("get-tasks --limit 0", "bob", 2, "wrong_usage"),
    (f"get-tasks --limit {'9' * 5000}", "bob", 2, "wrong_usage"),
    ("read-messages --wait nan", "bob", 2, "invalid_value"),
    ("read-messages --wait -1", "bob", 2, "invalid_value"),
    ("read-messages --since yesterday", "bob", 2, "invalid_value"),
    ("show-task 0", "bob", 2, "invalid_value"),
    ("show-task msg-1", "bob", 2, "invalid_value"),
    ("show-task ../task-1", "bob", 2, "invalid_value"),
    ("show-task 1\n", "bob", 2, "invalid_value"),
    ("show-task \u00b2", "bob", 2, "invalid_value"),
    ("show-task 99", "bob", 10, "task_not_found"),
    ("update-task 99 --result x", "bob", 10, "task_not_found"),
    ("ack 1 99", "bob", 10, "message_not_found"),
    ("ack task-1", "bob", 2, "invalid_value"),
    ("reply 99 hi", "bob", 10, "message_not_found"),
    ("reply 1 hi", "mia", 10, "message_not_found"),
    ("approve-plan 99", "lea", 10, "plan_not_found"),
    ("reject-plan 1 no --feedback no", "lea", 2, "wrong_usage"),
    ("propose-plan p --revises 99", "bob", 10, "plan_not_found"),
    ("approve-shutdown 99", "mia", 10, "shutdown_not_found"),
    ("approve-shutdown", "bob", 10, "shutdown_not_found"),
    ("reject-shutdown 1", "mia", 2, "wrong_usage"),
    ("request-shutdown ghost", "lea", 10, "agent_not_found"),
    ("request-shutdown human", "lea", 2, "invalid_value"),
    ("wait --agent ghost", "bob", 10, "agent_not_found"),
    ("send-message ghost hi", "bob", 10, "agent_not_found"),
    ("send-message bob hi", "bob", 2, "invalid_value"),
    ("send-message all hi", "bob", 10, "agent_not_found"),
    ("send-message lea hi --uid ../x", "bob", 2, "invalid_value"),
    (f"send-message lea hi --uid {'u' * 65}", "bob", 2, "invalid_value"),
    ("send-message mia hi --uid once", "lea", 11, "uid_taken"),
    ("hand-over ghost", "lea", 10, "agent_not_found"),
    ("hand-over human", "lea", 2, "invalid_value"),
    ("join-team --role wizard", "zoe", 2, "invalid_value"),
    (f"join-team --type {'s' * 65}", "zoe", 2, "invalid_value"),
    (f"join-team --name {'n' * 301}", "zoe", 2, "invalid_value"),
    ("join-team omega", "zoe", 10, "team_not_found"),
    ("show-team omega", "zoe", 10, "team_not_found"),
    ("get-tasks --team omega", "bob", 10, "team_not_found"),
    ("define-role team-member", "lea", 2, "invalid_value"),
    ("define-role r --extends wizard", "lea", 2, "invalid_value"),
    ("define-role r --extends r", "lea", 2, "invalid_value"),
    ("define-role r --allow fly", "lea", 2, "invalid_value"),
    # the state does not admit it
    ("claim-task 1", "mia", 11, "task_claimed"),
    ("claim-task 2", "mia", 11, "task_blocked"),
    ("claim-task 4", "mia", 13, "not_allowed"),
    ("release-task 3", "mia", 11, "wrong_state"),
    ("release-task 1", "zoe", 13, "not_allowed"),
    ("update-task 1 --status completed --claim 7", "bob", 11, "stale_claim"),
    ("update-task 1 --status pending", "bob", 11, "wrong_state"),
    ("update-task 1 --status cancelled", "mia", 11, "wrong_state"),
    ("update-task 3 --status completed", "bob", 11, "wrong_state"),
    ("update-task 1 --blocked-by 1", "bob", 11, "dependency_cycle"),
    ("update-task 1 --blocked-by 99", "bob", 10, "task_not_found"),
    ("update-task 1 --unblock 3", "bob", 11, "wrong_state"),
    ("update-task 3 --owner lea", "mia", 13, "not_allowed"),
    ("update-task 3 --owner human", "mia", 2, "invalid_value"),
    ("heartbeat --task 3", "bob", 11, "stale_claim"),
    ("reject-plan 2 --feedback no", "lea", 11, "wrong_state"),
    ("request-shutdown mia --reason another", "lea", 11, "conflict"),
    ("leave-team", "lea", 11, "wrong_state"),
    ("close-team", "lea", 11, "conflict"),
    ("hand-over bob", "lea", 11, "conflict"),
    ("join-team --role task-manager", "bob", 11, "already_exists"),
    ("spawn-team alpha", "zoe", 11, "already_exists"),
    ("read-messages --wait 0", "mia2", 13, "not_allowed"),
    ("wait --message --timeout 0", "lea2", 14, "wait_ran_out"),
    ("wait --task 3 --timeout 0", "bob", 14, "wait_ran_out"),
]


def test_refused(cli: Cli, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """With `--json` one object on standard error; for people the message, and then what to do."""
    before = tree(cli.root)
    for words, agent, status, code in REFUSED:
        for name, value in cli.environ(agent).items():
            monkeypatch.setenv(name, value)
        assert run(["--json", *words.split(" ")]) == status, words
        said = capsys.readouterr()
        assert said.out == "" and json.loads(said.err)["error"]["code"] == code, words
        assert run(words.split(" ")) == status, words
        said = capsys.readouterr()
        what, hint, *more = said.err.split("\n")
        assert said.out == "" and what.startswith("teams: ") and hint.startswith("  ") and more == [""], words
    assert tree(cli.root) == before


CHANGES = [
    "leave-team",
    "hand-over bob",
    "close-team",
    "create-task t",
    "claim-task 3",
    "update-task 1 --result x",
    "heartbeat",
    "send-message bob hi",
    "announce busy",
    "read-messages",
    "propose-plan p",
    "approve-plan 1",
    "request-shutdown bob",
    "approve-shutdown",
]


def test_changes_need_an_identity_that_is_a_member(cli: Cli, monkeypatch: pytest.MonkeyPatch, capsys):
    """Without an identity 2, saying how to give one; as somebody who did not join 13, saying how to."""
    for words in CHANGES:
        before = tree(cli.root)
        for name, value in cli.environ("").items():
            monkeypatch.setenv(name, value)
        assert run([*words.split(), "--json"]) == 2
        assert json.loads(capsys.readouterr().err)["error"]["code"] == "no_identity"
        assert run([*words.split(), "--json", "--as", "zoe"]) == 13
        error = json.loads(capsys.readouterr().err)["error"]
        assert error["code"] == "not_allowed" and "teams join-team alpha --as zoe" in error["hint"]
        assert run([*words.split(), "--json", "--as", "lea", "--team", "omega"]) == 10
        assert "alpha" in json.loads(capsys.readouterr().err)["error"]["hint"]
        assert tree(cli.root) == before


READS = ["discover-teams", "show-team", "get-tasks", "show-task 1", "list-agents", "get-plans"]


def test_reading_needs_no_identity_and_changes_nothing(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    for words in READS:
        before = tree(cli.root)
        for name, value in cli.environ("").items():
            monkeypatch.setenv(name, value)
        assert run(words.split()) == 0
        assert tree(cli.root) == before


def test_where_nothing_is_nothing_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    for words in [*CHANGES, *READS, "wait --all-tasks", "join-team alpha", "show-team alpha"]:
        root = tmp_path / "deep" / "root"
        monkeypatch.setenv("TEAMS_HOME", str(root))
        monkeypatch.setenv("TEAMS_AGENT_ID", "bob")
        for team in ([], ["--team", "alpha"]):
            status = run([*words.split(), *team])
            assert status == (0 if words == "discover-teams" else 10 if team or words.endswith("alpha") else 2)
        assert not (tmp_path / "deep").exists()
        assert "Traceback" not in capsys.readouterr().err


def test_a_root_that_is_not_ours_to_use(tmp_path: Path) -> None:
    """A file in its place, or a directory into which others may write."""
    file = tmp_path / "file"
    file.write_text("mine")
    answer = Cli(file, agent="lea")("spawn-team", "alpha", "--json")
    assert answer.status == 1 and answer.error["code"] == "storage_failed" and str(file) in answer.error["message"]
    below = Cli(file / "root", agent="lea")("spawn-team", "alpha", "--json")
    assert below.status == 1 and file.read_text() == "mine"
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    answer = Cli(shared, agent="lea")("spawn-team", "alpha", "--json")
    assert answer.status == 13 and "chmod go-w" in answer.error["hint"]


def test_a_configuration_that_can_not_be(tmp_path: Path) -> None:
    """It names file and field, and nothing is done under half a configuration."""
    cli = make_team(tmp_path / "root", "bob")
    for text in ("{", "[]", '{"permission": {"tool": {"claim-task": {"*": "maybe"}}}}', '{"agent": 3}'):
        (cli.root / "config.json").write_text(text)
        before = tree(cli.root)
        answer = cli("send-message", "bob", "hi", "--json", agent="lea")
        assert answer.status == 15 and str(cli.root / "config.json") in answer.error["message"], answer
        assert tree(cli.root) == before


def test_settings_in_the_configuration(tmp_path: Path) -> None:
    """`false` is the word of a setting too; what can't be is named with its file."""
    cli = Cli(tmp_path / "root", agent="lea")
    cli.root.mkdir(0o700)
    for value, status in ((False, 0), (True, 15), (["agents"], 15), ("all", 15)):
        (cli.root / "config.json").write_text(json.dumps({"settings": {"broadcast": value}}))
        answer = cli("spawn-team", f"team{status}", "--json")
        assert answer.status == status, answer
        if status:
            assert "config.json" in answer.error["message"] and "settings.broadcast" in answer.error["message"]
    settings = cli.ok("settings", team="team0")["settings"]
    assert [row["value"] for row in settings if row["key"] == "broadcast"] == ["false"]


def test_another_team_in_the_environment_gets_nothing(tmp_path: Path) -> None:
    """`TEAMS_TEAM` may name a team that is not there, or another one, while a new team is made."""
    cli = Cli(tmp_path / "root", agent="lea", team="ghost")
    cli.ok("spawn-team", "alpha")
    assert sorted(path.name for path in (cli.root / "teams").iterdir() if path.is_dir()) == ["alpha"]
    cli.ok("spawn-team", "beta", agent="zoe", team="alpha")
    assert not (cli.root / "teams/alpha/agents/zoe.json").exists()
