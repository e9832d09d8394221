"""Checkouts: where the owner of a task works, on which branch, and what of it is committed."""

from __future__ import annotations

import os

from teams_cli.agents import git, sessions
from teams_cli.store.contract import Store

_SHOWN = 5


class Checkout:
    """A git checkout: its *top*, the *main* one of the repository that it belongs to, its branch and its commit."""

    def __init__(self, top: str) -> None:
        self.top = top
        self.main = main_of(top)
        self.branch = branch_of(top)
        self.head = git.said(top, "rev-parse", "--verify", "--quiet", "HEAD^{commit}")

    @property
    def committed_at(self) -> float:
        """When its commit was made, in seconds since 1970."""
        return float(git.said(self.top, "show", "--no-patch", "--format=%ct", "HEAD") or 0)

    def uncommitted(self, without: list[str] | None = None) -> list[str]:
        """The files that differ from the commit or that git does not know, but for those *without*."""
        printed = git.run(self.top, "status", "--porcelain", "--untracked-files=all", "-z", "--no-renames").stdout
        found = [(entry[:2], entry[3:]) for entry in printed.split("\0") if entry]
        return [name for how, name in found if not (how == "??" and name in (without or ()))]


def main_of(top: str) -> str:
    """The checkout that a worktree was made of: it is the first that git lists."""
    listed = git.run(top, "worktree", "list", "--porcelain").stdout
    return listed.partition("\n")[0].removeprefix("worktree ")


def branch_of(top: str) -> str:
    """The branch that is checked out there; empty if none is."""
    return git.said(top, "symbolic-ref", "--quiet", "--short", "HEAD")


def at(directory: str) -> Checkout | None:
    """The checkout that the directory is in; None if it is in none, or nothing was committed yet."""
    top = git.said(directory, "rev-parse", "--show-toplevel") if os.path.isdir(directory) else ""
    if not top:
        return None
    found = Checkout(top)
    return found if found.head else None


def worktree_of(store: Store, team: str, agent: str) -> str | None:
    """The worktree that `teams` made for the agent, if it is there and on this machine."""
    session = sessions.find(store, team, agent)
    if session is None or not session.worktree or session.host not in ("", store.host):
        return None
    return session.worktree if os.path.isdir(session.worktree) else None


def listed(names: list[str]) -> str:
    """The first few names, and how many more there are."""
    more = len(names) - _SHOWN
    return ", ".join(names[:_SHOWN]) + (f" and {more} more" if more > 0 else "")
