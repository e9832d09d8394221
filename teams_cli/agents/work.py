"""Work: everything that would be lost with a checkout. The commands that list, merge, remove and prune worktrees rely
on this module.

Work is in the commits of HEAD, of the agent's branch, of an unfinished rebase and of stashes, and in staged and changed
files. It is also in new files, even those that git was told to ignore. The work in submodules and nested repositories
counts too. If git does not answer, a checkout counts as possibly holding work.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from subprocess import CompletedProcess

from teams_cli import errors, text
from teams_cli.agents import checkouts, git
from teams_cli.agents.checkouts import Checkout, Origin
from teams_cli.store.files import disk

_COMMIT = re.compile(r"\b(?:[0-9a-f]{64}|[0-9a-f]{40})\b")
_FILTER = re.compile(r"filter\..*\.(clean|smudge|process)", re.DOTALL)
_UNFINISHED = {
    "MERGE_HEAD": "merge",
    "CHERRY_PICK_HEAD": "cherry-pick",
    "REVERT_HEAD": "revert",
    "rebase-merge": "rebase",
    "rebase-apply": "rebase",
    "sequencer": "cherry-pick or revert",
    "BISECT_START": "bisect",
}
"""Files in git's data of a checkout, each with the operation that is unfinished if the file exists."""
_DIRECTORIES = ("", "rebase-merge", "rebase-apply", "sequencer")
"""The directories in git's data of a checkout whose files name commits of the checkout."""
_OTHERS_COMMITS = ("FETCH_HEAD", "index", "commondir", "gitdir")
"""Files in `_DIRECTORIES` that name no commits, or only commits of other repositories."""
_OWN_REFERENCES = ("refs/bisect", "refs/worktree", "refs/rewritten")
"""The references that git keeps for each checkout separately."""
_MOST_READ = 1 << 24
"""Maximum size, in bytes, of a file in git's data that is searched for commits."""


class Work:
    """The work in the checkout or repository at *path*. For a nested repository, *name* is the path inside the
    repository around it. If *bare* is set, the work is that of a submodule that is not checked out, and *path* is the
    directory with git's data of the submodule.

    *commits* is the number of commits that would be lost, *changed* has the files that `git status` shows, and *hidden*
    has changed or new files that it does not show. *stashed* has the commits of stashes. *unfinished* names an
    operation such as a merge, or is "". *problem* says why the work is not known, or is "".
    """

    def __init__(self, path: str, name: str = "", bare: bool = False) -> None:
        self.path = path
        self.name = name
        self.bare = bare
        self.git_directory = path if bare else checkouts.git_directory(path)
        self.settings: dict[str, str] = {}
        """Environment variables for git that keep it from running commands that the repository itself configures."""
        self.store = ""
        """The directory that all checkouts of the repository share."""
        self.has_store = bare
        """Whether the store lies inside the checkout, and so is lost with it."""
        self.head = ""
        self.branch = ""
        self.commits = 0
        self.changed: list[str] = []
        self.hidden: list[str] = []
        self.ignored: list[str] = []
        """Files that the checkout's own `.gitignore` names: not work, but kept together with work."""
        self.stashed: list[str] = []
        self.unfinished = ""
        self.nested: list[Work] = []
        self.problem = ""

    def git(self, *words: str, stdin: str | None = None, **variables: str) -> str:
        """Run git in the checkout, and return its output."""
        return git.must(self.path, *git.LOOKING, *words, variables=self._variables(variables), stdin=stdin)

    def run(self, *words: str, stdin: str | None = None) -> CompletedProcess[str]:
        """Run git in the checkout, and return the finished process, even if git failed."""
        return git.run(self.path, *git.LOOKING, *words, variables=self._variables({}), stdin=stdin)

    def _variables(self, more: dict[str, str]) -> dict[str, str]:
        # The configuration of a bare store names a checkout that does not exist.
        bare = {"GIT_DIR": self.path, "GIT_WORK_TREE": self.path} if self.bare else {}
        return {**bare, **self.settings, **more}

    def names(self, *words: str, **variables: str) -> list[str]:
        """Run a git command in the checkout that prints file names separated by NUL (`-z`), and return the names."""
        return [name for name in self.git(*words, **variables).split("\0") if name]

    @property
    def state(self) -> str:
        """Whether there is work: `work`, `empty`, or `unknown` if git did not answer."""
        nested_states = {repository.state for repository in self.nested}
        if self.problem or "unknown" in nested_states:
            return "unknown"
        if self.commits or self.changed or self.hidden or self.stashed or self.unfinished or "work" in nested_states:
            return "work"
        return "empty"

    @property
    def has_nested_work(self) -> bool:
        """Whether a nested repository may hold work."""
        return any(repository.state != "empty" for repository in self.nested)

    @property
    def files(self) -> int:
        """The number of uncommitted files, nested repositories included."""
        return len({*self.changed, *self.hidden}) + sum(repository.files for repository in self.nested)

    def phrases(self) -> list[str]:
        """Return the work as phrases, such as "2 commits"; the list is empty if there is no work."""
        phrases = [f"may hold work: {self.problem}"] if self.problem else []
        counts = [(self.commits, "commit"), (len(self.changed), "uncommitted file"), (len(self.hidden), "hidden file")]
        phrases += [text.counted(count, what) for count, what in counts if count]
        if self.stashed:
            phrases.append("1 stash" if len(self.stashed) == 1 else f"{len(self.stashed)} stashes")
        if self.unfinished:
            phrases.append(f"an unfinished {self.unfinished}")
        for repository in self.nested:
            phrases += [f"{phrase} in {text.listed([repository.name])}" for phrase in repository.phrases()]
        return phrases


