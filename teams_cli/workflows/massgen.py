"""Configurations of MassGen. They are refused, with a message that says what to write in a workflow instead of each
key.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from teams_cli.teams import settings
from teams_cli.workflows.checks import KeyPath, Problem

_HARNESSES = {"openai": "codex", "gemini": "gemini", "claude": "claude", "claude_code": "claude", "qwen": "qwen"}
_COMMANDS = "agents have the commands of their client, and `permissions` says which"
_NO_COUNTERPART = "has no counterpart here"
_IN_AGENTS: dict[KeyPath, str] = {
    ("id",): "write `name: {}`",
    ("backend", "model"): "write `model: {}` at the agent",
    ("backend", "cwd"): "write `cwd: {}` at the agent",
    ("backend", "enable_mcp_command_line"): f"leave it out: {_COMMANDS}",
    ("backend", "command_line_execution_mode"): "leave it out: to have agents in a container, start teams in one",
}
_IN_ORCHESTRATOR: dict[KeyPath, str] = {
    ("snapshot_storage",): "write `worktree: true` at an agent to keep what it makes apart",
    ("coordination", "enable_planning_mode"): "write `planRequired: true` at the tasks",
    ("agent_temporary_workspace",): "leave it out: agents read each other's branches, and `teams shared`",
}


def is_configuration(document: Any) -> bool:
    """Return whether the document is a configuration of MassGen."""
    if not isinstance(document, dict):
        return False
    return "orchestrator" in document or any(isinstance(row, dict) and "backend" in row for row in _agents(document))


def problems(document: dict[str, Any]) -> Iterator[Problem]:
    """Yield a problem for each key of the configuration. It says what to write in a workflow instead of the key."""
    for index, row in enumerate(_agents(document)):
        for key_path, value in _leaves(row, ()):
            harness = _HARNESSES.get(str(value).lower(), "NAME")
            counterparts = {**_IN_AGENTS, ("backend", "type"): f"write `harness: {harness}` at the agent"}
            yield ("agents", index, *key_path), counterparts.get(key_path, _NO_COUNTERPART).format(value)
    for key_path, value in _leaves(document.get("orchestrator"), ()):
        counterpart = _IN_ORCHESTRATOR.get(key_path, _NO_COUNTERPART)
        if key_path[:-1] == ("coordination",) and settings.find(str(key_path[-1])):
            written = str(value).lower() if isinstance(value, bool) else value
            counterpart = f"write `settings: {{{key_path[-1]}: {written}}}`"
        yield ("orchestrator", *key_path), counterpart
    for key in document.keys() - {"agents", "orchestrator"}:
        yield (key,), _NO_COUNTERPART


def _agents(document: dict[str, Any]) -> list[Any]:
    agents = document.get("agents")
    return agents if isinstance(agents, list) else []


def _leaves(part: Any, key_path: KeyPath) -> Iterator[tuple[KeyPath, Any]]:
    """Yield the values inside *part* that contain no other values, each with the keys that lead to it. *key_path* leads
    to *part* itself.
    """
    if isinstance(part, dict):
        for key, value in part.items():
            yield from _leaves(value, (*key_path, str(key)))
    elif key_path:
        yield key_path, part
