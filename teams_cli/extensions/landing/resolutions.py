"""Resolves a conflict as the owner of the branch resolved it before, although the branch was rewritten since.

A rebase or squash drops the merge commit that has the resolution, but git keeps that commit in the branch's reflog. As
with `git rerere`, only exactly the same conflict is resolved. Everything is done without a checkout.
"""

from __future__ import annotations

import os
from tempfile import TemporaryDirectory

from teams_cli.agents import git, merging
from teams_cli.tasks.landings import Landing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    Merge = tuple[str, str, str]
    """A merge commit, its first parent (the branch before it), and its second parent (the commit merged into it)."""

_MOST_ENTRIES = 50
"""The maximum number of reflog entries that are searched."""
_ONTO, _BRANCH = " teams:onto", " teams:branch"
"""The labels that replace the commits after the markers of a conflict, so that equal conflicts have equal text."""
_STAGES = ({"1", "2", "3"}, {"2", "3"})
"""The stages that git lists for a file that both sides changed, and for one that both sides added."""


def merged(landing: Landing, base: str, message: str, is_reviewed: bool) -> str:
    """Return a merge commit of *base* and the landing's commit, in which every conflict is resolved as in an earlier
    merge. Return "" if a conflict is new.

    If the commit was reviewed, use only resolutions that are in the commit's own files, so that the merge has no text
    that nobody reviewed.
    """
    repository, head = landing.repository, landing.head
    earlier = _earlier_merges(landing, base)
    if not earlier:
        return ""
    tree = _tree_with_lost_history(repository, base, head, earlier)
    if not tree and not is_reviewed:
        tree = _tree_with_resolutions(repository, base, head, earlier)
    return merging.commit_merge(repository, tree, base, head, message) if tree else ""


def _earlier_merges(landing: Landing, base: str) -> list[Merge]:
    """Return the merges in the reflog of the landing's branch, the newest first, whose merged commit is in *base*."""
    if not landing.branch:
        return []
    branch = f"refs/heads/{landing.branch}"
    arguments = ("log", "--walk-reflogs", f"--max-count={_MOST_ENTRIES}", "--format=%H %P", branch, "--")
    merges: list[Merge] = []
    for line in dict.fromkeys(git.run(landing.repository, *arguments).stdout.splitlines()):
        commit, *parents = line.split()
        if len(parents) == 2 and merging.holds(landing.repository, base, parents[1]):
            merges.append((commit, parents[0], parents[1]))
    return merges


def _tree_with_lost_history(repository: str, base: str, head: str, earlier: Sequence[Merge]) -> str:
    """Merge *base* and *head* as if the branch still had an *earlier* merge that a rewrite dropped. Return the tree of
    the merge; "" if no commit of the branch has exactly the files of an earlier merge commit, or if conflicts are left.

    A commit with these files shows that the branch has the changes that the earlier merge brought, although the history
    does not say so. With the history, git does not merge these changes a second time.
    """
    trees_of_branch = git.output_of(repository, "log", "--format=%T", head, f"^{base}", "--").split()
    for merge_commit, _, merged_into_branch in earlier:
        if git.output_of(repository, "rev-parse", f"{merge_commit}^{{tree}}") in trees_of_branch:
            # This commit is made only for the merge: it has the files of *head*, and the parent that the rewrite lost.
            parents = ("-p", head, "-p", merged_into_branch)
            arguments = ("commit-tree", f"{head}^{{tree}}", *parents, "-m", "with its history")
            with_history = git.must(repository, *arguments, variables=git.NOBODY).strip()
            tree, conflicts = _merge(repository, base, with_history)
            if tree and not conflicts:
                return tree
    return ""


def _tree_with_resolutions(repository: str, base: str, head: str, earlier: Sequence[Merge]) -> str:
    """Return the tree of the merge, with each conflict resolved as in an *earlier* merge; "" if a conflict is left."""
    tree, conflicts = _merge(repository, base, head)
    old_trees = [_merge(repository, theirs, mine)[0] for _, mine, theirs in earlier]  # with the conflict markers
    entries = []
    for path, stages in conflicts.items():
        is_deleted_or_renamed = set(stages) not in _STAGES
        modes = {mode for mode, _ in stages.values()}
        if is_deleted_or_renamed or len(modes) > 1:
            return ""
        text = _text(repository, tree, path, base, head)
        for (commit, mine, theirs), old_tree in zip(earlier, old_trees, strict=True):
            if old_tree and _ONTO in text:
                old_conflict = _text(repository, old_tree, path, theirs, mine)
                old_resolution = _text(repository, commit, path)
                text = _resolve(repository, text, old_conflict, old_resolution) or text
        if _ONTO in text or not text:  # a conflict is left, or the text can't be read
            return ""
        blob = git.must(repository, "hash-object", "-w", "--stdin", stdin=text).strip()
        mode, _ = stages["2"]  # which is the same in all stages
        entries.append(f"{mode} {blob}\t{path}\0")
    with TemporaryDirectory(prefix="teams-") as directory:  # the resolved files replace those with markers
        index = {"GIT_INDEX_FILE": os.path.join(directory, "index")}
        git.must(repository, "read-tree", tree, variables=index)
        git.must(repository, "update-index", "-z", "--index-info", variables=index, stdin="".join(entries))
        return git.must(repository, "write-tree", variables=index).strip()


def _merge(repository: str, onto: str, branch: str) -> tuple[str, Mapping[str, dict[str, tuple[str, str]]]]:
    """Merge the commits *onto* and *branch* without a checkout. Return the tree of the merge, and its conflicts: for
    the path of each conflicting file, the mode and the blob of each of its stages. In the tree, these files have
    conflict markers. The tree is "" if git can't merge.
    """
    arguments = ("-c", "merge.conflictStyle=merge", "merge-tree", "--write-tree", "--no-messages", "-z", onto, branch)
    tree, *entries = git.run(repository, *arguments).stdout.split("\0")
    conflicts: dict[str, dict[str, tuple[str, str]]] = {}
    for entry in filter(None, entries):
        details, path = entry.split("\t", 1)
        mode, blob, stage = details.split()
        conflicts.setdefault(path, {})[stage] = (mode, blob)
    return tree, conflicts


def _text(repository: str, commit: str, path: str, onto: str = "", branch: str = "") -> str:
    """Return the text of a file in *commit*, with neutral names for the commits *onto* and *branch* in its markers."""
    text = git.run(repository, "cat-file", "blob", f"{commit}:{path}").stdout
    return text.replace(f" {onto}\n", f"{_ONTO}\n").replace(f" {branch}\n", f"{_BRANCH}\n") if onto else text


def _resolve(repository: str, text: str, conflict: str, resolved: str) -> str:
    """Return *text*, changed as the text *conflict* was changed to *resolved*; "" if that change does not fit."""
    with TemporaryDirectory(prefix="teams-") as directory:
        paths = [os.path.join(directory, name) for name in ("text", "conflict", "resolved")]
        for path, content in zip(paths, (text, conflict, resolved), strict=True):
            with open(path, "wb") as file:
                file.write(os.fsencode(content))
        done = git.run(repository, "merge-file", "-p", *paths)  # prints the first text with this change
    return done.stdout if done.returncode == 0 else ""
