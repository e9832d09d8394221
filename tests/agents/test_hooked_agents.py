"""What the model of an agent is shown through the hooks of its client, and when; the client is scripted."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.support import hooked_client
from tests.support.cli import COMMAND, TEAMS, TIMEOUT, make_team, program
from tests.support.waits import until

pytestmark = pytest.mark.slow


class Office:
    """A team whose agents are scripted clients."""

    def __init__(self, top: Path) -> None:
        self.cli = make_team(top / "root")
        self.place = top / "transcripts"
        self.place.mkdir()
        program(top / "bin/teams", TEAMS)
        self.cli.more = {"PATH": f"{top}/bin:/usr/bin:/bin", hooked_client.PLACE: str(self.place)}
        (self.cli.root / "config.json").write_text(json.dumps({"harness": {"scripted": hooked_client.PROFILE}}))
        self.cli.ok("set", "harness", "scripted", agent="lea")

    def start(self, *lines: str) -> subprocess.Popen[bytes]:
        return self.cli.start("run-agent", "\n".join(lines), "--agent-id", "ann", "--json", agent="lea")

    def end(self, process: subprocess.Popen[bytes]) -> Any:
        stdout, stderr = process.communicate(timeout=TIMEOUT)
        assert process.returncode == 0, (stdout, stderr)
        return json.loads(stdout)

    def shown(self, role: str = "") -> list[str]:
        session = json.loads((self.cli.root / "teams/alpha/sessions/ann.json").read_text())
        path = self.place / f"{session['sessionId']}.jsonl"
        return hooked_client.shown(path, role) if path.exists() else []


@pytest.fixture
def office(tmp_path: Path) -> Office:
    return Office(tmp_path)


def test_an_agent_is_told_its_name_at_its_start_and_its_mail_after_a_tool_call(office: Office) -> None:
    process = office.start("$ teams wait --ready --json --timeout 60", "$ true", "say done")
    begun = office.cli.root / "teams/alpha/sessions/ann.json"
    until(lambda: begun.exists() and bool(office.shown("user")))
    office.cli.ok("send-message", "ann", "the build is red", agent="lea")
    office.cli.ok("create-task", "mend it", agent="lea")
    assert office.end(process)["output"] == "done"
    start, mail = office.shown("hook")
    assert "You are ann" in start
    assert '[From agent "lea"]:\n| the build is red' in mail
    assert [role for role in ("hook", "user") if "build is red" in "".join(office.shown(role))] == ["hook"]


def test_an_agent_is_introduced_once(office: Office) -> None:
    profile = {**hooked_client.PROFILE, "introduced": True}
    (office.cli.root / "config.json").write_text(json.dumps({"harness": {"scripted": profile}}))
    assert office.end(office.start("say done"))["output"] == "done"
    assert "You are ann" in "".join(office.shown("user"))
    assert "You are ann" not in "".join(office.shown("hook"))


def test_an_interjection_is_the_next_turn_once(office: Office) -> None:
    """The text of an interjection is shown in the next turn only, not by a hook that runs before it."""
    office.cli.ok("create-task", "never done", agent="lea")
    process = office.start("$ touch $TEAMS_HOME/begun; teams wait --task 1 --timeout 300", "---", "say as you wish")
    until((office.cli.root / "begun").exists)
    office.cli.ok("interject", "ann", "not this", agent="lea")
    done = office.end(process)
    shown = office.shown()
    assert sum("| not this" in text for text in shown) == 1
    assert "| not this" in office.shown("user")[-1]
    assert (done["outcome"], done["output"]) == ("completed", "as you wish")


def test_a_sandbox_without_the_keeper_does_not_lose_the_agent(office: Office) -> None:
    if subprocess.run(["unshare", "-rpf", "--mount-proc", "true"], capture_output=True).returncode:
        pytest.skip("there are no namespaces of processes here")
    process = office.start("$ touch $TEAMS_HOME/begun; teams read-messages --wait 60", "say not lost")
    until((office.cli.root / "begun").exists)
    words = ["unshare", "-rpf", "--mount-proc", *COMMAND, "list-agents"]
    subprocess.run(words, env=office.cli.environ("lea"), check=True, capture_output=True, timeout=TIMEOUT)
    office.cli.ok("send-message", "ann", "go on", agent="lea")
    assert office.end(process)["output"] == "not lost"