def of_worktree(path: str, branch: str, bases: Sequence[str], origin: Origin) -> Work:
    """Return the work in an agent's worktree at *path*. A commit of the worktree or of the agent's *branch* counts as
    work, unless it is contained in one of the commits *bases*. *origin* says how the worktree began. If git fails, the
    reason is in the `problem` of the returned work.
    """
    work = Work(path)
    try:
        if checkouts.leads_astray(path):
            raise errors.StorageFailed(
                f"{path}/.git leads to a repository inside this directory, or to another worktree", "Look there."
            )
        _read_git_state(work)
        _find_uncommitted(work, origin)
        references = [f"refs/heads/{branch}"]
        references += work.git("for-each-ref", "--format=%(refname)", *_OWN_REFERENCES).split()
        tips = [name for name in references if _has_reference(work, name)]
        if work.head:
            tips.append(work.head)
        for name in ("rebase-merge/orig-head", "rebase-merge/autostash", "MERGE_AUTOSTASH"):
            tips += _existing_commits(work, _COMMIT.findall(_read(f"{work.git_directory}/{name}")))
        work.commits = _count_commits(work, tips, bases)
        work.stashed = list(_stashes_of_worktree(work, branch))
        work.nested = list(_nested_repositories(work, origin))
    except errors.TeamsError as problem:
        work.problem = problem.message
    except OSError as error:
        work.problem = f"{error.filename}: {error.strerror}"
    return work


def uncommitted(checkout: Checkout, without: list[str] | None = None) -> list[str]:
    """Return the files of a checkout, submodules included, that differ from its commit or are untracked. Untracked
    files in *without* are left out. Commands that a submodule configures for git are not run, because an agent may have
    written them.
    """
    return [*checkout.uncommitted(without), *_uncommitted_in_submodules(Work(checkout.top))]


def _uncommitted_in_submodules(around: Work) -> Iterator[str]:
    """Yield the uncommitted files of the submodules in the checkout *around*, and of the submodules inside these."""
    if not os.path.exists(f"{around.path}/.gitmodules"):
        return
    for entry in around.names("ls-files", "--stage", "-z"):
        mode_and_blob, _, name = entry.partition("\t")
        path = f"{around.path}/{name}"
        is_submodule = mode_and_blob.startswith(git.SUBMODULE)
        if not is_submodule or not os.path.lexists(f"{path}/.git"):  # it has no files of its own
            continue
        try:
            submodule = Work(path, name)
            _disable_commands(submodule, around)
            changed = [entry[3:] for entry in submodule.names(*git.STATUS)]
            yield from (f"{name}/{file}" for file in (*changed, *_uncommitted_in_submodules(submodule)))
        except errors.TeamsError:  # a submodule that git can't read may differ
            yield name


