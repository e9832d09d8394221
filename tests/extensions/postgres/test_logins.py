"""The login that an agent of a `--secure` team has in the database may change only what the agent may, even
with psql.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest

from teams_cli import kinds
from teams_cli.errors import NotAllowed
from teams_cli.records.records import Record
from teams_cli.records.types import Name, Text
from teams_cli.store import opening
from teams_cli.store.contract import Kind
from tests.conftest import server
from tests.support.cli import ALPHA, Cli, make_team
from tests.support.postgres import Postgres

pytestmark = pytest.mark.slow

INSERT = "INSERT INTO teams.records (team, kind, key, body) VALUES ('alpha', '{}', '{}', '{}')"
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
        made = self.owner.ok("spawn-team", ALPHA, "--secure", agent="lea")
        self.tokens = {"lea": made["token"], "human": made["humanToken"]}
        for name in ("bob", "mia"):
            self.tokens[name] = self.owner.ok("join-team", agent=name)["token"]
        self.addresses: dict[str, str] = self.lead("set-up-roles")["addresses"]
        self.lead("create-task", "one")
        self.lead("create-task", "two")

    def lead(self, *words: str) -> dict[str, Any]:
        answer = self.owner(*words, "--json", agent="lea", TEAMS_TOKEN=self.tokens["lea"])
        assert answer.status == 0, answer
        return answer.json

    def cli(self, name: str) -> Cli:
        """The command line as the agent *name* runs it, with the agent's own login."""
        more = {"TEAMS_STORE": self.addresses[name], "TEAMS_TOKEN": self.tokens[name]}
        return Cli(self.owner.root, name, ALPHA, **more)

    def psql(self, name: str, sql: str) -> subprocess.CompletedProcess[str]:
        """What psql answers to *sql* under the login of the agent *name*."""
        said = urlsplit(self.addresses[name])
        words = ["psql", "-X", "-A", "-t", "-h", str(self.server.directory), "-U", unquote(said.username or "")]
        words += ["-d", "postgres", "-c", sql]
        environ = {"PATH": "/usr/bin:/bin", "PGPASSWORD": unquote(said.password or "")}
        return subprocess.run(words, env=environ, capture_output=True, text=True, timeout=60)


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


def test_a_search_finds_what_is_in_ones_own_team_alone(office: Office) -> None:
    assert [hit["id"] for hit in office.cli("mia").ok("search", "for", "mia", "--in", "messages")] == ["msg-2"]
    assert office.psql("mia", "SELECT teams.may_search('beta', 'teams')").stdout == "f\n"


def test_another_ones_inbox_is_safe_from_psql(office: Office) -> None:
    assert office.psql("mia", INBOX.format("bob")).stdout == "UPDATE 0\n"
    assert office.psql("bob", INBOX.format("bob")).stdout == "UPDATE 1\n"
    assert "row-level security" in office.psql("mia", INSERT.format("inbox", "lea", '{"agent": "lea"}')).stderr


TRICKS = [
    "UPDATE records SET body = replace(body, '\"lea\"', '\"mia\"') WHERE kind = 'team'",
    "UPDATE records SET body = replace(body, 'bob', 'mia') WHERE key = 'task-1'",
    """INSERT INTO messages (team, number, uid, recipients, body)
        VALUES ('alpha', 98, 'y', '{bob}', '{"from": "lea", "to": "bob", "message": "obey"}')""",
]


def test_a_table_of_ones_own_does_not_stand_in_for_the_logins(office: Office) -> None:
    """A temporary table named `logins`, which PostgreSQL would find first, gives a login no rights."""
    fake = "CREATE TEMP TABLE logins (login text, team text, agent text, leads boolean)"
    row = "INSERT INTO pg_temp.logins VALUES (session_user, 'alpha', 'lea', true)"
    before = office.owner.ok("show-team", agent="lea"), office.owner.ok("show-task", "1")
    given = "GRANT SELECT ON pg_temp.logins TO PUBLIC"
    for trick in TRICKS:
        done = office.psql("mia", f"SET search_path = teams; {fake}; {row}; {given}; {trick}")
        assert done.stdout.endswith("UPDATE 0\n") or "ERROR" in done.stderr, done
    assert (office.owner.ok("show-team", agent="lea"), office.owner.ok("show-task", "1")) == before


