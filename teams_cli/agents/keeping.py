"""Kept work: before a worktree is removed, everything in it becomes one commit below `refs/teams/kept`.

The tree of this commit contains the files. Its parents are HEAD, a commit of the staged files, and every other commit
that the worktree names. For each nested repository, another parent is made in the same way. The message of the commit
says, as JSON, what each parent is, so that the worktree can be restored.
"""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from hashlib import md5
from tempfile import TemporaryDirectory
from typing import Any

from teams_cli import errors
from teams_cli.agents import checkouts, git
from teams_cli.agents import work as works
from teams_cli.agents.checkouts import Origin
from teams_cli.agents.work import Work
from teams_cli.clock import rfc3339
from teams_cli.names import HUMAN
from teams_cli.store.contract import Store
from teams_cli.store.files import disk
from teams_cli.teams import settings
from teams_cli.teams.config import Config
from teams_cli.teams.permission import Caller, require

PREFIX = "refs/teams/kept"
_MOST_KEPT = 1_000_000
"""The largest number in a reference of an agent's kept work. It limits the search for a free number."""
_KEPT_FOR = settings.SETTINGS[settings.WORKTREE_KEPT].default
"""Seconds for which work is kept, unless the team or the user has another setting."""
_FETCH = ("-c", "protocol.version=2", "fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-auto-maintenance")


