"""Worktrees: a checkout and a branch for each agent. The work in a worktree is merged, or is kept when the worktree is
removed.
"""

from __future__ import annotations

import os
import shlex
import shutil
import stat
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from teams_cli import errors, text
from teams_cli.agents import checkouts, ending, git, keeping, merging, sessions, submodules, trees
from teams_cli.agents import work as works
from teams_cli.agents.seats import bindings
from teams_cli.agents.seats.terminals import TERMINAL
from teams_cli.agents.sessions import SESSION, Session
from teams_cli.names import HUMAN, is_name
from teams_cli.store.contract import Store, update
from teams_cli.store.files import disk
from teams_cli.teams import history
from teams_cli.teams.permission import Caller, require

_REMOVED = ".removed-"
_TEMPORARY = (".own-", ".landing-", _REMOVED)
"""The beginnings of the names of temporary directories among the worktrees of a team."""


class _Target(NamedTuple):
    """The branch into which the work of a worktree is merged: its name *branch*, its commit *tip*, and *checkout*,
    where it is checked out. Each of these is "" if it is not known. *problem* says why a merge is impossible, or is "".

    A checkout without a branch has no *tip*, because work that only its HEAD contains is lost when HEAD moves.
    """

    checkout: str = ""
    branch: str = ""
    tip: str = ""
    problem: str = ""


class Worktree:
    """The worktree of one agent, and the work in it.

    Its work is merged into *target_branch*, which is checked out at *target* and whose commit is *target_tip*.
    *no_target* says why a merge is impossible, or is "". *has_record* says whether the record of the agent can be read.
    *checkout* is the checkout in which the agent was started.
    """

    def __init__(self, agent: str, path: str, branch: str, has_record: bool = True, checkout: str = "") -> None:
        self.agent = agent
        self.path = path
        self.branch = branch
        self.has_record = has_record
        self.checkout = checkout
        self.origin = checkouts.load(path)
        if os.path.isdir(path):
            target = _target_of(path, self.origin)
            base = target.tip or self.origin.base
            self.work = works.of_worktree(path, branch, [base] if base else [], self.origin)
        else:
            command = _command_to_get_back(path, branch, checkout)
            target = _Target(problem=f"its directory was deleted; get it back: {command}")
            self.work = works.Work(path)
            if not _was_merged(path, branch, checkout):
                self.work.problem = target.problem
        self.target, self.target_branch, self.target_tip, self.no_target = target

    @property
    def state(self) -> str:
        """Whether the worktree holds work: `work`, `empty`, or `unknown` if git did not answer."""
        return self.work.state

    def line(self, team: str) -> str:
        """Return a line about the work in the worktree, with commands for the human to see, merge or remove it."""
        options = f"{self.agent} --team {team}"
        if self.state == "empty":
            return f"{self.agent}: nothing on {self.branch}: `teams worktree remove {options} --as human`"
        commands = f"`teams worktree diff {options}`, `teams worktree merge {options} --as human`"
        return f"{self.agent}: {' and '.join(self.work.phrases())} on {self.branch}: {commands}"

    def to_json(self) -> dict[str, Any]:
        """Return the worktree as `teams worktree list --json` prints it."""
        return {
            "agent": self.agent,
            "path": self.path,
            "branch": self.branch,
            "state": self.state,
            "commits": self.work.commits,
            "uncommitted": self.work.files,
            "holds": self.work.phrases(),
            "repository": self.target or None,
        }


def _command_to_get_back(path: str, branch: str, checkout: str) -> str:
    """Return a command that makes the worktree again whose directory *path* was deleted."""
    quoted = shlex.quote(path)
    if not (data := checkouts.data_of_deleted(checkout, path)):
        return f"git -C {shlex.quote(checkout)} worktree add -f {quoted} {branch}"
    link = shlex.quote(f"gitdir: {data}")
    return f"mkdir -p {quoted} && echo {link} >{shlex.quote(f'{path}/.git')} && git -C {quoted} checkout-index --all"


