"""What the login of an agent may write of what its agent took: by nothing of it a budget goes on."""

from __future__ import annotations

import json

import pytest

from tests.extensions.postgres.test_logins import DOOR, INSERT, Office, change, office

__all__ = ["office"]

pytestmark = pytest.mark.slow

TURN = {
    "turn": 1, "run": "r", "at": "2030-01-01T00:00:00.000Z", "seconds": 1, "tasks": [],
    "tokens": [{"input": 100, "output": 10}],
}  # fmt: skip
OWN = "kind = 'usage' AND key = 'bob'"


@pytest.fixture(scope="module")
def counted(office: Office) -> Office:
    """The team with what two agents took in a turn each."""
    for name in ("bob", "mia"):
        for kind, record in (("session", {**DOOR["session"], "agent": name}), ("usage", {"agent": name})):
            body = json.dumps(record if kind == "session" else {**record, "turns": [TURN]})
            assert office.server.psql(INSERT.format(kind, name, body)).returncode == 0
    return office


FORGERIES = {
    "nothing": change("turns", "[]", OWN),
    "no list": change("turns", "5", OWN),
    "less": change("turns,0,tokens,0,input", "1", OWN),
    "less than nothing": change("turns,1", json.dumps({**TURN, "tokens": [{"input": -9}]}), OWN),
    "for another run": change("turns,1", json.dumps({**TURN, "run": "x"}), OWN),
    "a turn that can't be read": change("turns,1", json.dumps({**TURN, "tasks": 5}), OWN),
    "tokens that can't be read": change("turns,1", json.dumps({**TURN, "tokens": [{"input": 1.5}]}), OWN),
    "no session": change("sessionId", "5", OWN),
    "twice": f"""UPDATE teams.records SET body = replace(body, '"agent"', '"agent": "x", "agent"') WHERE {OWN}""",
    "by another": change("turns,1", json.dumps(TURN), "kind = 'usage' AND key = 'mia'"),
}


def test_what_was_counted_stays(counted: Office) -> None:
    for what, sql in FORGERIES.items():
        done = counted.psql("bob", sql)
        assert done.stdout == "UPDATE 0\n" or "ERROR" in done.stderr, (what, done)


def test_what_the_next_turn_took_is_added(counted: Office) -> None:
    done = counted.psql("bob", f"BEGIN; {change('turns,1', json.dumps({**TURN, 'turn': 2}), OWN)}; ROLLBACK")
    assert "UPDATE 1" in done.stdout, done


def test_no_turn_begins_where_what_was_taken_can_not_be_read(counted: Office) -> None:
    """Else one would have no budget any more by what is damaged."""
    counted.lead("set", "budget", "1000000")
    assert counted.server.psql(change("sessionId", "5", OWN)).stdout == "UPDATE 1\n"
    answer = counted.owner("run-agent", "echo hi", "--agent-id", "bob", agent="lea", TEAMS_TOKEN=counted.tokens["lea"])
    assert answer.status == 15 and "usage" in answer.stderr
