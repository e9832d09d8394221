"""The change under review: which files and lines changed, and what the files were before."""

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
"""The maximum size of a file that is read, in bytes."""


class GitFailed(Exception):
    """Raised when git fails. Its text is the message of git."""


class Git:
    """Runs git in one directory."""

    def __init__(self, directory: str, environ: Mapping[str, str]) -> None:
        self.directory = directory
        self.environ = {**environ, "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"}

    def __call__(self, *arguments: str) -> bytes:
        """Run git with these arguments and no input, and return the bytes that it prints.

        Raises:
            GitFailed: Git ended with an exit status other than 0.
        """
        # For a file above the threshold, git prints only that it differs.
        command = ["git", "-c", "core.fsmonitor=false", "-c", f"core.bigFileThreshold={LARGEST}", *arguments]
        done = subprocess.run(command, cwd=self.directory, env=self.environ, input=b"", capture_output=True)
        if done.returncode:
            raise GitFailed(done.stderr.decode(errors="replace").strip() or f"git {arguments[0]} failed")
        return done.stdout

    def line(self, *arguments: str) -> str:
        """Run git and return its output without surrounding whitespace; "" if git fails."""
        try:
            return self(*arguments).decode(errors="replace").strip()
        except GitFailed:
            return ""

    def names(self, *arguments: str) -> list[str]:
        """Run git and return the names that it prints, each of which must end with a NUL."""
        return [os.fsdecode(entry) for entry in self(*arguments).split(b"\0")[:-1]]

    def listed(self, *patterns: str) -> list[str]:
        """Return the files that git tracks or would track. With *patterns*, return only the files that match one of
        them.
        """
        return self.names("ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", *patterns)


_DIFF = ("diff", "-M", "-l2000", "--no-ext-diff", "--no-textconv", "--ignore-submodules=all", "--no-color")
_HUNK = re.compile(rb"@@ -\d+(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")


@dataclass
class ChangedFile:
    """A changed file. *status* is the letter that git prints for the kind of change, and *old* the path before the
    change. *added* has the numbers of the new lines; *deleted* is the number of removed lines. *size* is -1 if the path
    is not a regular file now.
    """

    path: str
    status: str
    old: str
    added: list[int]
    deleted: int
    size: int

    @cached_property
    def lines(self) -> frozenset[int]:
        """The numbers of the file's new lines, as a set."""
        return frozenset(self.added)


@dataclass
class Change:
    """A change of a repository since the revision *base*, which the report calls *called*. `head_tree` is a directory
    with copies of the changed files as they are now, and `base_tree` is one with copies as they were before.
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
        """Return the paths of the changed files that are in `head_tree`, and so can be read."""
        return [file.path for file in self.files if os.path.isfile(os.path.join(self.head_tree, file.path))]


def content(tree: str, path: str) -> str:
    """Return the text of a file below the directory *tree*, or "" if the file can't be read."""
    try:
        with open(os.path.join(tree, path), encoding="utf-8", errors="replace", newline="") as file:
            return file.read()
    except OSError:
        return ""


def lines_of(text: str) -> list[str]:
    """Return the lines of a text as git counts them. A form feed, for example, does not end a line."""
    return [line.removesuffix("\r") for line in text.removesuffix("\n").split("\n")]


def collect(repo: str, work: str, since: str, environ: Mapping[str, str]) -> Change:
    """Collect what changed in the checkout since the revision *since*. Uncommitted and untracked files are included.

    If *since* is empty, the changes are those since the branch left the default branch or, if it has not left it, those
    since the commit before the last one. The change is stored in *work* for the checks, which are separate processes.
    Nothing is written to the repository.
    """
    os.makedirs(work, exist_ok=True)
    git = Git(repo, environ)
    copy = os.path.join(work, "index")
    index = os.path.join(repo, os.fsdecode(git("rev-parse", "--git-path", "index")).rstrip("\n"))
    if os.path.isfile(index):
        shutil.copy2(index, copy)  # with its time, from which git tells which files may have changed
    elif os.path.exists(copy):
        os.unlink(copy)
    # The copied index and new objects lie in *work*, so that nothing in the repository changes.
    git.environ["GIT_ALTERNATE_OBJECT_DIRECTORIES"] = os.path.join(repo, git.line("rev-parse", "--git-path", "objects"))
    git.environ["GIT_INDEX_FILE"] = copy
    git.environ["GIT_OBJECT_DIRECTORY"] = os.path.join(work, "objects")
    os.makedirs(git.environ["GIT_OBJECT_DIRECTORY"], exist_ok=True)
    base, called = _base(git, since)
    git("add", "--intent-to-add", "--", ".")  # so that untracked files are in the diff, and renames to them are found
    files = sorted(_changed_files(git, repo, base), key=lambda file: file.path)
    change = Change(repo, work, base, called, files)
    for file in files:
        if 0 <= file.size <= LARGEST and file.status != "D":  # a regular file that is not too large
            _copy_versions(git, change, file)
    rows = [astuple(file) for file in change.files]
    with open(os.path.join(work, "change.json"), "w", encoding="utf-8") as out:
        json.dump([repo, base, called, rows], out)
    return change


