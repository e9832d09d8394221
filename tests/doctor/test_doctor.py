"""`doctor` on files: it finds all that can be wrong, and `--fix` mends it without losing anything."""

from __future__ import annotations

import fcntl
import importlib
import json
import os
import pkgutil
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

import teams_cli
from teams_cli import kinds
from teams_cli.store.contract import Kind
from teams_cli.tasks import claims
from teams_cli.teams import presence
from teams_cli.teams.permission import Caller
from tests.support.agents import NEEDS_PROC
from tests.support.cli import ALPHA, TIMEOUT, Cli, add_tasks, make_team, tree

A_DAY_AND_A_HALF = 36 * 3600


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    cli = make_team(tmp_path / "root", "bob", "cal")
    add_tasks(cli, "first", "second")
    return cli


def findings(cli: Cli, *words: str, healthy: bool) -> list[dict[str, str]]:
    """What doctor finds; its exit status must be that of the worst finding."""
    answer = cli("doctor", *words, "--json")
    document = json.loads(answer.stdout)
    assert (answer.status, document["healthy"]) == (0 if healthy else 1, healthy), answer
    for finding in document["findings"]:
        assert list(finding) == ["level", "where", "what", "remedy"] and finding["what"], finding
    found: list[dict[str, str]] = document["findings"]
    return found


def the_one(cli: Cli, *words: str, healthy: bool) -> dict[str, str]:
    (finding,) = findings(cli, *words, healthy=healthy)
    return finding


def test_nothing_is_found_where_nothing_is_wrong(cli: Cli) -> None:
    before = tree(cli.root)
    assert findings(cli, healthy=True) == []
    assert cli("doctor").stdout == f"{cli.root}: healthy\n"
    assert tree(cli.root) == before


@NEEDS_PROC
def test_a_lock_that_is_held_is_named_with_its_process(cli: Cli) -> None:
    for place in ("teams/alpha/.lock", "tasks/alpha/.lock"):
        with open(cli.root / place, "a") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            found = the_one(cli, healthy=True)
        assert (found["where"], found["what"]) == (str(cli.root / place), f"is held by process {os.getpid()}")


def test_every_kind_of_record_is_looked_at() -> None:
    """Every kind of record is in the list from which `doctor` and `copy-team` work."""
    found = []
    for module in pkgutil.walk_packages(teams_cli.__path__, "teams_cli."):
        if not module.name.endswith("__main__"):
            found += [value for value in vars(importlib.import_module(module.name)).values() if isinstance(value, Kind)]
    assert set(found) == set(kinds.ALL)


PLACES = [
    "teams/alpha/agents/bob.json",
    "teams/alpha/inboxes/bob.json",
    "tasks/alpha/task-1.json",
    "teams/alpha/messages/0/1.bob.x.json",
    "teams/alpha/pages/api.json",
    "teams/alpha/plans/plan-1.json",
    "teams/alpha/questions/ask-1.json",
    "teams/alpha/shutdowns/shutdown-1.json",
    "teams/alpha/sessions/bob.json",
    "teams/alpha/terminals/bob.json",
    "teams/alpha/outputs/bob.json",
    "teams/alpha/usages/bob.json",
    "teams/alpha/evidence/evidence-1.json",
    "teams/alpha/landings/landing-1.json",
    "teams/alpha/runs/run-1.json",
]


@pytest.mark.parametrize("kind", ["agents", "inboxes", "sessions", "terminals", "usages"])
def test_a_damaged_record_that_other_checks_need_hides_no_other_problem(cli: Cli, kind: str) -> None:
    """It belongs to the owner of a task in progress. It is named once, with something else to do than this command."""
    cli.ok("claim-task", "1", agent="bob")
    (cli.root / "tasks/alpha/task-2.json").write_text("{}")
    record = cli.root / f"teams/alpha/{kind}/bob.json"
    record.parent.mkdir(exist_ok=True)
    record.write_text("{}")
    assert sorted(finding["what"].split(": ")[0] for finding in findings(cli, healthy=False)) == [
        str(cli.root / "tasks/alpha/task-2.json"),
        str(record),
    ]
    assert "doctor`" not in cli("doctor").stdout


