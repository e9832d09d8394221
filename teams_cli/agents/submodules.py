"""Submodules: check them out from repositories of this machine, and bring their new commits along with a merge."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

from teams_cli import errors
from teams_cli.agents import git
from teams_cli.agents.work import Work
from teams_cli.store.files import disk

TYPE_CHECKING = False
if TYPE_CHECKING:
    import subprocess


def wanted(directory: str, commit: str) -> dict[str, str]:
    """Return the commit of each submodule that *commit* refers to, by the path of the submodule. The result is empty if
    *commit* is empty.
    """
    if not commit:
        return {}
    entries = git.names(directory, "ls-tree", "-r", "-z", "--full-tree", commit)
    split = [entry.partition("\t") for entry in entries if entry.startswith(f"{git.SUBMODULE} ")]
    return {name: about.split()[2] for about, _, name in split}


def fill(tree: str, commit: str) -> list[str]:
    """Check out the submodules of *commit*, which is checked out at *tree*, and the submodules inside them, from
    repositories of this machine. Returns the paths of the submodules that none of these repositories has.
    """
    missing = []
    for place, target in wanted(tree, commit).items():
        path = f"{tree}/{place}"
        if os.path.isdir(path) and os.listdir(path):
            continue
        store = next((one for one in _stores_for(tree, commit, place) if _has(one, target)), "")
        if not store or not _checked_out(store, path, target):
            missing.append(place)
            continue
        missing += [f"{place}/{inside}" for inside in fill(path, target)]
    return missing


def _checked_out(store: str, path: str, commit: str) -> bool:
    made = git.run("/", "clone", "--quiet", "--no-checkout", "--shared", "--", store, path)
    if made.returncode == 0 and git.run(path, "checkout", "--quiet", "--detach", commit).returncode == 0:
        return True
    shutil.rmtree(path, ignore_errors=True)
    os.makedirs(path, exist_ok=True)
    return False


def _stores_for(tree: str, commit: str, place: str) -> Iterator[str]:
    """Yield the directories in which git may have stored the submodule at *place*: those in the repository and its
    worktrees, and the checkouts of the submodule there.
    """
    common = git.common_directory(tree)
    name = _name_of(tree, commit, place)
    owners = [common, *(f"{common}/worktrees/{each}" for each in disk.names_in(f"{common}/worktrees"))]
    yield from (path for owner in owners if os.path.isdir(path := f"{owner}/modules/{name}"))
    source = git.said(tree, "config", "remote.origin.url")  # a submodule that `fill` checked out has none of its own
    if os.path.isdir(path := f"{source}/modules/{name}") if source.startswith("/") else False:
        yield path
    for line in git.worktrees(tree):
        if line.startswith("worktree ") and os.path.lexists(path := f"{line.removeprefix('worktree ')}/{place}/.git"):
            yield os.path.dirname(path)


def _name_of(directory: str, commit: str, place: str) -> str:
    words = ("config", "--blob", f"{commit}:.gitmodules", "--null", "--get-regexp", r"^submodule\..*\.path$")
    for entry in git.run(directory, *words).stdout.split("\0"):
        key, _, path = entry.partition("\n")
        if path == place:
            return key.removeprefix("submodule.").removesuffix(".path")
    return place


def _has(store: str, commit: str) -> bool:
    return _run(store, "cat-file", "-e", f"{commit}^{{commit}}").returncode == 0


def _run(store: str, *words: str) -> subprocess.CompletedProcess[str]:
    own = {} if os.path.lexists(f"{store}/.git") else {"GIT_DIR": store, "GIT_WORK_TREE": store}
    return git.run(store, *words, variables=own)


@contextmanager
def carried(work: Work, top: str, base: str, commit: str, branch: str) -> Iterator[None]:
    """Copy the submodule commits that *commit* needs and *base* did not from the agent's worktree *work* to the
    checkout *top*, each to a new branch of the submodule. If the `with` block fails, these branches are removed.

    Raises:
        Conflict: The checkout lacks one of these submodules, or can't fetch from it.
    """
    made: list[tuple[str, str]] = []
    try:
        _carry(work, top, base, commit, branch, made)
        yield
    except BaseException:
        for store, name in made:
            _run(store, "update-ref", "-d", name)
        raise


def _carry(work: Work, top: str, base: str, commit: str, branch: str, made: list[tuple[str, str]]) -> None:
    ref = f"refs/heads/{branch}"
    before, nested = wanted(top, base), {one.name: one for one in work.nested}
    for place, target in wanted(top, commit).items():
        one = nested.get(place)
        if before.get(place) == target or one is None or one.bare or not _has(one.path, target):
            continue
        places = (f"{top}/{place}", f"{git.common_directory(top)}/modules/{_name_of(top, commit, place)}")
        store = next((p for p in places if os.path.lexists(f"{p}/.git") or os.path.isdir(f"{p}/objects")), "")
        if not store:
            raise errors.Conflict(
                f"{top} lacks the submodule {place}, whose commit {target[:10]} the merge needs",
                f"Run there: git submodule update --init {place}; and repeat the command.",
            )
        words = ("fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules")
        holders = ("for-each-ref", "--count=1", "--contains", target, "--format=%(refname)")
        if not (_has(store, target) and _run(store, *holders).stdout.strip()):
            name = f"{ref}-{target[:12]}"
            if _run(store, *words, one.store, f"{target}:{name}").returncode:
                raise errors.Conflict(
                    f"{store} can't take the commit {target[:10]} of the submodule {place}",
                    f"Bring it there: git fetch {one.store} {target}; and repeat the command.",
                )
            made.append((store, name))
        if os.path.lexists(f"{store}/.git"):
            _carry(one, store, before.get(place, ""), target, branch, made)
