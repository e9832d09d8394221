"""Environments without identities: what a process inherits when it is to be somebody else, or nobody."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

OURS = ("TEAMS_*", "OPENCODE_TEAM_*", "OPENCODE_AGENT_*", "JANUS_AGENT_*")
"""Who an agent is, and in which team."""
OF_CLIENTS = ("OPENCODE*", "CLAUDE*", "CODEX_*", "GEMINI_*", "QWEN_*", "AI_AGENT", "AGENT")
"""What clients tell those whom they start of themselves: their sessions, sockets and tokens among it."""
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
"""What is named like that, and is the user's own setting of a client."""
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
"""What git tells its hooks of their own repository (`git rev-parse --local-env-vars`); who is started has another."""


def clean(
    inherited: Mapping[str, str], strip: Iterable[str] = (*OURS, *OF_CLIENTS), keep: Iterable[str] = SETTINGS
) -> dict[str, str]:
    """The environment for somebody else: without identities, tokens and sessions of agent clients, and without another
    repository's place. What the names in *strip* match goes, unless one in *keep* does; ours always goes.
    """
    strip, keep = tuple(strip), tuple(keep)
    return {
        name: value
        for name, value in inherited.items()
        if not _matches(name, (*OURS, *OF_A_REPOSITORY)) and (_matches(name, keep) or not _matches(name, strip))
    }


def unnamed(inherited: Mapping[str, str]) -> dict[str, str]:
    """The environment for a process of ours that goes on to start agents: each is given what its profile keeps."""
    return clean(inherited, strip=())


def identity(team: str, agent: str, name: str, type: str) -> dict[str, str]:
    """The variables that say who an agent is, under our names and those of OpenCode Teams."""
    own = {"AGENT_ID": agent, "AGENT_NAME": name, "AGENT_TYPE": type}
    both = {f"{prefix}_{key}": value for prefix in ("TEAMS", "OPENCODE") for key, value in own.items()}
    return {**both, "TEAMS_TEAM": team, "OPENCODE_TEAM_NAME": team}


def _matches(name: str, patterns: Iterable[str]) -> bool:
    from fnmatch import fnmatchcase  # dear, and wanted only where something is started

    return any(fnmatchcase(name, pattern) for pattern in patterns)
