"""The plugin of OpenCode for its version 2, in a stub of that version's plugin host."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from tests.hooks.conftest import PLUGIN
from tests.support.agents import NEEDS_PROC
from tests.support.cli import TEAMS, TIMEOUT, Cli, program

HOST = Path(__file__).with_name("opencode2.mjs")
TERMINAL = "import json, os, subprocess, sys; sys.exit(subprocess.run(json.loads(os.environ['SERVER'])).returncode)"
"""A terminal of the client, which starts a server of its own."""
PRIVATE, SHARED = ["serve", "--stdio", "--port", "0"], ["serve", "--service"]

pytestmark = [NEEDS_PROC, pytest.mark.skipif(not shutil.which("node"), reason="the plugin needs node")]


@contextmanager
def playing(cli: Cli, tmp_path: Path, words: list[str]) -> Iterator[Iterator[Any]]:
    """Run the stub as the server of a terminal in the team, and return the documents that it prints."""
    (tmp_path / "plugin.mjs").write_text(PLUGIN.read_text())
    program(tmp_path / "bin/teams", f"PYTHONPATH={os.getcwd()} {TEAMS}")
    server = json.dumps(["node", str(HOST), str(tmp_path / "plugin.mjs"), *words])
    environ = cli.environ("", "alpha", SERVER=server, PATH=f"{tmp_path}/bin:{os.environ['PATH']}")
    started = [sys.executable, "-c", TERMINAL]
    with subprocess.Popen(
        started, env=environ, cwd=tmp_path, stdout=subprocess.PIPE, start_new_session=True
    ) as process:
        assert process.stdout is not None
        try:
            yield map(json.loads, process.stdout)
            assert process.wait(TIMEOUT) == 0
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


@pytest.mark.slow
def test_a_session_with_a_server_of_its_own_is_a_member_and_is_woken(cli: Cli, tmp_path: Path) -> None:
    """The session has our tools, is shown its mail, and has a child session that is a member."""
    with playing(cli, tmp_path, PRIVATE) as said:
        begun = next(said)
        assert begun["codemode"] is False and begun["prompted"] == "go"
        context = next(said)
        assert context["made"] and [role for role, _ in context["context"]] == ["user", "user"]
        assert '"you_are":"agentA"' in context["context"][1][1]
        worked = next(said)
        assert worked["inside"].startswith("look\n\nYou are agentB in team alpha")
        assert worked["input"] == {"_agent_id": "ses_child"}
        contents = [[part["text"] for part in result["content"]] for result in worked["results"]]
        assert [shown for shown, _ in contents] == ["listing", '{"files":2}']
        assert all("| see a.py" in text for _, text in contents)
        assert "| the build is red" in next(said)["reason"]
        assert next(said) == {"idle": True}
        cli.ok("send-message", "agentA", "it is green again", agent="lea")
        assert "| it is green again" in next(said)["woken"]
    (output,) = [row for row in cli.ok("read-messages", "--all", agent="agentA") if row["type"] == "output"]
    assert (output["from"], output["message"]) == ("agentB", "It is a.py")


def test_in_a_server_of_all_terminals_the_plugin_does_nothing(cli: Cli, tmp_path: Path) -> None:
    """Such a server has the environment of whoever started it first."""
    with playing(cli, tmp_path, SHARED) as said:
        assert list(said) == [{"hooks": {"session": {}, "tool": {}}}]
    assert {row["name"] for row in cli.ok("list-agents", agent="lea")["agents"]} == {"lea", "bob", "mia"}
