"""The command that shows the rest of an answer that was cut for a client."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from teams_cli.commands.declaration import Command

_SHOWN_BY = {"task": "show-task", "plan": "show-plan", "ask": "show-question", "msg": "show-message"}


def mark(owner: dict[str, Any], missing: int) -> str:
    """What stands at the end of a text that was cut, in this object."""
    command = _showing(owner)
    return f"[cut; all of it: {command}]" if command else f"[cut: {missing} more characters]"


def rest(command: Command, document: Any) -> str:
    """How to get all of an answer that was cut; what can't be asked for again says it where it was cut."""
    shows = _showing(document) if isinstance(document, dict) else ""
    again = f"teams {command.name} … --json >FILE" if command.reads else ""
    return f"all of it: {shows or again}" if shows or again else "[cut: the answer was too long]"


def _showing(found: dict[str, Any]) -> str:
    """The command that shows the object whole, or the file; empty where there is none. A message is never too long for
    an answer.
    """
    key = str(found.get("id") or found.get("requestId") or "")
    command = _SHOWN_BY.get(key.partition("-")[0]) if key.partition("-")[2].isdigit() else None
    if command:
        return f"teams {command} {key}{'' if command == 'show-message' else ' --json >FILE'}"
    if "key" in found and "version" in found:
        return f"teams shared {found['key']} --json >FILE"
    if "report" in found:
        return str(found["report"])
    if "diff" in found:
        return f"teams worktree diff {found['agent']} --json >FILE"
    if "output" in found and (name := found.get("agent") or found.get("name")):
        return f"teams recall {name} --output --json >FILE"
    return ""
