"""Worktrees: a checkout and a branch for each agent. Its work is merged, or kept when the worktree is removed."""

from __future__ import annotations

import os
import shlex
import shutil
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

from teams_cli import errors, text
from teams_cli.agents import checkouts, ending, git, keeping, merging, sessions, submodules, trees
from teams_cli.agents import work as works
from teams_cli.agents.seats import bindings
from teams_cli.agents.seats.terminals import TERMINAL
from teams_cli.agents.sessions import SESSION, Session
from teams_cli.names import HUMAN, is_name
from teams_cli.store.contract import Store
from teams_cli.store.files import disk
from teams_cli.store.retrying import update
from teams_cli.teams import history
from teams_cli.teams.permission import Caller, require

_GONE = ".removed-"
_TRIALS = (".own-", ".landing-", _GONE)
"""The beginnings of the names of temporary directories among the worktrees of a team."""


class Worktree:
    """The worktree of one agent, and the work in it. It is merged into the branch *onto*, which is checked out at *top*
    and whose commit is *tip*; *no_target* says why that is impossible, or is "". *known* says whether the record of the
    agent can be read. *checkout* is the checkout in which the agent was started.
    """

    def __init__(self, agent: str, path: str, branch: str, known: bool = True, checkout: str = "") -> None:
        self.agent = agent
        self.path = path
        self.branch = branch
        self.known = known
        self.origin = checkouts.load(path)
        self.top, self.onto, self.tip = "", "", ""
        self.no_target = ""
        if os.path.isdir(path):
            try:
                self._find_target()
            except errors.TeamsError as problem:
                self.no_target = problem.message
            against = [self.tip or self.origin.base] if self.tip or self.origin.base else []
            self.work = works.of_worktree(path, branch, against, self.origin)
        else:
            self.work = works.Work(path)
            again = f"git -C {shlex.quote(checkout)} worktree add -f {shlex.quote(path)} {branch}"
            self.no_target = self.work.problem = f"its directory was deleted; get it back: {again}"
        self.commits = self.work.commits
        self.uncommitted = self.work.files

    def _find_target(self) -> None:
        """Find the checkout that the worktree was made from, and the branch of that checkout. If the checkout is gone,
        take the main checkout of the repository, provided that its branch contains the commit at which the worktree
        began.
        """
        if not os.path.isdir(checkouts.own_directory(self.path)):
            self.no_target = f"its repository is gone, or was moved: there, git worktree repair {self.path}"
            return
        top = self.origin.top
        common = checkouts.repository_of(self.path)[1]
        if top and not (os.path.isdir(top) and checkouts.repository_of(top)[1] == common):
            top = ""
        if not top:
            main = git.worktrees(self.path)[0].removeprefix("worktree ")
            if not os.path.isdir(main) or checkouts.repository_of(main) != (os.path.realpath(main), common):
                self.no_target = f"the checkout that it was made from, {self.origin.top or 'unknown'}, is gone"
                return
            top = main
        self.onto = checkouts.branch_of(top)
        tip = git.must(top, "rev-parse", "--verify", "HEAD^{commit}").strip()
        if top != self.origin.top and self.origin.base and not merging.holds(top, tip, self.origin.base):
            self.no_target = f"the checkout that it was made from, {self.origin.top}, is gone"
            return
        self.top, self.tip = top, tip
        if not self.onto:
            self.no_target = f"{top} has no branch checked out"

    @property
    def state(self) -> str:
        """Whether the worktree holds work: `work`, `empty`, or `unknown` if git did not answer."""
        return self.work.state

    def line(self, team: str) -> str:
        """Return a line that says what work the worktree holds, with commands for the human to look at it, merge it or
        remove it.
        """
        where = f"{self.agent} --team {team}"
        if self.state == "empty":
            return f"{self.agent}: nothing on {self.branch}: `teams worktree remove {where} --as human`"
        ways = f"`teams worktree diff {where}`, `teams worktree merge {where} --as human`"
        return f"{self.agent}: {' and '.join(self.work.told())} on {self.branch}: {ways}"

    def to_json(self) -> dict[str, Any]:
        """Return the worktree as `teams worktree list --json` prints it."""
        return {
            "agent": self.agent,
            "path": self.path,
            "branch": self.branch,
            "state": self.state,
            "commits": self.commits,
            "uncommitted": self.uncommitted,
            "holds": self.work.told(),
            "repository": self.top or None,
        }


