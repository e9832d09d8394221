"""Configurations of MassGen: what its keys are called in a workflow. They say who works, and not what is to be done."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from teams_cli.workflows.checks import Place, Problem

_HARNESSES = {"openai": "codex", "gemini": "gemini", "claude": "claude", "claude_code": "claude", "qwen": "qwen"}
_MACHINES = "agents have the commands of their client, and `permissions` says which"
_OF_AGENTS: dict[Place, str] = {
    ("id",): "write `name: {}`",
    ("backend", "model"): "write `model: {}` at the agent",
    ("backend", "cwd"): "write `cwd: {}` at the agent",
    ("backend", "enable_mcp_command_line"): f"leave it out: {_MACHINES}",
    ("backend", "command_line_execution_mode"): "leave it out: to have agents in a container, start teams in one",
}
_OF_ALL: dict[Place, str] = {
    ("snapshot_storage",): "write `worktree: true` at an agent to keep what it makes apart",
    ("agent_temporary_workspace",): "leave it out: agents read each other's branches, and `teams shared`",
}


def is_one(document: Any) -> bool:
    """Whether the document is such a configuration."""
    if not isinstance(document, dict):
        return False
    agents = document.get("agents")
    rows = agents if isinstance(agents, list) else []
    return "orchestrator" in document or any(isinstance(row, dict) and "backend" in row for row in rows)


def problems(document: dict[str, Any]) -> Iterator[Problem]:
    """Each of its keys, with what a workflow has in its stead."""
    agents = document.get("agents")
    for index, row in enumerate(agents if isinstance(agents, list) else []):
        for place, value in _leaves(row, ()):
            harness = _HARNESSES.get(str(value).lower(), "NAME")
            known = {**_OF_AGENTS, ("backend", "type"): f"write `harness: {harness}` at the agent"}
            yield ("agents", index, *place), known.get(place, _UNKNOWN).format(value)
    for place, value in _leaves(document.get("orchestrator"), ()):
        word = str(value).lower() if isinstance(value, bool) else value
        setting = f"write `settings: {{{place[-1]}: {word}}}`" if place[:-1] == ("coordination",) else _UNKNOWN
        yield ("orchestrator", *place), _OF_ALL.get(place, setting)
    for key in document.keys() - {"agents", "orchestrator"}:
        yield (key,), _UNKNOWN


_UNKNOWN = "has no counterpart here"
HINT = "Write it as a workflow, with tasks that say what is to be done: see docs/workflow-files.md."


def _leaves(part: Any, place: Place) -> Iterator[tuple[Place, Any]]:
    """The values within, each with its place."""
    if isinstance(part, dict):
        for key, value in part.items():
            yield from _leaves(value, (*place, str(key)))
    elif place:
        yield place, part
