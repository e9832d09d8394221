"""OpenCode: how it is run, and its settings."""

from __future__ import annotations

import json
from collections.abc import Mapping
from shutil import which
from typing import Any

from teams_cli.clients import own_entries
from teams_cli.clients.contract import COMMON, Client, Home, Seat, SettingsPlace
from teams_cli.clients.known import DIRECTORY
from teams_cli.clients.profiles import Versions, is_at_least, version_of
from teams_cli.clients.seats import BELL, HTTP
from teams_cli.clients.settings_files import Ours, Plugin, Settings, write_once

_VERSION_2 = "2.0"
"""From this version on, plugins of OpenCode look different, and run in a server."""
_PLUGIN = f"{DIRECTORY}/opencode.js"
_TURN = ("opencode", "run", "--format", "json", "{model}")
EDIT = {
    "edit": "allow",
    "bash": {"*": "deny", "teams": "allow", "teams *": "allow"},
    "external_directory": "deny",
    "webfetch": "deny",
    "websearch": "deny",
}


class OpenCode(Client):
    """OpenCode. It calls our hooks through a plugin of ours, which works in its versions 1 and 2."""

    profile: Mapping[str, Any] = {
        "name": "opencode",
        "description": "OpenCode, one turn a process.",
        "model": ["--model", "{model}"],
        "start": [*_TURN, "{permissions}", "--title", "{agent}"],
        "resume": [*_TURN, "{permissions}", "--session", "{session_id}"],
        "fork": ["env", 'OPENCODE_PERMISSION={"*":"deny"}', *_TURN, "--auto", "--session", "{session_id}", "--fork"],
        "introduced": True,
        "sessionId": {"from": "lines", "match": {}, "path": "sessionID"},
        "output": {"from": "lines", "match": {"type": "text"}, "path": "part.text"},
        "usage": {
            "from": "lines",
            "match": {"type": "step_finish"},
            "input": ["part.tokens.input", "part.tokens.cache.read", "part.tokens.cache.write"],
            "cached": ["part.tokens.cache.read"],
            "output": ["part.tokens.output", "part.tokens.reasoning"],
        },
        "failed": {"status": True, "lines": {"type": "error"}},
        "modes": {
            "ask": "it asks nobody where no person sits in front of it; over ACP it does: --harness opencode-acp",
            "edit": {"set": {"OPENCODE_PERMISSION": json.dumps(EDIT)}},
            "all": ["--auto"],
        },
        "once": "opencode",
        "interrupt": [["INT", 3], ["TERM", 3], ["KILL", 2]],
    }
    dialect = COMMON
    seat = Seat(
        "run serve web acp github",
        (BELL, HTTP),
        resume=("--session", "{session_id}"),
        first=("--prompt", "{prompt}"),
        stops=(BELL,),
        password_variable="OPENCODE_SERVER_PASSWORD",
    )
    home = Home(
        "OPENCODE_CONFIG_DIR",
        ".config/opencode",
        SettingsPlace(".opencode/plugin/teams.js", "plugin/teams.js", Plugin(_PLUGIN)),
        SettingsPlace("opencode.json", "opencode.json", Settings(servers="mcp", comments=True)),
    )

    versions = Versions(
        "1.18.33",
        _VERSION_2,
        "runs our plugin only in a server of its own, not in the one that all its terminals share",
        "Start it as: teams open opencode, or opencode --standalone, or say once: opencode service set disabled true",
    )

    def terminal_words(self, environ: Mapping[str, str]) -> list[str]:
        program = which("opencode", path=environ.get("PATH")) or "opencode"
        return ["--standalone"] if is_at_least(version_of(program, environ), _VERSION_2) else []

    def server_entry(self, words: list[str]) -> dict[str, Any]:
        return {"type": "local", "command": words, "enabled": True}

    def once(self, python: str, directory: str, environ: Mapping[str, str]) -> tuple[list[str], dict[str, str]]:
        ours = Ours(self, self.hook_command(python), None)
        plugin = write_once(f"{directory}/opencode/plugin/teams.js", Plugin(_PLUGIN).with_ours("", None, ours))
        config_directory = environ.get("OPENCODE_CONFIG_DIR") or f"{directory}/opencode"
        config = json.loads(environ.get("OPENCODE_CONFIG_CONTENT") or "{}")
        if not config_directory.startswith(f"{directory}/"):  # it is the user's, so our plugin is named as well
            config["plugin"] = [*config.get("plugin", []), f"file://{plugin}"]
        if own_entries.is_server_available():
            server = self.server_entry(self.server_command(python))
            config["mcp"] = {**config.get("mcp", {}), own_entries.NAME: server}
        return [], {"OPENCODE_CONFIG_DIR": config_directory, "OPENCODE_CONFIG_CONTENT": json.dumps(config)}


CLIENT = OpenCode()