def all_of(store: Store, team: str) -> list[Worktree]:
    """Return the worktrees of the team, sorted by agent. They include worktrees whose directory was deleted while the
    branch remains, and worktrees of agents whose record is damaged.
    """
    worktrees = []
    for session in ending.all_of(store, team, []):
        if (path := session.worktree) and (branch := session.branch):
            top = session.checkout or ""
            if os.path.isdir(path) or (os.path.isdir(top) and _is_left(top, path, branch)):
                worktrees.append(Worktree(session.agent, path, branch, checkout=top))
    places = {os.path.realpath(tree.path) for tree in worktrees}
    for name in disk.names_in(folder := f"{store.root}/worktrees/{team}"):
        path, branch = trees.place_of(store.root, team, name)
        if is_name(name) and os.path.lexists(f"{path}/.git") and os.path.realpath(path) not in places:
            worktrees.append(Worktree(name, f"{folder}/{name}", branch, known=False))
    return sorted(worktrees, key=lambda tree: tree.agent)


def _is_left(top: str, path: str, branch: str) -> bool:
    """Whether *branch*, the branch of a worktree whose directory *path* was deleted, exists and is not checked out
    elsewhere.
    """
    place = merging.checked_out(top, branch) if merging.tip_of(top, branch) else top
    return not place or os.path.realpath(place) == os.path.realpath(path)


def unknown_in(store: Store, team: str) -> list[str]:
    """Return the entries in the folder of the team's worktrees that belong neither to an agent nor to the program."""
    owned = {os.path.realpath(tree.path) for tree in all_of(store, team) if tree.known}
    paths = [f"{store.root}/worktrees/{team}/{name}" for name in disk.names_in(f"{store.root}/worktrees/{team}")]
    return [
        path for path in paths if os.path.realpath(path) not in owned and not os.path.basename(path).startswith(_TRIALS)
    ]


def of_agent(store: Store, team: str, agent: str) -> Worktree:
    """Return the agent's worktree.

    Raises:
        AgentNotFound: It has none.
    """
    worktrees = all_of(store, team)
    for tree in worktrees:
        if tree.agent == agent:
            return tree
    names = ", ".join(tree.agent for tree in worktrees) or "none"
    raise errors.AgentNotFound(f"{agent} has no worktree in team {team}", f"Agents with one: {names}.")


def diff(tree: Worktree) -> str:
    """Return everything that the agent changed since its worktree was made, committed or not, as a patch.

    Raises:
        StorageFailed: git failed.
    """
    if tree.work.problem:
        raise errors.StorageFailed(tree.work.problem, f"Look in {tree.path}.")
    base = git.said(tree.path, "merge-base", "HEAD", tree.tip or "HEAD") or tree.origin.base
    return "".join(_diffs(tree.work, base, ""))


def _diffs(work: works.Work, base: str, place: str) -> list[str]:
    prefixes = (f"--src-prefix=a/{place}", f"--dst-prefix=b/{place}")
    empty = work.git("hash-object", "-t", "tree", "-w", "--stdin", given="").strip()
    words = ("diff", "--no-ext-diff", "--no-textconv", "--submodule=short", "--binary")
    parts = [work.git(*words, *prefixes, base or empty, keeping.tree_of(work))]
    for one in work.nested:
        if not one.bare and one.state == "work":
            parts += _diffs(
                one,
                git.said(work.path, "rev-parse", "--quiet", "--verify", f"{base}:{one.name}"),
                f"{place}{one.name}/",
            )
    return parts