def _was_merged(path: str, branch: str, checkout: str) -> bool:
    """Whether the branch of the *checkout* contains everything that git still has of the worktree whose directory
    *path* was deleted: its *branch*, its HEAD, and its staged files.
    """
    head = merging.tip_of(checkout, checkouts.branch_of(checkout))
    if not merging.holds(checkout, head, merging.tip_of(checkout, branch)):
        return False
    data = checkouts.data_of_deleted(checkout, path)
    if not data:
        return True
    variables = {"GIT_DIR": data}
    own_head = git.run(checkout, "rev-parse", "--verify", "HEAD^{commit}", variables=variables).stdout.strip()
    staged = git.run(checkout, "diff-index", "--cached", "--quiet", "HEAD", variables=variables).returncode
    return merging.holds(checkout, head, own_head) and not staged and not works.unfinished_in(data)


def _target_of(path: str, origin: checkouts.Origin) -> _Target:
    """Return the branch into which the work of the worktree at *path* is merged: that of the checkout from which the
    worktree was made or, if this is gone, that of the main checkout. The branch of the main checkout is used only if it
    contains the commit at which the worktree began, or if that commit is not known.
    """
    if not os.path.isdir(checkouts.git_directory(path)):
        return _Target(problem=f"its repository is gone, or was moved: there, git worktree repair {path}")
    try:
        common = checkouts.repository_of(path)[1]
        has_origin = origin.top and os.path.isdir(origin.top) and checkouts.repository_of(origin.top)[1] == common
        checkout = origin.top
        if not has_origin:
            main = git.worktrees(path)[0].removeprefix("worktree ")  # git lists the main checkout first
            # A bare repository is listed there too, but is no checkout.
            is_checkout = os.path.isdir(main) and checkouts.repository_of(main) == (os.path.realpath(main), common)
            checkout = main if is_checkout else ""
        if checkout:
            branch = checkouts.branch_of(checkout)
            tip = git.must(checkout, "rev-parse", "--verify", "HEAD^{commit}").strip()
            if has_origin or not origin.base or merging.holds(checkout, tip, origin.base):
                if not branch:
                    return _Target(checkout, problem=f"{checkout} has no branch checked out")
                return _Target(checkout, branch, tip)
    except errors.TeamsError as problem:
        return _Target(problem=problem.message)
    return _Target(problem=f"the checkout that it was made from, {origin.top or 'unknown'}, is gone")


def all_of(store: Store, team: str) -> list[Worktree]:
    """Return the worktrees of the team, sorted by agent. They include worktrees whose directory was deleted while the
    branch remains, and worktrees of agents whose record is damaged.
    """
    worktrees = []
    for session in ending.all_of(store, team, []):
        if not session.worktree or not session.branch:
            continue
        path, branch = session.worktree, session.branch
        checkout = session.checkout or ""
        if os.path.isdir(path) or _can_be_made_again(path, branch, checkout):
            worktrees.append(Worktree(session.agent, path, branch, checkout=checkout))
    # The other worktrees in the team's folder belong to agents whose record is missing or damaged.
    known_paths = {os.path.realpath(tree.path) for tree in worktrees}
    for name in disk.names_in(f"{store.root}/worktrees/{team}"):
        path, branch = trees.place_of(store.root, team, name)
        if is_name(name) and os.path.lexists(f"{path}/.git") and os.path.realpath(path) not in known_paths:
            worktrees.append(Worktree(name, path, branch, has_record=False))
    return sorted(worktrees, key=lambda tree: tree.agent)


def _can_be_made_again(path: str, branch: str, checkout: str) -> bool:
    """Whether git can make the deleted worktree at *path* again, because its *branch* remains in the repository of the
    *checkout* and is not checked out elsewhere.
    """
    if not (os.path.isdir(checkout) and merging.tip_of(checkout, branch)):
        return False
    checked_out_at = merging.checked_out(checkout, branch)
    if not checked_out_at:
        return True
    return os.path.realpath(checked_out_at) == os.path.realpath(path)  # git may still list the deleted worktree


