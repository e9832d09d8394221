"""Merge two commits without a checkout, move a branch to the result, and update the checkout of that branch.

The merge takes no lock and leaves nothing half done. The new commit has no effect until a branch moves to it. A branch
moves to the new commit only if it is still at the commit that was merged.
"""

from __future__ import annotations

import os
import shlex
import time

from teams_cli import errors, text
from teams_cli.agents import checkouts, git, work
from teams_cli.agents.work import Work
from teams_cli.store.files import disk

_HEX = frozenset("0123456789abcdef")
_LENGTHS = (40, 64)
"""The lengths of the hashes of commits: SHA-1 and SHA-256."""
_TRIES, _PAUSE = 10, 0.05
"""Number of attempts to move a branch, or to lock an index, and the seconds between two attempts."""
_HOOKS = ("pre-merge-commit", "prepare-commit-msg", "commit-msg")


class Clash(Exception):
    """Raised when two commits conflict, in *files*."""

    def __init__(self, files: list[str]) -> None:
        super().__init__(", ".join(files))
        self.files = files


def tip_of(repository: str, branch: str) -> str:
    """Return the commit of the branch; "" if there is no branch of exactly that name."""
    return git.output_of(repository, "show-ref", "--verify", "--hash", f"refs/heads/{branch}")


def is_commit(commit: str) -> bool:
    """Whether *commit* is the full hash of a commit. False for the name of a branch, because a branch may move, and for
    text that git would take as an option.
    """
    return len(commit) in _LENGTHS and _HEX.issuperset(commit)


def holds(repository: str, tip: str, commit: str) -> bool:
    """Whether *commit* is the commit *tip* or an ancestor of *tip*."""
    if not (is_commit(tip) and is_commit(commit)):  # git could take another text as an option
        return False
    return git.run(repository, "merge-base", "--is-ancestor", commit, tip).returncode == 0


def is_on_branch(repository: str, branch: str, commit: str) -> bool:
    """Whether the branch exists and contains the commit."""
    return holds(repository, tip_of(repository, branch), commit)


def is_same(repository: str, first: str, second: str) -> bool:
    """Whether two commits hold the same files. Their trees are compared, because a configured diff can hide changes."""
    if not (is_commit(first) and is_commit(second)):
        return False
    trees = git.output_of(repository, "rev-parse", f"{first}^{{tree}}", f"{second}^{{tree}}").split()
    return len(trees) == 2 and trees[0] == trees[1]


def make_merge(repository: str, base: str, head: str, message: str) -> str:
    """Return a new merge commit of *base* and *head*. It is signed if the repository's configuration requires this. No
    branch contains the new commit yet.

    Raises:
        Clash: The two commits conflict.
        StorageFailed: git can't merge the commits, or can't sign the result.
    """
    done = git.run(repository, "merge-tree", "--write-tree", "--name-only", "--no-messages", "-z", base, head)
    if done.returncode > 1 or not done.stdout:  # also if they have no common ancestor
        raise errors.StorageFailed(f"git merge-tree: {git.why_failed(done)}", f"Try it in {repository}.")
    tree, *files = [part for part in done.stdout.split("\0") if part]
    if done.returncode == 1:
        raise Clash(sorted(set(files)))
    return commit_merge(repository, tree, base, head, message)


def commit_merge(repository: str, tree: str, base: str, head: str, message: str) -> str:
    """Return a new merge commit of *base* and *head* with the files of *tree*. It is signed if the repository's
    configuration requires this.

    Raises:
        StorageFailed: git can't sign the commit.
    """
    is_signed = git.output_of(repository, "config", "--type=bool", "commit.gpgSign") == "true"
    words = ("commit-tree", tree, "-p", base, "-p", head, *(("-S",) if is_signed else ()), "-m", message)
    commit = git.output_of(repository, *words)  # fails if no committer is configured
    return commit or git.must(repository, *words, variables=git.NOBODY).strip()


def has_hooks(repository: str) -> bool:
    """Whether the repository has hooks that check merges."""
    directory = git.must(repository, "rev-parse", "--path-format=absolute", "--git-path", "hooks").removesuffix("\n")
    return any(os.access(os.path.join(directory, name), os.X_OK) for name in _HOOKS)


def merge_in_checkout(path: str, repository: str, base: str, head: str, message: str) -> str:
    """Return a new merge commit of *base* and *head*, made in a temporary checkout at *path*, so that the repository's
    hooks run.

    Raises:
        Clash: The two commits conflict.
        StorageFailed: A hook refuses, or git can't merge the commits.
    """
    try:
        git.must(repository, "worktree", "add", "--quiet", "--detach", path, base)
        done = git.run(path, "merge", "--no-ff", "--no-edit", "-m", message, head)
        if done.returncode:
            if files := git.names(path, "diff", "--name-only", "--diff-filter=U", "-z"):
                raise Clash(sorted(set(files)))
            why = f"a hook of the repository may have refused it: {(done.stderr or done.stdout).strip()}"
            raise errors.StorageFailed(why, f"Look in {repository}.")
        return git.must(path, "rev-parse", "HEAD").strip()
    finally:
        git.run(repository, "worktree", "remove", "--force", "--force", path)  # twice: even if it is locked