def merge(store: Store, team: str, caller: Caller | None, agent: str) -> dict[str, Any]:
    """Commit what the agent left uncommitted, merge its work into the branch that its worktree was made from, and
    remove the worktree and its branch. If there is nothing to merge, the worktree and the branch are only removed, and
    `state` in the result is `removed`.

    Raises:
        Conflict: An agent is at work there, the changes conflict, files are in the way, or the merge would leave some
            work out. Everything is as it was.
        AgentNotFound: The agent has no worktree.
    """
    caller = require(store, team, caller, "worktree", agent).caller
    tree = _at_rest(store, team, agent)
    _end_interrupted(tree, team)
    _refuse_unmergeable(tree)
    source = _source(tree)
    before = [keeping.draft(tree.work)] if tree.work.changed else []
    try:
        commit = _merged(store, team, tree, source, *before)
    except merging.Clash as clash:
        raise _not_merged(tree, f"conflicts in {text.listed(clash.files)}") from None
    after = of_agent(store, team, agent)
    _refuse_unmergeable(after)
    if after.work.changed or not merging.holds(after.top, after.tip, after.work.head):
        raise errors.Conflict(f"{tree.path} has new work since it was merged", "Repeat the command.")
    merged = "removed" if tree.state == "empty" else "merged"
    kept = drop(store, team, after, commit, before)
    history.note(store, team, caller.name, f"worktree {merged}", agent=agent, commit=commit, kept=kept)
    return {**tree.to_json(), "state": merged, "commit": commit, "onto": tree.onto, "kept": kept}


def _refuse_unmergeable(tree: Worktree) -> None:
    work = tree.work
    if tree.no_target:
        raise errors.Conflict(f"{tree.branch} can't be merged: {tree.no_target}", _by_hand(tree))
    missing = [f"may hold work: {work.problem}"] if work.problem else []
    missing += [f"an unfinished {work.unfinished}"] if work.unfinished else []
    missing += [f"stashed: {', '.join(one[:10] for one in work.stashed)}"] if work.stashed else []
    missing += [f"files hidden from git: {text.listed(work.hidden)}"] if work.hidden else []
    links = submodules.wanted(tree.path, work.head) if work.head and not work.problem else {}
    for one in work.nested:
        if one.problem or one.bare or one.name not in links:
            missing += [f"{what} in {text.listed([one.name])}" for what in one.told()]
            missing += [f"a repository inside, {one.name}"] if one.name in {n.rstrip("/") for n in work.changed} else []
        elif one.state != "empty" and (what := _beside_head(one)):
            missing.append(f"{what} in {text.listed([one.name])}")
    if missing:
        raise errors.Conflict(
            f"{tree.path} has changes that a merge would leave out: {'; '.join(dict.fromkeys(missing))}",
            f"Commit or remove them, and repeat the command; or keep them: teams worktree remove {tree.agent} --force",
        )


def _beside_head(work: works.Work) -> str:
    """Return in words what a submodule holds besides the commits of its HEAD, or "" if it holds nothing else."""
    if work.changed or work.hidden or work.stashed or work.unfinished or work.nested_work:
        return " and ".join(work.told())
    listed = work.git("for-each-ref", "--format=%(refname)", "--no-merged", "HEAD", "refs/heads").split()
    return f"branches that are not in its HEAD: {text.listed(listed)}" if listed else ""


def _source(tree: Worktree) -> str:
    """Return the commit that contains all commits of the agent: HEAD of its worktree, or the tip of its branch if HEAD
    is behind the branch and no file is changed.

    Raises:
        Conflict: Neither has all of them.
    """
    head, own = tree.work.head, merging.tip_of(tree.path, tree.branch)
    if not own or merging.holds(tree.path, head, own):
        return head
    if not tree.work.changed and merging.holds(tree.path, own, head):
        return own
    raise errors.Conflict(
        f"{tree.path} is on {tree.work.branch or head[:10]}, and {tree.branch} has other commits",
        f"Run there: git merge {tree.branch}; and repeat the command.",
    )


def _by_hand(tree: Worktree) -> str:
    return f"Merge it by hand: git merge {tree.branch}; then teams worktree remove {tree.agent}"