def unknown_in(store: Store, team: str) -> list[str]:
    """Return the paths in the folder of the team's worktrees that are neither worktrees of known agents nor temporary
    directories of `teams`.
    """
    folder = f"{store.root}/worktrees/{team}"
    known_paths = {os.path.realpath(tree.path) for tree in all_of(store, team) if tree.has_record}
    paths = [f"{folder}/{name}" for name in disk.names_in(folder) if not name.startswith(_TEMPORARY)]
    return [path for path in paths if os.path.realpath(path) not in known_paths]


def of_agent(store: Store, team: str, agent: str) -> Worktree:
    """Return the agent's worktree. Raises AgentNotFound if it has none."""
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
    if not os.path.isdir(tree.path):  # it was deleted, and its branch is merged: else there is a problem above
        return ""
    target = tree.target_tip or tree.origin.base or "HEAD"
    base = git.output_of(tree.path, "merge-base", "HEAD", target) or tree.origin.base
    return _diff_since(tree.work, base, "")


def _diff_since(work: works.Work, base: str, prefix: str) -> str:
    """Return, as a patch, what changed since the commit *base* in the checkout and in its nested repositories. If
    *base* is "", the patch adds every file. *prefix* is put before the names of the files.
    """
    prefixes = (f"--src-prefix=a/{prefix}", f"--dst-prefix=b/{prefix}")
    empty_tree = work.git("hash-object", "-t", "tree", "-w", "--stdin").strip()
    words = ("diff", "--no-ext-diff", "--no-textconv", "--submodule=short", "--binary")
    patch = work.git(*words, *prefixes, base or empty_tree, keeping.tree_of(work))
    for nested in work.nested:
        if not nested.bare and nested.state == "work":
            nested_base = git.output_of(work.path, "rev-parse", "--quiet", "--verify", f"{base}:{nested.name}")
            patch += _diff_since(nested, nested_base, f"{prefix}{nested.name}/")
    return patch


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
    tree = _with_directory(_unoccupied(store, team, agent))
    _finish_interrupted_merge(tree, team)
    _refuse_unmergeable(tree)
    source = _commit_with_all_work(tree)
    draft = keeping.draft(tree.work) if tree.work.changed else ""
    try:
        commit = _merge_into_target(store, team, tree, source, draft)
    except merging.Clash as clash:
        raise _not_merged(tree, f"conflicts in {text.listed(clash.files)}") from None
    except errors.StorageFailed as problem:
        raise _not_merged(tree, problem.message) from None
    after = of_agent(store, team, agent)  # the agent's processes may have written meanwhile
    _refuse_unmergeable(after)
    if after.work.changed or not merging.holds(after.target, after.target_tip, after.work.head):
        raise errors.Conflict(f"{tree.path} has new work since it was merged", "Repeat the command.")
    state = "removed" if tree.state == "empty" else "merged"
    kept = drop(store, team, after, commit, [draft] if draft else [])
    history.note(store, team, caller.name, f"worktree {state}", agent=agent, commit=commit, kept=kept)
    return {**tree.to_json(), "state": state, "commit": commit, "onto": tree.target_branch, "kept": kept}


