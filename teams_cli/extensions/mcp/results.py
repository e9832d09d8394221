"""Results: the answers and refusals of tools, as text and as data. Hints in them name tools instead of commands."""

from __future__ import annotations

import inspect
import json
import re

from mcp_types import CallToolResult, TextContent

from teams_cli import commands, errors, text
from teams_cli.commands.call import Call
from teams_cli.messages import inboxes
from teams_cli.names import SYSTEM
from teams_cli.serving import requests

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Sequence
    from typing import Any

    from teams_cli.commands.declaration import Command
    from teams_cli.extensions.mcp.tools import Tool


MOST = 8_000
"""The most bytes of an answer."""
ROWS = 50
_ROOM = 300
"""Bytes that are left free for the count of unread messages, the damaged records and the note on cut texts."""
_MOST_RESOURCE = 20_000
_MARK = 60
"""The number of bytes by which a row grows when it is marked as read."""
_TEXTS = (2_000, 500, 150)
_CUT_RESOURCE = "long texts were cut: the tools show them in full"
_CUT = "long texts were cut: call again with full=true (for handled messages, also all=true)"


def size(document: Any) -> int:
    """Return the length of the document as text, in bytes."""
    return len(text_of(document).encode(errors="replace"))


def text_of(document: Any) -> str:
    """Return the document as JSON without spaces."""
    return json.dumps(document, ensure_ascii=False, separators=(",", ":"))


def rows_that_fit(rows: Iterable[Any]) -> int:
    """Return how many of the rows fit into one answer, at least one if there are any."""
    count = total = 0
    for row in rows:
        total += size(row) + _MARK
        if count == ROWS or (count and total > MOST - _ROOM):
            break
        count += 1
    return count


def listed(rows: Sequence[Any], gist: Sequence[str], most: int) -> dict[str, Any]:
    """Return the first *most* rows, each with only the keys in *gist* if there are any; `more` is the number of rows
    left out.
    """
    short = [{key: row[key] for key in gist if row.get(key)} for row in rows[:most]] if gist else list(rows[:most])
    return {"result": short} | ({"more": len(rows) - most} if len(rows) > most else {})


def within(document: dict[str, Any], most: int = MOST - _ROOM, cut: str = _CUT) -> dict[str, Any]:
    """Return the document, cut to *most* bytes if it is longer: long texts are cut first, then long lists. Then *cut*
    is added, which says how to see the rest.
    """

    def fits(part: Any) -> bool:
        return size(part) <= most

    if fits(document):
        return document
    short: dict[str, Any] = text.shortened(document, fits, _TEXTS, lambda _, left: f"({left} more characters)")
    return {**short, "cut": cut}


def resource(document: Any, gist: Sequence[str]) -> Any:
    """Return the document of a resource, cut like the answer of a tool if it is too long."""
    if size(document) <= _MOST_RESOURCE:
        return document
    rows = document if isinstance(document, dict) else listed(document, gist, len(document))
    return within(rows, _MOST_RESOURCE, _CUT_RESOURCE)


_QUOTED = re.compile(rf"`({'|'.join(name for name in commands.every() if '-' in name)})`")
_FLAG = re.compile(r"(?<![\w-])--(?!as\b|team\b|root\b|json\b)([a-z][a-z-]*)")
_AT_SHELL = re.compile(
    r",? instead of --team\b|; `-` reads it from standard input|, or (?:for several: )?teams create-task --from (?s:.*)"
    r"|(?<=\bteams join-team )(\S+) --as \S+"
)
_OF_SERVER = re.compile(r"^(mcp_+)?teams?_+")
_AT_START = {
    "Add --as human as a person; as an agent --as AGENT or TEAMS_AGENT_ID": (
        "Set TEAMS_AGENT_ID where the server is started"
    ),
    "--as AGENT or TEAMS_AGENT_ID": "TEAMS_AGENT_ID where the server is started",
    "--team NAME or TEAMS_TEAM": "team_name, or TEAMS_TEAM where the server is started",
}
"""Phrases for the shell, each with the phrase that replaces it in a hint for tools."""
_HOW_TO_ANSWER = re.compile(r"Answer within [^\n:]*: teams answer ask-\d+ TEXT")
"""Matches the line that the program adds to a question."""
_LITTLE = 20
MESSAGING: dict[str, tuple[str, tuple[str, ...], tuple[str, ...]]] = {
    "list-agents": ("list_agents", (), ()),
    "send-message": ("send_to_agent", ("target", "message"), ()),
    "broadcast-message": ("broadcast", ("message",), ("send_to", "reply_to")),
}
"""The commands that agents know under the name that another system uses, with the required and the optional arguments
of that tool.
"""
_OFFERED_AS = {**MESSAGING, "announce": MESSAGING["broadcast-message"]}


def tool_name(command: str) -> str:
    """Return the name of a command's tool."""
    return command.replace("-", "_")


def meant(name: str, names: Container[str]) -> str | None:
    """Return the tool in *names* that a client means by *name*, or None. The client may put the server's name before
    the tool's, and write dashes.
    """
    bare = name.replace("-", "_")
    return next((each for each in (bare, _OF_SERVER.sub("", bare)) if each in names), None)