def _not_merged(tree: Worktree, why: str) -> errors.Conflict:
    return errors.Conflict(f"{tree.branch} can't be merged into {tree.onto} of {tree.top}: {why}", _by_hand(tree))


def _merged(store: Store, team: str, tree: Worktree, source: str, draft: str = "") -> str:
    """Merge the commit *source* into the branch that the worktree was made from, and update the files of the checkout
    of that branch. Returns the new commit of that branch. *draft* is a commit with the uncommitted work, or "" if there
    is none.

    Raises:
        Conflict: This is not possible; everything is as it was.
        Clash: The changes conflict.
    """
    words = f"Merge the work of {tree.agent} in {team}"
    with ExitStack() as if_refused:
        try:
            if draft:  # tried before anything is written
                files = tree.work.git("rev-parse", f"{draft}^{{tree}}").strip()
                trial = tree.work.git("commit-tree", files, "-p", source, "-m", words, **git.NOBODY).strip()
                _refuse_in_the_way(tree, merging.merged(tree.top, tree.tip, trial, words))
                if_refused.enter_context(_as_it_was(tree, draft))
                source = _committed(tree, team)
            if merging.holds(tree.top, tree.tip, source):
                return tree.tip
            commit = merging.merged(tree.top, tree.tip, source, words)
            _refuse_in_the_way(tree, commit)
            if merging.has_hooks(tree.top):
                with trees.own_place(store.root, team, tree.top) as path:
                    commit = merging.merged_at(path, tree.top, tree.tip, source, words)
            if_refused.enter_context(submodules.carried(tree.work, tree.top, tree.tip, commit, tree.branch))
            _refuse_in_the_way(tree, commit)
            _move(tree, team, commit, words)
        except errors.StorageFailed as problem:
            raise _not_merged(tree, problem.message) from None
    return commit


def _move(tree: Worktree, team: str, commit: str, words: str) -> None:
    """Move the branch that the worktree is merged into, and the files of its checkout, to the commit.

    Raises:
        Conflict: The branch moved meanwhile, or the files can't follow. Both are as they were.
    """
    git.must(tree.top, "update-ref", _merging(tree, team), commit)
    try:
        if not merging.move(tree.top, tree.onto, tree.tip, commit, words):
            raise errors.Conflict(f"{tree.onto} of {tree.top} moved meanwhile", "Repeat the command.")
        if not merging.follow(tree.top, tree.tip, commit):
            merging.move(tree.top, tree.onto, commit, tree.tip, f"Refused: {words}")
            merging.follow(tree.top, commit, tree.tip)
            why = merging.in_the_way(tree.top, tree.tip, commit, attended=True)
            raise _not_merged(tree, why or "git can't update the files of the checkout")
    finally:
        git.run(tree.top, "update-ref", "-d", _merging(tree, team), commit)


@contextmanager
def _as_it_was(tree: Worktree, draft: str) -> Iterator[None]:
    """Restore the branch, the index and the files of the worktree if the `with` block fails, because a hook may have
    changed them. *draft* is a commit with the files as they were.
    """
    index = f"{tree.work.own}/index"
    staged = disk.read_file(index, os.path.getsize(index)) if os.path.exists(index) else b""
    try:
        yield
    except BaseException:
        head = git.said(tree.path, "rev-parse", "HEAD")
        if head != tree.work.head:
            git.run(tree.path, "update-ref", "-m", "Refused by teams worktree merge", "HEAD", tree.work.head, head)
        with suppress(errors.TeamsError):  # the first error is the one to report
            keeping.put_back(tree.work, draft)
        if staged and not os.path.lexists(f"{index}.lock"):
            with open(f"{index}.lock", "xb") as file:
                file.write(staged)
            os.replace(f"{index}.lock", index)
        raise


def _merging(tree: Worktree, team: str) -> str:
    """Return the reference that records to which commit a branch is about to move."""
    return f"refs/teams/merging/{team}/{tree.agent}"