def _refuse_unmergeable(tree: Worktree) -> None:
    """Refuse to merge a worktree that has no branch to be merged into, or has work that a merge would leave out."""
    work = tree.work
    if tree.no_target:
        raise errors.Conflict(f"{tree.branch} can't be merged: {tree.no_target}", _how_to_merge_by_hand(tree))
    omitted = [f"may hold work: {work.problem}"] if work.problem else []
    if work.unfinished:
        omitted.append(f"an unfinished {work.unfinished}")
    if work.stashed:
        omitted.append(f"stashed: {', '.join(commit[:10] for commit in work.stashed)}")
    if work.hidden:
        omitted.append(f"files hidden from git: {text.listed(work.hidden)}")
    committed = submodules.wanted(tree.path, work.head) if work.head and not work.problem else {}
    changed = {name.rstrip("/") for name in work.changed}
    for nested in work.nested:
        place = text.listed([nested.name])
        if nested.problem or nested.bare or nested.name not in committed:  # a merge takes nothing from it
            omitted += [f"{phrase} in {place}" for phrase in nested.phrases()]
            if nested.name in changed:
                omitted.append(f"a repository inside, {nested.name}")
        elif nested.changed or nested.hidden or nested.stashed or nested.unfinished or nested.has_nested_work:
            # A merge takes only the commits of a submodule.
            omitted.append(f"{' and '.join(nested.phrases())} in {place}")
        elif nested.state != "empty":  # of its commits, a merge takes those that its HEAD contains
            words = ("for-each-ref", "--format=%(refname)", "--no-merged", "HEAD", "refs/heads")
            if branches := nested.git(*words).split():
                omitted.append(f"branches that are not in its HEAD: {text.listed(branches)} in {place}")
    if omitted:
        raise errors.Conflict(
            f"{tree.path} has changes that a merge would leave out: {'; '.join(dict.fromkeys(omitted))}",
            f"Commit or remove them, and repeat the command; or keep them: teams worktree remove {tree.agent} --force",
        )


def _commit_with_all_work(tree: Worktree) -> str:
    """Return the commit that contains all commits of the agent: HEAD, or the last commit of its branch if an older
    commit is checked out and no file is changed. Raises Conflict if neither contains all of them.
    """
    head, tip = tree.work.head, merging.tip_of(tree.path, tree.branch)
    if not tip or merging.holds(tree.path, head, tip):
        return head
    if not tree.work.changed and merging.holds(tree.path, tip, head):
        return tip
    raise errors.Conflict(
        f"{tree.path} is on {tree.work.branch or head[:10]}, which lacks commits of {tree.branch}",
        f"In that directory, run: git merge {tree.branch}. Then repeat the command.",
    )


def _how_to_merge_by_hand(tree: Worktree) -> str:
    return f"Merge it by hand: git merge {tree.branch}; then teams worktree remove {tree.agent}"


def _not_merged(tree: Worktree, why: str) -> errors.Conflict:
    why = f"{tree.branch} can't be merged into {tree.target_branch} of {tree.target}: {why}"
    return errors.Conflict(why, _how_to_merge_by_hand(tree))


def _merge_into_target(store: Store, team: str, tree: Worktree, source: str, draft: str) -> str:
    """Merge the commit *source* into the branch that the worktree was made from, update the branch's checkout, and
    return the new commit of the branch. *draft* is a commit with the uncommitted work, or "" if everything was
    committed. If an error is raised, everything is restored.
    """
    message = f"Merge the work of {tree.agent} in {team}"
    if not draft:
        return _merge_commit(store, team, tree, source, message)
    work = tree.work  # a merge with the uncommitted files is tried before anything is written
    files = work.git("rev-parse", f"{draft}^{{tree}}").strip()
    source_with_draft = work.git("commit-tree", files, "-p", source, "-m", message, **git.NOBODY).strip()
    _refuse_in_the_way(tree, merging.make_merge(tree.target, tree.target_tip, source_with_draft, message))
    index = f"{work.git_directory}/index"
    staged = disk.read_file(index, os.path.getsize(index)) if os.path.exists(index) else b""
    try:
        return _merge_commit(store, team, tree, _commit_uncommitted(tree, team), message)
    except BaseException:  # restore the branch, the files and the index, which a hook may have changed
        head = git.output_of(tree.path, "rev-parse", "HEAD")
        if head != work.head:
            git.run(tree.path, "update-ref", "-m", "Refused by teams worktree merge", "HEAD", work.head, head)
        with suppress(errors.TeamsError):  # the first error is the one to report
            keeping.put_back(work, draft)
        if staged and not os.path.lexists(f"{index}.lock"):  # written as git does, under its lock
            with open(f"{index}.lock", "xb") as file:
                file.write(staged)
            os.replace(f"{index}.lock", index)
        raise


