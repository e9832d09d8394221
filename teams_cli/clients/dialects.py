"""The language of clients' hooks: the names of their events, and the form of the answers."""

from __future__ import annotations

from teams_cli.text import safe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class ToolGuard:
    """How a client asks before it uses a tool that changes something: the *event*; the tools that write files, its
    *writers*; those that run commands, its *shells*. One that *tells* puts what it is told then before its model; to
    another it is told after the tool.
    """

    def __init__(self, event: str, writers: tuple[str, ...], shells: tuple[str, ...], tells: bool = True) -> None:
        self.event = event
        self.writers = writers
        self.shells = shells
        self.tells = tells

    @property
    def matcher(self) -> str:
        """What names these tools in the client's settings, so that it asks for no others."""
        return f"^({'|'.join((*self.writers, *self.shells))})$"


class Dialect:
    """How one client speaks: what it calls the moments at which it asks, and how it is told to go on. One that *joins*
    puts what was said before its end was refused before the final answer; one with a *guard* asks before it writes.
    """

    def __init__(
        self,
        start: str,
        prompt: str,
        tools: tuple[str, ...],
        stop: str,
        block: str = "block",
        joins: bool = False,
        guard: ToolGuard | None = None,
    ) -> None:
        self.moments = {prompt: "prompt", start: "start", stop: "stop", **dict.fromkeys(tools, "tools")}
        self.after_tool = tools[0]
        self.block = block
        self.joins = joins
        self.guard = guard

    def moment(self, event: dict[str, Any]) -> str:
        """At which moment the client asks: `start`, `prompt`, `tools`, `stop`; empty for any other."""
        return self.moments.get(str(event.get("hook_event_name")), "")

    def context(self, event: dict[str, Any], text: str) -> dict[str, Any]:
        """What makes the client put the text before its model."""
        name = event["hook_event_name"]
        return {"hookSpecificOutput": {"hookEventName": name, "additionalContext": safe(text)}}

    def denial(self, event: dict[str, Any], reason: str) -> dict[str, Any]:
        """What keeps the client from using the tool that it asks about."""
        reason = safe(reason)
        if self.block == "deny":
            return {"decision": "deny", "reason": reason}
        said = {"permissionDecision": "deny", "permissionDecisionReason": reason}
        return {"hookSpecificOutput": {"hookEventName": event["hook_event_name"], **said}}

    def refusal(self, reason: str) -> dict[str, Any]:
        """What makes the client go on, with the reason as the next turn."""
        return {"decision": self.block, "reason": safe(reason)}


_WRITERS = ("Edit", "MultiEdit", "Write", "NotebookEdit")
COMMON = Dialect(
    "SessionStart",
    "UserPromptSubmit",
    ("PostToolUse", "PostToolBatch"),
    "Stop",
    guard=ToolGuard("PreToolUse", _WRITERS, ("Bash",)),
)
"""What Claude Code began with, and others took over."""
