"""Whatever can't be: refused with the documented status, saying what, why and what to do, and nothing is changed."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from teams_cli.cli.main import run
from teams_cli.membership import shutdowns
from teams_cli.messages import messages
from teams_cli.tasks import claims, plans
from teams_cli.teams.caller import Caller
from tests.support.cli import ALPHA, COMMAND, Cli, add_tasks, make_team, tree

BAD_NAMES = {
    "empty": "",
    "blank": "  ",
    "dot": ".",
    "dots": "..",
    "traversal": "../../evil",
    "absolute": "/tmp/evil",
    "backslash": "..\\evil",
    "newline at the end": "bob\n",
    "newline inside": "bo\nb",
    "tab": "bo\tb",
    "space": "bo b",
    "escape": "bo\x1b[31mb",
    "Cyrillic look-alike": "b\u043eb",
    "superscript digits": "bob\u00b2",
    "full-width digit": "bob\uff11",
    "zero-width space": "bo\u200bb",
    "right-to-left override": "bo\u202eb",
    "emoji": "\U0001f600",
    "combining accent": "bobe\u0301",
    "300 characters": "a" * 300,
    "65 characters": "a" * 65,
    "leading hyphen": "-bob",
    "leading underscore": "_bob",
    "hidden": ".bob",
    "at": "@",
    "tilde": "~",
    "star": "*",
    "dollar": "$HOME",
    "device": "NUL",
    "device in lower case": "com1",
    "reserved human": "human",
    "reserved system": "System",
    "reserved all": "ALL",
    "percent": "%s",
    "braces": "{0}",
    "file": "team.json",
}


@pytest.mark.parametrize("name", BAD_NAMES.values(), ids=BAD_NAMES)
def test_a_bad_name_names_nothing(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    """No team, agent or role is called that; where nothing was, nothing is made."""
    root = tmp_path / "root"
    monkeypatch.setenv("TEAMS_HOME", str(root))
    assert run(["spawn-team", "--as", "lea", "--", name]) == 2
    assert (name in ("human", "")) or run(["spawn-team", "alpha", "--as=" + name]) == 2
    assert tree(root) is None
    cli = make_team(root)
    before = tree(root)
    assert run(["spawn-team", "--as", "lea", "--", name]) == 2
    if name:
        assert run(["join-team", "alpha", "--as=" + name]) == 2
    assert run(["define-role", "--as", "lea", "--team", "alpha", "--", name]) == 2
    assert run(["show-team", "--", name]) in ((0,) if name == "" else (10, 2))
    assert run(["send-message", "--as", "lea", "--team", "alpha", "--", name, "hi"]) in (
        (0,) if name == "human" else (2, 10)
    )
    if name != "human":
        assert tree(root) == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["root"]
    said = capsys.readouterr().err
    assert "\x1b" not in said and "\u202e" not in said and cli.root == root


@pytest.mark.parametrize("name", [b"b\xffb", b"\xed\xa0\x80"], ids=["invalid UTF-8", "surrogate"])
def test_a_name_that_is_no_text(name: bytes, tmp_path: Path) -> None:
    cli = Cli(tmp_path / "root", agent="lea")
    assert cli.refused(b"spawn-team", name) == (2, "invalid_value")
    assert tree(tmp_path / "root") is None


def test_names_that_differ_only_in_case(tmp_path: Path) -> None:
    """They would be one file on some systems, and one person's mistake on all."""
    cli = make_team(tmp_path / "root", "bob")
    assert cli.refused("spawn-team", "ALPHA", agent="zoe") == (11, "already_exists")
    assert cli.refused("join-team", agent="Bob") == (11, "already_exists")
    cli.ok("define-role", "security", agent="lea")
    assert cli.refused("define-role", "Security", agent="lea") == (11, "already_exists")
    assert cli.refused("define-role", "Team-Member", agent="lea")[0] in (2, 11)


