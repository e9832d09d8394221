"""Results: the answers and refusals of tools, as text and as data. Their hints name tools instead of commands."""

from __future__ import annotations

import inspect
import json
import re
from contextlib import suppress

from mcp_types import CallToolResult, TextContent

from teams_cli import commands, errors, text
from teams_cli.commands.call import Call
from teams_cli.commands.declaration import AS, TEAM
from teams_cli.messages import inboxes
from teams_cli.names import SYSTEM
from teams_cli.serving import requests

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Sequence
    from typing import Any

    from teams_cli.commands.declaration import Command
    from teams_cli.extensions.mcp.tools import Tool


ROWS = 50
"""The maximum number of rows in an answer."""
_ANSWER_BYTES = 8_000
_RESERVED_BYTES = 300
"""Bytes kept free in an answer for the count of unread messages, the errors of damaged records, and the note that texts
were cut.
"""
_RESOURCE_BYTES = 20_000
_READ_MARK_BYTES = 60
"""The number of bytes by which a row grows when it is marked as read."""
_TEXT_LENGTHS = (2_000, 500, 150)
"""The lengths to which long texts are cut, tried in turn until the document fits."""
_CUT_RESOURCE = "long texts were cut: the tools show them in full"
_CUT = "long texts were cut: call again with full=true (for handled messages, also all=true)"


def size(document: Any) -> int:
    """Return the length of the document as text, in bytes."""
    return len(text_of(document).encode(errors="replace"))


def text_of(document: Any) -> str:
    """Return the document as JSON without spaces."""
    return json.dumps(document, ensure_ascii=False, separators=(",", ":"))


def rows_that_fit(rows: Iterable[Any]) -> int:
    """Return how many of the rows fit into one answer. If there are rows, the number is at least 1, even if the first
    row alone is too long.
    """
    count = total = 0
    for row in rows:
        total += size(row) + _READ_MARK_BYTES
        if count == ROWS or (count and total > _ANSWER_BYTES - _RESERVED_BYTES):
            break
        count += 1
    return count


def listed(rows: Sequence[Any], gist: Sequence[str], most: int) -> dict[str, Any]:
    """Return an answer with the first *most* rows under `result`. If *gist* is not empty, each row has only those keys
    in *gist* that have a value. If rows are left out, `more` is their number.
    """
    shown = list(rows[:most])
    if gist:
        shown = [{key: row[key] for key in gist if row.get(key)} for row in shown]
    if len(rows) > most:
        return {"result": shown, "more": len(rows) - most}
    return {"result": shown}


def within(document: dict[str, Any], most: int = _ANSWER_BYTES - _RESERVED_BYTES, cut: str = _CUT) -> dict[str, Any]:
    """Return the document. If it is longer than *most* bytes, cut its long texts and, if this is not enough, its long
    lists. A document that was cut also gets the note *cut*, which says how to see the whole texts.
    """

    def fits(part: Any) -> bool:
        return size(part) <= most

    def mark(owner: dict[str, Any], missing: int) -> str:
        return f"({missing} more characters)"

    if fits(document):
        return document
    short: dict[str, Any] = text.shortened(document, fits, _TEXT_LENGTHS, mark)
    return {**short, "cut": cut}


def message_numbers(document: dict[str, Any]) -> set[int]:
    """Return the numbers of the messages in an answer: of `read_messages`, of a wait, or of `attend`."""
    state = document.get("state")
    output = state.get("output") if isinstance(state, dict) else None
    attended = output.get("messages", ()) if isinstance(output, dict) else ()
    rows = [*document.get("result", ()), *document.get("messages", ())]
    return {row["number"] for row in rows if isinstance(row, dict) and "number" in row} | {
        row["id"] for row in attended
    }


def count_left_out(document: dict[str, Any], short: dict[str, Any]) -> None:
    """Count the messages of a wait that *short*, the answer cut from the *document*, leaves out. `moreMessages` says
    how many they are, and `more` counts only other rows.
    """
    if left_out := len(document.get("messages", ())) - len(short.get("messages", ())):
        short["moreMessages"] = short.get("moreMessages", 0) + left_out
        short["more"] -= left_out
        if not short["more"]:
            del short["more"]


def resource(document: Any, gist: Sequence[str]) -> Any:
    """Return the document of a resource. If it is too long, cut it like the answer of a tool. A list that is too long
    first loses all keys of its rows that are not in *gist*.
    """
    if size(document) <= _RESOURCE_BYTES:
        return document
    if not isinstance(document, dict):
        document = listed(document, gist, len(document))
    return within(document, _RESOURCE_BYTES, _CUT_RESOURCE)