def unfinished_in(git_directory: str) -> str:
    """Return the operation that is unfinished in a checkout, such as "merge" or "rebase", or "" if there is none.
    *git_directory* is the directory with git's data of the checkout.
    """
    for name, operation in _UNFINISHED.items():
        if os.path.lexists(f"{git_directory}/{name}"):
            return operation
    return ""


def _read_git_state(work: Work) -> None:
    """Record in *work* the store, the HEAD, the branch and the unfinished operation. Refuse a directory that has become
    a part of another checkout.
    """
    if not work.bare:
        top = work.git("rev-parse", "--show-toplevel").removesuffix("\n")
        if os.path.realpath(top) != os.path.realpath(work.path):
            raise errors.StorageFailed(f"{work.path} is no longer a git checkout", "Check that directory.")
    work.store = os.path.realpath(
        work.git("rev-parse", "--path-format=absolute", "--git-common-dir").removesuffix("\n")
    )
    head = work.run("symbolic-ref", "--quiet", "HEAD")
    work.branch = head.stdout.strip().removeprefix("refs/heads/")
    if not work.branch or _has_reference(work, f"refs/heads/{work.branch}"):  # else the branch has no commit yet
        work.head = work.git("rev-parse", "--verify", "HEAD^{commit}").strip()
    work.unfinished = "" if work.bare else unfinished_in(work.git_directory)


def _has_reference(work: Work, reference: str) -> bool:
    return work.run("show-ref", "--verify", "--quiet", reference).returncode == 0


def _count_commits(work: Work, tips: Sequence[str], bases: Sequence[str]) -> int:
    """Return how many commits can be reached from *tips*, but not from *bases*."""
    if not tips:
        return 0
    revisions = "\n".join([*tips, *(f"^{base}" for base in bases), ""])
    return int(work.git("rev-list", "--count", "--stdin", stdin=revisions))


def _find_uncommitted(work: Work, origin: Origin) -> None:
    """Record in *work* the files of its checkout that are changed, ignored, or hidden from `git status`."""
    work.changed = [entry[3:] for entry in work.names(*git.STATUS)]
    work.hidden = list(hidden_by_flags(work))
    for name, is_by_gitignore in _newly_ignored(work, origin):
        if not is_by_gitignore:
            work.hidden += _files_below(work, name)
        elif name[-1] != "/":  # whole directories are built by tools
            work.ignored.append(name)


def hidden_by_flags(work: Work) -> Iterator[str]:
    """Yield the changed files that `git status` does not show, because git was told to treat them as unchanged or to
    skip them.
    """
    for entry in work.names("ls-files", "-v", "-z"):
        name, flag = entry[2:], entry[:1]
        is_assumed_unchanged, is_skipped = flag.islower(), flag == "S"
        if not (is_assumed_unchanged or is_skipped):
            continue
        path = f"{work.path}/{name}"
        if not os.path.lexists(path):
            if is_assumed_unchanged:  # it was deleted; a sparse checkout lacks many skipped files
                yield name
            continue
        mode, blob = work.git("ls-files", "--stage", "-z", "--", name, GIT_LITERAL_PATHSPECS="1").split()[:2]
        if os.path.islink(path):
            blob_now = work.git("hash-object", "--stdin", stdin=os.readlink(path)).strip()
        else:
            blob_now = "" if os.path.isdir(path) else work.git("hash-object", "--", name).strip()
        if mode != git.SUBMODULE and blob != blob_now:
            yield name


