"""Submodules: check them out from repositories of this machine. Before a merge, copy their new commits from worktrees
to the checkout in which the merge is made.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from subprocess import CompletedProcess

from teams_cli import errors
from teams_cli.agents import git
from teams_cli.store.files import disk


def wanted(directory: str, commit: str) -> dict[str, str]:
    """Return the commits of the submodules in *commit*, by the path of the submodule. Empty if *commit* is ""."""
    if not commit:
        return {}
    commits = {}
    for entry in git.names(directory, "ls-tree", "-r", "-z", "--full-tree", commit):
        mode_type_and_hash, _, path = entry.partition("\t")
        if mode_type_and_hash.startswith(f"{git.SUBMODULE} "):
            commits[path] = mode_type_and_hash.split()[2]
    return commits


def fill(tree: str, commit: str) -> list[str]:
    """Check out the submodules of *commit* in its checkout *tree*, and the submodules inside these submodules. They are
    taken from repositories of this machine. Returns the paths of the submodules that no repository of this machine has.
    """
    missing = []
    for path, target in wanted(tree, commit).items():
        directory = f"{tree}/{path}"
        if os.path.isdir(directory) and os.listdir(directory):  # it is checked out already
            continue
        candidates = _stores_for(tree, commit, path)
        store = next((candidate for candidate in candidates if _has_commit(candidate, target)), "")
        if store:
            words = ("clone", "--quiet", "--no-checkout", "--shared", "--", store, directory)
            is_cloned = git.run("/", *words).returncode == 0
            if is_cloned and git.run(directory, "checkout", "--quiet", "--detach", target).returncode == 0:
                missing += [f"{path}/{nested}" for nested in fill(directory, target)]
                continue
            shutil.rmtree(directory, ignore_errors=True)
            os.makedirs(directory, exist_ok=True)
        missing.append(path)
    return missing


def _stores_for(tree: str, commit: str, path: str) -> Iterator[str]:
    """Yield the directories that may have the commits of the submodule at *path* in *commit*: git's data of the
    submodule in the repository or in one of its worktrees, and checkouts of the submodule.
    """
    common = git.common_directory(tree)
    name = _name_of(tree, commit, path)
    repositories = [common, *(f"{common}/worktrees/{worktree}" for worktree in disk.names_in(f"{common}/worktrees"))]
    origin = git.output_of(tree, "config", "remote.origin.url")
    if origin.startswith("/"):  # `fill` cloned the checkout *tree* from there, and the copy stores no submodules
        repositories.append(origin)
    for repository in repositories:
        if os.path.isdir(store := f"{repository}/modules/{name}"):
            yield store
    for line in git.worktrees(tree):
        submodule = f"{line.removeprefix('worktree ')}/{path}"
        if line.startswith("worktree ") and os.path.lexists(f"{submodule}/.git"):
            yield submodule


def _name_of(directory: str, commit: str, path: str) -> str:
    """Return the name of the submodule at *path* in the commit's `.gitmodules`, or *path* if it has no name there."""
    words = ("config", "--blob", f"{commit}:.gitmodules", "--null", "--get-regexp", r"^submodule\..*\.path$")
    for entry in git.run(directory, *words).stdout.split("\0"):
        key, _, configured_path = entry.partition("\n")
        if configured_path == path:
            return key.removeprefix("submodule.").removesuffix(".path")
    return path


def _has_commit(store: str, commit: str) -> bool:
    return _run_git(store, "cat-file", "-e", f"{commit}^{{commit}}").returncode == 0


def _run_git(store: str, *words: str) -> CompletedProcess[str]:
    """Run git in *store*: a checkout of a submodule, or the bare store of a submodule that is not checked out."""
    variables = {} if os.path.lexists(f"{store}/.git") else {"GIT_DIR": store, "GIT_WORK_TREE": store}
    return git.run(store, *words, variables=variables)


@contextmanager
def carried(top: str, base: str, commit: str, branch: str) -> Iterator[None]:
    """For a `with` block, copy the submodule commits that *commit* needs and *base* does not need from the worktrees of
    this machine to the checkout *top*. Each copied commit gets a new branch in its submodule, whose name begins with
    *branch*. If the `with` block fails, the new branches are removed. Commits that no worktree has are skipped.

    Raises:
        Conflict: The checkout lacks one of these submodules, or can't fetch from it.
    """
    created: list[tuple[str, str]] = []
    try:
        _carry(lambda path: _stores_for(top, commit, path), top, base, commit, branch, created)
        yield
    except BaseException:
        for store, reference in created:
            _run_git(store, "update-ref", "-d", reference)
        raise


def _carry(
    stores_for: Callable[[str], Iterable[str]],
    top: str,
    base: str,
    commit: str,
    branch: str,
    created: list[tuple[str, str]],
) -> None:
    """Copy to the checkout *top* the submodule commits that *commit* needs and *base* does not need, each to a new
    branch whose name begins with *branch*. *stores_for* returns, for the path of a submodule, the repositories that may
    have its commits. Each new branch is added to *created* at once, so that it can be removed if a later copy fails.
    """
    commits_before = wanted(top, base)
    for path, target in wanted(top, commit).items():
        if commits_before.get(path) == target:  # *base* needs this commit, too
            continue
        name = _name_of(top, commit, path)
        sources = list(stores_for(path))
        source = next((candidate for candidate in sources if _has_commit(candidate, target)), "")
        if not source:  # no worktree has the commit
            continue
        places = (f"{top}/{path}", f"{git.common_directory(top)}/modules/{name}")
        store = next((place for place in places if _is_store(place)), "")
        if not store:
            if _is_reachable(source, target, "refs/remotes"):  # the remote of the submodule has it for everybody
                continue
            raise errors.Conflict(
                f"{top} lacks the submodule {path}, whose commit {target[:10]} the merge needs",
                f"Run there: git submodule update --init {path}; and repeat the command.",
            )
        if not (_has_commit(store, target) and _is_reachable(store, target)):
            reference = f"refs/heads/{branch}-{target[:12]}"
            fetch = ("fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules")
            if _run_git(store, *fetch, source, f"{target}:{reference}").returncode:
                raise errors.Conflict(
                    f"{store} can't take the commit {target[:10]} of the submodule {path}",
                    f"Bring it there: git fetch {source} {target}; and repeat the command.",
                )
            created.append((store, reference))
        if os.path.lexists(f"{store}/.git"):  # a checkout may have submodules of its own
            inside = partial(_stores_inside, sources, store, target)
            _carry(inside, store, commits_before.get(path, ""), target, branch, created)


def _stores_inside(stores: list[str], top: str, commit: str, path: str) -> list[str]:
    """Return the repositories that may have the commits of the submodule at *path* in *commit*. *commit* is a commit of
    another submodule, which is checked out at *top* and whose own repositories are *stores*.
    """
    name = _name_of(top, commit, path)
    places = [place for store in stores for place in (f"{store}/modules/{name}", f"{store}/{path}")]
    return [place for place in places if _is_store(place)]


def _is_store(place: str) -> bool:
    return os.path.lexists(f"{place}/.git") or os.path.isdir(f"{place}/objects")


def _is_reachable(store: str, commit: str, *references: str) -> bool:
    """Whether a reference of the store contains the commit. If *references* are given, only these count."""
    return bool(_run_git(store, "for-each-ref", "--count=1", "--contains", commit, *references).stdout.strip())
