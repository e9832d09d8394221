"""The change under review: which files and lines changed, and how they were before."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from dataclasses import astuple, dataclass
from functools import cached_property

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


LARGEST = 1 << 20
"""The most bytes of a file that is read."""


class GitFailed(Exception):
    """Raised when git fails; the text is git's own message."""


class Git:
    """Runs git in one directory."""

    def __init__(self, directory: str, environ: Mapping[str, str]) -> None:
        self.directory = directory
        self.environ = {**environ, "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"}

    def writing_to(self, place: str) -> Git:
        """Return a `Git` for the same directory that writes its index and objects to *place* instead of the
        repository.
        """
        objects = os.path.join(place, "objects")
        os.makedirs(objects, exist_ok=True)
        theirs = os.path.join(self.directory, self.line("rev-parse", "--git-path", "objects"))
        own = {"GIT_INDEX_FILE": os.path.join(place, "index"), "GIT_OBJECT_DIRECTORY": objects}
        return Git(self.directory, {**self.environ, **own, "GIT_ALTERNATE_OBJECT_DIRECTORIES": theirs})

    def __call__(self, *words: str, given: bytes | None = None) -> bytes:
        """Run git with *words* as arguments and *given* as standard input, and return the bytes that it prints.

        Raises:
            GitFailed: Git ended with another status than 0.
        """
        # Of a file above the threshold git says only that it differs.
        command = ["git", "-c", "core.fsmonitor=false", "-c", f"core.bigFileThreshold={LARGEST}", *words]
        done = subprocess.run(command, cwd=self.directory, env=self.environ, input=given or b"", capture_output=True)
        if done.returncode:
            raise GitFailed(done.stderr.decode(errors="replace").strip() or f"git {words[0]} failed")
        return done.stdout

    def line(self, *words: str) -> str:
        """Run git and return its stripped output, or "" if git fails."""
        try:
            return self(*words).decode(errors="replace").strip()
        except GitFailed:
            return ""

    def names(self, *words: str) -> list[str]:
        """Run git and return the names that it prints, each of which must end with a NUL."""
        return [os.fsdecode(entry) for entry in self(*words).split(b"\0")[:-1]]

    def listed(self, *patterns: str) -> list[str]:
        """Return the files that match the patterns and that git tracks or would track; without patterns, all of
        them.
        """
        return self.names("ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", *patterns)


_DIFF = ("diff", "-M", "-l2000", "--no-ext-diff", "--no-textconv", "--ignore-submodules=all", "--no-color")
_HUNK = re.compile(rb"@@ -\d+(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")


@dataclass
class ChangedFile:
    """A changed file. *old* is its path before the change; *added* has the numbers of its new lines."""

    path: str
    status: str
    old: str
    added: list[int]
    deleted: int
    size: int

    @cached_property
    def lines(self) -> frozenset[int]:
        """The numbers of the file's new lines."""
        return frozenset(self.added)

    @property
    def read(self) -> bool:
        """Whether the file is one that the review reads: a regular file that is not too large and was not deleted."""
        return 0 <= self.size <= LARGEST and self.status != "D"


@dataclass
class Change:
    """A change of a repository since *base*. `head_tree` has copies of the changed files as they are now, `base_tree`
    as they were before.
    """

    repo: str
    work: str
    base: str
    called: str
    files: list[ChangedFile]

    def __post_init__(self) -> None:
        self.head_tree = os.path.join(self.work, "head")
        self.base_tree = os.path.join(self.work, "base")

    def file(self, path: str) -> ChangedFile | None:
        """Return the changed file with that path, or None if that file did not change."""
        return next((file for file in self.files if file.path == path), None)

    def readable(self) -> list[str]:
        """Return the paths of the changed files whose content can be read, in order."""
        return [file.path for file in self.files if os.path.isfile(os.path.join(self.head_tree, file.path))]


def content(tree: str, path: str) -> str:
    """Return the text of a file below the directory *tree*, or "" if the file can't be read."""
    try:
        with open(os.path.join(tree, path), encoding="utf-8", errors="replace", newline="") as file:
            return file.read()
    except OSError:
        return ""


def collect(repo: str, work: str, asked: str, environ: Mapping[str, str]) -> Change:
    """Collect what changed in the checkout since the revision *asked*, with uncommitted and untracked files.

    If *asked* is empty, collect what changed since the branch left the default branch, or else in the last commit.
    Nothing is written to the repository, because git gets an index of its own.

    Raises:
        GitFailed: There is no such revision, or git can't read the repository.
    """
    os.makedirs(work, exist_ok=True)
    git = Git(repo, environ)
    _copy_index(git, work)
    git = git.writing_to(work)
    base, called = _base(git, asked)
    git("add", "--intent-to-add", "--", ".")
    change = Change(repo, work, base, called, sorted(_files(git, repo, base), key=lambda file: file.path))
    for file in change.files:
        if file.read:
            _keep(git, change, file)
    save(change)
    return change


