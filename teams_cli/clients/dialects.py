"""How clients speak to hooks: what they call the moments at which they ask, and how they are told to go on."""

from __future__ import annotations

from teams_cli.records.annotations import Any


class Dialect:
    """How one client speaks: what it calls the moments at which it asks, and how it is told to go on. One that *joins*
    puts what was said before its end was refused before the final answer.
    """

    def __init__(
        self,
        start: str,
        prompt: str,
        tools: tuple[str, ...],
        stop: str,
        block: str = "block",
        joins: bool = False,
    ) -> None:
        self.moments = {prompt: "prompt", start: "start", stop: "stop", **dict.fromkeys(tools, "tools")}
        self.after_tool = tools[0]
        self.block = block
        self.joins = joins

    def moment(self, event: dict[str, Any]) -> str:
        """At which moment the client asks: `start`, `prompt`, `tools`, `stop`; empty for any other."""
        return self.moments.get(str(event.get("hook_event_name")), "")

    def context(self, event: dict[str, Any], text: str) -> dict[str, Any]:
        """What makes the client put the text before its model."""
        name = event["hook_event_name"]
        return {"hookSpecificOutput": {"hookEventName": name, "additionalContext": text}}

    def denial(self, event: dict[str, Any], reason: str) -> dict[str, Any]:
        """What keeps the client from using the tool that it asks about."""
        said = {"permissionDecision": "deny", "permissionDecisionReason": reason}
        return {"hookSpecificOutput": {"hookEventName": event["hook_event_name"], **said}}

    def refusal(self, reason: str) -> dict[str, Any]:
        """What makes the client go on, with the reason as the next turn."""
        return {"decision": self.block, "reason": reason}


COMMON = Dialect("SessionStart", "UserPromptSubmit", ("PostToolUse", "PostToolBatch"), "Stop")
"""What Claude Code began with, and others took over."""