def _newly_ignored(work: Work, origin: Origin) -> Iterator[tuple[str, bool]]:
    """Yield the name of each file or directory that is ignored by a rule newer than the worktree, and whether the rule
    is in a `.gitignore` of the checkout.
    """
    words = ("ls-files", "--others", "--ignored", "--exclude-standard", "-z")
    rules, partly_ignored = _ignore_rules(work, work.names(*words, "--directory"))
    if partly_ignored:
        rules |= _ignore_rules(work, work.names(*words, "--", *partly_ignored, GIT_LITERAL_PATHSPECS="1"))[0]
    earlier_rules: dict[str, set[str]] = {}  # by file, the rules that it had when the worktree was made
    for name, (rules_file, rule) in rules.items():
        is_gitignore = os.path.basename(rules_file) == ".gitignore" and not os.path.isabs(rules_file)
        if rules_file not in earlier_rules:
            if is_gitignore:
                shown = git.run(work.path, "show", f"{origin.base or 'HEAD'}:{rules_file}")
                text = shown.stdout.replace("\r\n", "\n") if shown.returncode == 0 else ""
                earlier_rules[rules_file] = set(git.lines(text))
            elif origin.rules is not None:
                earlier_rules[rules_file] = set(origin.rules)
            else:  # an older version made the worktree; git writes `commondir` once, when it makes a worktree
                commondir = f"{work.git_directory}/commondir"
                made_at = os.stat(commondir if os.path.exists(commondir) else f"{work.git_directory}/HEAD").st_mtime
                path = os.path.join(work.path, rules_file)
                was_changed_since = os.stat(path).st_mtime > made_at
                earlier_rules[rules_file] = set() if was_changed_since else set(checkouts.lines_of(path))
        if rule not in earlier_rules[rules_file]:
            yield name, is_gitignore


def _ignore_rules(work: Work, names: list[str]) -> tuple[dict[str, tuple[str, str]], list[str]]:
    """Sort the paths *names* into two groups. Return a dictionary with the paths that a rule ignores, each with the
    file that has the rule and the rule itself; and a list of the other paths, which are directories that git ignores
    only in part.
    """
    if not names:
        return {}, []
    words = ("check-ignore", "--verbose", "--non-matching", "-z", "--stdin")
    done = work.run(*words, stdin="".join(f"{name}\0" for name in names))
    if done.returncode > 1:
        raise errors.StorageFailed(f"git check-ignore: {done.stderr.strip()}", f"Try it in {work.path}.")
    rules: dict[str, tuple[str, str]] = {}
    partly_ignored = []
    fields = done.stdout.split("\0")  # four for each name: file with the rule, line, rule, name
    for start in range(0, len(fields) - 3, 4):
        rules_file, _, rule, name = fields[start : start + 4]
        if rules_file:
            rules[name] = (rules_file, rule)
        else:
            partly_ignored.append(name)
    return rules, partly_ignored


def _files_below(work: Work, name: str) -> Iterator[str]:
    """Yield the files below the directory *name*, or *name* itself if it is a file. Nested repositories are skipped."""
    if not name.endswith("/"):
        yield name
        return
    for directory, directories, files in _walk(f"{work.path}/{name}"):
        if ".git" in directories or ".git" in files:  # a nested repository
            directories.clear()
            continue
        links = [link for link in directories if os.path.islink(f"{directory}/{link}")]
        yield from (os.path.relpath(f"{directory}/{file}", work.path) for file in [*files, *links])


def _walk(top: str) -> Iterator[tuple[str, list[str], list[str]]]:
    """Yield what `os.walk` yields, but raise an error if a directory can't be read."""

    def fail(error: OSError) -> None:
        raise error

    return os.walk(top, onerror=fail)


def _stashes_of_worktree(work: Work, branch: str) -> Iterator[str]:
    """Yield the commits of the stashes that were made in this worktree. All checkouts share one list of stashes. A
    stash counts as made here if this worktree was once at the parent commit of the stash, and on the branch that the
    stash names.
    """
    if not _has_reference(work, "refs/stash"):
        return
    log = _read(f"{work.git_directory}/logs/HEAD")
    branches = {work.branch, branch}
    for line in git.lines(log):
        branches.update(line.partition("checkout: moving from ")[2].split(" to "))
    heads = {*_COMMIT.findall(log), work.head}
    for line in git.lines(work.git("log", "--walk-reflogs", "--format=%H %P%x00%gs", "refs/stash", "--")):
        commits, _, subject = line.partition("\0")
        commit, parent, *_ = commits.split()
        stash_branch = subject.partition(": ")[0].rpartition("n ")[2]  # "WIP on BRANCH: …" or "On BRANCH: …"
        if parent in heads and (stash_branch in branches or "(no branch)" in subject):
            yield commit


