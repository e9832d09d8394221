"""The login of an agent can't forge checks, reviews, evidence and landings that would make its work count as done."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from teams_cli.extensions.landing import pull_requests
from tests.extensions.postgres.test_logins import INSERT, Office, change
from tests.support.cli import TIMEOUT, program
from tests.support.shop import git
from tests.support.waits import until

pytestmark = pytest.mark.slow


class Checked:
    """The team, and its task *key*, which is worked on in the checkout *tree*."""

    def __init__(self, office: Office, tree: Path) -> None:
        self.office = office
        self.tree = tree
        self.key = self.claimed("checked", "--check", "true", "--review-by", "mia")

    def claimed(self, title: str, *words: str) -> str:
        """The id of a new task that bob has claimed."""
        key = str(self.office.lead("create-task", title, *words)["id"])
        self.office.cli("bob").ok("claim-task", key)
        return key

    def forge(self, said: str) -> str:
        """The reason for which a landing is refused that bob requests with the statement *said* in psql."""
        asked = self.office.psql("bob", said).stdout.split()[0]
        landing = self.office.lead("wait", "--landing", asked, "--timeout", "100")["landing"]
        assert landing["state"] == "refused", landing
        return str(landing["reason"])


@pytest.fixture(scope="module")
def prepared(office: Office, tmp_path_factory: pytest.TempPathFactory) -> Checked:
    """The team, a checkout on a branch, and a task of bob's with a check and a review."""
    tree = tmp_path_factory.mktemp("tree")
    for words in ("init -q -b main", COMMIT, "switch -q -c work", COMMIT):
        git(tree, *words.split())
    made = Checked(office, tree)
    office.lead("create-task", "free")
    return made


@pytest.fixture
def checked(prepared: Checked, monkeypatch: pytest.MonkeyPatch) -> Checked:
    """The same, and commands are run in the checkout."""
    monkeypatch.chdir(prepared.tree)
    return prepared


COMMIT = "commit -q -m new --allow-empty"
OF_CHECKS = {
    "its own review": change("status", '"completed"', "record->>'title' = 'checked'"),
    "its check": change("check", '"echo"', "record->>'title' = 'checked'"),
    "who reviews it": change("reviewBy", '"bob"', "record->>'title' = 'checked'"),
    "what the system found": change(
        "checked", '{"command": "true", "status": 0, "by": "system"}', "record->>'title' = 'checked'"
    ),
    "what happened to it": change("notes", "[]", "record->>'title' = 'checked'"),
    "what another said": change(
        "notes",
        '[{"by": "lea", "what": "note", "at": "2026-01-25T23:00:00Z", "added": "skip it"}]',
        "record->>'title' = 'free'",
    ),
    "another's claim": change("owner", '"mia"', "record->>'title' = 'free'"),
    "a landing": INSERT.format("landing", "landing-1", '{"task": "task-1", "state": "landed", "by": "bob"}'),
    "what was handed in": INSERT.format("evidence", "evidence-1", '{"by": "eve"}'),
}


FORGED_LANDING = """WITH n AS (UPDATE teams.counters SET last = last + 1 WHERE kind = 'landing' RETURNING last)
    INSERT INTO teams.records (team, kind, key, label, body) SELECT 'alpha', 'landing', 'landing-' || last, 'open',
        (record - ARRAY['merge', 'checked', 'returned', 'endedAt', 'checksum', 'owed', 'base'] || jsonb_build_object(
            'id', 'landing-' || last, 'state', 'queued', '{}', '{}'))::text
    FROM n, teams.records WHERE key = '{}' RETURNING key"""
FORGED = [
    ("repository", "/somewhere", "nobody on this machine asked to land into /somewhere"),
    ("head", "--receive-pack=touch /tmp/x;", "is not a commit"),
    ("branch", "main", "is not a branch that can land on main"),
]
"""A field of a landing that a login requests with psql, its value, and the reason for the refusal: where git is
run, and with which arguments.
"""


def test_no_login_approves_its_own_work(checked: Checked) -> None:
    for what, sql in OF_CHECKS.items():
        assert "ERROR" in checked.office.psql("bob", sql).stderr, what