def _end_interrupted(tree: Worktree, team: str) -> None:
    """Finish an interrupted merge that moved its branch but not yet the checkout."""
    commit = git.said(tree.path, "show-ref", "--verify", "--hash", _merging(tree, team)) if tree.top else ""
    if not commit:
        return
    if merging.holds(tree.top, tree.tip, commit):
        merging.follow(tree.top, git.said(tree.top, "rev-parse", f"{commit}^1"), tree.tip)
    git.run(tree.top, "update-ref", "-d", _merging(tree, team), commit)


def _refuse_in_the_way(tree: Worktree, commit: str) -> None:
    if why := merging.in_the_way(tree.top, tree.tip, commit, attended=True):
        raise _not_merged(tree, why)


def _committed(tree: Worktree, team: str) -> str:
    """Commit what the agent left uncommitted in its worktree, and run the hooks of the repository. Returns the
    commit.
    """
    nobody = git.NOBODY if git.run(tree.path, "var", "GIT_COMMITTER_IDENT").returncode else {}
    for words in (("add", "--all", "--sparse"), ("commit", "--quiet", "-m", f"Work of {tree.agent} in {team}")):
        done = git.run(tree.path, *words, variables=nobody)
        if done.returncode:
            raise errors.Conflict(
                f"the work of {tree.agent} in {tree.path} can't be committed: {(done.stderr or done.stdout).strip()}",
                "Fix and commit it there, and repeat the command.",
            )
    if left := git.names(tree.path, *git.LOOKING, *git.STATUS):
        raise errors.Conflict(
            f"{tree.path} has uncommitted changes after its hooks ran: {text.listed([name[3:] for name in left])}",
            "Check that directory, and repeat the command.",
        )
    return git.must(tree.path, "rev-parse", "HEAD").strip()


def remove(store: Store, team: str, caller: Caller | None, agent: str, force: bool = False) -> dict[str, Any]:
    """Remove the agent's worktree and its branch. The work in them is kept.

    Raises:
        Conflict: It has unmerged work and *force* was not given, or somebody is at work there.
        AgentNotFound: The agent has no worktree.
    """
    caller = require(store, team, caller, "worktree", agent).caller
    tree = _at_rest(store, team, agent)
    _end_interrupted(tree, team)
    if tree.state != "empty" and not force:
        raise errors.Conflict(
            f"{tree.path} has work: {', '.join(tree.work.told())}",
            f"See it: teams worktree diff {agent}; merge it: teams worktree merge {agent}; or use --force.",
        )
    removed = drop(store, team, tree)
    history.note(store, team, caller.name, "worktree removed", agent=agent, kept=removed)
    return {**tree.to_json(), "state": "removed", "kept": removed}


def _at_rest(store: Store, team: str, agent: str) -> Worktree:
    session = ending.current(store, team, agent)
    if session and not session.ended:
        raise errors.Conflict(f"{agent} is at work in its worktree", f"Wait for it: teams wait --agent {agent}")
    tree = of_agent(store, team, agent)
    refuse_occupied(store, team, tree.path)
    return tree


def refuse_occupied(store: Store, team: str, directory: str) -> None:
    """Refuse to remove a directory if an agent or a process works in it or below it.

    Raises:
        Conflict: Somebody does; names them.
    """
    if occupants := list(dict.fromkeys([*_by_records(store, team, directory), *_by_processes(directory)])):
        raise errors.Conflict(
            f"{directory} is in use by {', '.join(occupants[:5])}{', and others' if len(occupants) > 5 else ''}",
            "End them (teams stop-agent AGENT), or leave the directory, and repeat the command.",
        )


def _by_records(store: Store, team: str, directory: str) -> Iterator[str]:
    for session, _ in store.scan(team, sessions.SESSION, []):
        if _is_in(session.directory, directory) and not session.ended and not ending.is_lost(store, team, session):
            yield session.agent
    for terminal, _ in store.scan(team, TERMINAL, []):
        if _is_in(terminal.directory, directory) and terminal.has_ended is False:
            yield terminal.agent


def _by_processes(directory: str) -> Iterator[str]:
    for name in os.listdir("/proc") if os.path.isdir("/proc/self") else ():
        if name.isdigit() and int(name) != os.getpid():
            with suppress(OSError):  # it has ended, or belongs to another user
                if _is_in(os.readlink(f"/proc/{name}/cwd"), directory):
                    yield f"process {name} ({bindings.name_of(int(name)) or 'ended'})"