def test_a_plan_is_decided_by_who_leads(office: Office) -> None:
    office.cli("bob").ok("propose-plan", "mine")
    sql = "UPDATE teams.records SET body = replace(body, 'proposed', 'approved') WHERE kind = 'plan'"
    assert "row-level security" in office.psql("bob", f"{sql} AND record->>'plan' = 'mine'").stderr


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


def test_setting_up_roles_again_gives_logins_to_new_members_and_takes_those_of_former_ones(tmp_path: Path) -> None:
    office = Office(tmp_path)
    try:
        assert sorted(office.addresses) == ["bob", "lea", "mia"]
        office.tokens["zoe"] = office.owner.ok("join-team", agent="zoe")["token"]
        answer = office.owner("leave-team", agent="mia", TEAMS_TOKEN=office.tokens["mia"])
        assert answer.status == 0
        again = office.lead("set-up-roles")["addresses"]
        assert list(again) == ["zoe"]
        told = office.owner("set-up-roles", agent="lea", TEAMS_TOKEN=office.tokens["lea"]).stdout
        assert "nobody needed a new one" in told
        office.addresses |= again
        refused = office.cli("zoe")("leave-team", "--json").error
        assert "does not let you change team alpha" in refused["message"]
        command = refused["hint"].partition("Ask the leader: teams ")[2].partition(".")[0]
        assert office.cli("zoe").ok(*command.split())["to"] == "lea"
        assert office.psql("mia", "SELECT count(*) FROM teams.records").stdout == "0\n"
        assert office.psql("bob", "SELECT count(*) > 0 FROM teams.records").stdout == "t\n"
    finally:
        office.server.stop()


def test_where_roles_can_not_be_set_up(tmp_path: Path, on_postgres: str) -> None:
    """`set-up-roles` is refused to a member, in a team that asks for no tokens, and on files, which have no logins."""
    cli = make_team(tmp_path / "root", "bob")
    assert cli.refused("set-up-roles", agent="lea") == (11, "wrong_state")
    assert cli.refused("set-up-roles", agent="bob") == (13, "not_allowed")
    files = Cli(tmp_path / "files", "lea", ALPHA, TEAMS_STORE="files")
    token = files.ok("spawn-team", ALPHA, "--secure")["token"]
    answer = files("set-up-roles", "--json", TEAMS_TOKEN=token)
    assert (answer.status, answer.error["code"]) == (2, "invalid_value")
    assert opening.without_secrets(on_postgres) == on_postgres


AT = "2030-01-01T00:00:00.000Z"
SESSION = {
    "agent": "bob", "caller": "lea", "run": "r", "harness": "claude", "prompt": "p", "description": "d",
    "directory": "/", "sessionId": "abc", "createdAt": AT, "startedAt": AT, "state": "done",
}  # fmt: skip


def change(field: str, value: str, where: str) -> str:
    """A statement that changes one field of the records that match *where*."""
    new = f"jsonb_set(record, '{{{field}}}', '{value}')::text"
    return f"UPDATE teams.records SET body = {new} WHERE team = 'alpha' AND {where}"


@pytest.fixture(scope="module")
def settled(office: Office) -> Office:
    """The team with a session, a finished task, plans, a question with an answer, and a request to shut down."""
    eve = office.owner.ok("join-team", agent="eve")["token"]
    office.tokens["eve"] = eve
    office.addresses.update(office.lead("set-up-roles")["addresses"])
    office.lead("create-task", "of eve")
    number = str(office.lead("create-task", "finished")["id"])
    office.cli("eve").ok("claim-task", number)
    office.cli("eve").ok("update-task", number, "--status", "completed", "--result", "eve did it")
    office.cli("eve").ok("propose-plan", "eve's plan")
    for name in ("bob", "eve"):
        sql = INSERT.format("session", name, json.dumps({**SESSION, "agent": name}))
        assert office.server.psql(sql).returncode == 0
    asked = {
        "id": "ask-1", "teamName": "alpha", "from": "mia", "question": "A or B?", "mode": "agents",
        "status": "collecting", "to": ["bob", "eve", "human"], "createdAt": AT, "timeout": 60,
        "expiresAt": "2090-01-01T00:00:00.000Z",
        "answers": [{"responder": "human", "content": "take A", "isHuman": True, "at": AT}],
    }  # fmt: skip
    assert office.server.psql(INSERT.format("question", "ask-1", json.dumps(asked))).returncode == 0
    assert office.server.psql("INSERT INTO teams.counters VALUES ('alpha', 'question', 1)").returncode == 0
    office.lead("request-shutdown", "bob")
    return office