def test_members_with_logins_complete_review_and_land_a_task(checked: Checked) -> None:
    """The leader's machine merges it."""
    bob, mia, key = checked.office.cli("bob"), checked.office.cli("mia"), checked.key
    evidence = str(checked.office.owner.root / "evidence.txt")
    Path(evidence).write_text("seen")
    done = bob.ok("update-task", key, "--status", "completed", "--evidence", evidence)
    assert (done["status"], done["checked"]["by"], len(done["evidence"])) == ("in_review", "bob", 1)
    assert mia.ok("review-task", key, "--reject", "no")["status"] == "in_progress"
    assert "ERROR" in checked.office.psql("mia", change("owner", '"mia"', "record->>'title' = 'checked'")).stderr
    bob.ok("update-task", key, "--status", "completed")
    assert mia.ok("review-task", key, "--accept")["status"] == "completed"
    landing = bob.ok("land", key, "--onto", "main")
    taken = f"kind = 'landing' AND key = '{landing['id']}'"
    assert "ERROR" in checked.office.psql("bob", change("state", '"landed"', taken)).stderr
    waited = checked.office.lead("wait", "--landing", str(landing["id"]), "--timeout", "100")["landing"]
    assert waited["state"] == "landed"
    assert checked.office.lead("show-task", key)["landing"] == landing["id"]
    for field, value, why in FORGED:
        assert why in checked.forge(FORGED_LANDING.format(field, value, landing["id"]))


