"""Pinned real clients, each with its own home directory and a scripted model on loopback; tests without their
client are skipped.

`eval "$(tests/e2e/install.sh)"` installs them and sets TEAMS_E2E_CLAUDE, TEAMS_E2E_CODEX, and so on.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.model import Model
from tests.support.cli import ALPHA, COMMAND, make_team
from tests.support.waits import until

CLIENTS = ("claude", "codex", "gemini", "qwen", "opencode")
STARTED = (*CLIENTS, "copilot")
"""The clients that `teams` starts, also one that nobody uses at a terminal here."""
NEWEST = "-newest"
"""Suffix of a client's name: its newest version, if that is not the pinned one."""
OVER_ACP = "-acp"
"""Suffix of a client's name: started over the Agent Client Protocol."""
VARIABLES = {
    f"{client}{which}": f"TEAMS_E2E_{client.upper()}{which.upper().replace('-', '_')}"
    for client in STARTED
    for which in ("", NEWEST)
}
BINARIES = {client: os.environ.get(variable, "") for client, variable in VARIABLES.items()}  # tests don't see them
_CODEX_CONFIG = """
model = "m1"
model_provider = "scripted"
[model_providers.scripted]
name = "scripted"
base_url = "{url}/v1"
wire_api = "responses"
env_key = "OPENAI_API_KEY"
request_max_retries = 0
stream_max_retries = 0
[analytics]
enabled = false
[features]
plugins = false
"""

_GEMINI_SETTINGS = {
    "security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": False}},
    "privacy": {"usageStatisticsEnabled": False},
    "general": {"enableAutoUpdate": False},
    "model": {"name": "gemini-2.5-flash"},
}
_QWEN_SETTINGS = {
    "security": {"auth": {"selectedType": "openai"}},
    "privacy": {"usageStatisticsEnabled": False},
    "memory": {"enableManagedAutoMemory": False},
}
TO_START = 150.0
"""Seconds for a start: in each new home OpenCode first fetches what its plugins may need."""
HOOKS_INSTALLED = ("gemini",)
"""Clients whose hooks are installed in their settings here: Gemini CLI takes no hooks from below a directory
that all may write to, as the directory of the tests is. Elsewhere it gets them with each run, as the other
clients do.
"""
MCP_CLIENTS = ("claude", "codex", "gemini", "opencode")
"""Without Qwen Code, which offers the tools of servers only some requests after its start."""
every_client = pytest.mark.parametrize("office", CLIENTS, indirect=True)
every_mcp_client = pytest.mark.parametrize("office", MCP_CLIENTS, indirect=True)
_OPENCODE_OFFLINE = [
    f"OPENCODE_DISABLE_{what}" for what in ("AUTOUPDATE", "MODELS_FETCH", "LSP_DOWNLOAD", "DEFAULT_PLUGINS")
]


