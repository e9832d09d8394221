"""Bad words, names and texts are refused with the documented status and a hint, and change nothing."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from teams_cli.cli.main import run
from teams_cli.membership import shutdowns
from teams_cli.messages import messages
from teams_cli.tasks import claims, plans
from teams_cli.teams.permission import Caller
from tests.support.cli import ALPHA, COMMAND, Cli, add_tasks, make_team, tree


@pytest.fixture(scope="module")
def cli(tmp_path_factory: pytest.TempPathFactory) -> Cli:
    """A team at work; as every command of these tests is refused, one team serves them all.

    task-1 is bob's, task-2 waits for it, task-3 is free, and task-4 is free but requires a skill.
    """
    cli = make_team(tmp_path_factory.mktemp("bad") / "root", "bob", "mia", roles={"mia": "task-manager"})
    add_tasks(cli, "one")
    add_tasks(cli, "two", blocked_by=["task-1"])
    add_tasks(cli, "three")
    add_tasks(cli, "four", require=["juggling"])
    store = cli.store()
    claims.claim(store, ALPHA, Caller("bob"), "1")
    messages.send(store, ALPHA, Caller("lea"), "bob", "hi", uid="once")
    plans.propose(store, ALPHA, Caller("bob"), "a plan")
    plans.propose(store, ALPHA, Caller("mia"), "another")
    plans.approve(store, ALPHA, Caller("lea"), "2")
    shutdowns.request(store, ALPHA, Caller("lea"), ["mia"])
    return cli


LONG_LINE = "x" * 501
REFUSED = [
    # words, who asks, exit status, code
    ("claim-task --frob", "bob", 2, "wrong_usage"),
    ("claim-task", "bob", 2, "wrong_usage"),
    ("claim-task 1 --next", "bob", 2, "wrong_usage"),
    ("send-message lea", "bob", 2, "wrong_usage"),
    ("update-task 1", "bob", 2, "wrong_usage"),
    ("update-task 1 --status done", "bob", 2, "wrong_usage"),
    ("update-task 1 --status in_progress", "bob", 2, "invalid_value"),
    ("create-task t --blocked-by x", "lea", 2, "invalid_value"),
    ("create-task t --blocked-by=", "lea", 2, "invalid_value"),
    ("create-task t --blocked-by task-99", "lea", 10, "task_not_found"),
    (f"create-task {LONG_LINE}", "lea", 2, "invalid_value"),
    (f"get-tasks --limit {'9' * 5000}", "bob", 2, "wrong_usage"),
    *(
        (f"{list_words} --limit {number}", "bob", 2, "wrong_usage")
        for list_words in ("get-tasks", "get-landings", "read-messages", "sent", "history", "search x")
        for number in ("-1", "0", "9" * 23)
    ),
    ("read-messages --wait nan", "bob", 2, "invalid_value"),
    ("propose-plan p --wait=-1", "bob", 2, "invalid_value"),
    ("read-messages --since yesterday", "bob", 2, "invalid_value"),
    ("show-task msg-1", "bob", 2, "invalid_value"),
    ("show-task 1\n", "bob", 2, "invalid_value"),
    ("ack 1 99", "bob", 10, "message_not_found"),
    ("reply 1 hi", "mia", 10, "message_not_found"),
    ("approve-plan 99", "lea", 10, "plan_not_found"),
    ("reject-plan 1 no --feedback no", "lea", 2, "wrong_usage"),
    ("approve-shutdown", "bob", 10, "shutdown_not_found"),
    ("wait --agent ghost", "bob", 10, "agent_not_found"),
    ("send-message bob hi", "bob", 2, "invalid_value"),
    ("send-message all hi", "bob", 10, "agent_not_found"),
    ("send-message lea hi --uid ../x", "bob", 2, "invalid_value"),
    ("send-message mia hi --uid once", "lea", 11, "uid_taken"),
    ("hand-over human", "lea", 2, "invalid_value"),
    ("join-team --role wizard", "zoe", 2, "invalid_value"),
    (f"join-team --type {'s' * 65}", "zoe", 2, "invalid_value"),
    (f"join-team --name {'n' * 301}", "zoe", 2, "invalid_value"),
    ("show-team omega", "zoe", 10, "team_not_found"),
    ("define-role team-member", "lea", 2, "invalid_value"),
    ("define-role r --allow fly", "lea", 2, "invalid_value"),
    # refused because of the state of the team
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
    ("update-task 1 --unblock 3", "bob", 11, "wrong_state"),
    ("update-task 3 --owner lea", "mia", 13, "not_allowed"),
    ("heartbeat --task 3", "bob", 11, "stale_claim"),
    ("reject-plan 2 --feedback no", "lea", 11, "wrong_state"),
    ("request-shutdown mia --reason another", "lea", 11, "conflict"),
    ("leave-team", "lea", 11, "wrong_state"),
    ("close-team", "lea", 11, "conflict"),
    ("hand-over bob", "lea", 11, "conflict"),
    ("join-team --role task-manager", "bob", 11, "already_exists"),
    ("read-messages --wait 0", "mia2", 13, "not_allowed"),
    ("wait --message --timeout 0", "lea2", 14, "wait_ran_out"),
    ("wait --task 3 --timeout 0", "bob", 14, "wait_ran_out"),
]


def test_refused(cli: Cli, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """With `--json` a refusal is one object on standard error, without it a message and then what to do."""
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
    """A change without an identity exits with 2, by a stranger with 13, and the hint says what to do."""
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


def test_where_there_is_no_data_directory_none_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
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
    """A file, or a directory into which others may write, is refused as the data directory."""
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
    """A command names the bad configuration and does nothing."""
    cli = make_team(tmp_path / "root", "bob")
    for text in ("{", "[]", '{"permission": {"tool": {"claim-task": {"*": "maybe"}}}}', '{"agent": 3}'):
        (cli.root / "config.json").write_text(text)
        before = tree(cli.root)
        answer = cli("send-message", "bob", "hi", "--json", agent="lea")
        assert answer.status == 15 and str(cli.root / "config.json") in answer.error["message"], answer
        assert tree(cli.root) == before


BAD_NAMES = {
    "empty": "",
    "blank": "  ",
    "traversal": "../../evil",
    "escape": "bo\x1b[31mb",
    "Cyrillic look-alike": "b\u043eb",
    "right-to-left override": "bo\u202eb",
    "leading hyphen": "-bob",
    "reserved human": "human",
    "reserved all": "ALL",
}


def test_bad_names_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    none, root = tmp_path / "none", tmp_path / "root"
    make_team(root)
    before = tree(root)
    for name in BAD_NAMES.values():
        monkeypatch.setenv("TEAMS_HOME", str(none))
        assert run(["spawn-team", "--as", "lea", "--", name]) == 2
        assert name in ("human", "") or run(["spawn-team", "alpha", "--as=" + name]) == 2
        monkeypatch.setenv("TEAMS_HOME", str(root))
        assert run(["spawn-team", "--as", "lea", "--", name]) == 2
        assert not name or run(["join-team", "alpha", "--as=" + name]) == 2
        assert run(["define-role", "--as", "lea", "--team", "alpha", "--", name]) == 2
        assert run(["show-team", "--", name]) in ((0,) if name == "" else (10, 2))
        sent = run(["send-message", "--as", "lea", "--team", "alpha", "--", name, "hi"]) if name != "human" else 2
        assert sent in (2, 10)
        assert tree(root) == before, repr(name)
    assert [path.name for path in tmp_path.iterdir()] == ["root"]
    said = capsys.readouterr().err
    assert "\x1b" not in said and "\u202e" not in said


def test_a_name_that_is_no_text(tmp_path: Path) -> None:
    for name in (b"b\xffb", b"\xed\xa0\x80"):  # invalid UTF-8, a surrogate
        cli = Cli(tmp_path / "root", agent="lea")
        assert cli.refused(b"spawn-team", name) == (2, "invalid_value")
        assert tree(tmp_path / "root") is None


def test_names_that_differ_only_in_case(tmp_path: Path) -> None:
    """Names that differ only in case are refused, as they would be one file on some systems."""
    cli = make_team(tmp_path / "root", "bob")
    assert cli.refused("spawn-team", "ALPHA", agent="zoe") == (11, "already_exists")
    assert cli.refused("join-team", agent="Bob") == (11, "already_exists")
    cli.ok("define-role", "security", agent="lea")
    assert cli.refused("define-role", "Security", agent="lea") == (11, "already_exists")
    assert cli.refused("define-role", "Team-Member", agent="lea")[0] in (2, 11)


def test_blank_too_long_and_wrongly_encoded_texts_are_refused(cli: Cli) -> None:
    for agent, limit, *words in (
        ("lea", 2**16, "send-message", "bob"),
        ("lea", 500, "create-task"),
        ("mia", 2**16, "reject-shutdown", "1", "--reason"),
    ):
        for text in (b" \n\t\n", b"x" * (limit + 1)):
            assert cli.refused(*words, "-", agent=agent, stdin=text) == (2, "invalid_value")
        assert cli.refused(*words, b"\xff\xfe", agent=agent) == (2, "invalid_value")
        assert cli.refused(*words, "-", agent=agent, stdin=b"ok \xff") == (2, "wrong_usage")


def test_a_text_beyond_every_limit_is_not_cut(cli: Cli) -> None:
    """A text of three-byte characters, one of which a cut would split, is refused whole."""
    before = tree(cli.root)
    answer = cli("propose-plan", "-", agent="bob", stdin="\u20ac".encode() * 2**20)
    assert answer.status == 2 and "bytes" in answer.stderr and answer.stdout == "", answer
    assert tree(cli.root) == before


def test_standard_input_that_is_closed(cli: Cli) -> None:
    shell = ["sh", "-c", 'exec "$@" <&-', "sh", *COMMAND]
    words = ["send-message", "bob", "-", "--json"]
    done = subprocess.run([*shell, *words], env=cli.environ("lea"), capture_output=True, timeout=60)
    assert done.returncode == 2 and json.loads(done.stderr)["error"]["code"] == "wrong_usage"


def test_the_longest_texts_are_taken_whole(tmp_path: Path) -> None:
    cli = make_team(tmp_path / "root", "bob")
    add_tasks(cli, "t")
    claims.claim(cli.store(), ALPHA, Caller("bob"), "1")
    text = "\u00e4" * 2**15
    assert cli.ok("send-message", "bob", "-", agent="lea", stdin=text.encode())["message"] == text
    result = "y" * 2**20
    done = cli.ok("update-task", "1", "--status", "completed", "--result", "-", agent="bob", stdin=result.encode())
    assert done["result"] == result


def test_several_ids_stand_wherever_one_can(tmp_path: Path) -> None:
    cli = make_team(tmp_path / "root", "bob")
    add_tasks(cli, "one", "two", "three", "four")
    cli.ok("update-task", "4", "--blocked-by", "1,2", "--blocked-by", "3", agent="lea")
    assert cli.ok("update-task", "4", "--unblock", "1", "task-2", agent="lea")["blockedBy"] == ["task-3"]
    cli.ok("create-task", "five", "--blocked-by", "1, 2", agent="lea")
    assert cli.ok("show-task", "5")["blockedBy"] == ["task-1", "task-2"]
    assert [task["id"] for task in cli.ok("show-task", "1", "#2")] == ["task-1", "task-2"]
    assert cli("claim-task", "1,2", agent="bob").stdout.count("in_progress by bob") == 2
    assert [task["status"] for task in cli.ok("release-task", "1 2", agent="bob")] == ["pending", "pending"]
    cli.ok("note", "1,2", "as said", agent="bob")
    assert cli.ok("show-task", "2")["notes"][-1]["added"] == "as said"
    refused = cli("release-task", "3,4", agent="bob")
    assert refused.status != 0 and "done)" not in refused.stderr
    for _ in range(2):
        cli.ok("send-message", "bob", "how?", agent="lea")
    cli.ok("ack", "1,2", agent="bob")