ANSWER = f'[{{"responder": "human", "content": "take A", "isHuman": true, "at": "{AT}"}}, %s]'
MINE = f'{{"responder": "bob", "content": "%s", "isHuman": %s, "at": "{AT}"}}'
FORGERIES = {
    "what is run": change("sessionId", '"--dangerously-skip-permissions"', "kind = 'session' AND key = 'bob'"),
    "where it is run": change("directory", '"/tmp"', "kind = 'session' AND key = 'bob'"),
    "with what it is run": change("variables", '{"LD_PRELOAD": "x"}', "kind = 'session' AND key = 'bob'"),
    "for whom it is run": change("caller", '"bob"', "kind = 'session' AND key = 'bob'"),
    "another's session": change("state", '"paused"', "kind = 'session' AND key = 'eve'"),
    "what the human answered": change("answers,0,content", '"take B"', "key = 'ask-1'"),
    "that the human answered": change("answers", ANSWER % (MINE % ("x", "true")), "key = 'ask-1'"),
    "what another answered": change("answers", ANSWER % (MINE % ("x", "false")).replace("bob", "eve"), "key = 'ask-1'"),
    "that nothing was answered": change("answers", "[]", "key = 'ask-1'"),
    "what was asked": change("question", '"C?"', "key = 'ask-1'"),
    "what another did": change("result", '"bob did it"', "kind = 'task' AND record->>'owner' = 'eve'"),
    "what a free task asks for": change("title", '"obey"', "kind = 'task' AND record->>'status' = 'pending'"),
    "what a free task runs": change("run", '"rm -rf /"', "kind = 'task' AND record->>'status' = 'pending'"),
    "who is to do it": change("owner", '"bob"', "kind = 'task' AND record->>'owner' = 'eve'"),
    "what another proposed": change("plan", '"obey"', "kind = 'plan' AND record->>'from' = 'eve'"),
    "what it is asked": change("reason", '"none"', "kind = 'shutdown'"),
    "a notice in another's name": change(
        "owed", '[{"to": "eve", "message": "obey", "uid": "u", "sender": "lea"}]', "kind = 'inbox' AND key = 'bob'"
    ),
}


def test_a_login_changes_nothing_that_is_not_its_members_to_change(settled: Office) -> None:
    all_records = "SELECT md5(string_agg(body, '' ORDER BY kind, key)) FROM teams.records"
    before = settled.server.psql(all_records).stdout
    for what, sql in FORGERIES.items():
        done = settled.psql("bob", sql)
        assert done.stdout == "UPDATE 0\n" or done.returncode != 0 or "ERROR" in done.stderr, (what, done)
    assert settled.server.psql(all_records).stdout == before


TAKEN = (
    "WITH n AS (UPDATE teams.counters SET last = last + 1 WHERE kind = 'message' RETURNING last)"
    " INSERT INTO teams.messages (team, number, uid, recipients, body)"
    " SELECT 'alpha', {}, 'w', '{{eve}}',"
    """ format('{{"from": "bob", "to": "eve", "message": "hi", "id": "msg-%s", "number": %s}}', {}, {})::text FROM n"""
)
"""A message under a number that the server gave: the number it is stored under, and the numbers in its text."""
NEXT = "(SELECT last + 1 FROM teams.counters WHERE kind = '{}')"
NAMED = """INSERT INTO teams.messages (team, number, uid, recipients, body)
    VALUES ('alpha', {}, 'w', '{{{}}}', '{{"from": "{}", "to": "{}", "message": "obey"}}')"""
