"""Results: what tools answer, as text and as data, and refusals with what, why and what to do."""

from __future__ import annotations

import json

from mcp_types import CallToolResult, TextContent

from teams_cli.errors import TeamsError
from teams_cli.mcp_server.messaging import Refused
from teams_cli.mcp_server.wording import in_tools

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from teams_cli.commands.call import Call
    from teams_cli.mcp_server.mail import Mail

QUIET = frozenset({"read_messages", "brief", "wait", "attend"})
"""The tools that tell of mail themselves."""


def answered(call: Call, tool: str, document: Any, mail: Mail) -> CallToolResult:
    """The document of a tool. Beside it stand what was damaged on the way, and a line on unread mail: clients that
    have no hooks are told of it by nothing else.
    """
    whole = dict(document) if isinstance(document, dict) else {"result": document}
    if tool == "brief" and whole.get("next"):
        whole["next"] = in_tools(whole["next"])
    if call.problems:
        whole["problems"] = [problem.message for problem in call.problems]
    count = 0 if tool in QUIET else mail.unread(call)
    if count:
        whole["unread"] = f"{count} unread message{'s' * (count > 1)}: call read_messages"
    return _result(whole)


def refused(error: TeamsError, code: str = "") -> CallToolResult:
    """The refusal: its code, what and why, and what to do."""
    if isinstance(error, Refused):
        said = {**error.document, "hint": in_tools(error.hint)}
        return _result(said, is_error=True)
    said = {"code": code or error.code, "message": in_tools(error.message), "hint": in_tools(error.hint)}
    return _result({"error": said}, is_error=True)


def _result(document: dict[str, Any], is_error: bool = False) -> CallToolResult:
    text = json.dumps(document, ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError:  # half a character, from a file that was edited by hand
        text = text.encode(errors="replace").decode()
        document = json.loads(text)
    return CallToolResult(content=[TextContent(type="text", text=text)], structured_content=document, is_error=is_error)
