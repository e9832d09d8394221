"""Shadows answer in parallel."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from teams_cli.membership import joining
from teams_cli.teams.permission import Caller
from tests.support.cli import ALPHA, TIMEOUT, make_team

pytestmark = pytest.mark.slow


def test_four_shadows_answer_at_once(tmp_path: Path) -> None:
    """Each shadow goes on only when all have begun."""
    cli = make_team(tmp_path / "root")
    cli.ok("set", "broadcast", "agents", agent="lea")
    cli.ok("set", "max_shadows", "4", agent="lea")
    for number in range(4):
        waits = " -a ".join(f"-e {tmp_path}/begun.{other}" for other in range(4))
        answer = f"touch {tmp_path}/begun.{number}; until test {waits}; do sleep 0.05; done; echo yes"
        joining.join(cli.store(), ALPHA, Caller(f"a{number}"), answer=answer)
    asking = cli.start("ask-others", "well?", "--timeout", "600", "--json", agent="lea")
    found = json.loads(asking.communicate(timeout=5 * TIMEOUT)[0])
    assert [said["content"].strip() for said in found["responses"]] == ["yes"] * 4