def move(repository: str, branch: str, base: str, commit: str, why: str) -> bool:
    """Move the branch to the commit if the branch is still at *base*. Returns whether it was moved. git records *why*
    in the reflog of the branch.

    Raises:
        Conflict: The branch is checked out in several places, or is being rebased.
        StorageFailed: git can't move the branch, for example because a killed process left a lock.
    """
    refuse_unfollowed(repository, branch)
    for _ in range(_TRIES):
        done = git.run(repository, "update-ref", "-m", why, f"refs/heads/{branch}", commit, base)
        if done.returncode == 0:
            return True
        if tip_of(repository, branch) != base:
            return False
        time.sleep(_PAUSE)  # another git may hold the lock of the branch
    raise errors.StorageFailed(f"git can't move {branch}: {done.stderr.strip()}", f"Look in {repository}.")


def refuse_unfollowed(repository: str, branch: str) -> None:
    """Refuse to move a branch that is checked out in several places: the files of only one checkout would be updated,
    and a commit in another would undo the merge. Refuse it also while the branch is being rebased, because
    `git rebase --abort` would move the branch back. During a rebase, `git worktree list` does not show the branch as
    checked out. Refuse it also if it is checked out, but git does not say where.
    """
    reference = f"refs/heads/{branch}"
    paths: list[str] = []
    for entry in "\n".join(git.worktrees(repository)).split("\n\n"):
        path, *attributes = entry.removeprefix("worktree ").split("\n")
        if any(line.startswith("prunable") for line in attributes):  # its directory was deleted
            continue
        if f"branch {reference}" in attributes:
            if os.path.isdir(path) and not os.path.lexists(f"{path}/.git"):
                command = f"git -C {shlex.quote(path)} config core.worktree DIRECTORY"
                raise errors.Conflict(f"git does not say where {branch} is checked out", f"Say it: {command}")
            paths.append(path)
        git_directory = checkouts.git_directory(path)
        for name in ("rebase-merge", "rebase-apply"):
            if checkouts.lines_of(f"{git_directory}/{name}/head-name") == [reference]:
                command = f"git -C {shlex.quote(path)} rebase --continue"
                raise errors.Conflict(
                    f"{path}: a rebase of {branch} is unfinished there", f"Finish it, or abort it: {command}"
                )
    if len(paths) > 1:
        command = f"git -C {shlex.quote(paths[-1])} switch --detach"
        raise errors.Conflict(
            f"{branch} is checked out in {' and '.join(paths)}, and only one of them would follow: run {command}",
            "Then repeat the command.",
        )


def checked_out(repository: str, branch: str) -> str:
    """Return the checkout in which the branch is checked out; "" if there is none."""
    checkout = ""
    for line in git.worktrees(repository):
        if line.startswith("worktree "):
            checkout = line.removeprefix("worktree ")
        elif line == f"branch refs/heads/{branch}":
            return checkout
    return ""


def changed(checkout: str) -> list[str]:
    """Return the files of the checkout that differ from its commit. A submodule counts only if a new commit of it is
    staged. If it merely has another commit checked out, it does not hinder a merge.
    """
    entries = git.names(checkout, *git.STATUS, "--untracked-files=no")
    staged = git.names(checkout, "ls-files", "--stage", "-z")
    submodules = {entry.partition("\t")[2] for entry in staged if entry.startswith(git.SUBMODULE)}
    # An entry is two letters, a blank and the name. Its first letter is a blank if nothing is staged.
    return [entry[3:] for entry in entries if entry[0] != " " or entry[3:] not in submodules]


def in_the_way(checkout: str, base: str, commit: str, attended: bool = False) -> str:
    """Return why the files of the checkout can't be updated from *base* to *commit* now, or "" if they can be updated.
    *attended* says that somebody waits for the outcome: then a changed file hinders the update only if the file differs
    between the two commits. Without *attended*, every changed file does.
    """
    git_directory = checkouts.git_directory(checkout)
    if operation := work.unfinished_in(git_directory):
        return f"a {operation} is unfinished there"
    if _is_locked(checkout):
        return f"another git is at work there, or was killed: {git_directory}/index.lock"
    touched = _differing_files(checkout, base, commit)
    if hindering := [name for name in changed(checkout) if not attended or name in touched]:
        return f"it has uncommitted changes: {text.listed(hindering)}"
    if hindering := [name for name in work.hidden_by_flags(Work(checkout)) if name in touched]:
        return f"it has changes hidden from git: {text.listed(hindering)}"
    if hindering := _untracked_in_the_way(checkout, base, commit):
        return f"it has untracked files that would be overwritten: {text.listed(hindering)}"
    if hindering := _submodules_in_the_way(checkout, base, commit):
        commands = [f"git -C {shlex.quote(checkout)} submodule deinit {shlex.quote(name)}" for name in hindering]
        return f"files would replace submodules that are checked out there: {'; '.join(commands)}"
    # With -n git changes nothing, and only says whether it could update the files.
    trial = git.run(checkout, "read-tree", "-n", "-m", "-u", base, commit)
    return " ".join(trial.stderr.split()).removeprefix("error: ") if trial.returncode else ""


