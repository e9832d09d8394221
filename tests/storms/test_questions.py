"""Many questions at once: every answer is accounted for, and shadows answer side by side."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from teams_cli.membership import joining
from teams_cli.teams.caller import Caller
from tests.support.cli import ALPHA, make_team

pytestmark = pytest.mark.slow


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
    found = [json.loads(process.communicate(timeout=240)[0]) for process in asked]
    assert {row["status"] for row in found} == {"complete"}
    assert len({row["requestId"] for row in found}) == 50
    for row in found:
        answers = {said["responder_id"]: said["content"] for said in row["responses"]}
        assert len(answers) == 9 and all(answers[name] == name for name in answers)


def test_eight_shadows_take_at_most_twice_as_long_as_two(tmp_path: Path) -> None:
    cli = make_team(tmp_path / "root")
    names = [f"a{n}" for n in range(8)]
    for name in names:
        joining.join(cli.store(), ALPHA, Caller(name), answer="sleep 1; echo yes")
    cli.ok("set", "broadcast", "agents", agent="lea")

    def seconds(targets: list[str]) -> float:
        began = time.monotonic()
        found = cli.ok("ask-others", "well?", *(w for to in targets for w in ("--to", to)), agent="lea")
        assert len(found["responses"]) == len(targets)
        return time.monotonic() - began

    assert min(seconds(names) for _ in range(3)) <= 2 * min(seconds(names[:2]) for _ in range(3))
