"""Codex: how it is run, and its settings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from teams_cli.clients import own_entries
from teams_cli.clients.contract import Client, Daemon, Dialect, Home, PluginCommands, Seat, SettingsPlace, ToolGuard
from teams_cli.clients.profiles import Versions
from teams_cli.clients.seats import CONTROL, QUEUE
from teams_cli.clients.settings_files import Settings
from teams_cli.clients.toml_settings import Toml, inline
from teams_cli.environment import SANDBOX

_TURN = ("codex", "exec", "--json", "--skip-git-repo-check", "{model}")
_OPTIONS = ("{permissions}", "-c", "allow_login_shell=false", "{mcp}", "{hooks}")
_CONFINED = (
    *("-s", "workspace-write", "--add-dir", "{root}"),
    *("-c", "sandbox_workspace_write.network_access={network}"),
    *("-c", f'shell_environment_policy.set.{SANDBOX}="codex"'),
)
_NO_TOOLS = ("-s", "read-only", "--disable", "shell_tool", "--disable", "unified_exec", "--ephemeral")
_START_SECONDS = 60
_ENDING_EVENTS, _END_SECONDS = ("Interrupt", "SessionEnd"), 3
"""The events whose hooks may take only a few seconds, and how many seconds: Codex warns its user about slower hooks."""
_CALL_SECONDS = 24 * 60 * 60
"""The seconds that a call of our server, or a hook that asks the human, may take: a whole day, because both may wait.
Calls that do not wait have limits of their own.
"""


class Codex(Client):
    """Codex. It skips hooks that its user does not trust, and does not pass its environment to MCP servers."""

    profile: Mapping[str, Any] = {
        "name": "codex",
        "description": "Codex, one turn a process.",
        "model": ["--model", "{model}"],
        "start": [*_TURN, *_OPTIONS, "-"],
        "resume": [*_TURN, *_OPTIONS, "resume", "{session_id}", "-"],
        "fork": [*_TURN, *_NO_TOOLS, "fork", "{session_id}", "-"],
        "sessionId": {"from": "lines", "match": {"type": "thread.started"}, "path": "thread_id"},
        "output": {
            "from": "lines",
            "match": {"type": "item.completed", "item.type": "agent_message"},
            "path": "item.text",
        },
        "usage": {
            "from": "lines",
            "match": {"type": "turn.completed"},
            "input": ["usage.input_tokens"],
            "cached": ["usage.cached_input_tokens"],
            "output": ["usage.output_tokens"],
            "grows": True,
        },
        "failed": {"status": True, "lines": {"type": "turn.failed"}},
        "interrupt": [["INT", 5], ["TERM", 3], ["KILL", 2]],
        "modes": {"ask": [*_CONFINED], "edit": [*_CONFINED], "all": ["-s", "danger-full-access"]},
        "hooks": "codex",
        "mcp": "codex",
    }
    dialect = Dialect(
        "SessionStart",
        "UserPromptSubmit",
        ("PostToolUse",),
        "Stop",
        guard=ToolGuard("PreToolUse", ("apply_patch",), ("Bash",)),
    )
    events = ("SessionStart", "UserPromptSubmit", "PostToolUse", "Stop")
    sitting = ("PermissionRequest", "Interrupt", "SessionEnd")
    holding = ("Stop",)
    seat = Seat(
        "exec e review mcp-server",
        (QUEUE, CONTROL),
        resume=("resume", "{session_id}"),
        stops=(CONTROL,),
        daemon=Daemon(
            "app-server", home="CODEX_HOME", directory=".codex", path="app-server-control/app-server-control.sock"
        ),
    )
    hook_timeout = 30
    home = Home(
        "CODEX_HOME",
        ".codex",
        SettingsPlace(".codex/hooks.json", "hooks.json", Settings(hooks=True)),
        SettingsPlace(".codex/config.toml", "config.toml", Toml()),
    )
    remedy = "codex skips hooks that its user has not looked at: say /hooks in codex, and trust them"

    plugin = PluginCommands("codex", "add", "remove")
    versions = Versions("0.169.0")

    def hook_entries(self, command: str) -> dict[str, dict[str, Any]]:
        entries = super().hook_entries(command)
        for event in _ENDING_EVENTS:
            entries[event]["hooks"][0]["timeout"] = _END_SECONDS
        return entries

    def server_entry(self, words: list[str]) -> dict[str, Any]:
        return self._server(words, own_entries.VARIABLES)

    def _server(self, words: list[str], variables: Iterable[str]) -> dict[str, Any]:
        return {
            **super().server_entry(words),
            "env_vars": sorted(variables),
            "default_tools_approval_mode": "approve",
            "startup_timeout_sec": _START_SECONDS,
            "tool_timeout_sec": _CALL_SECONDS,
        }

    def hook_words(self, python: str, level: str | None = None) -> list[str]:
        command = self.hook_command(python)
        hooks = {event: [entry] for event, entry in self.agent_entries(command).items()}
        if level == "ask":
            hook = {"type": "command", "command": f"{command} {own_entries.ASK}", "timeout": _CALL_SECONDS}
            hooks["PreToolUse"].append({"hooks": [hook]})
        return _hook_options(hooks)

    def server_words(self, python: str, variables: Iterable[str]) -> list[str]:
        # Without `required`, Codex may send its first request before the server has started.
        return _server_options({**self._server(self.server_command(python), variables), "required": True})

    def once(self, python: str, directory: str, environ: Mapping[str, str]) -> tuple[list[str], dict[str, str]]:
        entries = self.hook_entries(self.hook_command(python))
        server = self.server_entry(self.server_command(python))
        servers = _server_options(server) if own_entries.is_server_available() else []
        return [*_hook_options({event: [entry] for event, entry in entries.items()}), *servers], {}


def _hook_options(hooks: Mapping[str, list[dict[str, Any]]]) -> list[str]:
    """Return the options that give Codex the *hooks*, a list for each event. Codex does not ask its user whether to
    trust hooks from options.
    """
    options = ["--dangerously-bypass-hook-trust"]
    for event, entries in hooks.items():
        options += ["-c", f"hooks.{event}=[{', '.join(map(inline, entries))}]"]
    return options


def _server_options(server: Mapping[str, Any]) -> list[str]:
    return ["-c", f"mcp_servers.{own_entries.NAME}={inline(server)}"]


CLIENT = Codex()
