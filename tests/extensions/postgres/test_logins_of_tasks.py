"""The login of an agent can't change tasks and usage of other agents, nor write records that nobody can read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.extensions.postgres.test_logins import AT, INSERT, SESSION, Office, change

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def working(office: Office, tmp_path_factory: pytest.TempPathFactory) -> Office:
    """The team with tasks that are claimed, finished, in review, assigned or blocked; eve has the role that
    reviews her own task.
    """
    office.lead("define-role", "critic", "--extends", "member")
    office.tokens["eve"] = office.owner.ok("join-team", "--role", "critic", agent="eve")["token"]
    office.addresses |= office.lead("set-up-roles")["addresses"]
    evidence = tmp_path_factory.mktemp("evidence") / "seen.txt"
    evidence.write_text("seen")
    had(office, "eve", "own", "--review-by", "critic", done=[])
    had(office, "bob", "finished", done=["--result", "all", "--evidence", str(evidence)])
    had(office, "bob", "had")
    had(office, "bob", "planned", "--plan-required")
    office.cli("mia").ok("release-task", had(office, "mia", "free"))
    office.lead("create-task", "kept", "--for", "mia")
    office.lead("create-task", "waiting", "--blocked-by", "1")
    return office


def had(office: Office, name: str, title: str, *more: str, done: list[str] | None = None) -> str:
    """The id of a new task that the agent *name* has claimed, or has completed with the options *done*."""
    key = str(office.lead("create-task", title, *more)["id"])
    office.cli(name).ok("claim-task", key)
    if done is not None:
        office.cli(name).ok("update-task", key, "--status", "completed", *done)
    return key


def saying(title: str, expression: str, label: str = "label") -> str:
    """A statement that replaces the record of the task *title* by *expression*."""
    return f"UPDATE teams.records SET body = ({expression})::text, label = {label} WHERE record->>'title' = '{title}'"


def claiming(title: str, claim: int) -> str:
    taken = f'{{"owner": "bob", "status": "in_progress", "claim": {claim}}}'
    return saying(title, f"record || '{taken}'", "'in_progress'")


def given(title: str, owner: str, noted: str, reason: str = "handed over by bob") -> str:
    """A statement that gives the task *title* to *owner* under its next claim, with a note of that by
    *noted*.
    """
    note = f"""jsonb_build_object('at', record->'updatedAt', 'by', '{noted}', 'what', 'claimed',
        'reason', '{reason}')"""
    more = f"""'owner', '{owner}', 'status', 'in_progress', 'claim', (record->>'claim')::int + 1, 'notes',
        coalesce(record->'notes', '[]') || {note}"""
    return saying(title, f"record || jsonb_build_object({more})", "'in_progress'")


FILE = '[{"id": "evidence-1", "name": "x", "size": 1, "sha256": "a", "by": "%s", "at": "2030-01-01T00:00:00.000Z"}]'
FORGERIES = {
    "its own review, as nobody's": ("eve", saying("own", "record - 'owner'"), "stays with who has it"),
    "its own review, as another's": ("eve", change("owner", '"mia"', "record->>'title' = 'own'"), "own name"),
    "no claim": ("bob", saying("had", "record - 'claim'"), "of their types"),
    "an earlier claim": ("bob", change("claim", "0", "record->>'title' = 'had'"), "one by one"),
    "the claim of another": ("bob", claiming("free", 1), "under a new number"),
    "what is kept for another": ("bob", claiming("kept", 1), "kept for another"),
    "a task for nobody of the team": ("bob", given("had", "zoe", "zoe"), "nobody else's name"),
    "a task for another, as if by itself": ("bob", given("had", "mia", "mia", "by the way"), "nobody else's name"),
    "a task for another, that says another": ("bob", given("had", "mia", "eve"), "nobody else's name"),
    "a task for another, without saying so": ("bob", given("had", "mia", "bob"), "own name"),
    "a commit that is not reviewed": ("eve", change("submitted", '"abc"', "record->>'title' = 'own'"), "handed in for"),
    "what waits": ("bob", claiming("waiting", 1), "waits for others"),
    "what is found": ("bob", saying("free", "record", "'x'"), "found by what it says"),
    "a plan that nobody approved": (
        "bob",
        saying("planned", """record || '{"status": "completed"}'""", "'completed'"),
        "once its plan is approved",
    ),
    "a check that it has not": ("bob", change("checked", '{"by": "bob"}', "record->>'title' = 'had'"), "check"),
    "nothing handed in": ("bob", saying("finished", "record - 'evidence'"), "handed in stays"),
    "what another handed in": ("bob", change("evidence", FILE % "mia", "record->>'title' = 'had'"), "handed in by"),
    "what was never handed in": ("bob", change("evidence", FILE % "bob", "record->>'title' = 'had'"), "handed in by"),
    "what it came to": ("bob", change("result", '"none"', "record->>'title' = 'finished'"), "amended"),
}
"""Who runs which statement, and a part of the refusal."""
UNREADABLE = [
    ("claimedAt", "5"),
    ("claimedAt", '"2030-02-31T00:00:00.000Z"'),
    ("leaseUntil", '"long"'),
    ("leaseEpoch", "5"),
    ("notes,9", f'{{"by": "bob", "what": 5, "at": "{AT}"}}'),
    ("owed", '[{"to": "lea"}]'),
]


def test_no_login_forges_claims_results_or_reviews(working: Office) -> None:
    for what, (who, sql, told) in FORGERIES.items():
        done = working.psql(who, sql)
        assert "ERROR" in done.stderr and told in done.stderr, (what, done)


def test_no_login_makes_a_task_that_nobody_can_read(working: Office) -> None:
    """Fields of a wrong type or a repeated key are refused, also in a free task, which every login may change."""
    for changed in UNREADABLE:
        done = working.psql("bob", change(*changed, "record->>'title' = 'free'"))
        assert "ERROR" in done.stderr, (changed, done)
    twice = saying("free", """replace(record::text, '"title"', '"title": "x", "title"')""")
    assert "said twice" in working.psql("bob", twice).stderr
    assert working.owner.ok("show-task", key_of(working, "free"))["title"] == "free"


def test_a_login_claims_what_is_kept_for_it_and_amends_its_result(working: Office, tmp_path: Path) -> None:
    mia, bob = working.cli("mia"), working.cli("bob")
    assert mia.ok("claim-task", key_of(working, "kept"))["owner"] == "mia"
    finished = key_of(working, "finished")
    assert bob.ok("update-task", finished, "--result", "more")["result"] == "more"
    more = tmp_path / "more.txt"
    more.write_text("more")
    assert [one["by"] for one in bob.ok("update-task", finished, "--evidence", str(more))["evidence"]] == ["bob", "bob"]


def test_a_login_hands_its_task_over(working: Office) -> None:
    key = had(working, "bob", "given")
    given = working.cli("bob").ok("update-task", key, "--owner", "mia")
    assert (given["owner"], given["claim"]) == ("mia", 2)
    told = [message["message"] for message in working.cli("mia").ok("read-messages", "--all")]
    assert f"bob gave you {key} (given): teams show-task {key}" in told
    for field in ("result", "notes,0,by"):
        assert "ERROR" in working.psql("bob", change(field, '"mine"', "record->>'title' = 'given'")).stderr
    assert working.cli("mia").ok("update-task", key, "--status", "completed", "--result", "x")["owner"] == "mia"


def test_a_login_keeps_its_late_result_as_a_note(working: Office) -> None:
    """Notes are added to any task, as the refusal of a late result says, and change nothing else in it."""
    key = had(working, "bob", "late")
    bob, mia = working.cli("bob"), working.cli("mia")
    working.lead("update-task", key, "--owner", "mia", "--force")
    refused = bob("update-task", key, "--status", "completed", "--result", "mine", "--json").error
    assert refused["hint"].startswith(f"Keep your result: teams note {key} TEXT. ")
    bob.ok("note", key, "mine")
    assert [message["message"] for message in mia.ok("read-messages")][-1].startswith(f"bob noted on {key}")
    noted = """jsonb_build_object('at', record->'updatedAt', 'by', '%s', 'what', 'note', 'added', 'x')"""
    for by, more in (("mia", ""), ("bob", ' || \'{"result": "mine"}\''), ("bob", " - 'title'")):
        with_note = f"jsonb_set(record, '{{notes}}', record->'notes' || {noted % by}){more}"
        assert "ERROR" in working.psql("bob", saying("late", with_note, "'in_progress'")).stderr, (by, more)
    rest = "jsonb_set(record, '{notes}', jsonb_build_array(record->'notes'->-1))"
    assert "ERROR" in working.psql("bob", saying("late", rest, "'in_progress'")).stderr
    mia.ok("update-task", key, "--status", "completed", "--result", "hers")
    bob.ok("note", key, "and after")
    assert mia.ok("show-task", key)["result"] == "hers"


def key_of(office: Office, title: str) -> str:
    return office.server.psql(f"SELECT key FROM teams.records WHERE record->>'title' = '{title}'").stdout.strip()


ENDED = "jsonb_set(record - 'graceUntil', '{leaseUntil}', '1')"
ASKED = "jsonb_set(jsonb_set(record, '{leaseUntil}', '1'), '{graceUntil}', '1')"
RENEWED = "jsonb_set(record, '{leaseUntil}', to_jsonb(extract(epoch FROM clock_timestamp()) + 100))"
FREE = """(record - ARRAY['owner', 'leaseUntil', 'leaseEpoch', 'leaseExpiresAt', 'claimedAt'])
    || '{"status": "pending"}'"""


def test_when_a_lease_ends_its_owner_is_asked_before_another_has_the_task(working: Office) -> None:
    key = had(working, "bob", "silent")
    mia = working.cli("mia")
    working.server.psql(saying("silent", ENDED, "'in_progress'"))
    assert "asked first" in working.psql("mia", saying("silent", FREE, "'free-normal'")).stderr
    later = saying("silent", "jsonb_set(record, '{leaseUntil}', '4000000000')", "'in_progress'")
    assert "not yours" in working.psql("mia", later).stderr
    renewed = saying("silent", RENEWED, "'in_progress'")  # as after a sign of life of bob
    assert "UPDATE 1" in working.psql("mia", f"BEGIN; {renewed}; ROLLBACK").stdout
    refused = mia("claim-task", key)
    assert refused.status == 11 and "is silent; the task is released in" in refused.stderr
    told = [message["message"] for message in working.cli("bob").ok("read-messages", "--all")]
    assert any(text.startswith(f"{key} (silent): are you at work on it?") for text in told)
    working.server.psql(saying("silent", ASKED, "'in_progress'"))
    assert mia.ok("claim-task", key)["owner"] == "mia"


def test_a_leader_is_not_shown_a_silence_that_is_over(working: Office) -> None:
    """The login of a member can't close the notice in the inbox of the leader."""
    key = had(working, "bob", "quiet")
    working.server.psql(saying("quiet", ENDED, "'in_progress'"))
    assert working.cli("mia")("claim-task", key).status == 11
    assert working.cli("bob").ok("update-task", key, "--status", "completed", "--result", "x")
    said = working.cli("lea")("brief")
    assert f"{key} (quiet)" not in said.stdout + said.stderr


