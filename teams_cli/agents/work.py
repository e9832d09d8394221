"""Work: everything in a checkout that would be lost with it. Listing, merging, removing and pruning all ask here.

It counts the commits of HEAD, of its branch, of an unfinished rebase and of stashes; staged and changed files; new
files, also those that git was told to ignore; and all of this in submodules and nested repositories. If git does not
answer, the checkout may hold work.
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
_DIRECTORIES = ("", "rebase-merge", "rebase-apply", "sequencer")
_OTHERS_COMMITS = ("FETCH_HEAD", "index", "commondir", "gitdir")
_OWN_REFERENCES = ("refs/bisect", "refs/worktree", "refs/rewritten")
"""The references that git keeps for each checkout separately."""
_MOST_READ = 1 << 24


class Work:
    """The work in the checkout or repository at *path*. *name* is its path inside the repository around it. With
    *bare*, *path* is the store of a submodule that is not checked out.
    """

    def __init__(self, path: str, name: str = "", bare: bool = False) -> None:
        self.path = path
        self.name = name
        self.bare = bare
        self.own = path if bare else checkouts.own_directory(path)
        self.settings: dict[str, str] = {}
        """Variables for git, so that it runs no command that the repository itself configures."""
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
        """Files that its own `.gitignore` names: not work, but kept together with work."""
        self.stashed: list[str] = []
        self.unfinished = ""
        self.nested: list[Work] = []
        self.problem = ""

    def git(self, *words: str, given: str | None = None, **variables: str) -> str:
        """Run git in the checkout, and return its output."""
        return git.must(self.path, *git.LOOKING, *words, variables=self._variables(variables), given=given)

    def run(self, *words: str, given: str | None = None) -> CompletedProcess[str]:
        """Run git in the checkout, and return the ended process, even if git failed."""
        return git.run(self.path, *git.LOOKING, *words, variables=self._variables({}), given=given)

    def _variables(self, more: dict[str, str]) -> dict[str, str]:
        # The configuration of a bare store names a checkout that does not exist.
        bare = {"GIT_DIR": self.path, "GIT_WORK_TREE": self.path} if self.bare else {}
        return {**bare, **self.settings, **more}

    def names(self, *words: str, given: str | None = None, **variables: str) -> list[str]:
        """Run git in the checkout with a command that separates file names by NUL (`-z`), and return the names."""
        return [name for name in self.git(*words, given=given, **variables).split("\0") if name]

    @property
    def state(self) -> str:
        """Whether there is work: `work`, `empty`, or `unknown` if git did not answer."""
        if self.problem:
            return "unknown"
        own = self.commits or self.changed or self.hidden or self.stashed or self.unfinished
        below = {one.state for one in self.nested}
        return "unknown" if "unknown" in below else "work" if own or "work" in below else "empty"

    @property
    def nested_work(self) -> bool:
        """Whether a nested repository may hold work."""
        return any(one.state != "empty" for one in self.nested)

    @property
    def files(self) -> int:
        """The number of uncommitted files, nested repositories included."""
        return len({*self.changed, *self.hidden}) + sum(one.files for one in self.nested)

    def told(self) -> list[str]:
        """Return the work as phrases, such as "2 commits"; the list is empty if there is no work."""
        phrases = [f"may hold work: {self.problem}"] if self.problem else []
        counts = [(self.commits, "commit"), (len(self.changed), "uncommitted file"), (len(self.hidden), "hidden file")]
        phrases += [text.counted(count, what) for count, what in counts if count]
        if self.stashed:
            phrases.append("1 stash" if len(self.stashed) == 1 else f"{len(self.stashed)} stashes")
        phrases += [f"an unfinished {self.unfinished}"] if self.unfinished else []
        for one in self.nested:
            phrases += [f"{what} in {text.listed([one.name])}" for what in one.told()]
        return phrases


def of_worktree(path: str, branch: str, against: Sequence[str], origin: Origin) -> Work:
    """Return the work in the worktree of an agent that the commits *against* do not contain, on the agent's *branch* or
    elsewhere.
    """
    work = Work(path)
    try:
        _look(work, [f"refs/heads/{branch}"], against, origin)
    except errors.TeamsError as problem:
        work.problem = problem.message
    except OSError as error:
        work.problem = f"{error.filename}: {error.strerror}"
    return work


def uncommitted(checkout: Checkout, without: list[str] | None = None) -> list[str]:
    """Return the files of a checkout, submodules included, that differ from its commit or are untracked, except
    untracked ones in *without*. git runs no command that a submodule configures.
    """
    return [*checkout.uncommitted(without), *_uncommitted_in_submodules(Work(checkout.top))]


def _uncommitted_in_submodules(around: Work) -> Iterator[str]:
    if not os.path.exists(f"{around.path}/.gitmodules"):
        return
    entries = [entry.partition("\t") for entry in around.names("ls-files", "--stage", "-z")]
    for name in [name for how, _, name in entries if how.startswith(git.SUBMODULE)]:
        path = f"{around.path}/{name}"
        if not os.path.lexists(f"{path}/.git"):
            continue
        try:
            submodule = Work(path, name)
            _distrust(submodule, around)
            changed = [entry[3:] for entry in submodule.names(*git.STATUS)]
            yield from (f"{name}/{file}" for file in (*changed, *_uncommitted_in_submodules(submodule)))
        except errors.TeamsError:  # a submodule that git can't read may differ
            yield name


def unfinished_in(own: str) -> str:
    """Return what is unfinished in a checkout, such as "merge" or "rebase", or "" if nothing is. *own* is the directory
    with git's data of the checkout.
    """
    return next((what for name, what in _UNFINISHED.items() if os.path.lexists(f"{own}/{name}")), "")


def _look(work: Work, branches: list[str], against: Sequence[str], origin: Origin) -> None:
    """Find all work in a worktree, whose repository remains when the worktree is removed.

    Raises:
        StorageFailed: It is no checkout for git, or its `.git` file leads to another repository or worktree.
    """
    if checkouts.leads_astray(work.path):
        raise errors.StorageFailed(
            f"{work.path}/.git leads to a repository inside or to another worktree", "Look there."
        )
    _identify(work)
    _look_at_files(work, origin)
    references = [*branches, *work.git("for-each-ref", "--format=%(refname)", *_OWN_REFERENCES).split()]
    mine = [*([work.head] if work.head else []), *(name for name in references if _is_there(work, name))]
    for name in ("rebase-merge/orig-head", "rebase-merge/autostash", "MERGE_AUTOSTASH"):
        mine += _existing(work, _COMMIT.findall(_read(f"{work.own}/{name}")))
    work.commits = _count(work, mine, against) if mine else 0
    work.stashed = list(_stashes_of(work, branches))
    work.nested = list(_nested(work, origin))


def _identify(work: Work) -> None:
    """Find the store, HEAD, branch and unfinished operation of a checkout.

    Raises:
        StorageFailed: git does not take the directory for a checkout of its own.
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
    if not work.branch or _is_there(work, f"refs/heads/{work.branch}"):
        work.head = work.git("rev-parse", "--verify", "HEAD^{commit}").strip()
    work.unfinished = "" if work.bare else unfinished_in(work.own)