def test_damaged_files_are_named_and_put_aside_whole(cli: Cli) -> None:
    for place in PLACES:
        (cli.root / place).parent.mkdir(parents=True, exist_ok=True)
        (cli.root / place).write_bytes(b'{"half": ')
    found = findings(cli, healthy=False)
    for place in PLACES:
        (named,) = [finding for finding in found if str(cli.root / place) in finding["what"]]
        assert named["level"] == "problem" and named["remedy"], place
        assert (cli.root / place).read_bytes() == b'{"half": '
    assert {finding["level"] for finding in findings(cli, "--fix", healthy=True)} == {"fixed"}
    for place in PLACES:
        (aside,) = (cli.root / "quarantine").glob(f"{place.replace('/', '.')}*")
        assert (aside.read_bytes(), (cli.root / place).exists()) == (b'{"half": ', False)
    assert findings(cli, healthy=True) == []


def test_a_team_whose_own_file_is_damaged_is_left_where_it_is(cli: Cli) -> None:
    """Only a person can say what such a team was."""
    file = cli.root / "teams/alpha/team.json"
    file.write_bytes(b"[]")
    for words in ([], ["--fix"]):
        assert str(file) in the_one(cli, *words, healthy=False)["what"]
    assert file.read_bytes() == b"[]"


def test_what_a_crash_left_is_mended(cli: Cli) -> None:
    """Old temporary files, marks without a task and missing marks of tasks are found and mended."""

    def fixed() -> str:
        found = the_one(cli, healthy=True)
        assert found["level"] == "warning" and the_one(cli, "--fix", healthy=True)["level"] == "fixed"
        assert findings(cli, healthy=True) == []
        return f"{found['where']}: {found['what']}"

    young, old = (cli.root / "tmp" / name for name in ("young", "old"))
    for file in (young, old):
        file.write_text("half")
    then = time.time() - A_DAY_AND_A_HALF - 60
    os.utime(old, (then, then))
    assert fixed().startswith(f"{old}: ") and (young.exists(), old.exists()) == (True, False)
    marks = cli.root / "tasks/alpha/index/free-normal"
    (marks / "task-1").unlink()
    assert "task-1 is not in the index" in fixed() and (marks / "task-1").exists()
    for number in range(900, 1000):
        (marks / f"task-{number}").touch()
    assert "100 marks of free-normal" in fixed()
    assert sorted(path.name for path in marks.iterdir()) == ["task-1", "task-2"]


def test_the_process_that_holds_a_lock_is_named(cli: Cli) -> None:
    """While a process with a lock hangs, all others wait, and only a person can end it."""
    code = (
        "import sys, time; from teams_cli.store.files.locks import Lock\nwith Lock(sys.argv[1], 1): print(flush=True); "
    )
    code += "time.sleep(99)"
    lock = cli.root / "teams/alpha/messages"
    lock.mkdir(exist_ok=True)
    holder = subprocess.Popen([sys.executable, "-c", code, str(lock)], stdout=subprocess.PIPE)
    try:
        assert holder.stdout is not None and holder.stdout.readline()
        found = the_one(cli, healthy=True)
        assert found["where"] == str(lock / ".lock") and f"process {holder.pid}" in found["what"]
        assert "stopped" not in found["what"]
    finally:
        holder.kill()
        holder.communicate(timeout=TIMEOUT)
    assert findings(cli, healthy=True) == []


