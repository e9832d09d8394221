"""Merge two commits without a checkout, move the branch to the result, and bring a checkout along.

The merge takes no lock and leaves nothing half done: until a branch holds the new commit, it has no effect, and a
branch moves in one step from the commit that was read to the one that was made.
"""

from __future__ import annotations

import os
import time

from teams_cli import errors, text
from teams_cli.agents import checkouts, git, work
from teams_cli.agents.work import Work

_HEX = frozenset("0123456789abcdef")
_LENGTHS = (40, 64)
_TRIES, _PAUSE = 10, 0.05


class Clash(Exception):
    """The error that two commits conflict in *files*."""

    def __init__(self, files: list[str]) -> None:
        super().__init__(", ".join(files))
        self.files = files


def tip_of(repository: str, branch: str) -> str:
    """Return the commit of the branch; empty if there is no branch of exactly that name."""
    return git.said(repository, "show-ref", "--verify", "--hash", f"refs/heads/{branch}")


def is_commit(word: str) -> bool:
    """Whether *word* is the full hash of a commit. Names of branches are not accepted because a branch may move, and
    options because they must never reach git.
    """
    return len(word) in _LENGTHS and _HEX.issuperset(word)


def holds(repository: str, tip: str, commit: str) -> bool:
    """Whether *tip* contains the commit."""
    if not (is_commit(tip) and is_commit(commit)):
        return False
    return git.run(repository, "merge-base", "--is-ancestor", commit, tip).returncode == 0


def is_on_branch(repository: str, branch: str, commit: str) -> bool:
    """Whether the branch exists and contains the commit."""
    return holds(repository, tip_of(repository, branch), commit)


def is_same(repository: str, one: str, other: str) -> bool:
    """Whether two commits hold the same files. Their trees are compared, because a repository can configure diffs to
    hide differences.
    """
    if not (is_commit(one) and is_commit(other)):
        return False
    trees = git.said(repository, "rev-parse", f"{one}^{{tree}}", f"{other}^{{tree}}").split()
    return len(trees) == 2 and trees[0] == trees[1]


def merged(repository: str, base: str, head: str, message: str) -> str:
    """Return a new merge commit of *base* and *head*, signed if the repository is configured so. No branch contains it
    yet.

    Raises:
        Clash: They conflict.
        StorageFailed: git can't merge or sign them.
    """
    done = git.run(repository, "merge-tree", "--write-tree", "--name-only", "--no-messages", "-z", base, head)
    if done.returncode > 1 or not done.stdout:  # also if they have no common ancestor
        raise errors.StorageFailed(f"git merge-tree: {done.stderr.strip()}", f"Try it in {repository}.")
    tree, *files = [part for part in done.stdout.split("\0") if part]
    if done.returncode:
        raise Clash(sorted(set(files)))
    return committed(repository, tree, base, head, message)


def committed(repository: str, tree: str, base: str, head: str, message: str) -> str:
    """Return a new merge commit of *base* and *head* with the files of *tree*, signed if the repository is configured
    so.

    Raises:
        StorageFailed: git can't sign it.
    """
    signed = git.said(repository, "config", "--type=bool", "commit.gpgSign") == "true"
    words = ("commit-tree", tree, "-p", base, "-p", head, *["-S"] * signed, "-m", message)
    made = git.said(repository, *words)  # fails if no committer is configured
    return made or git.must(repository, *words, variables=git.NOBODY).strip()


_HOOKS = ("pre-merge-commit", "prepare-commit-msg", "commit-msg")


def has_hooks(repository: str) -> bool:
    """Whether the repository has hooks that check merges."""
    place = git.must(repository, "rev-parse", "--path-format=absolute", "--git-path", "hooks").removesuffix("\n")
    return any(os.access(os.path.join(place, name), os.X_OK) for name in _HOOKS)


def merged_at(path: str, repository: str, base: str, head: str, message: str) -> str:
    """Return a new merge commit of *base* and *head*, made in a temporary checkout at *path*, so that the repository's
    hooks run.

    Raises:
        Clash: They conflict.
        StorageFailed: A hook refuses, or git can't merge them.
    """
    try:
        git.must(repository, "worktree", "add", "--quiet", "--detach", path, base)
        done = git.run(path, "merge", "--no-ff", "--no-edit", "-m", message, head)
        if done.returncode:
            if files := git.names(path, "diff", "--name-only", "--diff-filter=U", "-z"):
                raise Clash(sorted(set(files)))
            raise errors.StorageFailed((done.stderr or done.stdout).strip(), f"Look in {repository}.")
        return git.must(path, "rev-parse", "HEAD").strip()
    finally:
        git.run(repository, "worktree", "remove", "--force", "--force", path)


def move(repository: str, branch: str, base: str, commit: str, why: str) -> bool:
    """Move the branch to the commit if it is still at *base*; returns whether it moved.

    Raises:
        StorageFailed: git can't move it, for example because a killed process left a lock.
    """
    for _ in range(_TRIES):
        done = git.run(repository, "update-ref", "-m", why, f"refs/heads/{branch}", commit, base)
        if done.returncode == 0 or tip_of(repository, branch) != base:
            return done.returncode == 0
        time.sleep(_PAUSE)
    raise errors.StorageFailed(f"git can't move {branch}: {done.stderr.strip()}", f"Look in {repository}.")


