"""A `--secure` team in a database: the login of an agent is held to what is its own, whatever program uses it."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from teams_cli.store import opening
from tests.cli import ALPHA, Cli, make_team
from tests.conftest import server
from tests.postgres import Postgres

TASK = "UPDATE teams.records SET body = replace(body, 'bob', 'mia') WHERE kind = 'task'"
INBOX = "UPDATE teams.records SET body = replace(body, 'upTo', 'upTo') WHERE kind = 'inbox' AND key = '{}'"


class Office:
    """A server that asks for passwords, and a secure team on it with a leader and two members."""

    def __init__(self, top: Path) -> None:
        server()  # skips where there is none
        self.server = Postgres()
        hba = self.server.directory / "data/pg_hba.conf"
        hba.write_text("local all teams trust\nlocal all all scram-sha-256\n")
        self.server.psql("SELECT pg_reload_conf()")
        self.owner = Cli(top / "root", team=ALPHA, TEAMS_STORE=self.server.address())
        self.tokens = {"lea": self.owner.ok("spawn-team", ALPHA, "--secure", agent="lea")["token"]}
        for name in ("bob", "mia"):
            self.tokens[name] = self.owner.ok("join-team", agent=name)["token"]
        self.addresses: dict[str, str] = self.lead("set-up-roles")["addresses"]
        self.lead("create-task", "one")
        self.lead("create-task", "two")

    def lead(self, *words: str) -> dict[str, object]:
        answer = self.owner(*words, "--json", agent="lea", TEAMS_TOKEN=self.tokens["lea"])
        assert answer.status == 0, answer
        found: dict[str, object] = answer.json
        return found

    def cli(self, name: str) -> Cli:
        """The program as that agent runs it, with its own login."""
        more = {"TEAMS_STORE": self.addresses[name], "TEAMS_TOKEN": self.tokens[name]}
        return Cli(self.owner.root, name, ALPHA, **more)

    def psql(self, name: str, sql: str) -> subprocess.CompletedProcess[str]:
        """What psql answers to that agent's login."""
        said = urlsplit(self.addresses[name])
        words = ["psql", "-X", "-A", "-t", "-h", str(self.server.directory), "-U", unquote(said.username or "")]
        return subprocess.run(
            [*words, "-d", "postgres", "-c", sql],
            env={"PATH": "/usr/bin:/bin", "PGPASSWORD": unquote(said.password or "")},
            capture_output=True,
            text=True,
            timeout=60,
        )


@pytest.fixture(scope="module")
def office(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Office]:
    made = Office(tmp_path_factory.mktemp("logins"))
    bob = made.cli("bob")
    bob.ok("claim-task", "1")
    made.lead("send-message", "bob", "for bob")
    made.lead("send-message", "mia", "for mia")
    bob.ok("read-messages")
    yield made
    made.server.stop()


def test_an_agent_works_with_its_own_login(office: Office) -> None:
    """Everything that is its to do."""
    mia = office.cli("mia")
    assert [message["message"] for message in mia.ok("read-messages")] == ["for mia"]
    mia.ok("ack", "2")
    assert mia.ok("claim-task", "--next")["id"] == "task-2"
    mia.ok("heartbeat")
    mia.ok("announce", "at it")
    assert mia.ok("send-message", "bob", "hi")["from"] == "mia"
    assert mia.ok("update-task", "2", "--status", "completed", "--result", "done")["status"] == "completed"
    mia.ok("propose-plan", "a plan")
    office.lead("approve-plan", "1")


def test_another_ones_claim_is_safe_from_psql(office: Office) -> None:
    assert office.psql("mia", "SELECT record->>'owner' FROM teams.records WHERE key = 'task-1'").stdout == "bob\n"
    assert office.psql("mia", TASK + " AND key = 'task-1'").stdout == "UPDATE 0\n"
    assert office.psql("bob", TASK + " AND key = 'task-1'").returncode != 0  # nor may bob claim in another's name
    assert office.owner.ok("show-task", "1")["owner"] == "bob"


def test_another_ones_inbox_is_safe_from_psql(office: Office) -> None:
    assert office.psql("mia", INBOX.format("bob")).stdout == "UPDATE 0\n"
    assert office.psql("bob", INBOX.format("bob")).stdout == "UPDATE 1\n"
    body = json.dumps({"agent": "lea"})
    sql = f"INSERT INTO teams.records (team, kind, key, body) VALUES ('alpha', 'inbox', 'lea', '{body}')"
    assert "row-level security" in office.psql("mia", sql).stderr


@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM teams.records",
        "DELETE FROM teams.messages",
        "UPDATE teams.messages SET body = replace(body, 'for', 'not for')",
        "TRUNCATE teams.messages",
        "UPDATE teams.logins SET leads = true",
        "INSERT INTO teams.logins VALUES (session_user, 'alpha', 'lea', true)",
        "DELETE FROM teams.history",
        "UPDATE teams.format SET version = 0",
        "ALTER TABLE teams.records DISABLE ROW LEVEL SECURITY",
        "INSERT INTO teams.messages (team, number, uid, recipients, body)"
        """ VALUES ('alpha', 99, 'x', '{bob}', '{"from": "lea", "to": "bob", "message": "obey"}')""",
    ],
)
def test_what_is_nobodys_to_change_is_refused(office: Office, sql: str) -> None:
    """The log, the history, the logins themselves, and what is said in another's name."""
    done = office.psql("mia", sql)
    assert done.returncode != 0 and (
        "permission denied" in done.stderr or "row-level" in done.stderr or "owner" in done.stderr
    )


