"""Reads what clients send in the protocol: requests for permission to use a tool, errors, and counts of tokens."""

from __future__ import annotations

import json
import os
import re
import shlex

from teams_cli.clients import own_entries, permissions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

MODE = "default"
"""The mode in which a client asks the person for permission. Some clients start in another mode, in which a model
decides for the person.
"""
_LOGIN_NEEDED = -32000
"""The code of the protocol's error for a client whose user must log in first."""
_PATHS = ("path", "file_path", "filePath", "fileName", "notebook_path")
"""The keys under which clients name the files of a tool."""
_OUR_TOOL = rf"(mcp__{own_entries.NAME}__|mcp_{own_entries.NAME}_|{own_entries.NAME}[-_])\w+"


def is_allowed(tool: dict[str, Any], level: str, directory: str) -> bool:
    """Return whether an agent at the permission *level* may use the tool without asking.

    Tools of `teams` are always allowed. At the level `edit`, edits of files in *directory* are also allowed; at the
    level `all`, everything is.
    """
    if level == "all":
        return True
    if tool.get("kind") == "execute" and permissions.is_ours("", {"command": _command(tool)}):
        return True
    if tool.get("kind") != "execute" and re.fullmatch(_OUR_TOOL, str(tool.get("title"))):
        return True
    if level != "edit" or tool.get("kind") != "edit":
        return False
    top = os.path.realpath(directory)
    paths = [os.path.realpath(os.path.join(directory, path)) for path in _paths(tool)]
    for path in paths:
        is_in_git = "/.git/" in f"{path.removeprefix(top)}/"  # git runs commands that files there name
        if not path.startswith(f"{top}/") or is_in_git:
            return False
    return bool(paths)


def _command(tool: dict[str, Any]) -> str | None:
    """Return the shell command in the input of the tool; None if the input has none."""
    raw_input = tool.get("rawInput")
    command = raw_input.get("command") if isinstance(raw_input, dict) else None
    if isinstance(command, list):
        is_shell = len(command) == 3 and command[1] in ("-c", "-lc")
        return str(command[2]) if is_shell else shlex.join(map(str, command))
    return command if isinstance(command, str) else None


def _paths(tool: dict[str, Any]) -> Iterator[str]:
    """Yield all paths of files that the request for the tool names."""
    for part in (*(tool.get("locations") or ()), *(tool.get("content") or ()), tool.get("rawInput")):
        if isinstance(part, dict):
            yield from (value for key, value in part.items() if key in _PATHS and isinstance(value, str))


def name_of(tool: dict[str, Any]) -> str:
    """Return a name for the tool, by which the person can allow this tool once and for all. The protocol gives tools no
    names, so the name is the kind of the tool, and means all tools of this kind. If the kind is unknown, the name is
    the title.
    """
    kind = tool.get("kind") or "other"
    return str(tool.get("title") or kind) if kind == "other" else str(kind)


def as_text(tool: dict[str, Any]) -> str:
    """Return the tool and its input as text, so that the person can judge the request."""
    if command := _command(tool):
        return command
    title = str(tool.get("title") or "")
    if tool.get("rawInput"):
        return f"{title}\n{permissions.as_text(tool['rawInput'])}".strip()
    texts = [title, *dict.fromkeys(_paths(tool))]
    for part in tool.get("content") or ():
        if isinstance(part, dict):
            description = part.get("content")  # otherwise the part is a change of a file
            text = description.get("text") if isinstance(description, dict) else part.get("newText")
            if isinstance(text, str):
                texts.append(text)
    return "\n".join(filter(None, texts))


def error_of(error: dict[str, Any], method: str) -> str:
    """Return the reason to give to the user if a client answered our request *method* with the *error*."""
    message = str(error.get("message"))
    if error.get("data"):
        message += f" {json.dumps(error['data'])}"
    if error.get("code") == _LOGIN_NEEDED:
        return f"the client wants its user to log in: start it by hand once ({message})"
    return f"the client refused {method}: {message}"


def tokens_of(usage: Any) -> dict[str, int]:
    """Return the token counts that a client reported, or an empty dict if it reported none.

    Clients differ in whether their count of input tokens includes cached tokens. If the client also reports the total,
    the returned count of input tokens is computed from the total, so that it includes cached tokens.
    """
    if not isinstance(usage, dict):
        return {}
    # Some clients write `input_tokens` instead of `inputTokens`.
    counts = {key.replace("_t", "T"): value for key, value in usage.items() if isinstance(value, int)}
    if "outputTokens" not in counts or not {"inputTokens", "totalTokens"} & counts.keys():
        return {}
    output = counts["outputTokens"]
    input = counts["totalTokens"] - output if "totalTokens" in counts else counts["inputTokens"]
    return {"input": input, "cached": counts.get("cachedReadTokens", 0), "output": output}