def test_blockers_that_never_end_are_named(cli: Cli) -> None:
    """A cancelled blocker is a warning; a missing one or a circle, made by hand, is a problem."""
    add_tasks(cli, "third")
    cli.ok("update-task", "2", "--blocked-by", "1", agent="lea")
    cli.ok("update-task", "1", "--status", "cancelled", agent="human")
    found = the_one(cli, healthy=True)
    assert (found["level"], found["what"][:17]) == ("warning", "task-1 cancelled:")
    assert found["what"].endswith("1 task waits for it: task-2")
    cli.ok("spawn-team", "beta", agent="lea")  # so that a command must name its team
    again, without = re.findall(r"teams ([^;]+)", found["remedy"])
    assert cli(*without.split(), agent="lea", team="").status == 0 and findings(cli, healthy=True) == []
    assert cli(*again.replace("WHY", "x").split(), agent="human", team="").status == 0
    for task, blockers in ((1, ["task-2"]), (2, ["task-1"]), (3, ["task-9"])):
        file = cli.root / f"tasks/alpha/task-{task}.json"
        file.write_text(json.dumps({**json.loads(file.read_text()), "blockedBy": blockers}))
    found_problems = [finding for finding in findings(cli, healthy=False) if finding["level"] == "problem"]
    problems = [finding["what"] for finding in found_problems]
    assert found_problems[1]["remedy"] == "teams update-task task-1 --unblock task-2 --team alpha"
    assert [what.split(", which")[0] for what in problems] == [
        "task-3 waits for task-9",
        "task-1 waits for itself through others",
        "task-2 waits for itself through others",
    ]


def test_a_claim_that_is_over_is_released(cli: Cli) -> None:
    """A claim from before the machine's restart is over, since its clock has started anew."""
    claims.claim(cli.store(), ALPHA, Caller("bob"), "1")
    file = cli.root / "tasks/alpha/task-1.json"
    document = json.loads(file.read_text())
    file.write_text(json.dumps({**document, "leaseEpoch": "an earlier start"}))
    assert "the claim on task-1 is over" in the_one(cli, healthy=True)["what"]
    assert json.loads(file.read_text())["status"] == "in_progress"
    assert the_one(cli, "--fix", healthy=True)["level"] == "fixed"
    assert json.loads(file.read_text())["status"] == "pending"


def test_rules_that_change_nothing_are_warned_of(cli: Cli) -> None:
    cli.ok("define-role", "auditor", agent="lea")
    rules = {"claim-taks": {"*": "deny"}, "claim-task": {"auditor": "ask", "nobody": "deny", "member": "allow"}}
    roles = {"scribe": {"extends": "team-member", "deny": ["send-mesage"], "allow": ["create-task"]}}
    (cli.root / "config.json").write_text(json.dumps({"permission": {"tool": rules}, "agent": roles}))
    found = findings(cli, healthy=True)
    assert {finding["level"] for finding in found} == {"warning"}
    assert [(finding["where"], finding["what"].split(",")[0]) for finding in found] == [
        ("config.json: permission.tool.claim-taks", "there is no operation 'claim-taks'"),
        ("config.json: permission.tool.claim-task.nobody", "there is no role 'nobody'"),
        ("config.json: agent.scribe", "there is no operation 'send-mesage'"),
    ]


def test_keys_of_the_configuration_that_mean_nothing_are_warned_of(cli: Cli) -> None:
    """A misspelt key would turn off the person's denials without a word."""
    role = {"extends": "team-member", "deni": ["send-message"]}
    client = {"start": ["mine"], "resume": ["mine"], "zzz": 1}
    document = {"$schema": "./s.json", "permision": {"tool": {}}, "agent": {"qa": role}, "harness": {"mine": client}}
    (cli.root / "config.json").write_text(json.dumps(document))
    found = findings(cli, healthy=True)
    assert {finding["level"] for finding in found} == {"warning"}
    assert [(finding["where"], finding["what"].split(",")[0], finding["remedy"][:30]) for finding in found] == [
        ("config.json: permision", "there is no key 'permision'", "Did you mean permission?"),
        ("config.json: agent.qa.deni", "there is no key 'deni'", "Did you mean deny?"),
        ("config.json: harness.mine.zzz", "there is no key 'zzz'", "Keys: name, description, start"),
    ]


