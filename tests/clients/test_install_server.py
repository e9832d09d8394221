"""The MCP server in the settings of clients: added, and removed without a trace."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.clients.homes import SETTINGS, Home, hooks_in, in_project, refused
from tests.support.cli import TIMEOUT, make_team, tree

pytestmark = pytest.mark.slow

SERVERS = {
    "claude": ".claude.json",
    "codex": ".codex/config.toml",
    "gemini": ".gemini/settings.json",
    "qwen": ".qwen/settings.json",
    "opencode": ".config/opencode/opencode.json",
}


def server_in(path: Path, client: str) -> dict[str, Any]:
    """The entry of our MCP server in the client's settings, or an empty one."""
    text = path.read_text()
    document = tomllib.loads(text) if path.suffix == ".toml" else json.loads(text)
    key = {"codex": "mcp_servers", "opencode": "mcp"}.get(client, "mcpServers")
    return document.get(key, {}).get("team", {})


def words_of(entry: dict[str, Any]) -> list[str]:
    """The command with which the client starts the server."""
    return [*entry["command"], *entry.get("args", [])] if "args" not in entry else [entry["command"], *entry["args"]]


@pytest.mark.parametrize("client", ["claude", "codex", "opencode"])
def test_the_server_that_is_installed_serves(home: Home, tmp_path: Path, client: str) -> None:
    cli = make_team(tmp_path / "root", "bob")
    home.change("install", client)
    entry = server_in(home.path / SERVERS[client], client)
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    asked = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "list_agents", "arguments": {}}},
    ]
    options = {"env": cli.environ("bob"), "cwd": tmp_path, "timeout": TIMEOUT}
    given = "".join(json.dumps(line) + "\n" for line in asked)
    done = subprocess.run(words_of(entry), input=given, capture_output=True, text=True, **options)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert answers[-1]["result"]["structuredContent"]["self"] == "bob", done


CODEX = {
    "nothing": "",
    "a server": '[mcp_servers.docs]\ncommand = "docs"\n',
    "no end of line": "# mine\nmodel = \"m1\"   # the best\n\n[profiles.x]\nmodel='m2'",
    "servers by dots": 'mcp_servers.docs.command = "docs"\n\n\n',
    "odd": "x = 1979-05-27T07:32:00Z\ny = inf\r\n",
}


def test_what_is_in_codexs_settings_stays_and_comes_back_byte_for_byte(home: Home) -> None:
    for text in CODEX.values():
        path = home.path / ".codex/config.toml"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(text.encode())
        home.change("install", "codex")
        assert path.read_bytes().startswith(text.encode()) and server_in(path, "codex")
        servers = tomllib.loads(path.read_text())["mcp_servers"]
        assert servers.pop("team") and servers == tomllib.loads(text).get("mcp_servers", {})
        assert home.change("install", "codex")["changed"] is False
        path.write_bytes(path.read_bytes() + b"[later]\nz = 1\n")
        home.change("install", "codex")
        assert path.read_bytes().count(b"[mcp_servers.team]") == 1 and tomllib.loads(path.read_text())["later"]
        home.change("uninstall", "codex")
        document = tomllib.loads(path.read_text())
        assert document == {**tomllib.loads(text), "later": {"z": 1}} or "profiles" in document
        path.write_bytes(text.encode())
        home.change("install", "codex")
        home.change("uninstall", "codex")
        assert path.read_bytes() == text.encode()


TRUSTED = """\
[hooks.state."{hooks}:stop:0:0"]
trusted_hash = "sha256:cc103427f1d3"
[hooks.state."{hooks}:stop:1:0"]
trusted_hash = "sha256:b1e95421ce45"
[hooks.state."{hooks}:pre_tool_use:0:0"]
trusted_hash = "sha256:705acb7b7735"

[tui]
screen_reader_detection_done = true
"""


def test_what_codex_noted_of_our_hooks_goes_with_them(home: Home) -> None:
    """Codex notes which hooks its user trusts; only the notes on our hooks are removed."""
    hooks, path = home.path / ".codex/hooks.json", home.path / ".codex/config.toml"
    hooks.parent.mkdir()
    own = '{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "say done"}]}]}}'
    hooks.write_text(own)
    path.write_text('model = "m1"\n')
    home.change("install", "codex")
    path.write_text(path.read_text() + TRUSTED.replace("{hooks}", str(hooks)))
    home.change("install", "codex")
    assert len(tomllib.loads(path.read_text())["hooks"]["state"]) == 3
    home.change("uninstall", "codex")
    assert hooks.read_text() == own
    left = tomllib.loads(path.read_text())
    assert left == {
        "model": "m1",
        "hooks": {"state": {f"{hooks}:stop:0:0": {"trusted_hash": "sha256:cc103427f1d3"}}},
        "tui": {"screen_reader_detection_done": True},
    }


