"""How each client is told to call our hooks: the events, the command, and the words that bring both along."""

from __future__ import annotations

import json
import os
import shlex

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

EVENTS: dict[str, tuple[str, ...]] = {
    "claude": ("SessionStart", "UserPromptSubmit", "PostToolBatch", "Stop"),
    "codex": ("SessionStart", "UserPromptSubmit", "PostToolUse", "Stop"),
    "gemini": ("BeforeAgent", "AfterTool", "AfterAgent"),
    "qwen": ("SessionStart", "UserPromptSubmit", "PostToolUse", "Stop"),
}
"""The events at which there may be something to say."""
_TIMEOUT = {"claude": 30, "codex": 30, "gemini": 30_000}
"""In the client's own unit; who is not here goes by its default."""


def program(python: str, *words: str) -> list[str]:
    """The words that run one of our commands, in the fastest way: `-m` and most console scripts take half as long
    again.

    `-P` keeps the directory that the client works in from being imported from.
    """
    installed = os.path.basename(_PACKAGE) in ("site-packages", "dist-packages")
    where = "" if installed else f"import sys; sys.path.append({_PACKAGE!r}); "
    return [python, "-P", "-c", f"{where}from teams_cli.__main__ import main; main()", *words]


def command(python: str, dialect: str) -> str:
    """The shell command that answers hooks."""
    return shlex.join(program(python, "hook", dialect))


def is_ours(shell_command: object) -> bool:
    """Whether that is a command that we put there, now or in an earlier version."""
    if not isinstance(shell_command, str):
        return False
    words = shell_command.split()
    ours = words[0].rpartition("/")[2] == "teams" if words else False
    return len(words) >= 3 and words[-2] == "hook" and words[-1] in EVENTS and (ours or "teams_cli" in shell_command)


def entry(dialect: str, shell_command: str) -> dict[str, Any]:
    """The hook as it stands in the settings under each event."""
    hook: dict[str, Any] = {"type": "command", "command": shell_command}
    if dialect in _TIMEOUT:
        hook["timeout"] = _TIMEOUT[dialect]
    return {"hooks": [hook]}


def words(dialect: str | None, python: str) -> list[str]:
    """What the command line of a client needs so that its hooks are ours, whatever the user's files say.

    Empty for clients that have no such words: those need `teams install`.
    """
    if dialect == "claude":
        hooks = {event: [entry(dialect, command(python, dialect))] for event in EVENTS[dialect]}
        return ["--settings", json.dumps({"hooks": hooks})]
    if dialect == "codex":
        hook = entry(dialect, command(python, dialect))["hooks"][0]
        table = ", ".join(f"{key} = {json.dumps(value)}" for key, value in hook.items())
        settings = [f"hooks.{event}=[{{hooks = [{{{table}}}]}}]" for event in EVENTS[dialect]]
        return ["--dangerously-bypass-hook-trust", *(word for setting in settings for word in ("-c", setting))]
    return []