def _nested_repositories(work: Work, origin: Origin) -> Iterator[Work]:
    """Yield the work in each repository inside the checkout: in submodules, in other repositories, and in git's data of
    submodules that are not checked out.
    """
    known_stores = set()
    for name in [] if work.bare else _paths_of_repositories(work.path):  # a bare store has no files
        nested = Work(f"{work.path}/{name}", name)
        try:
            _disable_commands(nested, work)
            _read_git_state(nested)
            known_stores.add(nested.git_directory)
            removed_directories = [os.path.realpath(path) + "/" for path in (work.path, work.git_directory)]
            nested.has_store = nested.store.startswith(tuple(removed_directories))  # then it is lost, too
            words = (*git.LOOKING, "ls-tree", "-z", origin.base, "--", name)
            listed = git.run(work.path, *words, variables={"GIT_LITERAL_PATHSPECS": "1"}).stdout
            entry = listed.partition("\t")[0].split()
            recorded = entry[2] if entry[:1] == [git.SUBMODULE] else ""  # its commit when the worktree began
            nested_origin = Origin(base=recorded, rules=origin.rules)
            _find_uncommitted(nested, nested_origin)
            if nested.has_store:
                _examine_store(nested, recorded)
            elif nested.head:
                nested.commits = _count_commits(nested, [nested.head], _commits_of_references(nested))
            nested.nested = list(_nested_repositories(nested, nested_origin))
        except errors.TeamsError as problem:
            nested.problem = problem.message
        yield nested
    for store in _submodule_stores(f"{work.git_directory}/modules"):
        if store in known_stores:  # it was examined above, with its checkout
            continue
        nested = Work(store, os.path.relpath(store, work.git_directory), bare=True)
        try:
            _disable_commands(nested, work)
            _read_git_state(nested)
            _examine_store(nested, "")
            nested.nested = list(_nested_repositories(nested, Origin(rules=origin.rules)))
        except errors.TeamsError as problem:
            nested.problem = problem.message
        yield nested


def _disable_commands(work: Work, around: Work) -> None:
    """Keep git from running filters and hooks that the repository configures, because an agent may have written them. A
    filter may run only if the repository *around* it configures the same command.
    """
    commands = _filter_commands(work)
    trusted = _filter_commands(around) if commands else {}
    settings = {"core.hooksPath": os.devnull, "log.showSignature": "false"}
    for key, command in commands.items():
        if trusted.get(key) != command:
            settings |= {key: "", f"{key.rpartition('.')[0]}.required": "false"}  # the filter then does nothing
    work.settings = {"GIT_CONFIG_COUNT": str(len(settings))}
    for number, (key, value) in enumerate(settings.items()):
        work.settings |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}


def _filter_commands(work: Work) -> dict[str, str]:
    """Return the commands of the filters that are configured for the checkout, by the names of their git settings."""
    entries = [entry.partition("\n") for entry in work.git("config", "--null", "--list").split("\0")]
    return {key: command for key, _, command in entries if _FILTER.fullmatch(key) and command}


def _paths_of_repositories(top: str) -> Iterator[str]:
    """Yield the relative paths of the repositories below the directory *top*, but not of repositories inside these."""
    for directory, directories, files in _walk(top):
        if directory != top and (".git" in directories or ".git" in files):
            directories.clear()
            yield os.path.relpath(directory, top)
        elif directory == top and ".git" in directories:
            directories.remove(".git")


def _submodule_stores(top: str) -> Iterator[str]:
    """Yield the directories below *top* with git's data of a submodule, at any depth, because names of submodules may
    have slashes.
    """
    if not os.path.isdir(top):
        return
    for directory, directories, files in _walk(top):
        if "HEAD" in files and "objects" in directories:
            directories.clear()
            yield os.path.realpath(directory)


