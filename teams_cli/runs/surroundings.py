"""Surroundings: what a front end knows of the machine, handed on to processes that it starts, without identities."""

from __future__ import annotations

import os
from fnmatch import fnmatchcase

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from teams_cli.store.contract import Store

_STRIPPED = ("TEAMS_*", "OPENCODE*", "CLAUDE*", "CODEX_*", "GEMINI_*", "QWEN_*", "AI_AGENT", "AGENT")
_KEPT = ("*_API_KEY", "*_BASE_URL")
_OF_A_REPOSITORY = frozenset(
    {"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX", "GIT_COMMON_DIR", "GIT_NAMESPACE"}
    | {"GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_GRAFT_FILE", "GIT_SHALLOW_FILE"}
    | {"GIT_CONFIG", "GIT_CONFIG_PARAMETERS", "GIT_CONFIG_COUNT", "GIT_REPLACE_REF_BASE"}
)
"""What git tells its hooks about its own repository (`git rev-parse --local-env-vars`); a run has another."""


class Surroundings:
    """The environment, directory and Python of whoever starts a run."""

    def __init__(self, environ: Mapping[str, str], directory: str, python: str) -> None:
        self.environ = clean(environ)
        self.directory = directory
        self.python = python

    def path(self, word: str) -> str:
        """The path that *word* means here; `~` is looked at because in `--var repo=~/x` a shell leaves it as it is."""
        home = self.environ.get("HOME", "")
        if home and (word == "~" or word.startswith("~/")):
            word = home + word[1:]
        return os.path.abspath(os.path.join(self.directory, word))

    def of_agent(self, store: Store, team: str, agent: str, type: str, mark: str) -> dict[str, str]:
        """The environment of that agent's processes. *mark* is what all of them can be found by."""
        return {
            **self.environ,
            **store.variables,
            "TEAMS_TEAM": team,
            "TEAMS_AGENT_ID": agent,
            "TEAMS_AGENT_NAME": agent,
            "TEAMS_AGENT_TYPE": type,
            "TEAMS_RUN_ID": mark,
            "OPENCODE_TEAM_NAME": team,
            "OPENCODE_AGENT_ID": agent,
            "OPENCODE_AGENT_NAME": agent,
            "OPENCODE_AGENT_TYPE": type,
            "PYTHON": self.python,
        }


def clean(environ: Mapping[str, str]) -> dict[str, str]:
    """The environment without identities, tokens, sessions of agent clients, and another repository's place."""
    return {name: value for name, value in environ.items() if not _is_identity(name)}


def _is_identity(name: str) -> bool:
    if name in _OF_A_REPOSITORY:
        return True
    ours = any(fnmatchcase(name, pattern) for pattern in _STRIPPED)
    return ours and not any(fnmatchcase(name, pattern) for pattern in _KEPT)