def _merge_commit(store: Store, team: str, tree: Worktree, source: str, message: str) -> str:
    """Merge the commit *source* into the target branch, update its checkout, and return the resulting commit of the
    branch.
    """
    target, tip = tree.target, tree.target_tip
    # All commits of submodules since the worktree began are copied: an earlier landing, or merge by hand, may have
    # brought the target only the commits that refer to them.
    base = tree.origin.base if merging.holds(target, source, tree.origin.base) else ""
    if merging.holds(target, tip, source):
        with submodules.carried(target, base, source, tree.branch):
            return tip
    commit = merging.make_merge(target, tip, source, message)
    _refuse_in_the_way(tree, commit)
    if merging.has_hooks(target):
        with trees.own_place(store.root, team, target) as path:
            commit = merging.merge_in_checkout(path, target, tip, source, message)
    reference, branch = _reference_of_merge(tree, team), tree.target_branch
    is_behind = False
    with submodules.carried(target, base, commit, tree.branch):
        _refuse_in_the_way(tree, commit)  # the hooks took time
        git.must(target, "update-ref", reference, commit)  # lets a later command finish this merge
        try:
            if not merging.move(target, branch, tip, commit, message):
                raise errors.Conflict(f"{branch} of {target} moved meanwhile", "Repeat the command.")
            if not merging.follow(target, tip, commit):
                is_behind = not _take_back(tree, tip, commit, message)
                if not is_behind:
                    why = merging.in_the_way(target, tip, commit, attended=True)
                    raise _not_merged(tree, why or "git can't update the files of the checkout")
        finally:
            if not is_behind:
                git.run(target, "update-ref", "-d", reference, commit)
    if is_behind:
        raise _behind(tree, tip, commit)
    return commit


def _take_back(tree: Worktree, tip: str, commit: str, message: str) -> bool:
    """Move the target branch back from the merge *commit* to *tip*, with the files of its checkout. Return False if the
    branch still has the merge, for example because somebody has committed on top of it.
    """
    with suppress(errors.TeamsError):
        if merging.move(tree.target, tree.target_branch, commit, tip, f"Refused: {message}"):
            merging.follow(tree.target, commit, tip)
    return not merging.is_on_branch(tree.target, tree.target_branch, commit)


def _behind(tree: Worktree, before: str, commit: str) -> errors.Conflict:
    """Return an error that says that the target branch was moved from *before* to the merge *commit*, but that its
    checkout still has older files.
    """
    why = merging.in_the_way(tree.target, before, commit, attended=True) or "git can't update them"
    return errors.Conflict(
        f"{tree.branch} was merged into {tree.target_branch}, but the files of {tree.target} are older: {why}",
        "Clear that, and repeat the command. Until then, a commit there would undo the merge.",
    )


def _reference_of_merge(tree: Worktree, team: str) -> str:
    """Return the name of the reference that records, during a merge, the new commit of the target branch."""
    return f"refs/teams/merging/{team}/{tree.agent}"


def _finish_interrupted_merge(tree: Worktree, team: str) -> None:
    """If an earlier merge ended after it had moved the target branch, update the files in its checkout. Raises Conflict
    if git can't update them.
    """
    if not tree.target_tip:  # no branch is known
        return
    reference = _reference_of_merge(tree, team)
    commit = git.output_of(tree.path, "show-ref", "--verify", "--hash", reference)
    if not commit:
        return
    if merging.holds(tree.target, tree.target_tip, commit):  # else the branch was not moved
        before = git.output_of(tree.target, "rev-parse", f"{commit}^1")
        if not merging.follow(tree.target, before, tree.target_tip):
            raise _behind(tree, before, tree.target_tip)
    git.run(tree.target, "update-ref", "-d", reference, commit)