def _lock_of(checkout: str) -> str:
    return f"{checkouts.git_directory(checkout)}/index.lock"


def _is_locked(checkout: str) -> bool:
    """Whether another git has locked the index of the checkout, and does not unlock it soon. An editor locks it for a
    moment to show the changed files.
    """
    for _ in range(_TRIES):
        if not os.path.lexists(_lock_of(checkout)):
            return False
        time.sleep(_PAUSE)
    return True


def _differing_files(checkout: str, base: str, commit: str, *options: str) -> set[str]:
    words = ("diff-tree", "-r", "-z", "--name-only", "--no-renames", "--ignore-submodules=none")
    return set(_names(checkout, *words, *options, base, commit))


def _untracked_in_the_way(checkout: str, base: str, commit: str) -> list[str]:
    """Return the untracked files of the checkout that *commit* would overwrite, ignored files included."""
    untracked: list[str] = []
    for name in sorted(_differing_files(checkout, base, commit, "--diff-filter=A")):
        parts = name.split("/")
        # A file may also be where the commit has a directory above the new file.
        paths = ["/".join(parts[:end]) for end in range(1, len(parts) + 1)]
        for path in paths:
            full_path, pathspec = f"{checkout}/{path}", f":(top,literal){path}"
            if not os.path.lexists(full_path):  # nothing is in the way there
                continue
            if os.path.islink(full_path) or not os.path.isdir(full_path):
                if not _names(checkout, "ls-files", "--cached", "-z", "--", pathspec):
                    untracked.append(path)
            elif path == name:  # a directory is where the new file is to be
                untracked += _names(checkout, "ls-files", "--others", "-z", "--", pathspec)
    return list(dict.fromkeys(untracked))


def _submodules_in_the_way(checkout: str, base: str, commit: str) -> list[str]:
    """Return the submodules that *commit* replaces with a file or a link, if files are checked out there. git would
    delete everything in them, even what nobody has committed.
    """
    replaced = []
    for name in sorted(_differing_files(checkout, base, commit, "--diff-filter=T")):
        path = os.path.join(checkout, name)
        if not os.path.islink(path) and disk.names_in(path):
            replaced.append(name)
    return replaced


def follow(checkout: str, base: str, commit: str) -> bool:
    """Update the files of the checkout from the commit *base* to *commit*, or finish an update that an earlier process
    began. Returns False if the update fails, for example because somebody changed one of the files meanwhile.
    """
    if not is_commit(base):  # git could not name the commit before the update
        return False
    for name in _untracked_in_the_way(checkout, base, commit):
        if not _is_missing_or_of(checkout, name, (base, commit)):
            return False
    if _submodules_in_the_way(checkout, base, commit):
        return False
    update = ("read-tree", "-m", "-u", base, commit)
    for _ in range(_TRIES):
        if git.run(checkout, *update).returncode == 0:
            return True
        if not os.path.lexists(_lock_of(checkout)):
            break
        time.sleep(_PAUSE)
    # `changed` has git look at all files again, so that the second try knows which files are unchanged.
    if not changed(checkout):  # an earlier process finished the update
        return True
    if git.run(checkout, *update).returncode == 0:
        return True
    # Each file that still differs must be one that an interrupted update from *base* to *commit* has left behind.
    touched = _differing_files(checkout, base, commit)
    differing = set(_names(checkout, "diff-files", "-z", "--name-only"))
    differing.update(_names(checkout, "diff-index", "--cached", "-z", "--name-only", "--no-renames", commit))
    if touched:
        differing.update(_names(checkout, "ls-files", "--others", "-z", "--", *sorted(touched)))
    for name in differing:
        if name not in touched or not _is_missing_or_of(checkout, name, (base, commit)):
            return False
    return git.run(checkout, "read-tree", "--reset", "-u", commit).returncode == 0


def _is_missing_or_of(checkout: str, name: str, commits: tuple[str, str]) -> bool:
    """Whether the file or symbolic link *name* is missing, or has the content that it has in one of the *commits*. An
    interrupted update may leave it missing, because git removes a file before it writes the new content.
    """
    path = os.path.join(checkout, name)
    if not os.path.lexists(path):
        return True
    if os.path.islink(path):  # of a link, git stores the target
        blob = git.run(checkout, "hash-object", "--stdin", stdin=os.readlink(path)).stdout.strip()
    else:
        blob = git.output_of(checkout, "hash-object", "--", name)
    objects = [f"{commit}:{name}" for commit in commits]
    stored = [git.output_of(checkout, "rev-parse", "--verify", "--quiet", path) for path in objects]
    return blob != "" and blob in stored  # a directory has no blob, nor has a commit without the file


def _names(checkout: str, *words: str) -> list[str]:
    return [name for name in git.run(checkout, *words).stdout.split("\0") if name]