def called(command: str) -> str:
    """Return the name of the command's tool that hints use."""
    return _OFFERED_AS[command][0] if command in _OFFERED_AS else tool_name(command)


def in_tools(text: str) -> str:
    """Return the text with its commands written as calls of tools, such as `reply(message=ID, text=TEXT)`."""
    text = _AT_SHELL.sub(lambda match: match[1] or "", text)
    for words_of_shell, words_of_call in _AT_START.items():
        text = text.replace(words_of_shell, words_of_call)
    text = requests.in_calls(text, _call)
    text = _QUOTED.sub(lambda match: f"`{called(match[1])}`", text)
    return _FLAG.sub(lambda match: match[1].replace("-", "_"), text)


def _call(command: Command, given: requests.Arguments) -> str:
    names = list(_OFFERED_AS[command.name][1]) if command.name in _OFFERED_AS else []
    arguments = [
        f"{names.pop(0) if names and parameter.positional else parameter.key}={value}" for parameter, value in given
    ]
    return f"{called(command.name)}({', '.join(arguments)})" if arguments else called(command.name)


def description(doc: str) -> str:
    """Return the description of a tool: the docstring of its command without `Raises:`, as one paragraph."""
    explanation = inspect.cleandoc(doc).partition("Raises:")[0]
    return in_tools(" ".join(explanation.split()))


def beginning(text: str) -> str:
    """Return the first sentence of the text, and also the next one if the first is very short."""
    first, _, rest = text.partition(". ")
    if rest and len(first) < _LITTLE:
        first = f"{first}. {rest.partition('. ')[0]}"
    return first.rstrip(".") + "."


def schema(document: dict[str, object]) -> dict[str, object]:
    """Return the schema of a request for a tool. Its descriptions name tools, and it lacks `additionalProperties`,
    which would cost every model tokens.
    """
    return {key: _worded(value) for key, value in document.items() if key != "additionalProperties"}


def _worded(value: object) -> object:
    if isinstance(value, dict):
        return {
            key: in_tools(inner) if key == "description" and isinstance(inner, str) else _worded(inner)
            for key, inner in value.items()
        }
    return value


def answered(call: Call, tool: Tool, document: dict[str, Any]) -> CallToolResult:
    """Return the answer of a tool: its document, the damaged records, and a line on unread messages. Clients without
    hooks learn of their messages only by that line.
    """
    whole = dict(document)
    _word(whole)
    if call.problems:
        whole["problems"] = [problem.message for problem in call.problems]
    if count := 0 if tool.command.quiet else _unread(call):
        whole["unread"] = f"{text.counted(count, 'unread message')}: call read_messages"
    return _result(whole, has_data=tool.has_data)


def _unread(call: Call) -> int:
    """Return the number of the caller's unread messages; 0 for the human, or if the inbox can't be read."""
    if call.caller is None or call.caller.is_human:
        return 0
    try:
        return len(inboxes.unread(call.store, call.team, call.caller.name))
    except errors.TeamsError:
        return 0


def _word(document: dict[str, Any]) -> None:
    """Rewrite, in place, the shell commands in a document as calls of MCP tools: in `next`, hints, help and notices,
    also in those of its lists and of `state`.
    """
    _word_row(document)
    output = document["state"].get("output") if isinstance(document.get("state"), dict) else None
    if isinstance(output, dict) and "hint" in output:
        output["hint"] = in_tools(output["hint"])
    parts = [*document.values(), *(output.values() if isinstance(output, dict) else ())]
    for each in [each for part in parts if isinstance(part, list) for each in part]:
        if isinstance(each, dict):
            _word_row(each)


def _word_row(row: dict[str, Any]) -> None:
    for key in ("next", "hint", "help", "message", "content"):
        if not isinstance(row.get(key), str):
            continue
        if key in ("next", "hint", "help") or row.get("from") == SYSTEM:
            row[key] = in_tools(row[key])
        else:
            row[key] = _HOW_TO_ANSWER.sub(lambda line: in_tools(line[0]), row[key])


class DocumentedRefusal(errors.TeamsError):
    """A refusal that is answered with a document of its own."""

    def __init__(self, error: errors.TeamsError, document: dict[str, Any]) -> None:
        super().__init__(error.message, error.hint)
        self.document = document


def refused(error: errors.TeamsError, code: str = "") -> CallToolResult:
    """Return the refusal as the answer of a tool."""
    if isinstance(error, DocumentedRefusal):
        body = {**error.document, "hint": in_tools(error.hint)}
        return _result(body, is_error=True)
    body = {"code": code or error.code, "message": in_tools(error.message), "hint": in_tools(error.hint)}
    return _result({"error": body}, is_error=True)


def _result(document: dict[str, Any], is_error: bool = False, has_data: bool = True) -> CallToolResult:
    text = text_of(document)
    try:
        text.encode()
    except UnicodeEncodeError:  # half a character, from a file that was edited by hand
        text = text.encode(errors="replace").decode()
        document = json.loads(text)
    data = document if has_data else None
    return CallToolResult(content=[TextContent(type="text", text=text)], structured_content=data, is_error=is_error)
