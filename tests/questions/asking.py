"""Asking questions, and sorting the answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from teams_cli.membership import joining
from teams_cli.teams.permission import Caller
from tests.support.cli import ALPHA, Cli, make_team
from tests.support.waits import until


def ask(cli: Cli, *words: str, agent: str = "bob") -> dict[str, Any]:
    found: dict[str, Any] = cli.ok("ask-others", *words, agent=agent)
    return found


def by_responder(found: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {said["responder_id"]: said for said in found["responses"]}


wait_for = until


def team_that_answers(directory: Path) -> Cli:
    """A team with questions on, where ann, cid and dot answer by a command."""
    made = make_team(directory / "root", "bob")
    for name in ("ann", "cid", "dot"):
        joining.join(made.store(), ALPHA, Caller(name), answer=f"echo {name} says $(jq -r .question)")
    made.ok("set", "broadcast", "agents", agent="lea")
    return made