def every_client_and(*more: str) -> pytest.MarkDecorator:
    """All clients, and *more* harnesses, such as a client over the Agent Client Protocol."""
    return pytest.mark.parametrize("office", (*CLIENTS, *more), indirect=True)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that need a real client, so that the default run leaves them out."""
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.client)


def _opencode_config(url: str) -> dict[str, Any]:
    options = {"baseURL": f"{url}/v1", "apiKey": "dummy"}
    provider = {"npm": "@ai-sdk/openai-compatible", "options": options, "models": {"m1": {"tool_call": True}}}
    return {"model": "scripted/m1", "small_model": "scripted/m1", "provider": {"scripted": provider}}


class Office:
    """A team with a leader, a real client as its harness, and the client's model."""

    def __init__(self, top: Path, wanted: str, model: Model) -> None:
        self.top = top
        harness = wanted.removesuffix(NEWEST)
        client = self.client = harness.removesuffix(OVER_ACP)
        self.model = model
        self.home, self.work, self.bin = top / "home", top / "work", top / "bin"
        for directory in (*(self.home / f".{c}" for c in ("codex", "gemini", "qwen")), self.work, self.bin):
            directory.mkdir(parents=True)
        self.started: list[subprocess.Popen[str]] = []
        self.variables: dict[str, str] = {}
        (self.home / ".gemini/settings.json").write_text(json.dumps(_GEMINI_SETTINGS))
        (self.home / ".qwen/settings.json").write_text(json.dumps(_QWEN_SETTINGS))
        (self.home / "opencode.json").write_text(json.dumps(_opencode_config(model.url)))
        (self.home / ".codex/config.toml").write_text(_CODEX_CONFIG.format(url=model.url))
        (self.bin / client).symlink_to(BINARIES[wanted.removesuffix(OVER_ACP)])
        if node := shutil.which("node"):
            (self.bin / "node").symlink_to(node)
        (self.bin / "teams").write_text(f'#!/bin/sh\nexec "{sys.executable}" -P -m teams_cli "$@"\n')
        (self.bin / "teams").chmod(0o755)
        (self.home / ".profile").write_text(f'PATH="{self.bin}:$PATH"\n')  # a login shell resets PATH
        self.cli = make_team(top / "root")
        self.cli.ok("set", "harness", harness, agent="lea")

    def environ(self, **more: str) -> dict[str, str]:
        """The whole environment of a client; nothing is inherited from the tests."""
        return {
            "PATH": f"{self.bin}:/usr/local/bin:/usr/bin:/bin",
            "PYTHONPATH": os.getcwd(),
            "HOME": str(self.home),
            "XDG_RUNTIME_DIR": str(self.top),
            "TEAMS_HOME": str(self.cli.root),
            "TEAMS_TEAM": ALPHA,
            "ANTHROPIC_BASE_URL": self.model.url,
            "ANTHROPIC_API_KEY": "dummy",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "CODEX_HOME": f"{self.home}/.codex",
            "OPENAI_API_KEY": "dummy",
            "GOOGLE_GEMINI_BASE_URL": self.model.url,
            "GEMINI_API_KEY": "dummy",
            "OPENAI_BASE_URL": f"{self.model.url}/v1",
            "OPENAI_MODEL": "m1",
            "OPENCODE_CONFIG": f"{self.home}/opencode.json",
            "COPILOT_OFFLINE": "true",
            "COPILOT_PROVIDER_BASE_URL": f"{self.model.url}/v1",
            "COPILOT_PROVIDER_API_KEY": "dummy",
            "COPILOT_MODEL": "m1",
            **dict.fromkeys(_OPENCODE_OFFLINE, "1"),
            **self.variables,
            **more,
        }

    def start(self, prompt: str, agent: str = "ann", **environ: str) -> subprocess.Popen[str]:
        """Start `teams run-agent` as the leader, without waiting for it."""
        if self.client in HOOKS_INSTALLED:
            self.say("install", self.client)
        words = [*COMMAND, "run-agent", prompt, "--agent-id", agent, "--json"]
        process = subprocess.Popen(
            words,
            env=self.environ(TEAMS_AGENT_ID="lea", **environ),
            cwd=self.work,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.started.append(process)
        return process

    def end(self, process: subprocess.Popen[str], status: int = 0) -> Any:
        """Wait for the process, and return the JSON that it printed."""
        stdout, stderr = process.communicate(timeout=240)
        assert process.returncode == status, (process.returncode, stdout, stderr, self.logs())
        return json.loads(stdout)

    def close(self) -> None:
        """End the team, and the processes that a failed test did not wait for."""
        self.cli("close-team", "--force", agent="lea")
        for process in self.started:
            if process.returncode is None:
                process.kill()
                process.communicate()

    def run(self, prompt: str, agent: str = "ann", **environ: str) -> Any:
        return self.end(self.start(prompt, agent, **environ))

    def say(self, *words: str, agent: str = "lea", patience: float = 240.0) -> Any:
        """What a command prints, run as the leader or as *agent*."""
        done = subprocess.run(
            [*COMMAND, *words, "--json"],
            env=self.environ(TEAMS_AGENT_ID=agent),
            cwd=self.work,
            capture_output=True,
            text=True,
            timeout=patience,
        )
        assert done.returncode == 0, done
        return done.stdout

    def wait_for_state(self, agent: str, state: str, patience: float = 120.0) -> None:
        def states() -> list[str]:
            rows = json.loads(self.say("list-agents"))["agents"]
            return [row["session"]["state"] for row in rows if row["name"] == agent and "session" in row]

        until(lambda: states() == [state], lambda: f"{agent} is {states()}, not {state}\n{self.logs()}", patience)

    def logs(self) -> str:
        """What the clients and supervisors printed, for the report of a failure."""
        found = sorted((self.cli.root / "logs").rglob("*"))
        return "\n".join(
            f"--- {path.name}\n{path.read_text(errors='replace')[-2000:]}" for path in found if path.is_file()
        )


@pytest.fixture(params=CLIENTS[:3])
def office(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Office]:
    """A team with a real client: one of three, or of all in tests that are marked `every_client`."""
    client = request.param
    if not os.access(BINARIES[client.removesuffix(OVER_ACP)], os.X_OK):
        pytest.skip(f"{VARIABLES[client.removesuffix(OVER_ACP)]} names no {client}: see what tests/e2e/install.sh said")
    model = Model()
    made = Office(tmp_path, client, model)
    yield made
    made.close()
    model.close()


@pytest.fixture
def desk(office: Office) -> Iterator[Any]:
    """The terminals at which people use the client."""
    from tests.e2e.sitting import Desk

    made = Desk(office)
    yield made
    made.close()