def _is_there(work: Work, reference: str) -> bool:
    return work.run("show-ref", "--verify", "--quiet", reference).returncode == 0


def _count(work: Work, mine: Sequence[str], against: Sequence[str]) -> int:
    asked = "\n".join([*mine, *(f"^{one}" for one in against), ""])
    return int(work.git("rev-list", "--count", "--stdin", given=asked))


def _look_at_files(work: Work, origin: Origin) -> None:
    work.changed = [entry[3:] for entry in work.names(*git.STATUS)]
    work.hidden = list(passed_over(work))
    for name, source in _ignored(work, origin):
        if os.path.basename(source) != ".gitignore" or os.path.isabs(source):
            work.hidden += _below(work, name)
        elif name[-1] != "/":  # whole directories are built by tools
            work.ignored.append(name)


def passed_over(work: Work) -> Iterator[str]:
    """Yield the changed files of the checkout that git was told to take as unchanged."""
    for entry in work.names("ls-files", "-v", "-z"):
        name, flag = entry[2:], entry[:1]
        if (flag == "S" or flag.islower()) and os.path.lexists(path := f"{work.path}/{name}"):
            mode, blob = work.git("ls-files", "--stage", "-z", "--", name, GIT_LITERAL_PATHSPECS="1").split()[:2]
            if mode != git.SUBMODULE and blob != _blob_of(work, path, name):
                yield name
        elif flag.islower():  # a deleted file; a sparse checkout lacks many, flagged S
            yield name


