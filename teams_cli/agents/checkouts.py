"""Checkouts: their branch and commit, their uncommitted files, and the checkout that a worktree was made from."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, NamedTuple

from teams_cli import environment
from teams_cli.agents import git, sessions
from teams_cli.store.contract import Store
from teams_cli.store.files import disk
from teams_cli.teams import presence
from teams_cli.teams.teams import Team

_FILE = "teams-origin.json"
"""The name of the file that records the origin of a worktree, among git's own data for the worktree."""


@dataclass
class Origin:
    """The checkout *top* that a worktree was made from, and the commit *base* at which the worktree began. *rules* are
    the ignore rules outside `.gitignore` that git used when the worktree was made. They are None if an older version of
    the program, which did not record them, made the worktree.
    """

    top: str = ""
    base: str = ""
    rules: list[str] | None = None

    def to_json(self) -> dict[str, Any]:
        return {"top": self.top, "base": self.base, "rules": self.rules}


def of_checkout(top: str) -> Origin:
    """Return the origin of a worktree that is about to be made from the checkout *top*."""
    base = git.must(top, "rev-parse", "--verify", "HEAD^{commit}").strip()
    exclude = git.must(top, "rev-parse", "--path-format=absolute", "--git-path", "info/exclude").removesuffix("\n")
    default = "~/.config/git/ignore"  # git expands the ~
    users_exclude = git.output_of(top, "config", "--type=path", "--default", default, "--get", "core.excludesFile")
    rules = set(lines_of(exclude))
    if users_exclude:
        rules.update(lines_of(os.path.join(top, users_exclude)))
    return Origin(top, base, sorted(rules))


def note(worktree: str, origin: Origin) -> None:
    """Record the origin of a worktree in a file among git's own data for the worktree. Raises OSError if this fails."""
    import json  # slow to import; only worktrees have an origin

    with open(f"{git_directory(worktree)}/{_FILE}", "w", encoding="ascii") as file:
        json.dump(origin.to_json(), file)


def load(worktree: str) -> Origin:
    """Return the origin of a worktree; an empty Origin if none was recorded."""
    import json

    try:
        with open(f"{git_directory(worktree)}/{_FILE}", encoding="ascii") as file:
            return Origin(**json.load(file))
    except (OSError, ValueError, TypeError):
        return Origin()


def git_directory(top: str) -> str:
    """Return the directory with the data that git keeps for the checkout *top* alone: its directory `.git`, or, if it
    is a worktree, the directory that its file `.git` names.
    """
    link = environment.git_line(f"{top}/.git")
    return os.path.realpath(os.path.join(top, link.removeprefix("gitdir: ") if link else ".git"))


def data_of_deleted(repository: str, worktree: str) -> str:
    """Return the directory with the data that git still keeps for a *worktree* whose directory was deleted; "" if there
    is none. Until `git worktree prune` removes it, it has the worktree's HEAD and index.
    """
    if os.path.lexists(worktree):
        return ""
    store = f"{git.common_directory(repository)}/worktrees"
    for name in disk.names_in(store):
        link = environment.git_line(f"{store}/{name}/gitdir")
        if link and os.path.realpath(os.path.join(store, name, link)) == os.path.realpath(f"{worktree}/.git"):
            return f"{store}/{name}"
    return ""


def leads_astray(top: str) -> bool:
    """Whether the `.git` file of the worktree *top* points to a repository inside the worktree or to the data of
    another existing worktree. This can happen because the agent may have edited that file.
    """
    if not os.path.isfile(f"{top}/.git"):
        return False
    data = git_directory(top)
    owner = environment.git_line(f"{data}/gitdir")  # the `.git` file of the worktree that the data belongs to
    owner = os.path.realpath(os.path.join(data, owner)) if owner else ""
    is_of_another = os.path.isfile(owner) and owner != os.path.realpath(f"{top}/.git")
    return is_of_another or data.startswith(os.path.realpath(top) + "/")


def lines_of(path: str) -> list[str]:
    """Return the lines of the file; an empty list if it can't be read."""
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return git.lines(file.read())
    except OSError:
        return []


_HEADS = "refs/heads/"
_HERE = [
    "--path-format=absolute",
    "--show-toplevel",
    "--git-common-dir",
    "HEAD^{commit}",
    "--symbolic-full-name",
    "HEAD",
]
"""The arguments of `git rev-parse` that print the four values of a `Checkout`."""


