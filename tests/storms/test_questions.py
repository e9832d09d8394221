"""Shadows answer in parallel."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from teams_cli.membership import joining
from teams_cli.teams.permission import Caller
from tests.support.cli import ALPHA, make_team

pytestmark = pytest.mark.slow


def answered(process: Any) -> Any:
    said, complaint = process.communicate(timeout=240)
    assert process.returncode == 0, complaint
    return json.loads(said)


def test_ten_agents_ask_five_questions_each_at_once(tmp_path: Path) -> None:
    cli = make_team(tmp_path / "root")
    names = [f"a{n}" for n in range(10)]
    for name in names:
        joining.join(cli.store(), ALPHA, Caller(name), answer=f"echo {name}; cat >/dev/null")
    cli.ok("set", "broadcast", "agents", agent="lea")
    asked = [
        cli.start("ask-others", f"{n}?", *(w for to in names if to != name for w in ("--to", to)), "--json", agent=name)
        for n in range(5)
        for name in names
    ]
    try:
        found = [answered(process) for process in asked]
    finally:  # one that failed leaves nothing behind for the tests after it
        for process in asked:
            process.kill()
            process.communicate()
    assert {row["status"] for row in found} == {"complete"}
    assert len({row["requestId"] for row in found}) == 50
    for row in found:
        answers = {said["responder_id"]: said["content"] for said in row["responses"]}
        assert len(answers) == 9 and all(answers[name] == name for name in answers)


def test_eight_shadows_answer_at_once(tmp_path: Path) -> None:
    """Each goes on only when all have begun."""
    cli = make_team(tmp_path / "root")
    cli.ok("set", "broadcast", "agents", agent="lea")
    cli.ok("set", "max_shadows", "8", agent="lea")
    for number in range(8):
        waits = " -a ".join(f"-e {tmp_path}/begun.{other}" for other in range(8))
        answer = f"touch {tmp_path}/begun.{number}; until test {waits}; do sleep 0.05; done; echo yes"
        joining.join(cli.store(), ALPHA, Caller(f"a{number}"), answer=answer)
    found = cli.ok("ask-others", "well?", "--timeout", "200", agent="lea")
    assert [said["content"].strip() for said in found["responses"]] == ["yes"] * 8