def _blob_of(work: Work, path: str, name: str) -> str:
    if os.path.islink(path):
        return work.git("hash-object", "--stdin", given=os.readlink(path)).strip()
    return "" if os.path.isdir(path) else work.git("hash-object", "--", name).strip()


def _ignored(work: Work, origin: Origin) -> Iterator[tuple[str, str]]:
    """Yield the files and directories that git ignores by rules added after the worktree was made, each with the file
    that has the rule.
    """
    words = ("ls-files", "--others", "--ignored", "--exclude-standard", "-z")
    whole, apart = _by_rule(work, work.names(*words, "--directory"))
    inside = work.names(*words, "--", *apart, GIT_LITERAL_PATHSPECS="1") if apart else []
    whole |= _by_rule(work, inside)[0]
    before: dict[str, set[str]] = {}
    for name, (source, rule) in whole.items():
        if source not in before:
            before[source] = _rules_before(work, source, origin)
        if rule not in before[source]:
            yield name, source


def _by_rule(work: Work, names: list[str]) -> tuple[dict[str, tuple[str, str]], list[str]]:
    """Return two values: for each ignored name, the file with the rule that ignores it and that rule; and the names of
    directories that are ignored only in part.
    """
    if not names:
        return {}, []
    given = "".join(f"{name}\0" for name in names)
    words = ("check-ignore", "--verbose", "--non-matching", "-z", "--stdin")
    done = work.run(*words, given=given)
    if done.returncode > 1:
        raise errors.StorageFailed(f"git check-ignore: {done.stderr.strip()}", f"Try it in {work.path}.")
    fields = done.stdout.split("\0")
    rules = {fields[start + 3]: (fields[start], fields[start + 2]) for start in range(0, len(fields) - 3, 4)}
    whole = {name: rule for name, rule in rules.items() if rule[0]}
    return whole, [name for name in rules if name not in whole]


def _rules_before(work: Work, source: str, origin: Origin) -> set[str]:
    if os.path.basename(source) == ".gitignore" and not os.path.isabs(source):
        shown = git.run(work.path, "show", f"{origin.base or 'HEAD'}:{source}")
        return set(shown.stdout.splitlines()) if shown.returncode == 0 else set()
    if origin.rules is not None:
        return set(origin.rules)
    path = os.path.join(work.path, source)
    made = os.stat(f"{work.own}/HEAD" if not os.path.exists(f"{work.own}/commondir") else f"{work.own}/commondir")
    return set(checkouts.lines_of(path)) if os.stat(path).st_mtime <= made.st_mtime else set()


def _below(work: Work, name: str) -> Iterator[str]:
    """Yield the files below the directory *name*, or *name* itself if it is a file. Nested repositories are skipped."""
    if not name.endswith("/"):
        yield name
        return
    for place, directories, files in _walk(f"{work.path}/{name}"):
        if ".git" in directories or ".git" in files:  # a nested repository
            directories.clear()
            continue
        linked = [each for each in directories if os.path.islink(f"{place}/{each}")]
        yield from (os.path.relpath(f"{place}/{each}", work.path) for each in [*files, *linked])


def _walk(top: str) -> Iterator[tuple[str, list[str], list[str]]]:
    def fail(error: OSError) -> None:
        raise error

    return os.walk(top, onerror=fail)