_QUOTED_COMMAND = re.compile(rf"`({'|'.join(name for name in commands.every() if '-' in name)})`")
_FLAG = re.compile(r"(?<![\w-])--(?!as\b|team\b|root\b|json\b)([a-z][a-z-]*)")
_FOR_SHELL = re.compile(
    r",? instead of --team\b|; `-` reads it from standard input"
    r"|, or (?:for several: )?teams create-task (?:--team \S+ )?--from (?s:.*)"
    r"|(?<=\bteams join-team )(\S+) --as \S+"
)
"""Matches phrases that make no sense in a call of a tool. They are removed, except the part in a group."""
_SERVER_PREFIX = re.compile(r"^(mcp_+)?teams?_+")
_PHRASES = {
    "Add --as human as a person; as an agent --as AGENT or TEAMS_AGENT_ID": (
        "Set TEAMS_AGENT_ID where the server is started"
    ),
    "--as AGENT or TEAMS_AGENT_ID": "TEAMS_AGENT_ID where the server is started",
    "--team NAME or TEAMS_TEAM": "team_name, or TEAMS_TEAM where the server is started",
    "into TEAMS_TOKEN": "into TEAMS_TOKEN where the server is started",
}
"""Phrases for the shell, each with the phrase that replaces it in a hint for tools."""
_HOW_TO_ANSWER = re.compile(r"Answer within [^\n:]*: teams answer ask-\d+ TEXT")
"""Matches the line that the program adds to a question."""
_SHORT_SENTENCE = 20
"""A first sentence of a description with fewer characters than this says too little by itself."""
MESSAGING: dict[str, tuple[str, tuple[str, ...], tuple[str, ...]]] = {
    "list-agents": ("list_agents", (), ()),
    "send-message": ("send_to_agent", ("target", "message"), ()),
    "broadcast-message": ("broadcast", ("message",), ("send_to", "reply_to")),
}
"""The commands whose tools have other names, from Janus or IAM. For each, the tool's name, its required arguments and
its optional arguments.
"""
_OFFERED_AS = {**MESSAGING, "announce": MESSAGING["broadcast-message"]}
"""Like `MESSAGING`, but for hints: a hint to announce names the tool `broadcast`, because the first broadcast also
announces.
"""


def tool_name(command: str) -> str:
    """Return the name of a command's tool, which has underscores in place of dashes."""
    return command.replace("-", "_")


def tool_meant(name: str, names: Container[str]) -> str | None:
    """Return the tool in *names* that the client means, or None if there is none. In *name*, the client may have put
    the server's name first, or dashes for underscores.
    """
    name = name.replace("-", "_")
    if name not in names:
        name = _SERVER_PREFIX.sub("", name)
    return name if name in names else None


def name_in_hints(command: str) -> str:
    """Return the name by which hints call the tool of the command."""
    return _OFFERED_AS[command][0] if command in _OFFERED_AS else tool_name(command)


def in_tools(text: str) -> str:
    """Return the text with its commands written as calls of tools, such as `reply(message=ID, text=TEXT)`."""
    text = _FOR_SHELL.sub(lambda match: match[1] or "", text)
    return requests.in_calls(text, _tool_call, _otherwise)


def _otherwise(text: str) -> str:
    """Return a text without commands, with its phrases, names of commands and options written for tools."""
    for shell_phrase, tool_phrase in _PHRASES.items():
        text = text.replace(shell_phrase, tool_phrase)
    text = _QUOTED_COMMAND.sub(lambda match: f"`{name_in_hints(match[1])}`", text)
    return _FLAG.sub(lambda match: match[1].replace("-", "_"), text)


def _tool_call(command: Command, arguments: requests.Arguments) -> str | None:
    """Return, for a hint, the call of the tool that runs the command with the arguments. Return None if the command is
    for another agent: tools act only for the agent that calls them.
    """
    if any(parameter is AS for parameter, _ in arguments):
        return None
    # A tool of another system has names of its own for the positional arguments.
    own_names = list(_OFFERED_AS[command.name][1]) if command.name in _OFFERED_AS else []
    pairs = []
    for parameter, value in arguments:
        key = "team_name" if parameter is TEAM else parameter.key
        name = own_names.pop(0) if own_names and parameter.positional else key
        pairs.append(f"{name}={value}")
    tool = name_in_hints(command.name)
    return f"{tool}({', '.join(pairs)})" if pairs else tool


