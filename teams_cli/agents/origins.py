"""Origins: the checkout that a worktree was made from, noted in git's own directory of the worktree.

It goes with the worktree, and is there when the record of the agent is damaged or the team is gone.
"""

from __future__ import annotations

import json
import os
from typing import Any

from teams_cli import environment
from teams_cli.agents import git

_FILE = "teams-origin.json"


class Origin:
    """The checkout *top* that a worktree was made from, the commit *base* it began at, and the lines by which files
    were ignored then, other than those of `.gitignore`; None where a version wrote the note that did not know them.
    """

    def __init__(self, top: str = "", base: str = "", rules: list[str] | None = None) -> None:
        self.top = top
        self.base = base
        self.rules = rules

    def to_json(self) -> dict[str, Any]:
        return {"top": self.top, "base": self.base, "rules": self.rules}


def of_checkout(top: str) -> Origin:
    """What to note of a worktree that is made from that checkout now."""
    base = git.must(top, "rev-parse", "--verify", "HEAD^{commit}").strip()
    return Origin(top, base, sorted({line for path in _rule_files(top) for line in lines_of(path)}))


def note(worktree: str, origin: Origin) -> None:
    """Keep where the worktree comes from.

    Raises:
        OSError: It can't be written.
    """
    with open(f"{own_directory(worktree)}/{_FILE}", "w", encoding="ascii") as file:
        json.dump(origin.to_json(), file)


def load(worktree: str) -> Origin:
    """Where the worktree comes from; empty if nobody noted it."""
    try:
        with open(f"{own_directory(worktree)}/{_FILE}", encoding="ascii") as file:
            return Origin(**json.load(file))
    except (OSError, ValueError, TypeError):
        return Origin()


def own_directory(top: str) -> str:
    """Where git keeps what is that checkout's alone: in its `.git`, or where the `.git` of a worktree leads."""
    link = environment.git_line(f"{top}/.git")
    return os.path.realpath(os.path.join(top, link.removeprefix("gitdir: ") if link else ".git"))


def leads_astray(top: str) -> bool:
    """Whether the `.git` of a worktree, a file that its agent may edit, leads to a repository in it, or to what git
    keeps of another worktree that is there.
    """
    if not os.path.isfile(f"{top}/.git"):
        return False
    own = own_directory(top)
    there = environment.git_line(f"{own}/gitdir")
    other = os.path.realpath(os.path.join(own, there)) if there else ""
    is_anothers = os.path.isfile(other) and other != os.path.realpath(f"{top}/.git")
    return is_anothers or own.startswith(os.path.realpath(top) + "/")


def _rule_files(top: str) -> list[str]:
    """The files beside `.gitignore` whose rules git follows there."""
    own = git.must(top, "rev-parse", "--path-format=absolute", "--git-path", "info/exclude").removesuffix("\n")
    default = "~/.config/git/ignore"  # git itself knows the home
    users = git.said(top, "config", "--type=path", "--default", default, "--get", "core.excludesFile")
    return [own, *([os.path.join(top, users)] if users else [])]


def lines_of(path: str) -> list[str]:
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return file.read().splitlines()
    except OSError:
        return []