def _refuse_in_the_way(tree: Worktree, commit: str) -> None:
    if checkouts.branch_of(tree.target) != tree.target_branch:  # a hook, or somebody else, switched the branch
        raise errors.Conflict(f"{tree.target} is no longer on {tree.target_branch}", "Repeat the command.")
    if why := merging.in_the_way(tree.target, tree.target_tip, commit, attended=True):
        raise _not_merged(tree, why)


def _commit_uncommitted(tree: Worktree, team: str) -> str:
    """Commit what the agent left uncommitted, with the hooks of the repository, and return the commit."""
    nobody = git.NOBODY if git.run(tree.path, "var", "GIT_COMMITTER_IDENT").returncode else {}
    for words in (("add", "--all", "--sparse"), ("commit", "--quiet", "-m", f"Work of {tree.agent} in {team}")):
        done = git.run(tree.path, *words, variables=nobody)
        if done.returncode:
            raise errors.Conflict(
                f"the work of {tree.agent} in {tree.path} can't be committed: {git.why_failed(done)}",
                "Fix and commit it there, and repeat the command.",
            )
    if entries := git.names(tree.path, *git.LOOKING, *git.STATUS):
        raise errors.Conflict(
            f"{tree.path} has uncommitted changes after its hooks ran: {text.listed([name[3:] for name in entries])}",
            "Check that directory, and repeat the command.",
        )
    return git.must(tree.path, "rev-parse", "HEAD").strip()


def remove(store: Store, team: str, caller: Caller | None, agent: str, force: bool = False) -> dict[str, Any]:
    """Remove the agent's worktree and its branch. The work in them is kept.

    Raises:
        Conflict: The worktree has unmerged work and *force* was not given, or somebody is at work there.
        AgentNotFound: The agent has no worktree.
    """
    caller = require(store, team, caller, "worktree", agent).caller
    tree = _unoccupied(store, team, agent)
    _finish_interrupted_merge(tree, team)
    if tree.state != "empty" and not force:
        raise errors.Conflict(
            f"{tree.path} has work: {', '.join(tree.work.phrases())}",
            f"See it: teams worktree diff {agent}; merge it: teams worktree merge {agent}; or use --force.",
        )
    kept = drop(store, team, tree)
    history.note(store, team, caller.name, "worktree removed", agent=agent, kept=kept)
    return {**tree.to_json(), "state": "removed", "kept": kept}


def _unoccupied(store: Store, team: str, agent: str) -> Worktree:
    """Return the agent's worktree. Raises Conflict if an agent or a process is at work there."""
    session = ending.current(store, team, agent)
    if session and not session.ended:
        raise errors.Conflict(f"{agent} is at work in its worktree", f"Wait for it: teams wait --agent {agent}")
    tree = of_agent(store, team, agent)
    refuse_occupied(store, team, tree.path)
    return tree


def _with_directory(tree: Worktree) -> Worktree:
    """Return the worktree. If its directory was deleted, make it again first, with the files of its branch."""
    if os.path.isdir(tree.path):
        return tree
    trees.add_for_branch(tree.checkout, tree.path, tree.branch)
    return Worktree(tree.agent, tree.path, tree.branch, tree.has_record, tree.checkout)


def refuse_occupied(store: Store, team: str, directory: str) -> None:
    """Refuse to remove the *directory* if an agent or a process works in it or below it."""
    occupants = []
    for session, _ in store.scan(team, sessions.SESSION, []):
        if _is_in(session.directory, directory) and not session.ended and not ending.is_lost(store, team, session):
            occupants.append(session.agent)
    for terminal, _ in store.scan(team, TERMINAL, []):
        if _is_in(terminal.directory, directory) and terminal.has_ended is False:
            occupants.append(terminal.agent)
    names_in_proc = os.listdir("/proc") if os.path.isdir("/proc/self") else []  # only Linux shows its processes there
    for name in names_in_proc:
        if name.isdigit() and int(name) != os.getpid():
            with suppress(OSError):  # it has ended, or belongs to another user
                if _is_in(os.readlink(f"/proc/{name}/cwd"), directory):
                    occupants.append(f"process {name} ({bindings.name_of(int(name)) or 'ended'})")
    occupants = list(dict.fromkeys(occupants))
    if occupants:
        raise errors.Conflict(
            f"{directory} is in use by {', '.join(occupants[:5])}{', and others' if len(occupants) > 5 else ''}",
            "End them (an agent: teams stop-agent AGENT; a process: kill NUMBER), or leave it, and repeat the command.",
        )