def description(doc: str) -> str:
    """Return the description of a tool: the docstring of its command without `Raises:`, as one paragraph."""
    explanation = inspect.cleandoc(doc).partition("Raises:")[0]
    return in_tools(" ".join(explanation.split()))


def beginning(text: str) -> str:
    """Return the first sentence of the text. If it is very short, the second sentence is added."""
    sentence, _, others = text.partition(". ")
    if others and len(sentence) < _SHORT_SENTENCE:
        sentence = f"{sentence}. {others.partition('. ')[0]}"
    return sentence.rstrip(".") + "."


def schema(document: dict[str, object]) -> dict[str, object]:
    """Return *document*, the schema of a request, adapted to a tool. Its descriptions name tools instead of commands.
    `additionalProperties` is left out, because it would cost every model tokens.
    """

    def with_tools_named(key: str, value: object) -> object:
        if isinstance(value, dict):
            return {inner: with_tools_named(inner, part) for inner, part in value.items()}
        return in_tools(value) if key == "description" and isinstance(value, str) else value

    return {key: with_tools_named(key, value) for key, value in document.items() if key != "additionalProperties"}


def answered(call: Call, tool: Tool, document: dict[str, Any]) -> CallToolResult:
    """Return the answer of a tool: its document, the errors of damaged records, and a line that counts the unread
    messages. Clients without hooks learn of messages only by that line.
    """
    answer = dict(document)
    _name_tools(answer)
    if call.problems:
        answer["problems"] = [problem.message for problem in call.problems]
    if not tool.command.quiet and call.caller and not call.caller.is_human:
        with suppress(errors.TeamsError):  # the inbox can't be read
            if unread := len(inboxes.unread(call.store, call.team, call.caller.name)):
                how = in_tools(call.in_team("teams read-messages"))
                answer["unread"] = f"{text.counted(unread, 'unread message')}: call {how}"
    return _result(answer, has_data=tool.has_data)


def _name_tools(document: dict[str, Any]) -> None:
    """Rewrite the shell commands in a document as calls of tools, also in the rows of its lists."""
    _name_tools_in_row(document)
    parts = list(document.values())
    state = document.get("state")  # the answer of `attend` has its lists in the output of a state
    output = state.get("output") if isinstance(state, dict) else None
    if isinstance(output, dict):
        if "hint" in output:
            output["hint"] = in_tools(output["hint"])
        parts += output.values()
    rows = [row for part in parts if isinstance(part, list) for row in part]
    for row in rows:
        if isinstance(row, dict):
            _name_tools_in_row(row)


def _name_tools_in_row(row: dict[str, Any]) -> None:
    """Rewrite the shell commands in the texts of one row. Texts that agents wrote stay as they are."""
    for key in ("next", "hint", "help", "message", "content"):
        if not isinstance(row.get(key), str):
            continue
        if key in ("next", "hint", "help") or row.get("from") == SYSTEM:
            row[key] = in_tools(row[key])
        else:  # an agent wrote the message, and the program may have added a line
            row[key] = _HOW_TO_ANSWER.sub(lambda line: in_tools(line[0]), row[key])


class DocumentedRefusal(errors.TeamsError):
    """A refusal that is answered with a *document* of its own, because clients of another system expect its form."""

    def __init__(self, error: errors.TeamsError, document: dict[str, Any]) -> None:
        super().__init__(error.message, error.hint)
        self.document = document


def refused(error: errors.TeamsError, code: str = "") -> CallToolResult:
    """Return the refusal as the answer of a tool. *code* replaces the error's own code, unless it is ""."""
    if isinstance(error, DocumentedRefusal):
        body = {**error.document, "hint": in_tools(error.hint)}
        return _result(body, is_error=True)
    body = {"code": code or error.code, "message": in_tools(error.message), "hint": in_tools(error.hint)}
    return _result({"error": body}, is_error=True)


def _result(document: dict[str, Any], is_error: bool = False, has_data: bool = True) -> CallToolResult:
    """Return the document as the result of a tool: as text and, if *has_data* is True, also as data."""
    text = text_of(document)
    try:
        text.encode()
    except UnicodeEncodeError:  # half a character, from a file that was edited by hand
        text = text.encode(errors="replace").decode()
        document = json.loads(text)
    data = document if has_data else None
    return CallToolResult(content=[TextContent(type="text", text=text)], structured_content=data, is_error=is_error)