def test_what_somebody_wrote_into_our_block_stays(home: Home) -> None:
    path = home.path / ".codex/config.toml"
    path.parent.mkdir()
    quoted = 'x = """\n# teams: begin\n[mcp_servers.team]\ncommand = "teams"\n# teams: end\n"""\ny = nan\n'
    path.write_text(quoted)
    home.change("install", "codex")
    more = '# mine\n[mcp_servers.docs]\ncommand = "docs"\n'
    before, end, after = path.read_text().rpartition("# teams: end\n")
    path.write_text(before + more + end + after)
    home.change("uninstall", "codex")
    assert path.read_text() == quoted + more


def test_a_path_with_any_character_is_written_and_found_again(home: Home, tmp_path: Path) -> None:
    """TOML has other escapes than JSON."""
    place = tmp_path / "\U0001f600 \u00e4\"'\\"
    place.mkdir()
    (place / "python").symlink_to(sys.executable)
    words = [place / "python", "-m", "teams_cli", "install", "codex", "--json"]
    environ = {**home.cli.environ(), "PYTHONPATH": os.pathsep.join([os.getcwd(), *sys.path[1:]])}
    done = subprocess.run(words, env=environ, capture_output=True, text=True, timeout=TIMEOUT)
    assert done.returncode == 0, done
    assert words_of(server_in(home.path / ".codex/config.toml", "codex"))[0] == str(place / "python")
    home.change("uninstall", "codex")
    assert tree(home.path) == {}


NOT_OURS = [
    ("codex", "[mcp_servers\n", 15),
    ("codex", 'mcp_servers = {docs = {command = "docs"}}\n', 15),
    ("codex", '[mcp_servers.team]\ncommand = "theirs"\n', 2),
    ("claude", '{"mcpServers": []}', 15),
    ("claude", '{"mcpServers": {"team": {"command": "theirs"}}}', 2),
    ("opencode", '{"mcp": {"team": {"type": "remote", "url": "http://localhost"}}}', 2),
    ("opencode", "// mine\n{} {", 15),
]


def test_a_large_file_is_changed_and_comes_back(home: Home) -> None:
    """Claude Code keeps its history in the file of its servers; this text takes six times as much as ASCII."""
    path = home.path / ".claude.json"
    path.write_text(json.dumps({"history": ["\u00e9" * 10_000] * 150}, ensure_ascii=False, indent=1))
    before = path.read_bytes()
    home.change("install", "claude")
    assert home.change("install", "claude")["changed"] is False
    home.change("uninstall", "claude")
    assert path.read_bytes() == before


def test_servers_that_are_not_ours_are_left_alone(home: Home) -> None:
    for client, text, status in NOT_OURS:
        path = home.path / SERVERS[client]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        answer = refused(home, "install", client)
        assert answer.status == status and str(path) in answer.stderr


@pytest.mark.parametrize(
    "text", ["mcp_servers = {}\n", "mcp_servers = []\n", "[[mcp_servers]]\na = 1\n", "mcp_servers = 1"]
)
def test_servers_in_a_form_that_takes_no_other_are_named(home: Home, text: str) -> None:
    """The refusal is about the user's file, not about a line that we would have added."""
    path = home.path / ".codex/config.toml"
    path.parent.mkdir()
    path.write_text(text)
    answer = refused(home, "install", "codex")
    assert f"{path}: mcp_servers: can't be added to" in answer.stderr and "[mcp_servers.NAME]" in answer.stderr


def test_a_projects_settings_name_no_path_of_this_machine(home: Home, tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    for client, path in {**SERVERS, "claude": ".mcp.json", "opencode": "opencode.json"}.items():
        in_project(home, project, "install", client)
        assert words_of(server_in(project / path, client)) == ["teams", "mcp"]
        if client in SETTINGS:
            assert f"teams hook {client}" in hooks_in(project / SETTINGS[client])["SessionStart"]
        in_project(home, project, "uninstall", client)
    assert tree(project) == {}


def test_without_what_the_server_needs_the_hooks_are_installed_alone(home: Home, tmp_path: Path) -> None:
    """The person is told what is missing, and a later installation adds the server."""
    (tmp_path / "without").mkdir()
    (tmp_path / "without/sitecustomize.py").write_text(
        "import sys\n"
        "class Missing:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'mcp':\n"
        "            raise ModuleNotFoundError(name, name=name)\n"
        "sys.meta_path.insert(0, Missing())\n"
    )
    done = home.cli("install", "claude", PYTHONPATH=f"{tmp_path / 'without'}:{os.getcwd()}")
    assert done.status == 0 and ".[mcp]" in done.stderr
    assert hooks_in(home.file("claude")) and not (home.path / ".claude.json").exists()
    home.change("install", "claude")
    assert server_in(home.path / ".claude.json", "claude")
