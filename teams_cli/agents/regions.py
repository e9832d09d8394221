"""Regions: the files, lines and functions that a worktree changes, committed or not, and where two such changes
conflict. Nothing is written to the repository: git's new objects lie in a directory that is removed.
"""

from __future__ import annotations

import os
import re
import shutil

from teams_cli import errors, text
from teams_cli.agents import checkouts, git, work

TYPE_CHECKING = False
if TYPE_CHECKING:
    import ast
    from collections.abc import Iterator, Sequence
    from typing import Any

_CONFLICTS = 1
_MOST_UNKNOWN = 2000
"""With more untracked files than these, somebody forgot to ignore a directory, and untracked files are not compared."""
_LANGUAGES = (
    "*.c cpp,*.h cpp,*.cc cpp,*.cpp cpp,*.hpp cpp,*.cs csharp,*.css css,*.ex elixir,*.exs elixir,*.go golang,"
    "*.java java,*.kt kotlin,*.m objc,*.php php,*.pl perl,*.py python,*.rb ruby,*.rs rust,*.sh bash,*.html html,"
    "*.md markdown"
)
"""For each pattern of file names, the built-in driver by which git finds the function around a change."""
_NAMED = re.compile(r"(?:\b(?:class|struct|interface|trait|enum|impl|fn|func|function|def|module|type)\s+)([\w:.$]+)")
_CALLED = re.compile(r"([\w$~]+)\s*\(")
_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@ ?(.*)")


class Change:
    """A changed place in a file. *old* and *new* are its first and last line before and after the change; *symbol* is
    the function or class around it, empty if none is known.
    """

    def __init__(self, old: tuple[int, int], new: tuple[int, int], symbol: str) -> None:
        self.old = old
        self.new = new
        self.symbol = symbol

    def meets(self, other: Change) -> bool:
        """Whether this change and *other* concern the same or adjacent lines, which git can't merge."""
        return self.old[0] <= other.old[1] + 1 and other.old[0] <= self.old[1] + 1


class Snapshots:
    """Makes commits of the worktrees of one repository that include their uncommitted changes. It is used in a `with`
    block, at whose end the commits are removed.
    """

    def __init__(self, common: str) -> None:
        self.main = common.removesuffix("/.git")
        self._common = common
        self._commits: dict[str, str] = {}

    def __enter__(self) -> Snapshots:
        from tempfile import mkdtemp  # slow to import; only needed with worktrees

        self._place = mkdtemp(prefix="teams-")
        os.mkdir(f"{self._place}/objects")
        with open(f"{self._place}/attributes", "w", encoding="utf-8") as file:
            file.write("\n".join(line.replace(" ", " diff=") for line in _LANGUAGES.split(",")))
        self._objects = {
            "GIT_OBJECT_DIRECTORY": f"{self._place}/objects",
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": f"{self._common}/objects",
        }
        return self

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self._place, ignore_errors=True)

    def of(self, worktree: str) -> str:
        """Return a commit of everything in the worktree, which the first call makes. The commit is HEAD if nothing is
        changed or a merge is unfinished.
        """
        if worktree not in self._commits:
            self._commits[worktree] = self._commit(worktree)
        return self._commits[worktree]

    def _commit(self, worktree: str) -> str:
        head = git.must(worktree, "rev-parse", "HEAD").strip()
        own = checkouts.own_directory(worktree)
        changed = git.must(worktree, *git.LOOKING, *git.STATUS)
        if not changed or work.unfinished_in(own):
            return head
        index = f"{self._place}/index"
        written = os.stat(f"{own}/index").st_mtime_ns
        shutil.copyfile(f"{own}/index", index)
        os.utime(index, ns=(written, written))  # git re-reads files that are newer than the index
        variables = {**self._objects, "GIT_INDEX_FILE": index}
        listed = git.names(worktree, *git.LOOKING, "ls-files", "--others", "--exclude-standard", "-z")
        how = "--update" if len(listed) > _MOST_UNKNOWN else "--all"
        git.must(worktree, "-c", "core.fsync=none", "add", how, "--sparse", "--", ":/", variables=variables)
        tree = git.must(worktree, "write-tree", variables=variables).strip()
        words = ("commit-tree", tree, "-p", head, "-m", "uncommitted changes")
        return git.must(worktree, *words, variables={**variables, **git.NOBODY}).strip()

    def conflicts(self, directory: str, one: str, other: str) -> list[str]:
        """Return the files in which two commits conflict."""
        words = ("merge-tree", "--write-tree", "--name-only", "--no-messages", "-z", one, other)
        done = git.run(directory, *words, variables=self._objects)
        if done.returncode == 0:
            return []
        if done.returncode != _CONFLICTS:
            raise errors.StorageFailed(f"git merge-tree: {done.stderr.strip()}", "It takes git 2.38 or later.")
        return sorted(set(done.stdout.split("\0")[1:]) - {""})

    def base(self, directory: str, one: str, other: str) -> str:
        """Return the common ancestor of two commits; empty if they have none."""
        return git.run(directory, "merge-base", one, other, variables=self._objects).stdout.strip()

    def holds(self, directory: str, tip: str, commit: str) -> bool:
        """Whether *tip* contains the commit."""
        words = ("merge-base", "--is-ancestor", commit, tip)
        return git.run(directory, *words, variables=self._objects).returncode == 0

    def files(self, directory: str, base: str, commit: str) -> list[str]:
        """Return the files that differ between two commits."""
        words = ("diff-tree", "-r", "-z", "--name-only", "--no-renames", base, commit)
        return git.names(directory, *words, variables=self._objects)

    def patch(self, directory: str, base: str, commit: str, paths: Sequence[str]) -> str:
        """Return the diff from *base* to the commit; with *paths*, only of these files and directories."""
        words = ("diff", "--no-ext-diff", "--no-textconv", "--no-color", base or commit, commit, "--")
        return git.must(directory, *words, *(f":(top,literal){path}" for path in paths), variables=self._objects)

    def changes(self, directory: str, base: str, commit: str, path: str) -> list[Change]:
        """Return the changes of the file between *base* and the commit, in the order of its lines."""
        how = ("-c", f"core.attributesFile={self._place}/attributes")
        words = ("diff", "--unified=0", "--no-ext-diff", "--no-textconv", "--no-color", "--no-renames", base, commit)
        printed = git.run(directory, *how, *words, "--", f":(top,literal){path}", variables=self._objects).stdout
        hunks = [match for line in printed.split("\n") if (match := _HUNK.match(line))]
        names = self._names(directory, commit, path) if path.endswith(".py") and hunks else None
        return [_change(match, names) for match in hunks]

    def region(self, directory: str, base: str, commit: str, path: str) -> str:
        """Return *path*, followed by a colon and the names of the changed functions if all changes in the file are
        inside functions.
        """
        symbols = [change.symbol for change in self.changes(directory, base, commit, path)]
        return f"{path}:{','.join(dict.fromkeys(symbols))}" if symbols and all(symbols) else path

    def _names(self, directory: str, commit: str, path: str) -> list[tuple[int, int, str]] | None:
        import ast

        source = git.run(directory, "show", f"{commit}:{path}", variables=self._objects).stdout
        try:
            return list(_definitions(ast.parse(source), ""))
        except (SyntaxError, ValueError, RecursionError):  # half-written code: use git's guess
            return None


