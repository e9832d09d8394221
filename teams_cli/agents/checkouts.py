"""Checkouts: where the owner of a task works, on which branch, and what of it is committed."""

from __future__ import annotations

import os

from teams_cli import environment
from teams_cli.agents import git, origins, sessions
from teams_cli.store.contract import Store
from teams_cli.teams import presence
from teams_cli.teams.teams import Team

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_HEADS = "refs/heads/"
_HERE = (
    "--path-format=absolute",
    "--show-toplevel",
    "--git-common-dir",
    "HEAD^{commit}",
    "--symbolic-full-name",
    "HEAD",
)


class Checkout:
    """A git checkout: its *top*, the *main* one of the repository that it belongs to, its branch and its commit."""

    def __init__(self, top: str, common: str, head: str, branch: str) -> None:
        self.top = top
        self.common = common
        self.main = common.removesuffix("/.git")
        self.head = head
        self.branch = branch.removeprefix(_HEADS) if branch.startswith(_HEADS) else ""

    @property
    def is_main(self) -> bool:
        """Whether it is no worktree that was made of another, so that several may work in it."""
        return os.path.realpath(self.top) == os.path.realpath(self.main)

    @property
    def committed_at(self) -> float:
        """When its commit was made, in seconds since 1970."""
        return float(git.said(self.top, "show", "--no-patch", "--format=%ct", "HEAD") or 0)

    def uncommitted(self, without: list[str] | None = None) -> list[str]:
        """The files that differ from the commit or that git does not know, but for those *without*."""
        entries = git.names(self.top, "status", "--porcelain", "--untracked-files=all", "-z", "--no-renames")
        found = [(entry[:2], entry[3:]) for entry in entries]
        return [name for how, name in found if not (how == "??" and name in (without or ()))]

    def hidden(self, since: float) -> list[str]:
        """The files that `uncommitted` does not see since git was told not to: which it takes as unchanged, and which
        it ignores by rules that this repository was given since then, or where the branch changes such rules. Whole
        directories that it ignores are no part of it: tools build them.
        """
        listed = git.run(self.top, "ls-files", "-v", "-z").stdout.split("\0")
        passed_over = [entry[2:] for entry in listed if entry[:1] == "S" or entry[:1].islower()]
        found = [name for name in passed_over if os.path.lexists(f"{self.top}/{name}")]
        for rules in self._rules_since(since):
            words = ("ls-files", "--others", "--ignored", rules, "--directory", "-z")
            found += [name for name in git.run(self.top, *words).stdout.split("\0") if name and name[-1] != "/"]
        return list(dict.fromkeys(found))

    def _rules_since(self, since: float) -> Iterator[str]:
        """The rules of what git ignores that came since then, or with the branch, as an option of git."""
        own = f"{self.common}/info/exclude"
        if _changed_at(own) > since:
            yield f"--exclude-from={own}"
        set_since = _changed_at(f"{self.common}/config") > since
        if set_since and (said := git.said(self.top, "config", "--local", "--path", "core.excludesFile")):
            yield f"--exclude-from={said}"
        words = ("diff", "--name-only", "--no-ext-diff", "--merge-base", "main-worktree/HEAD", "HEAD")
        if git.said(self.top, *words, "--", ":(top,glob)**/.gitignore"):
            yield "--exclude-standard"


def _changed_at(path: str) -> float:
    """When the file was written last; 0 where it is not there."""
    try:
        return os.stat(path).st_mtime
    except OSError:
        return 0.0


def branch_of(top: str) -> str:
    """The branch that is checked out there; empty if none is."""
    return git.said(top, "symbolic-ref", "--quiet", "--short", "HEAD")


def at(directory: str) -> Checkout | None:
    """The checkout that the directory is in; None if it is in none, nothing was committed yet, or its `.git` leads to a
    repository inside, in which an agent may have put commands for git, or to another worktree.
    """
    said = git.said(directory, "rev-parse", *_HERE).split("\n") if os.path.isdir(directory) else []
    return Checkout(*said) if len(said) == 4 and not origins.leads_astray(said[0]) else None


def repository_of(path: str) -> tuple[str, str]:
    """The top of the checkout that holds *path*, and the directory that all worktrees of its repository have in common;
    both empty where there is none. No process is needed to tell.
    """
    top = environment.checkout_around(os.path.realpath(path))
    if not top:
        return "", ""
    own = origins.own_directory(top)
    common = environment.git_line(f"{own}/commondir")
    return top, os.path.realpath(os.path.join(own, common)) if common else own


def worktree_of(store: Store, team: str, agent: str) -> str | None:
    """The worktree that `teams` made for the agent, if it is there and on this machine."""
    session = sessions.find(store, team, agent)
    if session is None or not session.worktree or session.host not in ("", store.host):
        return None
    return session.worktree if os.path.isdir(session.worktree) else None


def seen_in(store: Store, team: str, agent: str) -> str | None:
    """The worktree in which the agent was last seen at work, whoever made it, if it is there and on this machine."""
    seen = presence.load(store, team, agent)
    return seen.worktree if seen.worktree and _is_here(seen.host or "", seen.worktree, store) else None


class Tree:
    """A worktree in which a member works, and the *branch* that is its own."""

    def __init__(self, agent: str, worktree: str, branch: str) -> None:
        self.agent = agent
        self.worktree = worktree
        self.branch = branch


def trees(store: Store, team: Team) -> list[Tree]:
    """The worktrees of this machine in which members work: those that `teams` made for its agents, and those in which
    others were seen. Who leads looks into those of others, and changes nothing. One whose `.git` leads elsewhere is
    left out: an agent may have put commands for git there.
    """
    every = (session for session, _ in store.scan(team.name, sessions.SESSION, []))
    made = [
        Tree(session.agent, session.worktree, session.branch)
        for session in every
        if session.worktree and session.branch and os.path.isdir(session.worktree)
    ]
    agents, places = {tree.agent for tree in made}, {os.path.realpath(tree.worktree) for tree in made}
    others = [
        Tree(seen.agent, seen.worktree, branch)
        for seen, _ in store.scan(team.name, presence.AGENT, [])
        if seen.worktree and seen.agent not in (*agents, team.leader) and team.member(seen.agent)
        if _is_here(seen.host or "", seen.worktree, store) and os.path.realpath(seen.worktree) not in places
        if (branch := _branch_in(seen.worktree))
    ]
    return [tree for tree in (*made, *others) if not origins.leads_astray(tree.worktree)]


def unseen(store: Store, team: Team) -> list[str]:
    """The members, but for the leader, of whom no worktree on this machine is known."""
    known = {team.leader, *(tree.agent for tree in trees(store, team))}
    return [name for name in team.active_names() if name not in known]


def _is_here(host: str, worktree: str, store: Store) -> bool:
    return host in ("", store.host) and os.path.lexists(f"{worktree}/.git")


def _branch_in(worktree: str) -> str:
    """The branch that is checked out in the worktree; no process is needed to tell."""
    head, _, branch = environment.git_line(f"{origins.own_directory(worktree)}/HEAD").partition("ref: refs/heads/")
    return "" if head else branch