def checked_out(repository: str, branch: str) -> str:
    """Return the checkout that has the branch checked out; empty if none has."""
    place = ""
    for line in git.worktrees(repository):
        if line.startswith("worktree "):
            place = line.removeprefix("worktree ")
        elif line == f"branch refs/heads/{branch}":
            return place
    return ""


def changed(checkout: str) -> list[str]:
    """Return the files of the checkout that differ from its commit. Submodules count only if they are staged: a
    submodule at another commit is in nobody's way.
    """
    entries = git.names(checkout, *git.STATUS, "--untracked-files=no")
    staged = git.names(checkout, "ls-files", "--stage", "-z")
    submodules = {entry.partition("\t")[2] for entry in staged if entry.startswith(git.SUBMODULE)}
    return [entry[3:] for entry in entries if entry[0] != " " or entry[3:] not in submodules]


def in_the_way(checkout: str, base: str, commit: str, attended: bool = False) -> str:
    """Return why the files of the checkout can't be updated from *base* to *commit* now, or "" if they can. With
    *attended*, files that the merge does not touch may have changes.
    """
    own = checkouts.own_directory(checkout)
    if what := work.unfinished_in(own):
        return f"a {what} is unfinished there"
    if os.path.lexists(f"{own}/index.lock"):
        return f"another git is at work there, or was killed: {own}/index.lock"
    touched = set(_names(checkout, "diff-tree", "-r", "-z", "--name-only", "--no-renames", base, commit))
    if names := [name for name in changed(checkout) if not attended or name in touched]:
        return f"it has uncommitted changes: {text.listed(names)}"
    if names := [name for name in work.passed_over(Work(checkout)) if name in touched]:
        return f"it has changes hidden from git: {text.listed(names)}"
    if names := _strange(checkout, base, commit):
        return f"it has untracked files that would be overwritten: {text.listed(names)}"
    tried = git.run(checkout, "read-tree", "-n", "-m", "-u", base, commit)
    return " ".join(tried.stderr.split()).removeprefix("error: ") if tried.returncode else ""


def _strange(checkout: str, base: str, commit: str) -> list[str]:
    """Return the files of the checkout that git does not track and that *commit* would overwrite, ignored files
    included.
    """
    words = ("diff-tree", "-r", "-z", "--name-only", "--no-renames", "--diff-filter=A", base, commit)
    strangers = []
    for name in _names(checkout, *words):
        parts = name.split("/")
        for place in ("/".join(parts[:end]) for end in range(1, len(parts) + 1)):
            path = f"{checkout}/{place}"
            is_directory = os.path.isdir(path) and not os.path.islink(path)
            if os.path.lexists(path) and (place == name or not is_directory):
                how = ["--others"] if is_directory else ["--cached"]
                listed = _names(checkout, "ls-files", *how, "-z", "--", f":(top,literal){place}")
                strangers += listed if is_directory else [] if listed else [place]
    return list(dict.fromkeys(strangers))


def follow(checkout: str, base: str, commit: str) -> bool:
    """Update the files of the checkout from the commit *base* to *commit*, and return whether that succeeded. An update
    that an earlier process began is finished, and files that somebody changed since are left alone.
    """
    if not is_commit(base) or not all(
        _is_of(checkout, name, (base, commit)) for name in _strange(checkout, base, commit)
    ):
        return False
    step = ("read-tree", "-m", "-u", base, commit)
    # Tried twice: `changed` has git look at all files, so that it knows which are as they were.
    if git.run(checkout, *step).returncode == 0 or not changed(checkout) or git.run(checkout, *step).returncode == 0:
        return True
    if not _is_ours(checkout, base, commit):
        return False
    return git.run(checkout, "read-tree", "--reset", "-u", commit).returncode == 0


def _is_ours(checkout: str, base: str, commit: str) -> bool:
    """Whether every file that differs from *commit* is as in *base*, or is missing. An interrupted update leaves such
    files.
    """
    touched = set(_names(checkout, "diff-tree", "-r", "-z", "--name-only", "--no-renames", base, commit))
    differing = _names(checkout, "diff-files", "-z", "--name-only") + _names(
        checkout, "diff-index", "--cached", "-z", "--name-only", "--no-renames", commit
    )
    stray = set(_names(checkout, "ls-files", "--others", "-z", "--", *sorted(touched))) if touched else set()
    return all(name in touched and _is_of(checkout, name, (base, commit)) for name in {*differing, *stray})


def _is_of(checkout: str, name: str, commits: tuple[str, str]) -> bool:
    """Whether the file is as in one of the commits, or is missing: git removes a file before it writes it anew."""
    if not os.path.lexists(os.path.join(checkout, name)):
        return True
    blob = git.said(checkout, "hash-object", "--", name)
    return blob in [git.said(checkout, "rev-parse", "--verify", "--quiet", f"{commit}:{name}") for commit in commits]


def _names(checkout: str, *words: str) -> list[str]:
    return [name for name in git.run(checkout, *words).stdout.split("\0") if name]