def _copy_index(git: Git, work: str) -> None:
    """Copy the index of the repository to *work*. With `add --intent-to-add` on the copy, git finds renames to
    untracked files.
    """
    copy = os.path.join(work, "index")
    own = os.path.join(git.directory, os.fsdecode(git("rev-parse", "--git-path", "index")).rstrip("\n"))
    if os.path.isfile(own):
        shutil.copy2(own, copy)  # with its time, by which git knows which files may have changed
    elif os.path.exists(copy):
        os.unlink(copy)


def _base(git: Git, asked: str) -> tuple[str, str]:
    """Return the revision to compare with, and the name that the report has for it."""
    if asked:
        revision = "" if asked.startswith("-") else git.line("rev-parse", "--verify", "--quiet", f"{asked}^{{tree}}")
        if not revision:
            raise GitFailed(f"base: there is no revision {asked!r}")
        return revision, asked
    head, main = git.line("rev-parse", "--verify", "--quiet", "HEAD"), _default_branch(git)
    fork = git.line("merge-base", "HEAD", main) if head and main and main != head else ""
    if fork and fork != head:
        return fork, "the branch left the default branch"
    if parent := git.line("rev-parse", "--verify", "--quiet", "HEAD~1"):
        return parent, "the commit before the last"
    return git("hash-object", "-t", "tree", "--stdin", given=b"").decode().strip(), "nothing"


def _default_branch(git: Git) -> str:
    head = git.line("symbolic-ref", "--quiet", "--short", "refs/remotes/origin/HEAD")
    names = [head, "main", "master"] if head else ["main", "master"]
    revisions = (git.line("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}") for name in names)
    return next(filter(None, revisions), "")


def _files(git: Git, repo: str, base: str) -> Iterator[ChangedFile]:
    statuses = _statuses(git, base)
    for (path, (status, old)), chunk in zip(statuses.items(), _diffs(git, base, list(statuses)), strict=True):
        place = os.path.join(repo, path)
        size = os.path.getsize(place) if os.path.isfile(place) and not os.path.islink(place) else -1
        added: list[int] = []
        deleted = 0
        for line in chunk.split(b"\n"):
            if hunk := _HUNK.match(line):
                deleted += int(hunk[1] or 1)
                added += range(int(hunk[2]), int(hunk[2]) + int(hunk[3] or 1))
        yield ChangedFile(path, status, old, added, deleted, size)


def _statuses(git: Git, base: str) -> dict[str, tuple[str, str]]:
    """Return for each changed path git's letter for the change, and the path before the change."""
    words = git.names(*_DIFF, "--name-status", "-z", base, "--")
    statuses: dict[str, tuple[str, str]] = {}
    while words:
        status, old = words.pop(0)[0], words.pop(0)
        path = words.pop(0) if status in "RC" else old
        is_unmerged = "U" in (status, statuses.get(path, ("",))[0])
        statuses[path] = ("U" if is_unmerged else status, old)
    return statuses


def _diffs(git: Git, base: str, paths: list[str]) -> list[bytes]:
    """Return the diff of each path, without context lines."""
    diffs = git(*_DIFF, "-U0", base, "--").split(b"\ndiff --git ")
    if len(diffs) == len(paths):
        return diffs
    # A type changed, or a file is in conflict: then git prints two diffs of a path, or none.
    return [git("--literal-pathspecs", *_DIFF, "-U0", base, "--", path) for path in paths]


def _keep(git: Git, change: Change, file: ChangedFile) -> None:
    """Store the old and the new version of the file, both under its new path, so that tools can compare them."""
    with open(os.path.join(change.repo, file.path), "rb") as source:
        data = source.read()
    if b"\0" in data[:8000]:
        return
    _write(os.path.join(change.head_tree, file.path), data)
    if file.status in "MR":
        try:
            _write(os.path.join(change.base_tree, file.path), git("cat-file", "blob", f"{change.base}:{file.old}"))
        except GitFailed:  # it was a submodule or a link
            return


def _write(path: str, data: bytes) -> None:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(data)


def save(change: Change) -> None:
    """Store the change in its work directory for the checks, which are separate processes."""
    rows = [astuple(file) for file in change.files]
    with open(os.path.join(change.work, "change.json"), "w", encoding="utf-8") as out:
        json.dump([change.repo, change.base, change.called, rows], out)


def load(work: str) -> Change:
    """Return the change that `collect` stored in *work*."""
    with open(os.path.join(work, "change.json"), encoding="utf-8") as file:
        repo, base, called, rows = json.load(file)
    return Change(repo, work, base, called, [ChangedFile(*row) for row in rows])
