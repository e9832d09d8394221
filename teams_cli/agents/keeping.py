"""Kept work: before a worktree is removed, everything in it becomes one commit below `refs/teams/kept`.

The tree of the commit has the files. Its parents are HEAD, the staged files, every other commit that the worktree
names, and a commit made in the same way for each nested repository. Its message says which is which, as JSON, so that
the worktree can be restored.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import md5
from tempfile import mkdtemp
from typing import Any

from teams_cli import errors
from teams_cli.agents import checkouts, git
from teams_cli.agents import work as works
from teams_cli.agents.checkouts import Origin
from teams_cli.agents.work import Work
from teams_cli.clock import rfc3339
from teams_cli.store.contract import Store
from teams_cli.store.files import disk

PREFIX = "refs/teams/kept"
_MOST_KEPT = 1_000_000
_FETCH = ("-c", "protocol.version=2", "fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-auto-maintenance")


@dataclass
class Kept:
    """The kept work of a removed worktree: its repository, reference and commit, when the worktree was removed (*at*,
    in seconds since 1970), and the JSON *about* it.
    """

    repository: str
    ref: str
    commit: str
    at: int
    about: dict[str, Any]

    def __post_init__(self) -> None:
        self.team, self.agent = self.ref.split("/")[3:5]

    def to_json(self) -> dict[str, Any]:
        """Return the kept work as `teams worktree list --kept --json` prints it."""
        return {
            "ref": self.ref,
            "team": self.team,
            "agent": self.agent,
            "at": rfc3339(datetime.fromtimestamp(self.at, UTC)),
            "holds": self.about.get("holds", []),
            "repository": self.repository,
            "commit": self.commit,
        }


def draft(work: Work) -> str:
    """Return a new commit of everything in the checkout as it is before a change. No reference names the commit yet."""
    return _commit(work, "Kept: what was there before", {})


def put_back(work: Work, draft: str) -> None:
    """Restore every file of the draft. Nested repositories, and files that were added since the draft, stay."""
    names = work.git("diff-tree", "-r", "-z", "--name-only", "--no-renames", "--diff-filter=DMT", draft, tree_of(work))
    if names:
        words = ("restore", f"--source={draft}", "--worktree", "--ignore-skip-worktree-bits", "--no-recurse-submodules")
        work.git(*words, "--pathspec-from-file=-", "--pathspec-file-nul", given=names, GIT_LITERAL_PATHSPECS="1")


def keep(store: Store, team: str, agent: str, work: Work, about: dict[str, Any], before: Sequence[str] = ()) -> str:
    """Keep everything in the worktree, and the drafts in *before*. Returns the reference of the kept commit.

    Raises:
        Conflict: git can't keep it, so the worktree must not be removed.
    """
    try:
        _note_repository(store, work.store)
        commit = _commit(work, f"Kept: the work of {agent} in {team}", {**about, "holds": work.told()}, before)
        listed = work.git("for-each-ref", "--format=%(refname)", f"{PREFIX}/{team}/{agent}/").split()
        taken = [int(end) for name in listed if (end := name.rpartition("/")[2]).isdigit()]
        for number in range(max(taken, default=0) + 1, _MOST_KEPT):
            ref = f"{PREFIX}/{team}/{agent}/{number}"
            done = git.run(work.path, "update-ref", ref, commit, "0" * len(commit))
            if done.returncode == 0:
                return ref
            if git.run(work.path, "show-ref", "--verify", "--quiet", ref).returncode:
                raise errors.StorageFailed(f"git update-ref: {done.stderr.strip()}", f"Look in {work.store}.")
    except errors.TeamsError as problem:
        raise errors.Conflict(
            f"{work.path} can't be kept, so it is not removed: {problem.message}",
            "Fix what git names, and repeat the command. Was the repository moved? There: git worktree repair PATH",
        ) from None
    raise errors.Conflict(f"{agent} has too much kept work", "See: teams worktree list --kept")


def _commit(work: Work, title: str, about: dict[str, Any], before: Sequence[str] = ()) -> str:
    """Return one commit in the store of the repository from which everything in the checkout can be restored."""
    if work.problem:
        raise errors.StorageFailed(work.problem, f"Look in {work.path}.")
    nested = {one.name: (one, _taken_in(work, one)) for one in work.nested if one.state != "empty"}
    staged = "" if work.bare else _staged(work)
    stages = [_made(work, staged, "Staged", [work.head] * bool(work.head))] if staged else []
    tree = tree_of(work)
    others = _independent(work, works.tips(work), work.head)
    parents = [
        *([work.head] if work.head else []),
        *stages,
        *others,
        *(commit for _, commit in nested.values()),
        *before,
    ]
    words = ("for-each-ref", "--format=%(refname) %(objectname)", "refs/heads", "refs/tags")
    references = work.git(*words) if work.has_store else ""
    about = {
        **about,
        "head": work.head,
        "branch": work.branch,
        "staged": {"0": stages[0]} if stages else {},
        "stash": work.stashed,
        "bare": work.bare,
        "refs": dict(line.split(" ") for line in references.splitlines()),
        "nested": {name: commit for name, (_, commit) in nested.items()},
    }
    return _made(work, tree, f"{title}\n\n{json.dumps(about)}", list(dict.fromkeys(parents)))


def _made(work: Work, tree: str, message: str, parents: Sequence[str]) -> str:
    words = [word for parent in parents for word in ("-p", parent)]
    return work.git("commit-tree", tree, *words, given=message, **git.NOBODY).strip()


def _taken_in(work: Work, nested: Work) -> str:
    """Return a commit of everything in the repository *nested*, fetched into the repository around it."""
    commit = _commit(nested, f"Kept: {json.dumps(nested.name)}", {})
    if nested.store != work.store:
        work.git(*_FETCH, "--no-recurse-submodules", nested.store, commit)
    return commit


def _independent(work: Work, tips: Sequence[str], head: str) -> list[str]:
    """Return the tips that are reachable neither from HEAD nor from another tip."""
    if not tips:
        return []
    asked = "\n".join([*tips, *([f"^{head}"] if head else []), ""])
    lines = [line.split() for line in work.git("rev-list", "--parents", "--stdin", given=asked).splitlines()]
    heads = {commit for commit, *_ in lines} & set(tips)
    return sorted(heads - {parent for _, *parents in lines for parent in parents})


def _staged(work: Work) -> str:
    """Return the staged files as a git tree, or "" if HEAD has the same files. Files with an unresolved conflict are
    taken from HEAD: the sides of the conflict are in commits, and the beginning of a resolution is in the working file.
    """
    entries = [entry.partition("\t") for entry in work.names("ls-files", "--stage", "-z")]
    resolved = [(about.rpartition(" ")[0], name) for about, _, name in entries if about.endswith(" 0")]
    with _Index(work) as index:
        if work.head and len(resolved) < len(entries):
            index.git("read-tree", work.head)
        index.put(f"{about}\t{name}" for about, name in resolved)
        tree = index.tree()
    head = work.git("rev-parse", f"{work.head}^{{tree}}").strip() if work.head else ""
    return tree if entries and tree != head else ""


class _Index:
    """A git index for a `with` block, separate from the index of the checkout and empty at first."""

    def __init__(self, work: Work) -> None:
        self.work = work

    def __enter__(self) -> _Index:
        self._place = mkdtemp(prefix="teams-")
        return self

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self._place, ignore_errors=True)

    def git(self, *words: str, given: str | None = None, **variables: str) -> str:
        return self.work.git(*words, given=given, GIT_INDEX_FILE=f"{self._place}/index", **variables)

    def put(self, lines: Iterator[str]) -> None:
        """Add entries to the index; each line is `MODE BLOB\\tNAME`."""
        if given := "".join(f"{line}\0" for line in lines):
            self.git("update-index", "--add", "--replace", "-z", "--index-info", given=given)

    def tree(self) -> str:
        return self.git("write-tree").strip()


def tree_of(work: Work) -> str:
    """Return the files of the checkout as a git tree, including files that git was told to skip. A nested repository
    becomes a link to its HEAD. The index of the checkout is not changed.
    """
    with _Index(work) as index:
        if work.bare:
            return index.tree()
        if work.head:
            index.git("read-tree", work.head)
        apart = [f":(exclude,top,literal){one.name}" for one in work.nested if not one.bare]
        index.git("add", "--all", "--sparse", "--", ".", *apart)
        if extra := [name for name in {*work.hidden, *work.ignored} if os.path.lexists(f"{work.path}/{name}")]:
            words = ("add", "--force", "--sparse", "--pathspec-from-file=-", "--pathspec-file-nul")
            index.git(*words, given="".join(f"{name}\0" for name in extra), GIT_LITERAL_PATHSPECS="1")
        index.put(_not_checked_out(work))
        index.put(f"{git.SUBMODULE} {one.head}\t{one.name}" for one in work.nested if one.head and not one.bare)
        return index.tree()


def _not_checked_out(work: Work) -> Iterator[str]:
    """Yield the index entries of files that a sparse checkout leaves out."""
    absent = {
        entry[2:]
        for entry in work.names("ls-files", "-v", "-z")
        if entry[:1] in "Ss" and not os.path.lexists(f"{work.path}/{entry[2:]}")
    }
    for line in work.names("ls-files", "--stage", "-z") if absent else ():
        about, _, name = line.partition("\t")
        if name in absent:
            yield f"{about.rpartition(' ')[0]}\t{name}"


def _note_repository(store: Store, repository: str) -> None:
    digest = md5(os.fsencode(repository), usedforsecurity=False).hexdigest()
    path = f"{store.root}/kept/{digest}"
    if not os.path.lexists(path):
        disk.prepare_root(store.root)
        disk.make_directories(os.path.dirname(path), store.root)
        disk.commit(disk.write_temp(f"{store.root}/tmp", os.fsencode(repository)), path)


def all_of(store: Store, team: str = "") -> list[Kept]:
    """Return the kept work in the repositories of this machine, oldest first; with *team*, only that of the team."""
    every: list[Kept] = []
    for name in disk.names_in(f"{store.root}/kept"):
        repository = os.fsdecode(disk.read_file(f"{store.root}/kept/{name}"))
        if os.path.isdir(repository):
            every += _kept_in(repository, f"{PREFIX}/{team}/" if team else f"{PREFIX}/")
    return sorted(every, key=lambda one: (one.at, one.ref))


def _kept_in(repository: str, pattern: str) -> Iterator[Kept]:
    form = "--format=%(refname)%00%(objectname)%00%(committerdate:unix)%00%(contents:body)%01"
    printed = git.run(repository, "for-each-ref", form, pattern, variables={"GIT_DIR": repository}).stdout
    for entry in printed.split("\x01\n"):
        ref, _, rest = entry.partition("\0")
        if rest:
            commit, at, body = rest.split("\0", 2)
            yield Kept(repository, ref, commit, int(at), _parsed(body))


def _parsed(body: str) -> dict[str, Any]:
    try:
        about = json.loads(body)
    except ValueError:
        return {}
    return about if isinstance(about, dict) else {}


def find(store: Store, ref: str, directory: str) -> Kept:
    """Return the kept work that *ref* names, in a repository recorded on this machine or the one around *directory*.

    Raises:
        NotFound: There is none.
    """
    here = git.said(directory, "rev-parse", "--path-format=absolute", "--git-common-dir") if directory else ""
    name = ref if ref.startswith("refs/") else f"{PREFIX}/{ref}"
    every: list[Kept] = [*(_kept_in(os.path.realpath(here), f"{PREFIX}/") if here else ()), *all_of(store)]
    for one in every:
        if one.ref == name:
            return one
    raise errors.NotFound(f"there is no kept work {ref!r}", "See: teams worktree list --kept")


def forget(kept: Kept) -> None:
    """Remove kept work for good, unless its reference changed meanwhile."""
    git.must(kept.repository, "update-ref", "-d", kept.ref, kept.commit, variables={"GIT_DIR": kept.repository})


def bring_back(kept: Kept, path: str, branch: str) -> None:
    """Make a worktree at *path* on a new *branch*, with all that was kept: files, index and nested repositories.

    Raises:
        StorageFailed: git can't make it; the work stays kept.
    """
    about = kept.about
    start = about.get("head") or kept.commit
    git.must(
        kept.repository,
        *("worktree", "add", "--quiet", "--no-checkout", "-b", branch, path, start),
        variables={"GIT_DIR": kept.repository},
    )
    checkouts.note(path, Origin(**(about.get("origin") or {})))
    _fill(path, kept.commit, about)


def _fill(path: str, commit: str, about: dict[str, Any]) -> None:
    """Restore the files, the index and the nested repositories of a checkout."""
    git.must(path, "read-tree", "--reset", "-u", commit)
    for name, nested in about.get("nested", {}).items():
        about_nested = _parsed(git.must(path, "show", "--no-patch", "--format=%b", nested))
        _bring_back_nested(path, f"{path}/{name}", nested, about_nested)
    staged = about.get("staged", {})
    git.must(path, "read-tree", staged["0"] if "0" in staged else about.get("head") or "--empty")
    git.run(path, "update-index", "--quiet", "--refresh")


def _bring_back_nested(around: str, path: str, commit: str, about: dict[str, Any]) -> None:
    place = path if not about.get("bare") else f"{around}/{os.path.basename(path)}.restored"
    os.makedirs(place, exist_ok=True)
    git.must(place, "init", "--quiet")
    git.must(place, *_FETCH, "--no-recurse-submodules", git.common_directory(around), commit)
    for name, target in about.get("refs", {}).items():
        git.run(place, "update-ref", name, target)
    for stashed in reversed(about.get("stash", [])):
        git.run(place, "stash", "store", "-m", "kept", stashed)
    git.must(place, "update-ref", f"{PREFIX}/here", commit)
    if about.get("branch"):
        git.must(place, "symbolic-ref", "HEAD", f"refs/heads/{about['branch']}")
        if about.get("head"):
            git.must(place, "update-ref", f"refs/heads/{about['branch']}", about["head"])
    elif about.get("head"):
        git.must(place, "update-ref", "--no-deref", "HEAD", about["head"])
    _fill(place, commit, about)
    git.must(place, "update-ref", "-d", f"{PREFIX}/here")
