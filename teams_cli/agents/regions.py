"""Regions: the files, lines and functions that a worktree changes, committed or not, and where the changes of two
worktrees conflict. Nothing is written to the repository: git puts its new objects into a directory that is removed.
"""

from __future__ import annotations

import os
import re
import shutil
from contextlib import suppress
from typing import NamedTuple

from teams_cli import errors, text
from teams_cli.agents import checkouts, git, work

TYPE_CHECKING = False
if TYPE_CHECKING:
    import ast
    from collections.abc import Iterator, Sequence
    from typing import Any

_CONFLICTS = 1
"""The exit status of `git merge-tree` if the commits conflict."""
_MOST_UNTRACKED = 2000
"""Maximum number of untracked files of a worktree that are compared. If there are more, none is compared, because
somebody probably forgot to ignore a directory.
"""
_LANGUAGES = (
    "*.c cpp,*.h cpp,*.cc cpp,*.cpp cpp,*.hpp cpp,*.cs csharp,*.css css,*.ex elixir,*.exs elixir,*.go golang,"
    "*.java java,*.kt kotlin,*.m objc,*.php php,*.pl perl,*.py python,*.rb ruby,*.rs rust,*.sh bash,*.html html,"
    "*.md markdown"
)
"""Pairs of a file name pattern and git's built-in diff driver, which finds the function around a change in such a file.
"""
_NAMED = re.compile(r"(?:\b(?:class|struct|interface|trait|enum|impl|fn|func|function|def|module|type)\s+)([\w:.$]+)")
"""The name in a line that declares a function or class with a keyword."""
_CALLED = re.compile(r"([\w$~]+)\s*\(")
"""The name in a C-style declaration of a function: the word before the parameters."""
_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@ ?(.*)")
"""The header of a hunk in a diff. Its groups are the first line and the number of lines before the change, the first
line and the number of lines after the change, and the line of code that git shows in the header.
"""


class Change(NamedTuple):
    """A changed place in a file. *old* has the numbers of its first and last line before the change, *new* those after
    the change. If the change only adds lines after the old line N, *old* is (N + 1, N). *symbol* is the function or
    class around the place, "" if none is known.
    """

    old: tuple[int, int]
    new: tuple[int, int]
    symbol: str

    def meets(self, other: Change) -> bool:
        """Whether this change and *other* affect the same or adjacent old lines, so that git can't merge them."""
        return self.old[0] <= other.old[1] + 1 and other.old[0] <= self.old[1] + 1