def _stashes_of(work: Work, branches: list[str]) -> Iterator[str]:
    """Yield the commits of the stashes that were made in this checkout. All checkouts of a repository share one list of
    stashes.
    """
    if not _is_there(work, "refs/stash"):
        return
    log = _read(f"{work.own}/logs/HEAD")
    moves = (line.partition("checkout: moving from ")[2] for line in log.splitlines())
    places = {branch for move in moves for branch in move.split(" to ")}
    places |= {work.branch, *(name.removeprefix("refs/heads/") for name in branches)}
    stood_on = {*_COMMIT.findall(log), work.head}
    for line in work.git("log", "--walk-reflogs", "--format=%H %P%x00%gs", "refs/stash", "--").splitlines():
        commits, _, subject = line.partition("\0")
        commit, first, *_ = commits.split()
        place = subject.partition(": ")[0].rpartition("n ")[2]
        if first in stood_on and (place in places or place == "(no branch)" or "(no branch)" in subject):
            yield commit


def _nested(work: Work, origin: Origin) -> Iterator[Work]:
    """Yield the work in each repository inside the checkout: in submodules, in other repositories, and in stores of
    submodules that are not checked out.
    """
    seen = set()
    for name in [] if work.bare else _places_of_repositories(work.path):
        one = Work(f"{work.path}/{name}", name)
        inside = Origin(rules=origin.rules)
        try:
            _distrust(one, work)
            _identify(one)
            seen.add(one.own)
            one.has_store = any(one.store.startswith(os.path.realpath(place) + "/") for place in (work.path, work.own))
            inside.base = _recorded(work, name, origin.base)
            _look_at_files(one, inside)
            if one.has_store:
                _look_at_store(one, inside.base)
            else:
                one.commits = _count(one, [one.head], _branches_of(one)) if one.head else 0
            one.nested = list(_nested(one, inside))
        except errors.TeamsError as problem:
            one.problem = problem.message
        yield one
    for place in _stores_in(f"{work.own}/modules"):
        if place not in seen:
            one = Work(place, os.path.relpath(place, work.own), bare=True)
            try:
                _distrust(one, work)
                _identify(one)
                _look_at_store(one, "")
                one.nested = list(_nested(one, Origin(rules=origin.rules)))
            except errors.TeamsError as problem:
                one.problem = problem.message
            yield one


def _distrust(work: Work, around: Work) -> None:
    """Keep git from running commands that the repository of *work* configures and the one *around* it does not. An
    agent that may edit files can write such a configuration.
    """
    named = _commands(work)
    trusted = _commands(around) if named else {}
    settings = {"core.hooksPath": os.devnull, "log.showSignature": "false"}
    for key, command in named.items():
        if trusted.get(key) != command:
            settings |= {key: "", f"{key.rpartition('.')[0]}.required": "false"}
    work.settings = {"GIT_CONFIG_COUNT": str(len(settings))}
    for number, (key, value) in enumerate(settings.items()):
        work.settings |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}


def _commands(work: Work) -> dict[str, str]:
    """Return the filter commands that git is configured to run in the checkout, by the key of the setting."""
    entries = [entry.partition("\n") for entry in work.git("config", "--null", "--list").split("\0")]
    return {key: command for key, _, command in entries if _FILTER.fullmatch(key) and command}


def _places_of_repositories(top: str) -> Iterator[str]:
    for place, directories, files in _walk(top):
        if place != top and (".git" in directories or ".git" in files):
            directories.clear()
            yield os.path.relpath(place, top)
        elif place == top and ".git" in directories:
            directories.remove(".git")


def _stores_in(place: str) -> Iterator[str]:
    """Yield the stores of submodules below the directory *place*, at any depth, because the names of submodules may
    have slashes.
    """
    if not os.path.isdir(place):
        return
    for directory, directories, files in _walk(place):
        if "HEAD" in files and "objects" in directories:
            directories.clear()
            yield os.path.realpath(directory)