WEDGES = [
    "DELETE FROM teams.records",
    "DELETE FROM teams.messages",
    "UPDATE teams.messages SET body = replace(body, 'for', 'not for')",
    "TRUNCATE teams.messages",
    "UPDATE teams.logins SET leads = true",
    "INSERT INTO teams.logins VALUES (session_user, 'alpha', 'lea', true)",
    "DELETE FROM teams.history",
    "UPDATE teams.format SET version = 0",
    "ALTER TABLE teams.records DISABLE ROW LEVEL SECURITY",
    NAMED.format(99, "bob", "lea", "bob"),
    NAMED.format(NEXT.format("message"), "eve", "bob", "eve"),
    TAKEN.format("last + 1", "last", "last"),
    TAKEN.format("last", "last", "last + 1"),
    TAKEN.format("last", "last + 1", "last"),
    INSERT.format("task", f"task-' || {NEXT.format('task')} || '", '{"title": "t", "status": "pending"}'),
    INSERT.format("plan", f"plan-' || {NEXT.format('plan')} || '", '{"from": "bob", "status": "proposed"}'),
    "INSERT INTO teams.counters VALUES ('alpha', 'run', 999999999999)",
    "DELETE FROM teams.counters WHERE kind = 'shutdown'",
    f"INSERT INTO teams.history (team, position, entry) VALUES ('alpha', {NEXT.format('history')}, '{{}}')",
    "BEGIN; LOCK TABLE teams.records; ROLLBACK",
    "BEGIN; LOCK TABLE teams.counters; ROLLBACK",
    INSERT.format("spell", "bob", "{}"),
    INSERT.format("run", "run-1", "{}"),
    TAKEN.format("last", "last", "last").replace("'w'", "'lea~u1'"),
]


ALLOWED = [
    change("answers", ANSWER % (MINE % ("B", "false")), "key = 'ask-1'"),
    change("state", '"paused"', "kind = 'session' AND key = 'bob'"),
    change("status", '"rejected"', "kind = 'shutdown'"),
    TAKEN.format("last", "last", "last"),
]


def test_a_login_changes_what_is_its_members_to_change(settled: Office) -> None:
    for sql in ALLOWED:
        done = settled.psql("bob", f"BEGIN; {sql}; ROLLBACK")
        assert "UPDATE 1" in done.stdout or "INSERT 0 1" in done.stdout, (sql, done)


def test_no_login_can_stop_the_whole_team(settled: Office) -> None:
    for last in ("9000000000", "0", "last", "last + 2"):
        sql = f"UPDATE teams.counters SET last = {last} WHERE kind = 'message'"
        assert "one by one" in settled.psql("mia", sql).stderr, last
    for sql in WEDGES:
        done = settled.psql("bob", sql)
        assert "ERROR" in done.stderr, (sql, done)
        assert "permission" in done.stderr or "row-level" in done.stderr or "HINT" not in done.stderr, (sql, done)
    assert settled.cli("eve").ok("send-message", "lea", "on")["from"] == "eve"
    settled.lead("create-task", "on")
    assert settled.cli("eve")("announce", "on").status == 0


def test_a_new_kind_is_closed_to_logins_until_it_is_declared(settled: Office) -> None:
    """Logins may write a new kind of record only after its declaration says so and `set-up-roles` has run again."""

    class Spell(Record):
        agent: Name
        words: Text

    closed = Kind("spell", Spell, key="agent")
    store = opening.open_store(str(settled.owner.root), settled.addresses["bob"])
    with pytest.raises(NotAllowed):
        store.create(ALPHA, closed, "bob", Spell(agent="bob", words="x"))
    owner = opening.open_store(str(settled.owner.root), settled.server.address())
    agents = dict.fromkeys(("bob", "eve", "mia"), "") | {"lea": "leads"}
    owner.admit(ALPHA, agents, [Kind("spell", Spell, key="agent", logins="own")])
    store.create(ALPHA, closed, "bob", Spell(agent="bob", words="x"))
    with pytest.raises(NotAllowed):
        store.create(ALPHA, closed, "eve", Spell(agent="eve", words="x"))


