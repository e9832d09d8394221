"""The agents of all teams, where a request names none."""

from __future__ import annotations

from pathlib import Path

from tests.support.cli import make_team
from tests.support.serving import serving


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