def test_a_login_completes_a_task_only_after_those_that_come_before(working: Office) -> None:
    other = str(working.lead("create-task", "before")["id"])
    key = had(working, "bob", "later", "--after", other)
    completed = saying("later", """record || '{"status": "completed"}'""", "'completed'")
    assert "after others" in working.psql("bob", completed).stderr
    bob = working.cli("bob")
    assert bob("update-task", key, "--status", "completed", "--result", "x").status == 11
    assert "after" not in bob.ok("update-task", key, "--unblock", other)
    assert bob.ok("update-task", key, "--status", "completed", "--result", "x")["status"] == "completed"


TURN = {"turn": 1, "run": "r", "at": AT, "seconds": 1, "tasks": [], "tokens": [{"input": 100, "output": 10}]}
OWN = "kind = 'usage' AND key = 'bob'"


@pytest.fixture(scope="module")
def counted(office: Office) -> Office:
    """The team in which two agents have the usage of one turn each."""
    for name in ("bob", "mia"):
        for kind, record in (("session", SESSION), ("usage", {"turns": [TURN]})):
            body = json.dumps({**record, "agent": name})
            assert office.server.psql(INSERT.format(kind, name, body)).returncode == 0
    return office


FORGED_USAGE = [
    change("turns", "[]", OWN),
    change("turns", "5", OWN),
    change("turns,0,tokens,0,input", "1", OWN),
    change("turns,1", json.dumps({**TURN, "tokens": [{"input": -9}]}), OWN),
    change("turns,1", json.dumps({**TURN, "run": "x"}), OWN),
    change("turns,1", json.dumps({**TURN, "tasks": 5}), OWN),
    change("turns,1", json.dumps({**TURN, "tokens": [{"input": 1.5}]}), OWN),
    change("sessionId", "5", OWN),
    f"""UPDATE teams.records SET body = replace(body, '"agent"', '"agent": "x", "agent"') WHERE {OWN}""",
    change("turns,1", json.dumps(TURN), "kind = 'usage' AND key = 'mia'"),
]


def test_usage_of_a_turn_can_be_added_but_not_changed(counted: Office) -> None:
    for sql in FORGED_USAGE:
        done = counted.psql("bob", sql)
        assert done.stdout == "UPDATE 0\n" or "ERROR" in done.stderr, (sql, done)
    done = counted.psql("bob", f"BEGIN; {change('turns,1', json.dumps({**TURN, 'turn': 2}), OWN)}; ROLLBACK")
    assert "UPDATE 1" in done.stdout, done


def test_no_turn_begins_while_the_usage_can_not_be_read(counted: Office) -> None:
    counted.lead("set", "budget", "1000000")
    assert counted.server.psql(change("sessionId", "5", OWN)).stdout == "UPDATE 1\n"
    answer = counted.owner("run-agent", "echo hi", "--agent-id", "bob", agent="lea", TEAMS_TOKEN=counted.tokens["lea"])
    assert answer.status == 15 and "usage" in answer.stderr