@pytest.mark.parametrize("is_new", [False, True])
def test_values_of_the_configuration_that_would_be_refused_are_found(cli: Cli, tmp_path: Path, is_new: bool) -> None:
    """They are found before they are used, also where there is no team yet."""
    if is_new:
        cli = Cli(tmp_path / "new")
        cli.root.mkdir(0o700)
    values = {"staleAfterSeconds": -5, "delivery": "quick", "stale_after": 60, "budget": 10}
    clients = {"mine": {"start": "x", "resume": ["x"]}, "claude": {"permissions": "all"}}
    (cli.root / "config.json").write_text(json.dumps({"settings": values, "harness": clients}))
    found = findings(cli, healthy=False)
    assert all(finding["level"] == "problem" and finding["remedy"] for finding in found)
    assert [(finding["where"], finding["what"]) for finding in found] == [
        ("config.json: settings.staleAfterSeconds", "'-5' is not a valid value of staleAfterSeconds"),
        ("config.json: settings.delivery", "'quick' is not a valid value of delivery"),
        ("config.json: settings.stale_after", "there is no setting 'stale_after'"),
        ("config.json: harness.mine", "start: Input should be a valid list"),
    ]


@pytest.mark.parametrize(
    ("now", "why"),
    [
        ({}, "its role scribe is defined nowhere"),
        ({"scribe": {"extends": "gone"}}, "its role scribe extends gone, which is defined nowhere"),
        ({"scribe": {"extends": "scribe"}}, "its role scribe extends itself"),
        ({"scribe": {"extends": "a"}, "a": {"extends": "scribe"}}, "its role scribe extends a, which extends itself"),
    ],
)
def test_a_role_that_gives_no_rights_any_more_is_found(cli: Cli, now: dict[str, object], why: str) -> None:
    config = cli.root / "config.json"
    config.write_text(json.dumps({"agent": {"scribe": {"extends": "team-member"}}}))
    cli.ok("join-team", "--role", "scribe", agent="zoe")
    config.write_text(json.dumps({"agent": now}))
    assert cli("announce", "busy", agent="zoe").status == 13
    found = the_one(cli, healthy=False)
    assert (found["level"], found["what"]) == ("problem", f"zoe may change nothing, as {why}")
    command = found["remedy"].removeprefix("Define it: teams ")
    assert cli(*command.split(), agent="lea").status == 0
    assert findings(cli, healthy=True) == [] and cli("announce", "busy", agent="zoe").status == 0


@pytest.mark.slow
def test_a_client_whose_settings_say_another_root_is_named(cli: Cli, tmp_path: Path) -> None:
    """A client with another data directory has other teams; a relative one would differ by directory."""
    home = tmp_path / "home"
    (home / ".claude").mkdir(parents=True)
    (home / ".codex").mkdir()
    cli.more["HOME"] = str(home)
    said = {"env": {"TEAMS_HOME": str(cli.root)}}
    (home / ".claude/settings.json").write_text(json.dumps(said))
    assert findings(cli, healthy=True) == []
    (home / ".codex/config.toml").write_text('[shell_environment_policy.set]\nTEAMS_HOME = "~/elsewhere"\n')
    (home / ".claude/settings.json").write_text(json.dumps({"env": {"TEAMS_HOME": "here"}}))
    relative, other = findings(cli, healthy=True)
    assert relative["where"].startswith("claude: ") and "TEAMS_HOME" in relative["what"]
    assert f"codex keeps its teams in {home}/elsewhere, and this command in {cli.root}" == other["what"]
    assert other["remedy"] == f"Say the same in both: TEAMS_HOME={cli.root}"


def test_a_task_that_was_completed_but_not_queued_to_land_is_named(cli: Cli) -> None:
    store = cli.store()
    cli.ok("claim-task", "1", agent="bob")
    presence.note_completing(store, ALPHA, "bob", "task-1")
    assert findings(cli, healthy=True) == []
    cli.ok("update-task", "1", "--status", "completed", agent="bob")
    presence.note_completing(store, ALPHA, "bob", "task-1")  # as a command leaves it that is killed before the landing
    found = the_one(cli, healthy=True)
    assert (found["what"].partition(":")[0], found["remedy"]) == (
        "task-1 is completed, but it was not queued to land",
        "teams land task-1 --team alpha",
    )