def test_nothing_lands_from_a_worktree_that_only_a_login_names(
    checked: Checked, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The leader's machine lands from repositories that it uses."""
    office, foreign = checked.office, tmp_path / "foreign"
    foreign.mkdir()
    for words in ("init -q -b main", COMMIT, "branch own", "worktree add -q ../own own"):
        git(foreign, *words.split())
    git(tmp_path / "own", *COMMIT.split())
    key = checked.claimed("from elsewhere")
    seen = f"""record || '{{"worktree": "{tmp_path / "own"}", "host": null}}'"""
    own = "kind = 'agent' AND key = 'bob'"
    told = office.psql("bob", f"UPDATE teams.records SET body = ({seen})::text WHERE {own} RETURNING key")
    assert told.stdout.startswith("bob"), told
    monkeypatch.chdir(tmp_path)
    answer = office.owner("land", key, agent="lea", TEAMS_TOKEN=office.tokens["lea"])
    assert answer.status == 2 and "has no worktree" in answer.stderr, answer
    monkeypatch.chdir(foreign)
    office.lead("land", key)


def test_a_landing_that_a_login_forged_is_not_pushed(checked: Checked, tmp_path: Path) -> None:
    far = tmp_path / "far"
    key = checked.claimed("to be pushed")
    git(checked.tree, *COMMIT.split())
    landing = checked.office.cli("bob").ok("land", key, "--onto", "main", "--no-wait")
    git(checked.tree, *COMMIT.split())
    git(tmp_path, "init", "-q", "--bare", str(far))
    git(checked.tree, "remote", "add", "origin", str(far))
    git(checked.tree, "branch", "release", "main")
    head = git(checked.tree, "rev-parse", "HEAD")
    forged = FORGED_LANDING.format("via", "pr", landing["id"]).replace(
        "'state',", f"'branch', 'main', 'onto', 'release', 'head', '{head}', 'state',"
    )
    assert "the person set" in checked.forge(forged)
    assert git(far, "branch") == ""


def test_a_landing_that_a_login_forged_lands_no_unreviewed_commit(checked: Checked) -> None:
    office = checked.office
    key = checked.claimed("to be reviewed", "--review-by", "mia")
    git(checked.tree, *COMMIT.split())
    office.cli("bob").ok("update-task", key, "--status", "completed")
    office.cli("mia").ok("review-task", key, "--accept")
    landing = office.cli("bob").ok("land", key, "--onto", "main", "--no-wait")
    forged = FORGED_LANDING.format("head", added(checked.tree, "unseen"), landing["id"])
    for claim in ("", "'claim', 99, "):  # a review counts for its claim only
        assert "was not reviewed" in checked.forge(forged.replace("'state',", f"{claim}'state',"))


def added(tree: Path, name: str) -> str:
    """The commit that adds the file *name* in *tree*."""
    (tree / name).write_text(name)
    git(tree, "add", name)
    git(tree, "commit", "-q", "-m", name)
    return git(tree, "rev-parse", "HEAD")


HANDED_IN = """UPDATE teams.records SET label = 'in_review', body =
    (record || '{{"status": "in_review"{}}}')::text WHERE kind = 'task' AND key = '{}' RETURNING key"""


@pytest.mark.parametrize("what", ["work", "--output={}", ""])
def test_what_a_login_hands_in_for_a_review_is_a_commit_or_nothing(checked: Checked, tmp_path: Path, what: str) -> None:
    """A branch or an option of git does not land."""
    office, precious = checked.office, tmp_path / "precious"
    precious.write_text("mine")
    other = checked.claimed("to land")
    added(checked.tree, f"seen-{len(what)}")
    template = office.cli("bob").ok("land", other, "--onto", "main", "--no-wait")["id"]
    key = checked.claimed("handed in", "--review-by", "mia")
    submitted = f', "submitted": "{what.format(precious)}"' if what else ""
    assert office.psql("bob", HANDED_IN.format(submitted, key)).stdout.startswith(key)
    office.cli("mia").ok("review-task", key, "--accept")
    head = added(checked.tree, f"unseen-{len(what)}")
    answer = office.cli("bob")("land", key, "--onto", "main")
    assert answer.status == 11 and ("was reviewed at" if what else "no commit of") in answer.stderr, answer
    forged = FORGED_LANDING.format("head", head, template).replace("'state',", f"'task', '{key}', 'state',")
    assert ("was not reviewed" if what else "no commit of") in checked.forge(forged)
    assert precious.read_text() == "mine"


HOSTILE = (
    "--web",
    "-Revil.example/o/r",
    "https://evil.example/o/r/pull/1",
    "http://forge.example/o/r/pull/1",
    "https://you:secret@forge.example/o/r/pull/1",
    "https://forge.example@evil.example/o/r/pull/1",
    "file:///etc/passwd",
    "ext::sh -c touch% /tmp/x",
    "https://forge.example/o/r/pull/1\\n--web",
    "https://forge.example/o/r/pull/1\\u001b[2J",
    "https://forge.example/o/r/pull/1\\u202e",
    "https://forge.example/o/r/pull/2",
)
"""Addresses of pull requests that a task-manager's login writes into a landing, as JSON."""
REQUEST = "https://forge.example/o/r/pull/1"
GH = """case "$2" in create) echo {};; view) printf '%s\\0' "$@" >>{}; echo OPEN;; esac
"""


def test_this_machine_asks_about_no_pull_requests_but_those_that_it_opened(
    checked: Checked, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    office, asked = checked.office, tmp_path / "asked"
    office.tokens["max"] = office.owner.ok("join-team", "--role", "task-manager", agent="max")["token"]
    office.addresses |= office.lead("set-up-roles")["addresses"]
    key = checked.claimed("by a request")
    git(checked.tree, *COMMIT.split())
    git(tmp_path, "init", "-q", "--bare", "origin")
    git(checked.tree, "remote", "remove", "origin", ok=False)
    git(checked.tree, "remote", "add", "origin", str(tmp_path / "origin"))
    program(tmp_path / "gh", GH.format(REQUEST, asked))
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    setting = office.owner("set", "landingVia", "pr", agent="human", TEAMS_TOKEN=office.tokens["human"])
    assert setting.status == 0, setting
    own = office.lead("land", key, "--onto", "main")["id"]
    until(lambda: "url" in office.owner.ok("get-landings", own, agent="lea")[0])
    for url in HOSTILE:
        forged = FORGED_LANDING.format("url", url, own).replace("'state', 'queued'", "'state', 'checking'")
        assert office.psql("max", forged).stdout.startswith("landing-"), url
    lander = [sys.executable, "-m", "teams_cli.extensions.landing.lander"]
    subprocess.run(lander, env=office.owner.environ("lea"), check=True, timeout=TIMEOUT)
    assert set(asked.read_text().split("\0")) == {"pr", "view", "--json", pull_requests.FIELDS, "--", REQUEST, ""}


def test_members_of_a_role_that_extends_the_reviewing_role_may_review(office: Office) -> None:
    office.lead("define-role", "critic", "--extends", "member")
    office.lead("define-role", "harsh-critic", "--extends", "critic")
    office.tokens["eve"] = office.owner.ok("join-team", "--role", "harsh-critic", agent="eve")["token"]
    office.addresses |= office.lead("set-up-roles")["addresses"]
    key = str(office.lead("create-task", "to review", "--review-by", "critic")["id"])
    office.cli("bob").ok("claim-task", key)
    office.cli("bob").ok("update-task", key, "--status", "completed")
    assert office.cli("mia")("review-task", key, "--accept").status == 13
    assert office.cli("eve").ok("review-task", key, "--accept")["status"] == "completed"
