"""Reading roles, and rights on our tools, from OpenCode's own configuration, `opencode.json`.

It is another program's file: what does not have our form is meant for that program, and is ignored.
"""

from __future__ import annotations

from teams_cli.environment import OPENCODE_FILES
from teams_cli.names import is_name
from teams_cli.records.json_text import loads
from teams_cli.store.files import disk
from teams_cli.teams.roles import by_role

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from teams_cli.records.types import RoleTable

    Rules = dict[str, Any]

_OURS = (b'"tool"', b'"extends"')
_VERDICTS = ("allow", "ask", "deny")
_LISTS = ("skill", "allow", "deny")
_TEXTS = ("description", "workflow")
_LONGEST = 1 << 20
_TEXT = r'("(?:\\.|[^"\\])*")'


def read(directory: str) -> tuple[Rules, RoleTable]:
    """Return the rules for tools and the roles from OpenCode's configuration files in *directory*, of which later ones
    win. A file that is missing or unreadable counts as empty.
    """
    rules: Rules = {}
    agents: RoleTable = {}
    for name in OPENCODE_FILES:
        document = _document(f"{directory}/{name}") or {}
        rules = laid_over(rules, {tool: said for tool, said in _tools(document).items() if _counts(said)})
        agents.update(_roles(document.get("agent")))
    return rules, agents


def laid_over(below: Mapping[str, Any], above: Mapping[str, Any]) -> Rules:
    """Merge two tables of rules. Where both have a rule, the upper one counts."""
    joined = dict(below)
    for tool, said in above.items():
        joined[tool] = {**by_role(below.get(tool, {})), **by_role(said)}
    return joined


def passed_over(directory: str) -> Iterator[tuple[str, str]]:
    """Return the rules that seem meant for `teams` but are not valid: the place of each, and the reason."""
    for name in OPENCODE_FILES:
        path = f"{directory}/{name}"
        document = _document(path)
        if document is None:
            yield path, "it is not valid JSON"
        for tool, said in _tools(document or {}).items():
            if not _counts(said):
                words = f"a word of {', '.join(_VERDICTS)}, or a table of such words by role"
                yield f"{path}: permission.tool.{tool}", f"it is not {words}"


def refused_by_opencode(directory: str) -> Iterator[str]:
    """Return the rules that count here, but with which OpenCode does not start, because it has no rules by role."""
    for name in OPENCODE_FILES:
        path = f"{directory}/{name}"
        for tool, said in _tools(_document(path) or {}).items():
            if isinstance(said, dict) and _counts(said):
                yield f"{path}: permission.tool.{tool}"


def _document(path: str) -> dict[str, Any] | None:
    """Return the document in the file; empty if nothing in it is meant for `teams`, None if it is not valid JSON."""
    try:
        data = disk.read_named(path, _LONGEST)
    except OSError:
        return {}
    if not any(word in data for word in _OURS):
        return {}
    try:
        document = loads(_without_comments(data.decode()))
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else {}


def _without_comments(text: str) -> str:
    """Return the text without comments and trailing commas, which JSON with comments allows."""
    import re

    for beside in (r"//[^\n]*|/\*.*?\*/", r",(?=\s*[}\]])"):
        text = re.sub(f"{_TEXT}|{beside}", lambda found: found[1] or " ", text, flags=re.DOTALL)
    return text


def _tools(document: dict[str, Any]) -> dict[str, Any]:
    """Return the rules of the document for each tool, in any form."""
    permission = document.get("permission")
    table = permission.get("tool") if isinstance(permission, dict) else None
    return table if isinstance(table, dict) else {}


def _counts(said: Any) -> bool:
    """Whether the value is a verdict on all roles, or on each of some."""
    return all(
        isinstance(word, str) and word in _VERDICTS for word in (said.values() if isinstance(said, dict) else [said])
    )


def _roles(agents: Any) -> RoleTable:
    """Return the agents that name the role that they extend. The other agents are OpenCode's alone."""
    found: RoleTable = {}
    for name, said in agents.items() if isinstance(agents, dict) else ():
        if isinstance(said, dict) and isinstance(said.get("extends"), str) and is_name(name):
            found[name] = {"extends": said["extends"]}
            for key in _LISTS:
                if isinstance(said.get(key), list) and all(isinstance(word, str) for word in said[key]):
                    found[name][key] = said[key]  # type: ignore[literal-required]
            for key in _TEXTS:
                if isinstance(said.get(key), str) and said[key]:
                    found[name][key] = said[key]  # type: ignore[literal-required]
    return found
