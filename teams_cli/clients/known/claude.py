"""Claude Code: how it is run, and its settings."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from teams_cli.clients.contract import COMMON, Client, Home, PluginCommands, Seat, SettingsPlace, Socket
from teams_cli.clients.environments import SETTINGS
from teams_cli.clients.own_entries import NAME, PROMPT_TOOL
from teams_cli.clients.profiles import Versions
from teams_cli.clients.seats import BELL, SOCKET
from teams_cli.clients.settings_files import Settings

ALLOWED = ("Bash(teams:*)", f"mcp__{NAME}")
"""The rules that allow our commands and tools without asking, even in the mode "auto"."""
_ALLOWED_WITH_PLUGIN = (ALLOWED[0], f"mcp__plugin_teams_{NAME}")
_TURN = ("claude", "-p", "--output-format", "json", "{model}")
_OPTIONS = ("{permissions}", "--allowedTools", ",".join(ALLOWED), "{mcp}", "{hooks}")

_OF_TASKS = ("TaskCreated", "TaskCompleted", "TeammateIdle")
_CHECK_TIMEOUT = 600
"""The seconds that a hook may take to run the check of a task."""


class Claude(Client):
    """Claude Code. Its command line can give it our hooks and our server."""

    profile: Mapping[str, Any] = {
        "name": "claude",
        "description": "Claude Code, one turn a process.",
        "model": ["--model", "{model}"],
        "start": [*_TURN, *_OPTIONS, "--session-id", "{session_id}"],
        "resume": [*_TURN, *_OPTIONS, "--resume", "{session_id}"],
        "fork": [*_TURN, "--resume", "{session_id}", "--fork-session", "--no-session-persistence", "--tools", ""],
        "sessionId": {"from": "preset"},
        "output": {"from": "json", "path": "result"},
        "usage": {
            "from": "json",
            "each": "modelUsage",
            "input": ["inputTokens", "cacheReadInputTokens", "cacheCreationInputTokens"],
            "cached": ["cacheReadInputTokens"],
            "output": ["outputTokens"],
            # Since 2.1.277, and no earlier version, `modelUsage` counts the session from its beginning on.
            "grows": True,
            "turn": {
                "input": ["usage.input_tokens", "usage.cache_read_input_tokens", "usage.cache_creation_input_tokens"],
                "output": ["usage.output_tokens"],
            },
        },
        "failed": {"status": True, "json": "is_error"},
        "interrupt": [["INT", 5], ["TERM", 3], ["KILL", 2]],
        "modes": {
            "ask": ["--permission-mode", "default", "--permission-prompt-tool", f"mcp__{NAME}__{PROMPT_TOOL}"],
            "edit": ["--permission-mode", "acceptEdits"],
            "all": ["--permission-mode", "bypassPermissions"],
        },
        "hooks": "claude",
        "mcp": "claude",
        "set": {"CLAUDE_CODE_STOP_HOOK_BLOCK_CAP": "1000"},
        "keep": [*SETTINGS, "CLAUDE_CODE_OAUTH_TOKEN", "CLAUDE_CODE_USE_*"],
    }
    dialect = COMMON
    events = ("SessionStart", "UserPromptSubmit", "PostToolBatch", "Stop", "SubagentStart", "SubagentStop", *_OF_TASKS)
    sitting = ("PermissionRequest", "Notification", "SessionEnd")
    waiting = ("SessionStart", "Stop")
    holding = ("Stop", "SubagentStop")
    seat = Seat(
        "-p --print",
        (BELL, SOCKET),
        resume=("--resume", "{session_id}"),
        stops=(SOCKET,),
        socket=Socket(
            "CLAUDE_CODE_MESSAGING_SOCKET",
            "CLAUDE_CODE_MESSAGING_TOKEN",
            asking_options=(
                "bypassPermissions",
                "--permission-mode=bypassPermissions",
                "--dangerously-skip-permissions",
            ),
        ),
    )
    hook_timeout = 30
    home = Home(
        "CLAUDE_CONFIG_DIR",
        ".claude",
        SettingsPlace(".claude/settings.json", "settings.json", Settings(hooks=True, allowed=ALLOWED)),
        SettingsPlace(".mcp.json", ".claude.json", Settings(servers="mcpServers"), is_in_home=True),
    )

    plugin = PluginCommands(
        "claude",
        "install",
        "uninstall",
        leftovers=("enabledPlugins", "extraKnownMarketplaces"),
        format=Settings(allowed=_ALLOWED_WITH_PLUGIN),
    )
    versions = Versions("2.1.197")

    def agent_entries(self, command: str) -> dict[str, dict[str, Any]]:
        entries = super().agent_entries(command)
        # The hook tells our server which subagent makes a call.
        entries["PreToolUse"]["matcher"] = f"{entries['PreToolUse']['matcher']}|^mcp__(plugin_teams_)?{NAME}__"
        entries["TaskCompleted"]["hooks"][0]["timeout"] = _CHECK_TIMEOUT
        return entries

    def server_entry(self, words: list[str]) -> dict[str, Any]:
        return {**super().server_entry(words), "alwaysLoad": True}

    def hook_words(self, python: str, level: str | None = None) -> list[str]:
        entries = self.agent_entries(self.hook_command(python))
        return ["--settings", json.dumps({"hooks": {event: [entry] for event, entry in entries.items()}})]

    def server_words(self, python: str, variables: Iterable[str]) -> list[str]:
        servers = {NAME: self.server_entry(self.server_command(python))}
        return ["--mcp-config", json.dumps({"mcpServers": servers})]

    def once(self, python: str, directory: str, environ: Mapping[str, str]) -> tuple[list[str], dict[str, str]]:
        settings = self.settings_once(python) | {"permissions": {"allow": [*ALLOWED]}}
        servers = settings.pop("mcpServers", None)
        # Servers come first: `--mcp-config` takes all words up to the next option, even a prompt.
        words = ["--mcp-config", json.dumps({"mcpServers": servers})] if servers else []
        return [*words, "--settings", json.dumps(settings)], {}


CLIENT = Claude()