class Checkout:
    """A git checkout: its *top* directory, the *main* checkout of its repository, its branch, and *head*, its commit.
    *common* is the directory with git's data that all worktrees of the repository share.
    """

    def __init__(self, top: str, common: str, head: str, branch: str) -> None:
        self.top = top
        self.common = common
        self.main = common.removesuffix("/.git")
        self.head = head
        self.branch = branch.removeprefix(_HEADS) if branch.startswith(_HEADS) else ""

    @property
    def is_main(self) -> bool:
        """Whether this is the main checkout of the repository, in which several agents may work."""
        return os.path.realpath(self.top) == os.path.realpath(self.main)

    @property
    def committed_at(self) -> float:
        """The time of the checkout's commit, in seconds since 1970; 0 if git can't read the commit."""
        return float(git.output_of(self.top, "show", "--no-patch", "--format=%ct", "HEAD") or 0)

    def uncommitted(self, without: list[str] | None = None) -> list[str]:
        """Return the files that differ from the commit or are untracked, except the untracked files listed in
        *without*. Files inside submodules are left out; `work.uncommitted` lists them too.
        """
        entries = git.names(self.top, *git.LOOKING, *git.STATUS)
        ignored = {f"?? {name}" for name in without or ()}
        return [entry[3:] for entry in entries if entry not in ignored]

    def hidden(self, since: float) -> list[str]:
        """Return the files that `uncommitted` misses because git was told to skip them: files with the mark
        `assume-unchanged` or `skip-worktree`, and files that a new rule ignores. A rule is new if the branch added it,
        or if `info/exclude` or the configuration of this repository was changed after *since* (seconds since 1970).
        Directories that are ignored as a whole are left out, because build tools make them.
        """
        entries = git.run(self.top, "ls-files", "-v", "-z").stdout.split("\0")
        # A file to skip has the letter S, and a file to take as unchanged has a small letter.
        flagged = [entry[2:] for entry in entries if entry[:1] == "S" or entry[:1].islower()]
        files = [name for name in flagged if os.path.lexists(f"{self.top}/{name}")]
        # An option of `git ls-files` for each set of ignore rules that was added after *since*, or by the branch.
        exclude, config = f"{self.common}/info/exclude", f"{self.common}/config"
        options = []
        if os.path.exists(exclude) and os.stat(exclude).st_mtime > since:
            options.append(f"--exclude-from={exclude}")
        if os.path.exists(config) and os.stat(config).st_mtime > since:
            excludes_file = git.output_of(self.top, "config", "--local", "--path", "core.excludesFile")
            if excludes_file:
                options.append(f"--exclude-from={excludes_file}")
        words = ("diff", "--name-only", "--no-ext-diff", "--merge-base", "main-worktree/HEAD", "HEAD")
        if git.output_of(self.top, *words, "--", ":(top,glob)**/.gitignore"):
            options.append("--exclude-standard")
        for option in options:
            words = ("ls-files", "--others", "--ignored", option, "--directory", "-z")
            files += [name for name in git.run(self.top, *words).stdout.split("\0") if name and name[-1] != "/"]
        return list(dict.fromkeys(files))


def branch_of(top: str) -> str:
    """Return the branch that is checked out at *top*, or "" if HEAD is detached."""
    reference = git.output_of(top, "symbolic-ref", "--quiet", "HEAD")  # with --short, a tag of that name adds a prefix
    return reference.removeprefix(_HEADS) if reference.startswith(_HEADS) else ""


def at(directory: str) -> Checkout | None:
    """Return the checkout that contains the directory. None outside git, if the checkout has no commit yet, or if its
    `.git` file points to a repository inside it or to another worktree's data, because git could then run commands that
    an agent put there.
    """
    lines = git.output_of(directory, "rev-parse", *_HERE).split("\n") if os.path.isdir(directory) else []
    return Checkout(*lines) if len(lines) == 4 and not leads_astray(lines[0]) else None


def repository_of(path: str) -> tuple[str, str]:
    """Return the top of the checkout that contains *path*, and the directory that all worktrees of its repository
    share. Outside git, both are "". This is fast, because it does not run git.
    """
    top = environment.checkout_around(os.path.realpath(path))
    if not top:
        return "", ""
    return top, os.path.realpath(environment.common_git_directory(git_directory(top)))


def worktree_of(store: Store, team: str, agent: str) -> str | None:
    """Return the worktree that `teams` made for the agent. None if there is none, or if it is not on this machine."""
    session = sessions.find(store, team, agent)
    if session is None or not session.worktree or session.host not in ("", store.host):
        return None
    return session.worktree if os.path.isdir(session.worktree) else None


def seen_in(store: Store, team: str, agent: str) -> str | None:
    """Return the worktree in which the agent was last seen at work, even if `teams` did not make it. None if there is
    none, or if it is not on this machine.
    """
    member = presence.load(store, team, agent)
    return member.worktree if member.worktree and _is_here(member.host or "", member.worktree, store) else None


class Tree(NamedTuple):
    """A worktree in which a member works, and the branch of that member."""

    agent: str
    worktree: str
    branch: str


def trees(store: Store, team: Team) -> list[Tree]:
    """Return the worktrees of this machine in which members work: those that `teams` made for its agents, and those in
    which other members were seen. A worktree is left out if its `.git` file points to a repository inside it or to
    another worktree's data. The leader is left out too, because a leader only looks into worktrees.
    """
    worktrees = [
        Tree(session.agent, session.worktree, session.branch)
        for session, _ in store.scan(team.name, sessions.SESSION, [])
        if session.worktree and session.branch and os.path.isdir(session.worktree)
    ]
    agents = {tree.agent for tree in worktrees}
    paths = {os.path.realpath(tree.worktree) for tree in worktrees}
    for member, _ in store.scan(team.name, presence.AGENT, []):
        path = member.worktree
        if not path or member.agent in (*agents, team.leader) or not team.member(member.agent):
            continue
        if _is_here(member.host or "", path, store) and os.path.realpath(path) not in paths:
            head = environment.git_line(f"{git_directory(path)}/HEAD")
            branch = head.removeprefix("ref: refs/heads/")
            if branch != head:  # else no branch is checked out
                worktrees.append(Tree(member.agent, path, branch))
    return [tree for tree in worktrees if not leads_astray(tree.worktree)]


def without_worktree(store: Store, team: Team) -> list[str]:
    """Return the members, except the leader, that have no known worktree on this machine."""
    excluded = {team.leader, *(tree.agent for tree in trees(store, team))}
    return [name for name in team.active_names() if name not in excluded]


def _is_here(host: str, worktree: str, store: Store) -> bool:
    return host in ("", store.host) and os.path.lexists(f"{worktree}/.git")