def test_the_tables_open_exactly_the_declared_kinds_to_logins(office: Office) -> None:
    rows = office.server.psql("SELECT kind, rule, coalesce(prefix, '') FROM teams.opened WHERE kind <> 'spell'").stdout
    declared = {(k.name, k.logins, k.prefix if k.numbered else "") for k in kinds.ALL if k.logins}
    assert {tuple(row.split("|")) for row in rows.splitlines()} == declared


def test_pages_are_changed_in_ones_own_name_version_by_version(office: Office) -> None:
    bob, mia = office.cli("bob"), office.cli("mia")
    assert bob.ok("share", "api", "one")["version"] == 1
    assert mia.ok("share", "api", "two", "--if-version", "1")["author"] == "mia"
    again = "UPDATE teams.records SET body = replace(body, 'two', 'six') WHERE kind = 'page'"
    assert "one by one" in office.psql("mia", again).stderr
    forged = """UPDATE teams.records SET body = replace(body, '"version": 2', '"version": 3') WHERE kind = 'page'"""
    assert "says who changed it" in office.psql("bob", forged).stderr
    assert bob.ok("shared", "api")["text"] == "two"


def test_each_member_agrees_to_a_page_in_its_own_name(office: Office) -> None:
    other = office.lead("create-task", "beside it")["id"]
    ids = f"1,{other}"
    bob, mia = office.cli("bob"), office.cli("mia")
    key = bob.ok("agree", ids, "--text", "bob does all")["key"]
    for name, forged in (("bob", '["mia"]'), ("mia", '["mia", "mia"]'), ("mia", '["lea", "mia"]')):
        assert "ERROR" in office.psql(name, change("agreed", forged, f"key = '{key}'")).stderr, forged
    mia.ok("claim-task", other)
    assert mia.ok("agree", ids, "--version", "1")["agreed"] == ["mia"]
    assert office.lead("agree", ids)["agreed"] == ["mia", "lea"]
    sql = 'UPDATE teams.records SET body = (record || \'{"version": 2, "author": "mia"}\')::text WHERE key = '
    assert "own name" in office.psql("mia", f"{sql}'{key}'").stderr
    assert "agreed" not in mia.ok("agree", ids, "--text", "mia does all")


def test_agents_that_have_the_login_of_their_leader_share_pages_in_their_own_names(office: Office) -> None:
    """The agents that a leader starts have its login."""
    started = Cli(
        office.owner.root, "mia", ALPHA, TEAMS_STORE=office.addresses["lea"], TEAMS_TOKEN=office.tokens["mia"]
    )
    assert started.ok("share", "found", "it")["author"] == "mia"


def test_a_login_adds_several_records_in_one_change(office: Office, tmp_path: Path) -> None:
    """It gets their numbers one by one."""
    plan = tmp_path / "tasks.yaml"
    plan.write_text("[{id: a, title: A}, {title: B, blockedBy: [a]}, {title: C}]")
    lea = office.cli("lea")
    first, second, third = lea.ok("create-task", "--from", str(plan))
    number = int(first["id"].removeprefix("task-"))
    assert (second["id"], third["id"]) == (f"task-{number + 1}", f"task-{number + 2}")
    assert second["blockedBy"] == [first["id"]]
    assert lea.ok("show-task", third["id"])["title"] == "C"
    assert [one["agent"] for one in lea.ok("request-shutdown", "bob", "mia")] == ["bob", "mia"]
    assert lea.ok("create-task", "D")["id"] == f"task-{number + 3}"


def test_after_an_update_of_the_program_the_owner_of_the_tables_goes_first(office: Office) -> None:
    office.server.psql("UPDATE teams.format SET version = version - 1")
    refused = office.cli("bob")("announce", "on", "--json").error
    assert "this login may not update them" in refused["message"] and "set-up-roles" in refused["hint"]
    assert office.cli("bob").ok("get-tasks")
    office.server.psql("UPDATE teams.format SET version = version + 1")
    assert office.cli("bob").ok("announce", "on")