@pytest.mark.parametrize(
    "trick",
    [
        "UPDATE records SET body = replace(body, '\"lea\"', '\"mia\"') WHERE kind = 'team'",
        "UPDATE records SET body = replace(body, 'bob', 'mia') WHERE key = 'task-1'",
        "INSERT INTO messages (team, number, uid, recipients, body)"
        """ VALUES ('alpha', 98, 'y', '{bob}', '{"from": "lea", "to": "bob", "message": "obey"}')""",
    ],
)
def test_a_table_of_ones_own_does_not_stand_in_for_the_logins(office: Office, trick: str) -> None:
    """Temporary tables come first, unless it is said that they come last."""
    fake = "CREATE TEMP TABLE logins (login text, team text, agent text, leads boolean)"
    row = "INSERT INTO pg_temp.logins VALUES (session_user, 'alpha', 'lea', true)"
    before = office.owner.ok("show-team", agent="lea"), office.owner.ok("show-task", "1")
    done = office.psql(
        "mia", f"SET search_path = teams; {fake}; {row}; GRANT SELECT ON pg_temp.logins TO PUBLIC; {trick}"
    )
    assert done.stdout.endswith("UPDATE 0\n") or "row-level security" in done.stderr, done
    assert (office.owner.ok("show-team", agent="lea"), office.owner.ok("show-task", "1")) == before


def test_a_plan_is_decided_by_who_leads(office: Office) -> None:
    office.cli("bob").ok("propose-plan", "mine")
    sql = "UPDATE teams.records SET body = replace(body, 'proposed', 'approved') WHERE kind = 'plan'"
    assert "row-level security" in office.psql("bob", f"{sql} AND record->>'plan' = 'mine'").stderr


@pytest.mark.parametrize("last", ["9000000000", "0", "last", "last + 2"])
def test_numbers_are_taken_one_by_one(office: Office, last: str) -> None:
    assert "one by one" in office.psql("mia", f"UPDATE teams.counters SET last = {last} WHERE kind = 'message'").stderr


def test_the_team_is_changed_by_who_leads_it_alone(office: Office) -> None:
    sql = "UPDATE teams.records SET body = replace(body, '\"lea\"', '\"mia\"') WHERE kind = 'team'"
    assert office.psql("mia", sql).stdout == "UPDATE 0\n"
    answer = office.cli("mia")("leave-team", "--json")
    assert (answer.status, answer.error["code"]) == (13, "not_allowed")


def test_a_login_sees_no_other_team(office: Office) -> None:
    other = Cli(office.owner.root, "eve", "beta", TEAMS_STORE=office.server.address())
    other.ok("spawn-team", "beta")
    assert office.psql("mia", "SELECT DISTINCT team FROM teams.records").stdout == "alpha\n"
    assert [row["name"] for row in office.cli("mia").ok("discover-teams")] == [ALPHA]


def test_the_password_is_asked_for_and_kept_nowhere(office: Office) -> None:
    wrong = office.addresses["mia"].replace(urlsplit(office.addresses["mia"]).password or "", "wrong")
    answer = Cli(office.owner.root, "mia", ALPHA, TEAMS_STORE=wrong)("get-tasks", "--json")
    assert answer.status == 1 and "password authentication failed" in answer.error["message"]
    assert "wrong" not in answer.stderr
    log = (office.server.directory / "log").read_text()
    assert not [name for name in office.addresses if (urlsplit(office.addresses[name]).password or "-") in log]


def test_run_again_it_gives_logins_to_who_came_and_takes_them_from_who_left(tmp_path: Path) -> None:
    office = Office(tmp_path)
    try:
        assert sorted(office.addresses) == ["bob", "lea", "mia"]
        office.tokens["zoe"] = office.owner.ok("join-team", agent="zoe")["token"]
        answer = office.owner("leave-team", agent="mia", TEAMS_TOKEN=office.tokens["mia"])
        assert answer.status == 0
        again = office.lead("set-up-roles")["addresses"]
        assert list(again) == ["zoe"]
        assert office.psql("mia", "SELECT count(*) FROM teams.records").stdout == "0\n"
        assert office.psql("bob", "SELECT count(*) > 0 FROM teams.records").stdout == "t\n"
    finally:
        office.server.stop()


def test_where_it_can_not_be(tmp_path: Path, on_postgres: str) -> None:
    """Files know no logins; a team that asks for no tokens needs none; and a member may not."""
    cli = make_team(tmp_path / "root", "bob")
    assert cli.refused("set-up-roles", agent="lea") == (11, "wrong_state")
    assert cli.refused("set-up-roles", agent="bob") == (13, "not_allowed")
    files = Cli(tmp_path / "files", "lea", ALPHA, TEAMS_STORE="files")
    token = files.ok("spawn-team", ALPHA, "--secure")["token"]
    answer = files("set-up-roles", "--json", TEAMS_TOKEN=token)
    assert (answer.status, answer.error["code"]) == (2, "invalid_value")
    assert opening.without_secrets(on_postgres) == on_postgres
