"""Our plugin, taken in by real clients' own commands."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from tests.e2e.conftest import BINARIES, Office
from tests.e2e.model import Say

TURNS = {"claude": ["-p", "[me] hi"], "copilot": ["-p", "[me] hi"]}


@pytest.mark.parametrize("office", TURNS, indirect=True)
def test_a_session_with_the_plugin_has_hooks_tools_and_the_skill(office: Office) -> None:
    """And what is left of it in the settings afterwards is what was there, byte for byte."""
    settings = office.home / f".{office.client}/settings.json"
    settings.parent.mkdir(exist_ok=True)
    settings.write_text('{\n   "model": "m1"\n}')
    before = settings.read_bytes()
    office.say("install", office.client, "--plugin")
    office.say("join-team", agent="bob")
    office.say("send-message", "bob", "the build is red")
    office.model.script("[me]", Say("seen"))
    done = subprocess.run(
        [office.bin / office.client, *TURNS[office.client]],
        env=office.environ(TEAMS_AGENT_ID="bob"),
        cwd=office.work,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done
    (request,) = office.model.requests["[me]"]
    assert request.text.count("| the build is red") == 1
    assert any(name.endswith("claim_task") for name in request.tools)
    assert "Work in a team of coding agents through the command" in str(request.body)
    office.say("uninstall", office.client)
    assert settings.read_bytes() == before


def test_the_validator_of_claude_finds_nothing() -> None:
    claude = BINARIES["claude"]
    if not claude or not shutil.which(claude):
        pytest.skip("TEAMS_E2E_CLAUDE names no claude: see what tests/e2e/install.sh said")
    for place in (".", "plugins/teams"):
        words = [claude, "plugin", "validate", "--strict", place]
        done = subprocess.run(words, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done
