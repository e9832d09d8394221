"""Writes the plugin for agent clients, and the two catalogues that name it: `python -m plugins.generate`.

All of it derives from the commands, the clients and the instructions of the package. SKILL.md follows the format of
Agent Skills, `plugin.json` and `mcp.json` Agent Plugins 1.0; Claude Code and Codex have manifests of their own.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from teams_cli import __version__, commands
from teams_cli.clients import known, own_entries, plugins

TOP = Path(__file__).resolve().parent.parent
PLACE = "plugins/teams"
PORTABLE = "plugins/portable"
"""Agent Plugins 1.0 know no hooks. A client that reads both kinds takes its `plugin.json` first, so it is elsewhere."""
NAME = "teams"
ABOUT = "Work in a team of coding agents: shared tasks, messages and a merge queue, through the command teams"
WHEN = (
    "Work in a team of coding agents through the command `teams`: shared tasks, messages, questions and merges. Use it "
    "when TEAMS_TEAM is set, when a hook or a message says that you are in a team, or when the user speaks of a team, "
    "teammates, a shared task list or other agents."
)
_SCHEMAS = "https://agent-plugins.org/schemas/1.0.0"


def files() -> dict[str, str]:
    """What is written, by its place in the repository."""
    about = {"name": NAME, "version": __version__, "description": ABOUT, "author": {"name": "The teams authors"}}
    claude, codex = known.get("claude"), known.get("codex")
    of_codex = {"skills": "./skills/", "mcpServers": "./mcp-codex.json", "hooks": "./hooks/codex.json"}
    listed = {"name": NAME, "source": f"./{PLACE}", "description": ABOUT}
    listed_for_codex = {
        "name": NAME,
        "source": {"source": "local", "path": f"./{PLACE}"},
        "policy": {"installation": "AVAILABLE", "authentication": "ON_INSTALL"},
        "category": "Productivity",
    }
    server = {"type": "stdio", "command": "teams", "args": ["mcp"]}
    documents: dict[str, Any] = {
        ".claude-plugin/marketplace.json": {
            "name": NAME,
            "description": ABOUT,
            "owner": {"name": "The teams authors"},
            "plugins": [listed],
        },
        ".agents/plugins/marketplace.json": {
            "name": NAME,
            "interface": {"displayName": NAME},
            "plugins": [listed_for_codex],
        },
        f"{PORTABLE}/plugin.json": {"$schema": f"{_SCHEMAS}/plugin.schema.json", **about, "license": "MIT"},
        f"{PORTABLE}/mcp.json": {"$schema": f"{_SCHEMAS}/mcp.schema.json", **_servers(server)},
        f"{PLACE}/.claude-plugin/plugin.json": about,
        f"{PLACE}/.mcp.json": _servers(claude.server_entry(["teams", "mcp"])),
        f"{PLACE}/hooks/hooks.json": _hooks("claude"),
        f"{PLACE}/.codex-plugin/plugin.json": about | of_codex,
        f"{PLACE}/mcp-codex.json": _servers(codex.server_entry(["teams", "mcp"])),
        f"{PLACE}/hooks/codex.json": _hooks("codex"),
    }
    texts = {f"{place}/skills/{NAME}/SKILL.md": _skill() for place in (PLACE, PORTABLE)}
    texts[f"{PLACE}/README.md"] = _readme()
    return {place: json.dumps(document, indent=2) + "\n" for place, document in documents.items()} | texts


def _servers(entry: dict[str, Any]) -> dict[str, Any]:
    return {"mcpServers": {own_entries.NAME: entry}}


def _hooks(client: str) -> dict[str, Any]:
    entries = known.get(client).hook_entries(f"teams hook {client}")
    return {"hooks": {event: [entry] for event, entry in entries.items()}}


def _skill() -> str:
    rows = [f"* `teams {c.whole_usage}`: {c.want}" for c in commands.every().values() if c.want]
    return "\n".join(
        [
            "---",
            f"name: {NAME}",
            f"description: {json.dumps(WHEN)}",
            "license: MIT",
            "compatibility: Needs the command teams on PATH (Python 3.11 or later, Linux or macOS).",
            "---",
            "",
            "# Work in a team",
            "",
            plugins.TEXT,
            "",
            "## The loop",
            "",
            plugins.LOOP,
            "",
            "## The commands",
            "",
            *rows,
            "",
            "`teams help --all` lists every command, `teams help COMMAND` its options. Replace words in CAPITALS;",
            "`-` reads a long text from standard input. `--json` answers with JSON.",
            "",
            "## Who you are",
            "",
            plugins.IDENTITY,
            "",
        ]
    )


def _readme() -> str:
    return "\n".join(
        [
            "# teams",
            "",
            f"{ABOUT}. This plugin has a skill, hooks and an MCP server for Claude Code, Codex, Qwen Code and",
            "Copilot CLI. Other clients that read Agent Plugins 1.0 can use the folder `portable` beside it, which has",
            "no hooks.",
            "",
            "`teams install claude --plugin` (or `codex`, `qwen`, `copilot`) installs it. The command `teams` must be",
            "on `PATH`. The hooks act only in sessions that belong to a team: those started with `TEAMS_TEAM`, or in a",
            "directory linked by `teams here TEAM`. Nothing is sent anywhere: teams, tasks and messages are files on",
            "your machine.",
            "",
            "`python -m plugins.generate` in the repository of `teams` writes these files; do not edit them.",
            "",
        ]
    )


def main() -> None:
    """Write all files, below the directory that is given, else into the repository."""
    top = Path(sys.argv[1]) if len(sys.argv) > 1 else TOP
    for place, text in files().items():
        (top / place).parent.mkdir(parents=True, exist_ok=True)
        (top / place).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