class Snapshots:
    """Makes commits of the worktrees of one repository, including their uncommitted changes. It must be used in a
    `with` block. The commits are removed at the end of the block.
    """

    def __init__(self, common: str) -> None:
        self.main = common.removesuffix("/.git")
        self._common = common
        self._commits: dict[str, str] = {}

    def __enter__(self) -> Snapshots:
        from tempfile import mkdtemp  # slow to import; only needed with worktrees

        self._directory = mkdtemp(prefix="teams-")
        os.mkdir(f"{self._directory}/objects")
        with open(f"{self._directory}/attributes", "w", encoding="utf-8") as file:
            file.write("\n".join(line.replace(" ", " diff=") for line in _LANGUAGES.split(",")))
        self._variables = {
            "GIT_OBJECT_DIRECTORY": f"{self._directory}/objects",
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": f"{self._common}/objects",
        }
        return self

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self._directory, ignore_errors=True)

    def of(self, worktree: str) -> str:
        """Return a commit of everything in the worktree. The first call makes this commit, and later calls return the
        same commit. If nothing is changed, or a merge or rebase is unfinished, HEAD is returned.
        """
        if worktree in self._commits:
            return self._commits[worktree]
        head = git.must(worktree, "rev-parse", "HEAD").strip()
        git_directory = checkouts.git_directory(worktree)
        changed = git.must(worktree, *git.LOOKING, *git.STATUS)
        if not changed or work.unfinished_in(git_directory):
            self._commits[worktree] = head
            return head
        index = f"{self._directory}/index"  # a copy: the index of the worktree stays as it is
        written_at = os.stat(f"{git_directory}/index").st_mtime_ns
        shutil.copyfile(f"{git_directory}/index", index)
        os.utime(index, ns=(written_at, written_at))  # git re-reads files that are newer than the index
        variables = {**self._variables, "GIT_INDEX_FILE": index}
        untracked = git.names(worktree, *git.LOOKING, "ls-files", "--others", "--exclude-standard", "-z")
        option = "--update" if len(untracked) > _MOST_UNTRACKED else "--all"
        paths = [":/"]
        for name in untracked:
            # git names an untracked repository with a slash at the end. It can't add one that has no commit yet.
            show_head = (*git.LOOKING, "rev-parse", "--verify", "--quiet", "HEAD")
            if name.endswith("/") and not git.output_of(f"{worktree}/{name}", *show_head):
                paths.append(f":(exclude,top,literal){name}")
        git.must(worktree, "-c", "core.fsync=none", "add", option, "--sparse", "--", *paths, variables=variables)
        tree = git.must(worktree, "write-tree", variables=variables).strip()
        words = ("commit-tree", tree, "-p", head, "-m", "uncommitted changes")
        commit = git.must(worktree, *words, variables={**variables, **git.NOBODY}).strip()
        self._commits[worktree] = commit
        return commit

    def conflicts(self, directory: str, first: str, second: str) -> list[str]:
        """Return the files in which two commits conflict."""
        words = ("merge-tree", "--write-tree", "--name-only", "--no-messages", "-z", first, second)
        done = git.run(directory, *words, variables=self._variables)
        if done.returncode == 0:
            return []
        if done.returncode != _CONFLICTS:
            raise errors.StorageFailed(f"git merge-tree: {done.stderr.strip()}", "It takes git 2.38 or later.")
        return sorted(set(done.stdout.split("\0")[1:]) - {""})

    def base(self, directory: str, first: str, second: str) -> str:
        """Return the common ancestor of two commits; "" if they have none."""
        return git.run(directory, "merge-base", first, second, variables=self._variables).stdout.strip()

    def holds(self, directory: str, tip: str, commit: str) -> bool:
        """Whether *commit* is the commit *tip* or an ancestor of *tip*."""
        words = ("merge-base", "--is-ancestor", commit, tip)
        return git.run(directory, *words, variables=self._variables).returncode == 0

    def files(self, directory: str, base: str, commit: str) -> list[str]:
        """Return the files that differ between two commits."""
        words = ("diff-tree", "-r", "-z", "--name-only", "--no-renames", base, commit)
        return git.names(directory, *words, variables=self._variables)

    def patch(self, directory: str, base: str, commit: str, paths: Sequence[str]) -> str:
        """Return the diff from *base* to the commit. If *paths* has files or directories, only they are compared."""
        words = ("diff", "--no-ext-diff", "--no-textconv", "--no-color", base or commit, commit, "--")
        return git.must(directory, *words, *(f":(top,literal){path}" for path in paths), variables=self._variables)

    def changes(self, directory: str, base: str, commit: str, path: str) -> list[Change]:
        """Return the changes of the file *path* between *base* and the commit, in the order of the lines."""
        options = ("-c", f"core.attributesFile={self._directory}/attributes")
        words = ("diff", "--unified=0", "--no-ext-diff", "--no-textconv", "--no-color", "--no-renames", base, commit)
        printed = git.run(directory, *options, *words, "--", f":(top,literal){path}", variables=self._variables).stdout
        hunks = [match for line in printed.split("\n") if (match := _HUNK.match(line))]
        definitions = None
        if path.endswith(".py") and hunks:
            import ast

            source = git.run(directory, "show", f"{commit}:{path}", variables=self._variables).stdout
            with suppress(SyntaxError, ValueError, RecursionError):  # half-written code: use git's guess
                definitions = list(_definitions(ast.parse(source), ""))
        changes = []
        for hunk in hunks:
            # git leaves out a number of lines that is 1.
            old_start, old_count, new_start, new_count = (int(number or 1) for number in hunk.groups()[:4])
            # A hunk that only adds lines names the line before it.
            old = (old_start, old_start + old_count - 1) if old_count else (old_start + 1, old_start)
            new = (new_start, new_start + max(new_count, 1) - 1)
            symbol = ""
            if definitions is None:
                if declared := _NAMED.search(hunk[5]) or _CALLED.search(hunk[5]):
                    symbol = declared[1]
            else:
                for first, last, name in definitions:  # outer before inner
                    if first <= new_start <= last:
                        symbol = name
            changes.append(Change(old, new, symbol))
        return changes

    def region(self, directory: str, base: str, commit: str, path: str) -> str:
        """Return *path*, followed by a colon and the names of the changed functions if all changes of the file are
        inside functions.
        """
        symbols = [change.symbol for change in self.changes(directory, base, commit, path)]
        return f"{path}:{','.join(dict.fromkeys(symbols))}" if symbols and all(symbols) else path


def _definitions(node: ast.AST, inside: str) -> Iterator[tuple[int, int, str]]:
    """Yield the first line, last line and full name of each function and class, outer before inner."""
    import ast

    for child in ast.iter_child_nodes(node):
        name = inside
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            name = f"{inside}.{child.name}" if inside else child.name
            first = min([child.lineno, *(decorator.lineno for decorator in child.decorator_list)])
            yield first, child.end_lineno or first, name
        yield from _definitions(child, name)


def place(path: str, mine: list[Change], theirs: list[Change]) -> dict[str, Any]:
    """Return, as JSON, where the changes of the two sides conflict in the file *path*: the functions around these
    places, and for each side the numbers of the first and last lines of each place. There are no
    functions and lines if the whole file conflicts, for example because both sides add the file.
    """
    mine_meeting = [change for change in mine if any(change.meets(other) for other in theirs)]
    theirs_meeting = [change for change in theirs if any(change.meets(other) for other in mine)]
    symbols = dict.fromkeys(change.symbol for change in (*mine_meeting, *theirs_meeting) if change.symbol)
    return {
        "file": path,
        "symbols": list(symbols),
        "lines": [[list(change.new) for change in side] for side in (mine_meeting, theirs_meeting)],
    }


def in_words(place: dict[str, Any], side: int = 0) -> str:
    """Return a text that describes *place* for one of its two agents. *side* is 0 for the agent whose lines come first
    in *place*, and 1 for the other agent.
    """
    symbols = f" {', '.join(place['symbols'])}" if place["symbols"] else ""
    mine, theirs = place["lines"][side], place["lines"][1 - side]
    lines = f" (your {_lines_in_words(mine)}, theirs {_lines_in_words(theirs)})" if mine and theirs else ""
    return f"{place['file']}{symbols}{lines}"


def _lines_in_words(spans: list[list[int]]) -> str:
    ranges = [str(first) if first == last else f"{first}-{last}" for first, last in spans]
    word = "line" if len(ranges) == 1 and "-" not in ranges[0] else "lines"
    return f"{word} {text.listed(ranges)}"