def _commits_of_references(work: Work) -> list[str]:
    return work.git("for-each-ref", "--format=%(objectname)", "refs/heads", "refs/tags", "refs/remotes").split()


def _examine_store(work: Work, recorded: str) -> None:
    """Record the stashes of the repository, and the number of commits that would be lost with it. *recorded* is the
    commit that the repository around it names, or "". Commits that were fetched, or that *recorded* contains, do not
    count.
    """
    printed = work.git("for-each-ref", "--format=%(objectname) %(refname)")
    references = [line.split(" ") for line in git.lines(printed)]
    fetched, tips = [], []
    for commit, name in references:
        if name.startswith("refs/remotes/"):
            fetched.append(commit)
        # git packs the tags that it clones; a tag that was made here has a file of its own.
        elif not name.startswith("refs/tags/") or os.path.lexists(f"{work.store}/{name}"):
            tips.append(commit)
    if not fetched:  # it was not cloned, so all its tags were made here
        tips = [commit for commit, _ in references]
    worktrees = [f"{work.store}/worktrees/{name}" for name in disk.names_in(f"{work.store}/worktrees")]
    heads = {commit for path in (work.store, *worktrees) for commit in _COMMIT.findall(_read(f"{path}/HEAD"))}
    tips += _existing_commits(work, heads)
    if _has_reference(work, "refs/stash"):
        work.stashed = work.git("log", "-g", "--format=%H", "refs/stash").split()
    # Others have what was fetched, and the recorded commit. Nobody else has a repository that was not cloned.
    bases = [*fetched, *_existing_commits(work, {recorded} - {""})] if fetched else []
    work.commits = _count_commits(work, [*tips, *work.stashed], bases)


def _read(path: str) -> str:
    """Return the content of one of git's files, or "" if it is missing or too large."""
    if not os.path.isfile(path) or os.path.getsize(path) > _MOST_READ:
        return ""
    with open(path, encoding="ascii", errors="replace") as file:
        return file.read()


def _existing_commits(work: Work, hashes: Sequence[str] | set[str]) -> list[str]:
    """Return the *hashes* that name commits of the repository."""
    if not hashes:
        return []
    printed = work.git("cat-file", "--batch-check=%(objectname) %(objecttype)", stdin="\n".join([*hashes, ""]))
    return [line.split()[0] for line in git.lines(printed) if line.endswith(" commit")]


def tips(work: Work) -> list[str]:
    """Return all commits that git records for the checkout: HEAD and its earlier positions, unfinished operations,
    references of this checkout alone, and stashes. Every other commit of the checkout can be reached from the returned
    commits.
    """
    git_directories = [work.git_directory]
    if work.has_store:
        git_directories += [f"{work.store}/worktrees/{name}" for name in disk.names_in(f"{work.store}/worktrees")]
    hashes = {*work.stashed, work.head} - {""}
    for git_directory in git_directories:
        paths = [f"{git_directory}/logs/HEAD"]
        for directory in _DIRECTORIES:
            names = [name for name in disk.names_in(f"{git_directory}/{directory}") if name not in _OTHERS_COMMITS]
            paths += [f"{git_directory}/{directory}/{name}" for name in names]
        for path in paths:
            hashes.update(_COMMIT.findall(_read(path)))
    words = ["--format=%(refname) %(objectname) %(*objectname)"]
    references = work.git("for-each-ref", *words, *(() if work.has_store else _OWN_REFERENCES))
    for line in git.lines(references):
        name, *commits = line.rstrip(" ").split(" ")  # only a tag names a second commit
        if not name.startswith("refs/remotes/"):
            hashes.update(commits)
    return _existing_commits(work, hashes)


def has_dangling_commits(work: Work, bases: Sequence[str]) -> bool:
    """Whether the checkout was once at commits that no branch contains now, and that *bases* do not contain."""
    return _count_commits(work, tips(work), [*bases, *_commits_of_references(work)]) > 0
