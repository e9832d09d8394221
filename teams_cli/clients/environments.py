"""Make environments without an agent's identity, for a process that runs another agent, or none."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

OURS = ("TEAMS_*", "OPENCODE_TEAM_*", "OPENCODE_AGENT_*", "JANUS_AGENT_*")
"""Patterns for the names of variables that say who an agent is, and in which team."""
OF_CLIENTS = ("OPENCODE*", "CLAUDE*", "CODEX_*", "GEMINI_*", "QWEN_*", "AI_AGENT", "AGENT")
"""Patterns for the names of variables that clients set for the processes that they start: sessions, sockets and
tokens.
"""
SETTINGS = (
    "*_API_KEY",
    "*_BASE_URL",
    "CLAUDE_CONFIG_DIR",
    "CLAUDE_CODE_DISABLE_*",
    "CLAUDE_CODE_ENABLE_TODO_TOOLS",
    "CODEX_HOME",
    "OPENCODE_CONFIG*",
    "OPENCODE_DISABLE_*",
)
"""Patterns for the names of variables that are the user's own settings of a client."""
OF_A_REPOSITORY = (
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_PREFIX",
    "GIT_COMMON_DIR",
    "GIT_NAMESPACE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_GRAFT_FILE",
    "GIT_SHALLOW_FILE",
    "GIT_CONFIG",
    "GIT_CONFIG_PARAMETERS",
    "GIT_CONFIG_COUNT",
    "GIT_REPLACE_REF_BASE",
)
"""Variables about one repository, which git sets for its hooks (`git rev-parse --local-env-vars`)."""


def clean(
    inherited: Mapping[str, str], strip: Iterable[str] = (*OURS, *OF_CLIENTS), keep: Iterable[str] = SETTINGS
) -> dict[str, str]:
    """Return the environment for another agent: the *inherited* variables without identities, without tokens and
    sessions of clients, and without git's variables about a repository.

    A variable whose name matches a pattern in *strip* is removed, unless its name also matches one in *keep*. Our own
    variables and those of git are always removed.
    """
    strip, keep = tuple(strip), tuple(keep)
    return {
        name: value
        for name, value in inherited.items()
        if not _matches(name, (*OURS, *OF_A_REPOSITORY)) and (_matches(name, keep) or not _matches(name, strip))
    }


def unnamed(inherited: Mapping[str, str]) -> dict[str, str]:
    """Return the environment for a process of ours that starts agents. Only our own variables and git's are removed.
    The profile of an agent decides later which of the others the agent gets.
    """
    return clean(inherited, strip=())


def identity(team: str, agent: str, name: str, type: str) -> dict[str, str]:
    """Return the variables that say who an agent is, under our own names and under the names in OpenCode Teams."""
    variables = {"TEAMS_TEAM": team, "OPENCODE_TEAM_NAME": team}
    for prefix in ("TEAMS", "OPENCODE"):
        variables |= {f"{prefix}_AGENT_ID": agent, f"{prefix}_AGENT_NAME": name, f"{prefix}_AGENT_TYPE": type}
    return variables


def _matches(name: str, patterns: Iterable[str]) -> bool:
    from fnmatch import fnmatchcase  # slow to import, and only needed when a process is started

    return any(fnmatchcase(name, pattern) for pattern in patterns)