@dataclass
class Kept:
    """The kept work of a removed worktree: its repository, reference and commit. *at* is when the worktree was removed,
    in seconds since 1970. *about* is the JSON in the message of the commit.
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
    """Return a new commit of everything in the checkout, from which `put_back` can restore the files after a failed
    change. No reference names the commit yet.
    """
    return _commit_everything(work, "Kept: what was there before", {})


def put_back(work: Work, draft: str) -> None:
    """Restore every file of the commit *draft*. Nested repositories stay as they are, and so do files that were added
    after *draft* was made.
    """
    names = work.git("diff-tree", "-r", "-z", "--name-only", "--no-renames", "--diff-filter=DMT", draft, tree_of(work))
    if names:
        words = ("restore", f"--source={draft}", "--worktree", "--ignore-skip-worktree-bits", "--no-recurse-submodules")
        work.git(*words, "--pathspec-from-file=-", "--pathspec-file-nul", stdin=names, GIT_LITERAL_PATHSPECS="1")


def keep(store: Store, team: str, agent: str, work: Work, about: dict[str, Any], drafts: Sequence[str] = ()) -> str:
    """Keep everything in the worktree, and the commits *drafts*, in a new commit. *about* is added to the JSON in the
    message of the new commit. Returns the reference of the new commit.

    Raises:
        Conflict: git can't keep the work, so the worktree must not be removed.
    """
    try:
        digest = md5(os.fsencode(work.store), usedforsecurity=False).hexdigest()
        path = f"{store.root}/kept/{digest}"
        if not os.path.lexists(path):  # this machine records which repositories have kept work
            disk.prepare_root(store.root)
            disk.make_directories(os.path.dirname(path), store.root)
            disk.commit(disk.write_temp(f"{store.root}/tmp", os.fsencode(work.store)), path)
        title = f"Kept: the work of {agent} in {team}"
        commit = _commit_everything(work, title, {**about, "holds": work.phrases()}, drafts)
        # No number is used again, not even in another repository: a reference must name one work.
        references = [kept.ref for kept in all_of(store, team) if kept.agent == agent]
        numbers = [int(end) for name in references if (end := name.rpartition("/")[2]).isdigit()]
        for number in range(max(numbers, default=0) + 1, _MOST_KEPT):
            ref = f"{PREFIX}/{team}/{agent}/{number}"
            done = git.run(work.path, "update-ref", ref, commit, "0" * len(commit))  # only if it does not exist
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


def _commit_everything(work: Work, title: str, about: dict[str, Any], drafts: Sequence[str] = ()) -> str:
    """Return a commit from which everything in the checkout and in the *drafts* can be restored. *about* is added to
    the JSON in the message of the commit.
    """
    if work.problem:
        raise errors.StorageFailed(work.problem, f"Look in {work.path}.")
    nested = {}
    for child in work.nested:
        if child.state != "empty":
            commit = _commit_everything(child, f"Kept: {json.dumps(child.name)}", {})
            if child.store != work.store:
                work.git(*_FETCH, "--no-recurse-submodules", child.store, commit)
            nested[child.name] = commit
    head = [work.head] if work.head else []
    # Files of which git only knows that they will be added. They are in the index, but their content is not.
    intended = [] if work.bare else work.names("diff-files", "--name-only", "--diff-filter=A", "-z")
    staged_tree = "" if work.bare else _staged_tree(work, intended)
    staged = [_commit_tree(work, staged_tree, "Staged", head)] if staged_tree else []
    tree = tree_of(work)
    parents = [*head, *staged, *_independent_tips(work), *nested.values(), *drafts]
    words = ("for-each-ref", "--format=%(refname) %(objectname)", "refs/heads", "refs/tags")
    references = work.git(*words) if work.has_store else ""
    about = {
        **about,
        "head": work.head,
        "branch": work.branch,
        "staged": {"0": staged[0]} if staged else {},
        "intended": intended,
        "stash": work.stashed,
        "bare": work.bare,
        "refs": dict(line.split(" ") for line in git.lines(references)),
        "tags": _tag_objects(work) if work.has_store else [],
        "nested": nested,
    }
    return _commit_tree(work, tree, f"{title}\n\n{json.dumps(about)}", list(dict.fromkeys(parents)))


def _tag_objects(work: Work) -> list[str]:
    """Return the content of each annotated tag, which no commit refers to. A tag may refer to another one."""
    printed = work.git("for-each-ref", "--format=%(objecttype) %(objectname)", "refs/tags")
    objects = [line.removeprefix("tag ") for line in git.lines(printed) if line.startswith("tag ")]
    contents: dict[str, str] = {}
    while objects:
        name = objects.pop()
        if name not in contents:
            contents[name] = content = work.git("cat-file", "tag", name)
            tagged, kind, *_ = content.split("\n")
            if kind == "type tag":
                objects.append(tagged.removeprefix("object "))
    return list(contents.values())


def _commit_tree(work: Work, tree: str, message: str, parents: Sequence[str]) -> str:
    options = [option for parent in parents for option in ("-p", parent)]
    return work.git("commit-tree", tree, *options, stdin=message, **git.NOBODY).strip()


def _independent_tips(work: Work) -> list[str]:
    """Return the commits of `work.tips` that neither HEAD nor another of these commits contains."""
    tips = works.tips(work)
    if not tips:
        return []
    contained_in_head = [f"^{work.head}"] if work.head else []  # with ^, git leaves them out
    revisions = "\n".join([*tips, *contained_in_head, ""])
    printed = work.git("rev-list", "--parents", "--stdin", stdin=revisions)
    commits_and_parents = [line.split() for line in git.lines(printed)]  # of each commit that HEAD does not contain
    outside_head = {commit for commit, *_ in commits_and_parents} & set(tips)
    return sorted(outside_head - {parent for _, *parents in commits_and_parents for parent in parents})


def _staged_tree(work: Work, left_out: Sequence[str]) -> str:
    """Return the staged files as a git tree, without those in *left_out*, or "" if HEAD has the same files. Files in
    conflict are taken from HEAD: the sides of the conflict are in commits, and a resolution that was begun is in the
    checkout.
    """
    staged = (entry.partition("\t") for entry in work.names("ls-files", "--stage", "-z"))
    entries = [entry for entry in staged if entry[2] not in left_out]
    # Each entry is `MODE BLOB STAGE\tNAME`; a conflict has other stages than 0.
    resolved = [(about.removesuffix(" 0"), name) for about, _, name in entries if about.endswith(" 0")]
    with _index(work) as index:
        if work.head and len(resolved) < len(entries):
            index("read-tree", work.head)
        _put(index, [f"{mode_and_blob}\t{name}" for mode_and_blob, name in resolved])
        tree = index("write-tree").strip()
    head_tree = work.git("rev-parse", f"{work.head}^{{tree}}").strip() if work.head else ""
    return tree if entries and tree != head_tree else ""


@contextmanager
def _index(work: Work) -> Iterator[Callable[..., str]]:
    """Yield a version of `work.git` with its own index, which is empty at first. The index of the checkout is not
    touched.
    """
    with TemporaryDirectory(prefix="teams-", ignore_cleanup_errors=True) as place:
        yield partial(work.git, GIT_INDEX_FILE=f"{place}/index")


def _put(index: Callable[..., str], lines: Sequence[str]) -> None:
    """Add entries to the index; each line is `MODE BLOB\\tNAME`."""
    if lines:
        entries = "".join(f"{line}\0" for line in lines)
        index("update-index", "--add", "--replace", "-z", "--index-info", stdin=entries)


def tree_of(work: Work) -> str:
    """Return the files of the checkout as a git tree, including files that git was told to skip, and files that a rule
    ignores but that are staged. A nested repository becomes a link to its HEAD. The index of the checkout is not
    changed.
    """
    entries: list[str] = []
    with _index(work) as index:
        if work.bare:
            return index("write-tree").strip()
        if work.head:
            index("read-tree", work.head)
        nested = [repository for repository in work.nested if not repository.bare]
        excluded = [f":(exclude,top,literal){repository.name}" for repository in nested]
        index("add", "--all", "--sparse", "--", ".", *excluded)
        staged_ignored = work.names("ls-files", "--cached", "--ignored", "--exclude-standard", "-z")
        names = {*work.hidden, *work.ignored, *staged_ignored} - {repository.name for repository in nested}
        if skipped := [name for name in names if os.path.lexists(f"{work.path}/{name}")]:
            words = ("add", "--force", "--sparse", "--pathspec-from-file=-", "--pathspec-file-nul")
            index(*words, stdin="".join(f"{name}\0" for name in skipped), GIT_LITERAL_PATHSPECS="1")
        absent = {  # what a sparse checkout leaves out
            entry[2:]
            for entry in work.names("ls-files", "-v", "-z")
            if entry[:1] in "Ss" and not os.path.lexists(f"{work.path}/{entry[2:]}")
        }
        staged = work.names("ls-files", "--stage", "-z") if absent else []
        for entry in staged:
            mode_blob_and_stage, _, name = entry.partition("\t")
            if name in absent:
                entries.append(f"{mode_blob_and_stage.rpartition(' ')[0]}\t{name}")
        entries += [f"{git.SUBMODULE} {repository.head}\t{repository.name}" for repository in nested if repository.head]
        _put(index, entries)
        return index("write-tree").strip()


def all_of(store: Store, team: str = "") -> list[Kept]:
    """Return the work that was kept when worktrees were removed, from all repositories of this machine, oldest first.
    If *team* is not empty, only the work of that team is returned.
    """
    works_kept: list[Kept] = []
    for name in disk.names_in(f"{store.root}/kept"):
        repository = os.fsdecode(disk.read_file(f"{store.root}/kept/{name}"))
        if os.path.isdir(repository):
            works_kept += _kept_in(repository, f"{PREFIX}/{team}/" if team else f"{PREFIX}/")
    return sorted(works_kept, key=lambda kept: (kept.at, kept.ref))


def _kept_in(repository: str, pattern: str) -> Iterator[Kept]:
    """Yield the work kept in the repository under references that match *pattern*."""
    fields = "--format=%(refname)%00%(objectname)%00%(committerdate:unix)%00%(contents:body)%01"
    printed = git.run(repository, "for-each-ref", fields, pattern, variables={"GIT_DIR": repository}).stdout
    for entry in printed.split("\x01\n"):
        if entry:
            ref, commit, removed_at, body = entry.split("\0", 3)
            yield Kept(repository, ref, commit, int(removed_at), _parse_about(body))


def _parse_about(body: str) -> dict[str, Any]:
    """Return the JSON in the message of a commit of kept work; empty if there is no valid JSON."""
    try:
        about = json.loads(body)
    except ValueError:
        return {}
    return about if isinstance(about, dict) else {}


def find(store: Store, ref: str, directory: str) -> Kept:
    """Return the kept work that *ref* names, in the repository around *directory* or in a repository that this machine
    recorded.

    Raises:
        NotFound: There is no such kept work.
        InvalidValue: Several recorded repositories have it, and *directory* is in none of them.
    """
    full_ref = ref if ref.startswith("refs/") else f"{PREFIX}/{ref}"
    in_repository: list[Kept] = []
    if directory and (common := git.output_of(directory, "rev-parse", "--path-format=absolute", "--git-common-dir")):
        in_repository = list(_kept_in(os.path.realpath(common), f"{PREFIX}/"))
    for works_kept in (in_repository, all_of(store)):
        found = [kept for kept in works_kept if kept.ref == full_ref]
        if len(found) > 1:  # an older version counted in each repository separately
            commands = [f"cd {shlex.quote(kept.repository)}" for kept in found]
            raise errors.InvalidValue(
                f"{len(found)} repositories have kept work {ref!r}",
                f"Change to the right one, and repeat the command: {'; or '.join(commands)}",
            )
        if found:
            return found[0]
    raise errors.NotFound(f"there is no kept work {ref!r}", "See: teams worktree list --kept")


def expired(store: Store, caller: Caller | None, config: Config) -> list[Kept]:
    """Return the kept work that is older than its team's setting `worktree.keptFor` allows. If the team is gone, the
    setting in the user's *config* counts.
    """
    expired_work: list[Kept] = []
    teams_of_store = set(store.teams())
    for kept in all_of(store):
        try:
            if kept.team in teams_of_store:
                team = require(store, kept.team, caller or Caller(HUMAN), "prune").team
                seconds = settings.value(team, settings.WORKTREE_KEPT)
            elif caller is None or caller.is_human:
                seconds = settings.of_user(config).get(settings.WORKTREE_KEPT, _KEPT_FOR)
            else:  # only the human may remove the work of a team that is gone
                continue
        except errors.TeamsError:  # the caller may not remove it, or the team is damaged
            continue
        if store.now().timestamp() - kept.at >= float(seconds):
            expired_work.append(kept)
    return expired_work


def forget(kept: Kept) -> None:
    """Remove kept work permanently. If its reference was changed meanwhile, git refuses, and nothing is removed."""
    git.must(kept.repository, "update-ref", "-d", kept.ref, kept.commit, variables={"GIT_DIR": kept.repository})


def bring_back(kept: Kept, path: str, branch: str) -> None:
    """Make a worktree at *path* on a new *branch*, with all that was kept: files, index and nested repositories.

    Raises:
        StorageFailed: git can't make the worktree; the work stays kept.
    """
    about = kept.about
    start = about.get("head") or kept.commit  # the new branch needs a commit
    git.must(
        kept.repository,
        *("worktree", "add", "--quiet", "--no-checkout", "--force", "-b", branch, path, start),
        variables={"GIT_DIR": kept.repository},
    )
    checkouts.note(path, Origin(**(about.get("origin") or {})))
    _restore_files(path, kept.commit, about)


def _restore_files(path: str, commit: str, about: dict[str, Any]) -> None:
    """Restore the files, the index and the nested repositories of the checkout from the kept *commit*."""
    git.must(path, "read-tree", "--reset", "-u", commit)
    left_out = {entry[2:] for entry in git.names(path, "ls-files", "-v", "-z") if entry[:1] in "Ss"}
    for name, nested_commit in about.get("nested", {}).items():
        about_nested = _parse_about(git.must(path, "show", "--no-patch", "--format=%b", nested_commit))
        _bring_back_nested(path, name, nested_commit, about_nested)
    staged = about.get("staged", {}).get("0")
    start = staged or about.get("head") or "--empty"
    git.must(path, "read-tree", start)
    if intended := about.get("intended"):
        words = ("add", "--intent-to-add", "--force", "--sparse", "--pathspec-from-file=-", "--pathspec-file-nul")
        names = "".join(f"{name}\0" for name in intended)
        git.run(path, *words, stdin=names, variables={"GIT_LITERAL_PATHSPECS": "1"})
    if left_out:
        _restore_left_out(path, commit, start, left_out)
    git.run(path, "update-index", "--quiet", "--refresh")


def _restore_left_out(path: str, commit: str, start: str, left_out: set[str]) -> None:
    """Restore the files of the kept *commit* that the sparse checkout *path* left out: write those that differ from the
    commit *start*, whose files are in the index, and mark the others as left out. Else git would show them as deleted.
    """
    differing = set(git.names(path, "diff-tree", "-r", "-z", "--name-only", "--no-renames", start, commit))
    literal = {"GIT_LITERAL_PATHSPECS": "1"}
    if written := left_out & differing:
        words = ("restore", "--worktree", "--ignore-skip-worktree-bits", "--no-recurse-submodules")
        source = (f"--source={commit}", "--pathspec-from-file=-", "--pathspec-file-nul")
        git.must(path, *words, *source, stdin="".join(f"{name}\0" for name in written), variables=literal)
    skipped = "".join(f"{name}\0" for name in left_out - differing)
    git.must(path, "update-index", "--skip-worktree", "-z", "--stdin", stdin=skipped)


def _bring_back_nested(around: str, name: str, commit: str, about: dict[str, Any]) -> None:
    """Recreate the nested repository *name*. The name of a submodule that was not checked out is not a path, so such a
    submodule gets a new directory whose name ends in `.restored`.
    """
    path = f"{around}/{os.path.basename(name)}.restored" if about.get("bare") else f"{around}/{name}"
    head, branch = about.get("head"), about.get("branch")
    os.makedirs(path, exist_ok=True)
    git.must(path, "init", "--quiet")
    git.must(path, *_FETCH, "--no-recurse-submodules", git.common_directory(around), commit)
    for content in about.get("tags", []):
        git.run(path, "hash-object", "-w", "-t", "tag", "--stdin", stdin=content)
    for reference, target in about.get("refs", {}).items():
        git.run(path, "update-ref", reference, target)
    for stash in reversed(about.get("stash", [])):  # git puts each new stash before the others
        git.run(path, "stash", "store", "-m", "kept", stash)
    git.must(path, "update-ref", f"{PREFIX}/here", commit)  # else git might remove its objects meanwhile
    if branch:
        git.must(path, "symbolic-ref", "HEAD", f"refs/heads/{branch}")
    if head:  # a repository without a commit has none
        reference = f"refs/heads/{branch}" if branch else "HEAD"
        git.must(path, "update-ref", "--no-deref", reference, head)
    _restore_files(path, commit, about)
    git.must(path, "update-ref", "-d", f"{PREFIX}/here")