def _is_in(path: str, directory: str) -> bool:
    return bool(path) and f"{os.path.realpath(path)}/".startswith(f"{os.path.realpath(directory)}/")


def drop(store: Store, team: str, tree: Worktree, merged: str = "", drafts: Sequence[str] = ()) -> str | None:
    """Keep the work in the worktree and in the commits *drafts*, then remove the worktree and its branch. *merged* is
    the commit that merged the work, or "" if the work was not merged. Returns the reference of the kept work, or None
    if there was nothing to keep.

    Raises:
        Conflict: The work can't be kept, or somebody is at work there. Nothing is removed.
    """
    refuse_occupied(store, team, tree.path)
    tree = _with_directory(tree)
    ref = None
    bases = [tree.target_tip] if tree.target_tip else []
    if tree.state != "empty" or merged or works.has_dangling_commits(tree.work, bases):
        about = {"path": tree.path, "made_on": tree.branch, "origin": tree.origin.to_json(), "merged": merged or None}
        ref = keeping.keep(store, team, tree.agent, tree.work, about, drafts)
    tip = merging.tip_of(tree.path, tree.branch)  # asked while the worktree exists: git runs in it
    moved = f"{store.root}/worktrees/{team}/{_REMOVED}{tree.agent}-{os.urandom(6).hex()}"
    disk.make_directories(os.path.dirname(moved), store.root)
    try:
        os.rename(tree.path, moved)  # in one step: half a worktree would look like work
    except OSError as error:
        raise disk.failed("move", tree.path, error) from None
    _delete_directory(moved)
    repository, variables = tree.work.store, {"GIT_DIR": tree.work.store}
    git.must(repository, "worktree", "remove", "--force", "--force", tree.path, variables=variables)
    lines = git.must(repository, "worktree", "list", "--porcelain", variables=variables).split("\n")
    if tip and f"branch refs/heads/{tree.branch}" not in lines:  # a branch that is checked out elsewhere stays
        git.must(repository, "update-ref", "-d", f"refs/heads/{tree.branch}", tip, variables=variables)
        git.run(repository, "config", "--remove-section", f"branch.{tree.branch}", variables=variables)

    def with_checkout(session: Session) -> Session:  # so that the worktree can be made again from there
        return session.having(checkout=tree.target) if session.worktree == tree.path else session

    with suppress(errors.NotFound):  # a member without a session
        update(store, team, SESSION.even_in_closed_team, tree.agent, with_checkout)
    return ref


def _delete_directory(path: str) -> None:
    """Delete the directory with everything below it, even files that are write-protected."""

    def unprotect_and_repeat(function: Callable[..., Any], failed_path: str, _: object) -> None:
        with suppress(OSError):
            os.chmod(os.path.dirname(failed_path), stat.S_IRWXU)
            os.chmod(failed_path, stat.S_IRWXU)
            function(failed_path)

    shutil.rmtree(path, onerror=unprotect_and_repeat)


def restore(store: Store, caller: Caller | None, ref: str, directory: str) -> dict[str, Any]:
    """Restore the kept work *ref* in a new worktree of its team. The work is searched for in the repository around
    *directory*, and in the repositories recorded on this machine.

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
        return {**Worktree(name, path, branch, has_record=False).to_json(), "state": "restored", "ref": kept.ref}
    raise errors.AlreadyExists(
        f"every name for a worktree of {kept.agent} is taken", "Remove some: teams worktree list"
    )