def _base(git: Git, since: str) -> tuple[str, str]:
    """Return the revision to compare with, and its name in the report. `collect` says how it is chosen."""
    if since:
        # To git, a name with `-` in front is an option.
        if since.startswith("-") or not (revision := _revision(git, f"{since}^{{tree}}")):
            raise GitFailed(f"base: there is no revision {since!r}")
        return revision, since
    head = _revision(git, "HEAD")
    default = git.line("symbolic-ref", "--quiet", "--short", "refs/remotes/origin/HEAD")
    branches = [f"{name}^{{commit}}" for name in (default, "main", "master") if name]
    revisions = (_revision(git, branch) for branch in branches)
    main = next(filter(None, revisions), "")
    if head and main and main != head:
        fork = git.line("merge-base", "HEAD", main)
        if fork and fork != head:
            return fork, "the branch left the default branch"
    if parent := _revision(git, "HEAD~1"):
        return parent, "the commit before the last"
    empty_tree = git("hash-object", "-t", "tree", "--stdin").decode().strip()
    return empty_tree, "nothing"


def _revision(git: Git, name: str) -> str:
    """Return the hash of the revision called *name*; "" if there is no such revision."""
    return git.line("rev-parse", "--verify", "--quiet", name)


def _changed_files(git: Git, repo: str, base: str) -> Iterator[ChangedFile]:
    """Yield the files that differ from the revision *base*, each with the numbers of its changed lines."""
    statuses = _statuses(git, base)
    diffs = git(*_DIFF, "-U0", base, "--").split(b"\ndiff --git ")
    if len(diffs) != len(statuses):
        # A type changed, or a file is in conflict: then git prints two diffs of a path, or none.
        diffs = [git("--literal-pathspecs", *_DIFF, "-U0", base, "--", path) for path in statuses]
    for (path, (status, old)), diff in zip(statuses.items(), diffs, strict=True):
        full_path = os.path.join(repo, path)
        is_regular = os.path.isfile(full_path) and not os.path.islink(full_path)
        size = os.path.getsize(full_path) if is_regular else -1
        added: list[int] = []
        deleted = 0
        for line in diff.split(b"\n"):
            if hunk := _HUNK.match(line):
                deleted += int(hunk[1] or 1)  # git leaves out a count of 1
                added += range(int(hunk[2]), int(hunk[2]) + int(hunk[3] or 1))
        yield ChangedFile(path, status, old, added, deleted, size)


def _statuses(git: Git, base: str) -> dict[str, tuple[str, str]]:
    """Return, for each changed path, the letter of the kind of change, and the path before the change."""
    fields = iter(git.names(*_DIFF, "--name-status", "-z", base, "--"))
    statuses: dict[str, tuple[str, str]] = {}
    for letter_and_score in fields:
        status, old = letter_and_score[0], next(fields)
        path = next(fields) if status in "RC" else old  # of renamed and copied files, git prints both paths
        listed_before = statuses.get(path)  # git lists a path in conflict twice: as U, and as changed
        is_in_conflict = status == "U" or (listed_before is not None and listed_before[0] == "U")
        statuses[path] = ("U" if is_in_conflict else status, old)
    return statuses


def _copy_versions(git: Git, change: Change, file: ChangedFile) -> None:
    """Store the file as it is now in the directory `head_tree`, and as it was before in `base_tree`. Both copies get
    the path that the file has now, so that tools can compare them. A file that is not text is not stored.
    """
    with open(os.path.join(change.repo, file.path), "rb") as source:
        data_by_tree = {change.head_tree: source.read()}
    if b"\0" in data_by_tree[change.head_tree][:8000]:  # it is not text, by the rule of git
        return
    if file.status in "MR":  # modified or renamed
        try:
            data_by_tree[change.base_tree] = git("cat-file", "blob", f"{change.base}:{file.old}")
        except GitFailed:  # it was a submodule or a link
            pass
    for tree, data in data_by_tree.items():
        path = os.path.join(tree, file.path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as target:
            target.write(data)


def load(work: str) -> Change:
    """Return the change that `collect` stored in *work*."""
    with open(os.path.join(work, "change.json"), encoding="utf-8") as file:
        repo, base, called, rows = json.load(file)
    return Change(repo, work, base, called, [ChangedFile(*row) for row in rows])
