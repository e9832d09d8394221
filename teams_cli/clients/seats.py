"""Clients in terminals: the ways to wake them, and what their hooks report about their state."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from teams_cli.records.types import TerminalState

IDLE: TerminalState = "idle"
WORKING: TerminalState = "working"
PERMISSION: TerminalState = "permission"
UNKNOWN: TerminalState = "unknown"
GONE: TerminalState = "gone"

BELL, QUEUE, CONTROL, SOCKET, HTTP = "bell", "queue", "control", "socket", "http"
"""The ways to wake a client. A hook, a plugin or our wrapper listens to our bell. The others are the client's own
queue, the socket of its daemon, its own socket, and its own HTTP server.
"""

TERMINAL_STATE = "TerminalState"
"""The event by which our plugin and our wrapper report the state of the client."""

_STATES: dict[str, TerminalState] = {
    "SessionStart": IDLE,
    "UserPromptSubmit": WORKING,
    "PreToolUse": WORKING,
    "PostToolUse": WORKING,
    "PostToolBatch": WORKING,
    "PermissionRequest": PERMISSION,
    "Stop": IDLE,
    "StopFailure": IDLE,
    "Interrupt": IDLE,
    "SessionEnd": GONE,
    "BeforeAgent": WORKING,
    "AfterTool": WORKING,
    "AfterAgent": IDLE,
}
_NOTICES: dict[str, TerminalState] = {
    "permission_prompt": PERMISSION,
    "ToolPermission": PERMISSION,
    "idle_prompt": IDLE,
}
_EXPLICIT_STATES = (IDLE, WORKING, PERMISSION)
_NO_CHANGE = {("SessionStart", "compact"), ("SessionEnd", "clear"), ("SessionEnd", "resume")}
"""The events, each with its reason, at which the client's state does not change."""
_LONGEST_WISH = 200
_SUBJECT_KEYS = ("command", "file_path", "filePath", "path")
"""The keys that say what a tool is used on; the first one that has a value is used."""


def state_in(event: Mapping[str, Any]) -> TerminalState | None:
    """Return the state of the client that a hook's *event* reports; None if it reports no state. The event has the
    state in its `state`, or is of a kind from which the state follows.
    """
    if event.get("state") in _EXPLICIT_STATES:
        return event["state"]  # type: ignore[no-any-return]  # it is one of the states
    name = str(event.get("hook_event_name"))
    if name == "Notification":
        return _NOTICES.get(str(event.get("notification_type")))
    reason = str(event.get("source") or event.get("reason") or "")
    return None if (name, reason) in _NO_CHANGE else _STATES.get(name)


def permission_for(event: Mapping[str, Any]) -> str | None:
    """Return on one line what the client asks its person to permit; None if the *event* does not say it."""
    details = event.get("tool_input") or event.get("details")
    texts = [details.get(key) for key in _SUBJECT_KEYS] if isinstance(details, dict) else []
    subject = next((text for text in [*texts, event.get("message")] if text), "")
    words = " ".join(str(subject).split())
    tool = str(event.get("tool_name") or "")
    wish = f"{tool}: {words}" if tool and words else tool or words
    return wish[:_LONGEST_WISH] or None
