"""The turn of a session without a supervisor does not end while agents that it spawned are at work."""

from __future__ import annotations

import subprocess
import time

import pytest

from tests.e2e.conftest import Office
from tests.e2e.model import Run, Say
from tests.e2e.sitting import install

WORDS = {
    "claude": ["-p", "--allowedTools", "Bash", "--max-turns", "9"],
    "codex": ["exec", "--skip-git-repo-check", "-s", "danger-full-access", "-"],
    "opencode": ["run", "--auto"],
}
LONGER = 40
"""More seconds than clients give a hook by default, or gave the hook of `teams`."""


@pytest.mark.slow
@pytest.mark.parametrize("office", WORDS, indirect=True)
def test_a_session_without_a_supervisor_waits_for_what_it_spawned(office: Office) -> None:
    install(office)
    office.say("join-team", agent="bob")
    script = f"until test -e {office.top}/go; do sleep 0.1; done; echo kid"
    office.model.script("[me]", Run(f"teams spawn '{script}' --harness shell"), Say("done"), Say("kid has said it"))
    with subprocess.Popen(
        [office.bin / office.client, *WORDS[office.client]],
        env=office.environ(TEAMS_AGENT_ID="bob"),
        cwd=office.work,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin
        process.stdin.write("[me] have somebody look")
        process.stdin.close()
        process.stdin = None
        office.model.wait_for("[me]", 2)
        time.sleep(LONGER)
        held = process.poll() is None and len(office.model.requests["[me]"]) == 2
        (office.top / "go").touch()
        said, _ = process.communicate(timeout=120)
    assert held, said
    assert "| kid" in office.model.requests["[me]"][2].text and "kid has said it" in said