def _change(match: re.Match[str], names: list[tuple[int, int, str]] | None) -> Change:
    start, count, new, more = (int(each) if each else 1 for each in match.groups()[:4])
    changed = (new, new + max(more, 1) - 1)
    if names is None:
        named = _NAMED.search(match[5]) or _CALLED.search(match[5])
        symbol = named[1] if named else ""
    else:
        around = [name for first, last, name in names if first <= changed[0] <= last]
        symbol = around[-1] if around else ""
    # A hunk that only adds lines names the line before it.
    old = (start, start + count - 1) if count else (start + 1, start)
    return Change(old, changed, symbol)


def _definitions(node: ast.AST, inside: str) -> Iterator[tuple[int, int, str]]:
    """Yield the first line, last line and full name of each function and class, outer before inner."""
    import ast

    for child in ast.iter_child_nodes(node):
        name = inside
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            name = f"{inside}.{child.name}" if inside else child.name
            first = min([child.lineno, *(each.lineno for each in child.decorator_list)])
            yield first, child.end_lineno or first, name
        yield from _definitions(child, name)


def place(path: str, mine: list[Change], theirs: list[Change]) -> dict[str, Any]:
    """Return as JSON where two sets of changes meet in the file *path*: the symbols around them, and the lines of each
    side as they are now. Symbols and lines are empty if the whole file conflicts, as when both sides add it.
    """
    ours = [one for one in mine if any(one.meets(other) for other in theirs)]
    others = [one for one in theirs if any(one.meets(other) for other in mine)]
    symbols = dict.fromkeys(one.symbol for one in (*ours, *others) if one.symbol)
    return {
        "file": path,
        "symbols": list(symbols),
        "lines": [[list(one.new) for one in side] for side in (ours, others)],
    }


def in_words(place: dict[str, Any], mine: int = 0) -> str:
    """Return *place* in words for one of the two agents: if *mine* is 0 for the one whose lines are first in it, if 1
    for the other.
    """
    symbols = f" {', '.join(place['symbols'])}" if place["symbols"] else ""
    ours, theirs = place["lines"][mine], place["lines"][1 - mine]
    lines = f" (your {_lines(ours)}, theirs {_lines(theirs)})" if ours and theirs else ""
    return f"{place['file']}{symbols}{lines}"


def _lines(spans: list[list[int]]) -> str:
    named = [str(first) if first == last else f"{first}-{last}" for first, last in spans]
    return f"line{'s' * (len(named) > 1 or '-' in named[0])} {text.listed(named)}"
