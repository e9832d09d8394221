"""Surroundings: what a front end knows of the machine, handed on to processes that it starts, without identities."""

from __future__ import annotations

import os

from teams_cli.clients import environments

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from teams_cli.store.contract import Store


class Surroundings:
    """The environment, directory and Python of whoever starts a run. Shell commands get *environ*, without identities;
    agents, of what is *inherited*, what their clients' profiles keep.
    """

    def __init__(self, environ: Mapping[str, str], directory: str, python: str) -> None:
        self.inherited = environ
        self.environ = environments.clean(environ)
        self.directory = directory
        self.python = python

    def path(self, word: str) -> str:
        """The path that *word* means here; `~` is looked at because in `--var repo=~/x` a shell leaves it as it is."""
        home = self.environ.get("HOME", "")
        if home and (word == "~" or word.startswith("~/")):
            word = home + word[1:]
        return os.path.abspath(os.path.join(self.directory, word))

    def of_agent(self, store: Store, team: str, agent: str, type: str, tag: str) -> dict[str, str]:
        """The environment of that agent's processes. *tag* is what all of them can be found by."""
        return {
            **self.environ,
            **store.variables,
            **environments.identity(team, agent, agent, type),
            "TEAMS_RUN_ID": tag,
            "PYTHON": self.python,
        }
