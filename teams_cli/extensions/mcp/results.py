"""Results: what tools answer, as text and as data, and refusals with what, why and what to do."""

from __future__ import annotations

import json

from mcp_types import CallToolResult, TextContent

from teams_cli import errors
from teams_cli.commands.call import Call
from teams_cli.extensions.mcp.bounds import text_of
from teams_cli.extensions.mcp.mail import Mail
from teams_cli.extensions.mcp.messaging import DocumentedRefusal
from teams_cli.extensions.mcp.wording import in_tools
from teams_cli.names import SYSTEM

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from teams_cli.extensions.mcp.tools import Tool


def answered(call: Call, tool: Tool, document: dict[str, Any], mail: Mail) -> CallToolResult:
    """The document of a tool. Beside it stand what was damaged on the way, and a line on unread mail: clients that
    have no hooks are told of it by nothing else.
    """
    whole = dict(document)
    _word(whole)
    if call.problems:
        whole["problems"] = [problem.message for problem in call.problems]
    count = 0 if tool.command.quiet else mail.unread(call)
    if count:
        whole["unread"] = f"{count} unread message{'s' * (count > 1)}: call read_messages"
    return _result(whole, has_data=tool.has_data)


def _word(document: dict[str, Any]) -> None:
    """Say in terms of tools what is next and what notices say, also in the lists of the document, and the hint of
    `attend`.
    """
    _word_row(document)
    output = document["state"].get("output") if isinstance(document.get("state"), dict) else None
    if isinstance(output, dict) and "hint" in output:
        output["hint"] = in_tools(output["hint"])
    for each in [each for part in document.values() if isinstance(part, list) for each in part]:
        if isinstance(each, dict):
            _word_row(each)


def _word_row(row: dict[str, Any]) -> None:
    for key in ("next", "message") if row.get("from") == SYSTEM else ("next",):
        if isinstance(row.get(key), str):
            row[key] = in_tools(row[key])


def refused(error: errors.TeamsError, code: str = "") -> CallToolResult:
    """The refusal: its code, what and why, and what to do."""
    if isinstance(error, DocumentedRefusal):
        said = {**error.document, "hint": in_tools(error.hint)}
        return _result(said, is_error=True)
    said = {"code": code or error.code, "message": in_tools(error.message), "hint": in_tools(error.hint)}
    return _result({"error": said}, is_error=True)


def _result(document: dict[str, Any], is_error: bool = False, has_data: bool = True) -> CallToolResult:
    text = text_of(document)
    try:
        text.encode()
    except UnicodeEncodeError:  # half a character, from a file that was edited by hand
        text = text.encode(errors="replace").decode()
        document = json.loads(text)
    data = document if has_data else None
    return CallToolResult(content=[TextContent(type="text", text=text)], structured_content=data, is_error=is_error)