@pytest.fixture(scope="module")
def cli(tmp_path_factory: pytest.TempPathFactory) -> Cli:
    """A team at work. Every command of these tests is refused, so one team serves them all.

    task-1 is bob's, task-2 waits for it, task-3 is free, task-4 is free and asks for a skill.
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
    shutdowns.request(store, ALPHA, Caller("lea"), "mia")
    return cli


LONG_LINE = "x" * 501
REFUSED = [
    # words, who asks, exit status, code
    ("frobnicate", "bob", 2, "wrong_usage"),
    ("claim-task --frob", "bob", 2, "wrong_usage"),
    ("claim-task 1 2", "bob", 2, "wrong_usage"),
    ("claim-task", "bob", 2, "wrong_usage"),
    ("claim-task 1 --next", "bob", 2, "wrong_usage"),
    ("claim-task --json=1 3", "bob", 2, "wrong_usage"),
    ("send-message", "bob", 2, "wrong_usage"),
    ("send-message lea", "bob", 2, "wrong_usage"),
    ("send-message lea hi there", "bob", 2, "wrong_usage"),
    ("send-message lea -hi", "bob", 2, "wrong_usage"),
    ("update-task 1", "bob", 2, "wrong_usage"),
    ("update-task 1 --status done", "bob", 2, "wrong_usage"),
    ("update-task 1 --status in_progress", "bob", 2, "invalid_value"),
    ("update-task 1 --status COMPLETED", "bob", 2, "wrong_usage"),
    ("update-task 1 --priority medium", "bob", 2, "wrong_usage"),
    ("update-task 1 --claim one --status completed", "bob", 2, "wrong_usage"),
    ("create-task t --priority urgent", "lea", 2, "wrong_usage"),
    ("create-task t --blocked-by x", "lea", 2, "invalid_value"),
    ("create-task t --blocked-by task-99", "lea", 10, "task_not_found"),
    ("create-task t --require=", "lea", 2, "invalid_value"),
    (f"create-task t --require {'s' * 300}", "lea", 2, "invalid_value"),
    ("create-task t --run=", "lea", 2, "invalid_value"),
    (f"create-task {LONG_LINE}", "lea", 2, "invalid_value"),
    ("get-tasks --status open", "bob", 2, "wrong_usage"),
    ("get-tasks --limit 0", "bob", 2, "wrong_usage"),
    ("get-tasks --limit -1", "bob", 2, "wrong_usage"),
    ("get-tasks --limit many", "bob", 2, "wrong_usage"),
    ("get-tasks --limit 1.5", "bob", 2, "wrong_usage"),
    (f"get-tasks --limit {'9' * 5000}", "bob", 2, "wrong_usage"),
    ("read-messages --limit 0", "bob", 2, "wrong_usage"),
    ("read-messages --wait soon", "bob", 2, "wrong_usage"),
    ("read-messages --wait nan", "bob", 2, "invalid_value"),
    ("read-messages --wait -1", "bob", 2, "invalid_value"),
    ("wait --all-tasks --timeout nan", "bob", 2, "invalid_value"),
    ("wait --all-tasks --timeout=-1", "bob", 2, "invalid_value"),
    ("read-messages --since yesterday", "bob", 2, "invalid_value"),
    ("show-task 0", "bob", 2, "invalid_value"),
    ("show-task 01", "bob", 2, "invalid_value"),
    ("show-task task-", "bob", 2, "invalid_value"),
    ("show-task msg-1", "bob", 2, "invalid_value"),
    ("show-task ../task-1", "bob", 2, "invalid_value"),
    ("show-task 1\n", "bob", 2, "invalid_value"),
    ("show-task \u00b2", "bob", 2, "invalid_value"),
    ("show-task \u0661", "bob", 2, "invalid_value"),
    ("show-task 9999999999999", "bob", 2, "invalid_value"),
    ("show-task 99", "bob", 10, "task_not_found"),
    ("claim-task 99", "bob", 10, "task_not_found"),
    ("update-task 99 --result x", "bob", 10, "task_not_found"),
    ("release-task 99", "bob", 10, "task_not_found"),
    ("heartbeat --task 99", "bob", 10, "task_not_found"),
    ("ack 99", "bob", 10, "message_not_found"),
    ("ack 1 99", "bob", 10, "message_not_found"),
    ("ack task-1", "bob", 2, "invalid_value"),
    ("reply 99 hi", "bob", 10, "message_not_found"),
    ("reply 1 hi", "mia", 10, "message_not_found"),
    ("approve-plan 99", "lea", 10, "plan_not_found"),
    ("reject-plan 99 --feedback no", "lea", 10, "plan_not_found"),
    ("reject-plan 1", "lea", 2, "wrong_usage"),
    ("reject-plan 1 no --feedback no", "lea", 2, "wrong_usage"),
    ("propose-plan p --task 99", "bob", 10, "task_not_found"),
    ("propose-plan p --revises 99", "bob", 10, "plan_not_found"),
    ("approve-shutdown 99", "mia", 10, "shutdown_not_found"),
    ("approve-shutdown", "bob", 10, "shutdown_not_found"),
    ("reject-shutdown 1", "mia", 2, "wrong_usage"),
    ("request-shutdown ghost", "lea", 10, "agent_not_found"),
    ("request-shutdown human", "lea", 2, "invalid_value"),
    ("request-shutdown lea", "lea", 2, "invalid_value"),
    ("wait --task 99", "bob", 10, "task_not_found"),
    ("wait --plan 99", "bob", 10, "plan_not_found"),
    ("wait --agent ghost", "bob", 10, "agent_not_found"),
    ("send-message ghost hi", "bob", 10, "agent_not_found"),
    ("send-message bob hi", "bob", 2, "invalid_value"),
    ("send-message all hi", "bob", 10, "agent_not_found"),
    ("send-message lea hi --uid ../x", "bob", 2, "invalid_value"),
    ("send-message lea hi --uid=", "bob", 2, "invalid_value"),
    (f"send-message lea hi --uid {'u' * 65}", "bob", 2, "invalid_value"),
    ("send-message mia hi --uid once", "lea", 11, "uid_taken"),
    ("send-message bob other --uid once", "lea", 11, "uid_taken"),
    ("hand-over ghost", "lea", 10, "agent_not_found"),
    ("hand-over human", "lea", 2, "invalid_value"),
    ("join-team --role wizard", "zoe", 2, "invalid_value"),
    (f"join-team --type {'s' * 65}", "zoe", 2, "invalid_value"),
    ("join-team --type=", "zoe", 2, "invalid_value"),
    (f"join-team --name {'n' * 301}", "zoe", 2, "invalid_value"),
    ("join-team --name=", "zoe", 2, "invalid_value"),
    ("join-team --answer=", "zoe", 2, "invalid_value"),
    ("join-team omega", "zoe", 10, "team_not_found"),
    ("show-team omega", "zoe", 10, "team_not_found"),
    ("restore-team omega", "lea", 10, "team_not_found"),
    ("get-tasks --team omega", "bob", 10, "team_not_found"),
    ("get-tasks --team ../alpha", "bob", 10, "team_not_found"),
    ("define-role team-member", "lea", 2, "invalid_value"),
    ("define-role leader", "lea", 2, "invalid_value"),
    ("define-role r --extends wizard", "lea", 2, "invalid_value"),
    ("define-role r --extends team-leader", "lea", 2, "invalid_value"),
    ("define-role r --extends r", "lea", 2, "invalid_value"),
    ("define-role r --allow fly", "lea", 2, "invalid_value"),
    ("define-role r --deny fly", "lea", 2, "invalid_value"),
    ("define-role r --skill=", "lea", 2, "invalid_value"),
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
    ("update-task 1 --blocked-by 2", "bob", 11, "dependency_cycle"),
    ("update-task 1 --blocked-by 99", "bob", 10, "task_not_found"),
    ("update-task 1 --unblock 3", "bob", 11, "wrong_state"),
    ("update-task 3 --owner ghost", "mia", 10, "agent_not_found"),
    ("update-task 3 --owner lea", "mia", 13, "not_allowed"),
    ("update-task 3 --owner human", "mia", 2, "invalid_value"),
    ("heartbeat --task 3", "bob", 11, "stale_claim"),
    ("reject-plan 2 --feedback no", "lea", 11, "wrong_state"),
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


@pytest.mark.parametrize(("words", "agent", "status", "code"), REFUSED, ids=[f"{r[1]}-{r[0][:40]}" for r in REFUSED])
def test_refused(
    words: str, agent: str, status: int, code: str, cli: Cli, monkeypatch: pytest.MonkeyPatch, capsys
) -> None:
    """As a process with `--json` one object on standard error; for people the message, and then what to do."""
    assert cli.refused(*words.split(" "), agent=agent) == (status, code)
    before = tree(cli.root)
    for name, value in cli.environ(agent).items():
        monkeypatch.setenv(name, value)
    assert run(words.split(" ")) == status
    said = capsys.readouterr()
    what, hint, *more = said.err.split("\n")
    assert said.out == "" and what.startswith("teams: ") and hint.startswith("  ") and more == [""]
    assert tree(cli.root) == before


CHANGES = [
    "leave-team",
    "hand-over bob",
    "close-team",
    "define-role r",
    "create-task t",
    "claim-task 3",
    "claim-task --next",
    "update-task 1 --result x",
    "release-task 1",
    "heartbeat",
    "send-message bob hi",
    "broadcast-message hi",
    "announce busy",
    "read-messages",
    "reply 1 hi",
    "ack 1",
    "propose-plan p",
    "approve-plan 1",
    "reject-plan 1 --feedback no",
    "request-shutdown bob",
    "approve-shutdown",
    "reject-shutdown --reason no",
]


@pytest.mark.parametrize("words", CHANGES)
def test_changes_need_an_identity_that_is_a_member(words: str, cli: Cli, monkeypatch: pytest.MonkeyPatch, capsys):
    """Without an identity 2, saying how to give one; as somebody who did not join 13, saying how to."""
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


@pytest.mark.parametrize("words", READS)
def test_reading_needs_no_identity_and_changes_nothing(words: str, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    before = tree(cli.root)
    for name, value in cli.environ("").items():
        monkeypatch.setenv(name, value)
    assert run(words.split()) == 0
    assert tree(cli.root) == before


@pytest.mark.parametrize("words", [*CHANGES, *READS, "wait --all-tasks", "join-team alpha", "show-team alpha"])
def test_where_nothing_is_nothing_is_made(words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    root = tmp_path / "deep" / "root"
    monkeypatch.setenv("TEAMS_HOME", str(root))
    monkeypatch.setenv("TEAMS_AGENT_ID", "bob")
    for team in ([], ["--team", "alpha"]):
        status = run([*words.split(), *team])
        assert status == (0 if words == "discover-teams" else 10 if team or words.endswith("alpha") else 2)
    assert not (tmp_path / "deep").exists()
    assert "Traceback" not in capsys.readouterr().err


TEXTS = [
    ("send-message", "bob", "TEXT"),
    ("broadcast-message", "TEXT"),
    ("announce", "TEXT"),
    ("reply", "1", "TEXT"),
    ("create-task", "TEXT"),
    ("update-task", "1", "--title", "TEXT"),
    ("propose-plan", "TEXT"),
    ("reject-plan", "1", "--feedback", "TEXT"),
    ("reject-plan", "1", "TEXT"),
    ("reject-shutdown", "1", "--reason", "TEXT"),
    ("update-task", "1", "--result", "TEXT"),
    ("update-task", "1", "--description", "TEXT"),
    ("release-task", "1", "--reason", "TEXT"),
    ("create-task", "t", "--description", "TEXT"),
    ("approve-plan", "1", "--note", "TEXT"),
    ("request-shutdown", "bob", "--reason", "TEXT"),
    ("define-role", "r", "--description", "TEXT"),
]
_ASKERS = {"reply": "bob", "update-task": "bob", "release-task": "bob", "propose-plan": "bob", "reject-shutdown": "mia"}
_OPTIONAL = ("--result", "--description", "--note", "--reason")
_ABOVE = {"announce": 300, "create-task TEXT": 500, "--title": 500, "propose-plan": 2**20, "--result": 2**20}


def _with_text(words: tuple[str, ...], text: str) -> list[str]:
    return [f"{words[i - 1]}={text}" if w == "TEXT" and words[i - 1][:2] == "--" else w for i, w in enumerate(words)]


@pytest.mark.parametrize("words", TEXTS, ids=" ".join)
def test_bad_texts(words: tuple[str, ...], cli: Cli) -> None:
    """Blank, too long, or no Unicode: by argument and by standard input."""
    agent = _ASKERS.get(words[0], "lea")
    piped = ["-" if word == "TEXT" else word for word in words]
    if words[-2] not in _OPTIONAL or words[0] == "reject-shutdown":
        assert cli.refused(*piped, agent=agent, stdin=b" \n\t\n") == (2, "invalid_value")
    limit = next((n for key, n in _ABOVE.items() if key in " ".join(words)), 2**16)
    assert cli.refused(*piped, agent=agent, stdin=b"x" * (limit + 1)) == (2, "invalid_value")
    bad = [b"\xff\xfe" if word == "TEXT" else word for word in words]
    assert cli.refused(*bad, agent=agent) == (2, "invalid_value")
    assert cli.refused(*piped, agent=agent, stdin=b"ok \xff") == (2, "wrong_usage")


def test_a_text_beyond_every_limit_is_not_cut(cli: Cli) -> None:
    """Three bytes a character, so that the place of a cut would be inside one."""
    flood = "\u20ac".encode() * 2**20
    for words, agent in ((["propose-plan", "-"], "bob"), (["create-task", "t", "--run", "-"], "lea")):
        before = tree(cli.root)
        answer = cli(*words, agent=agent, stdin=flood)
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


@pytest.mark.parametrize(
    "text", ["{", "[]", '{"permission": {"tool": {"claim-task": {"*": "maybe"}}}}', '{"agent": 3}']
)
def test_a_configuration_that_can_not_be(text: str, tmp_path: Path) -> None:
    """It names file and field, and nothing is done under half a configuration."""
    cli = make_team(tmp_path / "root", "bob")
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
