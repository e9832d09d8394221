"""The agents of all teams, where a request names none."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.extensions.http.clients import message
from tests.support.cli import make_team
from tests.support.serving import serving


@pytest.mark.slow
def test_agents_of_all_open_teams_are_listed_with_their_team(tmp_path: Path) -> None:
    cli = make_team(tmp_path / "root", "bob")
    with serving(cli) as server:
        assert {(row["name"], row["team"]) for row in server.get("/api/agents")} == {("lea", "alpha"), ("bob", "alpha")}
        for team, leader in (("beta", "ben"), ("gone", "gil")):
            cli.ok("spawn-team", team, agent=leader)
        cli.ok("close-team", team="gone", agent="gil")
        found = {(row["name"], row["team"]) for row in server.get("/api/agents")}
        assert found == {("lea", "alpha"), ("bob", "alpha"), ("ben", "beta")}
        assert [row["team"] for row in server.get("/api/agents?team=beta")] == ["beta"]


def test_a_message_finds_the_team_in_which_both_are(tmp_path: Path) -> None:
    """Else the only one that has who is written to; where that does not tell, nothing is sent, or it is that of the
    server.
    """
    cli = make_team(tmp_path / "root", "bob")
    with serving(cli) as server:
        cli.ok("spawn-team", "beta", agent="ben")
        for agent in ("bob", "bea"):
            cli.ok("join-team", "beta", agent=agent)
        assert message(server, "bea", {"message": "hi", "sender": "ben"}).json["target"] == "bea"
        assert message(server, "bob", {"message": "hi", "sender": "lea"}).json["delivered"]
        assert message(server, "leader", {"message": "hi", "sender": "bea"}).json["target"] == "ben"
        assert message(server, "bea", {"message": "hi", "sender": "lea"}).status == 403
        assert message(server, "bob", {"message": "hi", "sender": "ghost"}).json["code"] == "no_team"
        missing = message(server, "nobody", {"message": "hi", "sender": "lea"})
        assert missing.status == 404 and missing.json["available"] == ["lea", "bob", "ben", "bob", "bea"]
    cli.team = "alpha"
    with serving(cli) as server:
        assert {row["team"] for row in server.get("/api/agents")} == {"alpha", "beta"}
        assert message(server, "bea", {"message": "hi", "sender": "ben"}).json["target"] == "bea"