def _recorded(work: Work, name: str, base: str) -> str:
    """Return the commit that the submodule *name* had in the commit *base*, before the agent began, or "" if that is
    unknown.
    """
    variables = {"GIT_LITERAL_PATHSPECS": "1"}
    listed = git.run(work.path, *git.LOOKING, "ls-tree", "-z", base, "--", name, variables=variables).stdout
    entry = listed.partition("\t")[0].split()
    return entry[2] if entry[:1] == [git.SUBMODULE] else ""


def _branches_of(work: Work) -> list[str]:
    words = ("refs/heads", "refs/tags", "refs/remotes")
    return work.git("for-each-ref", "--format=%(objectname)", *words).split()


def _look_at_store(work: Work, recorded: str) -> None:
    """Find the stashes in the store of *work*, and count the commits that no other repository is known to have."""
    listed = [line.split(" ") for line in work.git("for-each-ref", "--format=%(objectname) %(refname)").splitlines()]
    fetched = [commit for commit, name in listed if name.startswith("refs/remotes/")]
    cloned = {name for _, name in listed if name.startswith("refs/tags/") and fetched}
    cloned -= {name for name in cloned if os.path.lexists(f"{work.store}/{name}")}
    mine = [commit for commit, name in listed if not name.startswith("refs/remotes/") and name not in cloned]
    mine += _existing(work, _heads_of(work.store))
    work.stashed = work.git("log", "-g", "--format=%H", "refs/stash").split() if _is_there(work, "refs/stash") else []
    elsewhere = [*fetched, *_existing(work, {recorded} - {""})] if fetched else []
    work.commits = _count(work, [*mine, *work.stashed], elsewhere) if mine else 0


def _heads_of(store: str) -> set[str]:
    return {
        commit
        for place in (store, *(f"{store}/worktrees/{name}" for name in disk.names_in(f"{store}/worktrees")))
        for commit in _COMMIT.findall(_read(f"{place}/HEAD"))
    }


def _read(path: str) -> str:
    if not os.path.isfile(path) or os.path.getsize(path) > _MOST_READ:
        return ""
    with open(path, encoding="ascii", errors="replace") as file:
        return file.read()


def _existing(work: Work, commits: Sequence[str] | set[str]) -> list[str]:
    if not commits:
        return []
    printed = work.git("cat-file", "--batch-check=%(objectname) %(objecttype)", given="\n".join([*commits, ""]))
    return [line.split()[0] for line in printed.splitlines() if line.endswith(" commit")]


def tips(work: Work) -> list[str]:
    """Return all commits that git records for the checkout: HEAD and its earlier positions, unfinished operations,
    references of this checkout alone, and stashes. All other commits of the checkout can be reached from these.
    """
    stores = [work.own, *(f"{work.store}/worktrees/{name}" for name in disk.names_in(f"{work.store}/worktrees"))]
    places = stores if work.has_store else [work.own]
    files = [
        path
        for own in places
        for directory in _DIRECTORIES
        for name in disk.names_in(f"{own}/{directory}")
        if name not in _OTHERS_COMMITS and os.path.isfile(path := f"{own}/{directory}/{name}")
    ]
    files += [f"{own}/logs/HEAD" for own in places]
    named = {commit for path in files for commit in _COMMIT.findall(_read(path))}
    words = ["--format=%(refname) %(objectname) %(*objectname)"]
    kept = work.git("for-each-ref", *words, *(() if work.has_store else _OWN_REFERENCES))
    for line in kept.splitlines():
        name, *commits = line.split()
        named.update(commits if not name.startswith("refs/remotes/") else ())
    return _existing(work, named | set(work.stashed) | ({work.head} - {""}))


def has_left_behind(work: Work, against: Sequence[str]) -> bool:
    """Whether the checkout was once at commits that are now neither on a branch nor contained in *against*."""
    commits = tips(work)
    return bool(commits and _count(work, commits, [*against, *_branches_of(work)]))
