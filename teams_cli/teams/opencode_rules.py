"""Reading roles, and rules for the commands of `teams`, from OpenCode's own configuration, `opencode.json`.

The file belongs to OpenCode. Entries that do not have the form of `teams` are meant for OpenCode, and are ignored.
"""

from __future__ import annotations

from teams_cli.environment import OPENCODE_FILES
from teams_cli.names import is_name
from teams_cli.store.documents import loads
from teams_cli.store.files import disk
from teams_cli.teams.roles import by_role

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from teams_cli.records.types import RoleTable

    Rules = dict[str, Any]

_KEYS_FOR_TEAMS = (b'"tool"', b'"extends"')
"""A file without any of these keys has nothing for `teams`."""
_VERDICTS = ("allow", "ask", "deny")
_LIST_KEYS = ("skill", "allow", "deny")
_TEXT_KEYS = ("description", "workflow")
_MAX_BYTES = 1 << 20


def read(directory: str) -> tuple[Rules, RoleTable]:
    """Return the rules for tools, and the roles, from OpenCode's configuration files in *directory*. If two files have
    different values, the later file takes precedence. A file that is missing or unreadable counts as empty.
    """
    rules: Rules = {}
    agents: RoleTable = {}
    for name in OPENCODE_FILES:
        document = _document(f"{directory}/{name}") or {}
        valid_rules = {tool: rule for tool, rule in _tool_rules(document).items() if _is_valid(rule)}
        rules = laid_over(rules, valid_rules)
        agents.update(_roles(document.get("agent")))
    return rules, agents


def laid_over(lower: Mapping[str, Any], upper: Mapping[str, Any]) -> Rules:
    """Merge two tables of rules. If both have a rule for a tool and a role, the *upper* table takes precedence."""
    merged = dict(lower)
    for tool, rule in upper.items():
        merged[tool] = {**by_role(lower.get(tool, {})), **by_role(rule)}
    return merged


def passed_over(directory: str) -> Iterator[tuple[str, str]]:
    """Yield the place of each rule that seems meant for `teams` but is not valid, and what is wrong with it."""
    for name in OPENCODE_FILES:
        path = f"{directory}/{name}"
        document = _document(path)
        if document is None:
            yield path, "it is not valid JSON"
        for tool, rule in _tool_rules(document or {}).items():
            if not _is_valid(rule):
                expected = f"a word of {', '.join(_VERDICTS)}, or a table of such words by role"
                yield f"{path}: permission.tool.{tool}", f"it is not {expected}"


def refused_by_opencode(directory: str) -> Iterator[str]:
    """Yield the places of rules by role: `teams` accepts them, but OpenCode does not start if it finds one."""
    for name in OPENCODE_FILES:
        path = f"{directory}/{name}"
        for tool, rule in _tool_rules(_document(path) or {}).items():
            if isinstance(rule, dict) and _is_valid(rule):
                yield f"{path}: permission.tool.{tool}"


def _document(path: str) -> dict[str, Any] | None:
    """Return the document in the file, empty if it can't be read or has nothing for `teams`; None for invalid JSON."""
    try:
        data = disk.read_named(path, _MAX_BYTES)
    except OSError:
        return {}
    if not any(key in data for key in _KEYS_FOR_TEAMS):
        return {}
    from teams_cli.store.json_edits import without_comments

    try:
        document = loads(without_comments(data.decode()))
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else {}


def _tool_rules(document: dict[str, Any]) -> dict[str, Any]:
    permission = document.get("permission")
    table = permission.get("tool") if isinstance(permission, dict) else None
    return table if isinstance(table, dict) else {}


def _is_valid(rule: Any) -> bool:
    verdicts = rule.values() if isinstance(rule, dict) else [rule]
    return all(isinstance(verdict, str) and verdict in _VERDICTS for verdict in verdicts)


def _roles(agents: Any) -> RoleTable:
    """Return, as roles, the *agents* that name a role to extend. The others are meant for OpenCode only."""
    roles: RoleTable = {}
    for name, agent in agents.items() if isinstance(agents, dict) else ():
        if isinstance(agent, dict) and isinstance(agent.get("extends"), str) and is_name(name):
            roles[name] = {"extends": agent["extends"]}
            for key in _LIST_KEYS:
                words = agent.get(key)
                if isinstance(words, list) and all(isinstance(word, str) for word in words):
                    roles[name][key] = words  # type: ignore[literal-required]
            for key in _TEXT_KEYS:
                text = agent.get(key)
                if isinstance(text, str) and text:
                    roles[name][key] = text  # type: ignore[literal-required]
    return roles
