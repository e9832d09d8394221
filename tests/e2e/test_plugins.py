"""The plugin of `teams`, installed by the commands of real clients."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.e2e.conftest import BINARIES, Office
from tests.e2e.model import Run, Say

TURNS = {
    "claude": ["-p", "[me] hi"],
    "codex": ["exec", "--skip-git-repo-check", "--dangerously-bypass-hook-trust", "[me] hi"],
    "copilot": ["-p", "[me] hi"],
    "qwen": ["-p", "[me] hi"],
}
SHOWN_LATER = ("codex", "qwen")
"""Clients that show the tools of a plugin's server only some seconds after the start, or when the model asks
for them.
"""


@pytest.mark.parametrize("office", TURNS, indirect=True)
def test_a_session_with_the_plugin_has_hooks_tools_and_the_skill(office: Office) -> None:
    """After the plugin was uninstalled, the settings are what they were, byte for byte."""
    settings = settings_of(office)
    before = settings.read_bytes()
    office.say("install", office.client, "--plugin")
    office.say("join-team", agent="bob")
    office.say("send-message", "bob", "the build is red")
    office.model.script("[me]", Run("teams whoami"), Say("seen"))
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
    request, last = office.model.requests["[me]"]
    assert str(request.body).count("| the build is red") == 1
    assert any(name.endswith("claim_task") for name in last.tools) or office.client in SHOWN_LATER
    assert "Work in a team of coding agents through the command" in str(request.body)
    office.say("uninstall", office.client)
    assert settings.read_bytes() == before


def settings_of(office: Office) -> Path:
    """The client's settings, with an entry of the user's own."""
    if office.client == "codex":
        config = office.home / ".codex/config.toml"
        config.write_text(config.read_text().replace("plugins = false", "plugins = true   # mine"))
        return config
    settings = office.home / f".{office.client}/settings.json"
    settings.parent.mkdir(exist_ok=True)
    own = json.loads(settings.read_text()) if settings.exists() else {"model": "m1"}
    settings.write_text(json.dumps(own, indent=3))
    return settings


def test_the_validator_of_claude_finds_nothing() -> None:
    claude = BINARIES["claude"]
    if not claude or not shutil.which(claude):
        pytest.skip("TEAMS_E2E_CLAUDE names no claude: see what tests/e2e/install.sh said")
    for place in (".", "plugins/teams"):
        words = [claude, "plugin", "validate", "--strict", place]
        done = subprocess.run(words, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done