def _is_in(place: str, directory: str) -> bool:
    real = os.path.realpath(directory)
    return bool(place) and f"{os.path.realpath(place)}/".startswith(f"{real}/")


def drop(store: Store, team: str, tree: Worktree, merged: str = "", before: Sequence[str] = ()) -> str | None:
    """Keep the work in the worktree, and the drafts in *before*, then remove the worktree and its branch. *merged* is
    the commit that merged the work, if any did. Returns the reference of the kept work, or None if there was no work.

    Raises:
        Conflict: The work can't be kept, or somebody is at work there; nothing is removed.
    """
    refuse_occupied(store, team, tree.path)
    about = {"path": tree.path, "made_on": tree.branch, "origin": tree.origin.to_json(), "merged": merged or None}
    holds = tree.state != "empty" or merged or works.has_left_behind(tree.work, [tree.tip] if tree.tip else [])
    ref = keeping.keep(store, team, tree.agent, tree.work, about, before) if holds else None
    gone = f"{store.root}/worktrees/{team}/{_GONE}{tree.agent}-{os.urandom(6).hex()}"
    common = tree.work.store
    tip = merging.tip_of(tree.path, tree.branch)
    disk.make_directories(os.path.dirname(gone), store.root)
    try:
        os.rename(tree.path, gone)  # in one step: half a worktree would look like work
    except OSError as error:
        raise disk.failed("move", tree.path, error) from None
    _clear(gone)
    own = {"GIT_DIR": common}
    git.must(common, "worktree", "remove", "--force", "--force", tree.path, variables=own)
    listed = git.must(common, "worktree", "list", "--porcelain", variables=own).split("\n")
    if tip and f"branch refs/heads/{tree.branch}" not in listed:
        git.must(common, "update-ref", "-d", f"refs/heads/{tree.branch}", tip, variables=own)
        git.run(common, "config", "--remove-section", f"branch.{tree.branch}", variables=own)

    def removed(session: Session) -> Session:
        return session.having(checkout=tree.top) if session.worktree == tree.path else session

    with suppress(errors.NotFound):  # a member without a session
        update(store, team, SESSION.also_closed, tree.agent, removed)
    return ref


def _clear(path: str) -> None:
    def again(function: Callable[..., Any], place: str, _: object) -> None:
        with suppress(OSError):
            os.chmod(os.path.dirname(place), stat.S_IRWXU)
            os.chmod(place, stat.S_IRWXU)
            function(place)

    shutil.rmtree(path, onerror=again)


def restore(store: Store, caller: Caller | None, ref: str, directory: str) -> dict[str, Any]:
    """Restore the kept work *ref* in a new worktree of its team. The kept work is looked for in the repository around
    *directory* and in those recorded on this machine.

    Raises:
        NotFound: There is no such kept work.
        AlreadyExists: Every name for the worktree is taken.
        NotAllowed: You do not lead the team.
    """
    kept = keeping.find(store, ref, directory)
    if kept.team in store.teams():
        require(store, kept.team, caller, "worktree", kept.agent)
    elif caller is not None and not caller.is_human:
        raise errors.NotAllowed(f"the team {kept.team} is gone, so only the person may do this", f"Use --as {HUMAN}.")
    for number in range(1, 100):
        name = kept.agent if number == 1 else f"{kept.agent}-{number}"
        try:
            trees.refuse_stale(store.root, kept.team, name, kept.repository)
        except errors.AlreadyExists:
            continue
        path, branch = trees.place_of(store.root, kept.team, name)
        disk.make_directories(os.path.dirname(path), store.root)
        keeping.bring_back(kept, path, branch)
        return {**Worktree(name, path, branch, known=False).to_json(), "state": "restored", "ref": kept.ref}
    raise errors.AlreadyExists(
        f"every name for a worktree of {kept.agent} is taken", "Remove some: teams worktree list"
    )
