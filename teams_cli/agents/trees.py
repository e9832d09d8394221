"""Make checkouts: worktrees of agents, with the files and the set-up that the team wants, and temporary checkouts of a
commit, each for one check or landing.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress

from teams_cli import errors, text
from teams_cli.agents import checkouts, git, merging, submodules
from teams_cli.agents.sessions import Session
from teams_cli.store.contract import Store
from teams_cli.store.files import disk, locks
from teams_cli.teams import settings
from teams_cli.teams.teams import Team

_OWN, _LOCK = ".own-", ".lock"
"""The beginning of the name of a temporary checkout, and the ending of the name of the lock file beside it."""
_END_OF_OUTPUT = 2000
"""Number of characters from the end of a failed set-up's output that the error shows."""


_UNPREPARED = "teams-unprepared"
"""The name of a file among git's data for a worktree. It says that the worktree was made again, but not prepared."""


class SetupFailed(errors.TeamsError):
    """Raised when the command, or the hook, that prepares a worktree fails. Nothing is started in the worktree."""


def furnish(team: Team, top: str, tree: str, environ: Mapping[str, str], otherwise: str) -> None:
    """Prepare *tree*, a new worktree of the checkout *top*, according to the team's settings: copy the ignored files
    that `worktree.copy` names, then run `worktree.setup` in the worktree with the environment *environ*. If this
    command fails, the error message includes *otherwise*, which says what was not done because of the failure.

    Raises:
        SetupFailed: The command failed, or a pattern is outside the repository.
        StorageFailed: A file can't be copied.
    """
    _copy_ignored(str(settings.value(team, settings.WORKTREE_COPY)).split(), top, tree)
    script = str(settings.value(team, settings.WORKTREE_SETUP))
    if not script:
        return
    from teams_cli.agents import shell

    seconds = float(settings.value(team, "checkTimeout"))
    done = shell.run(script, tree, environ, settings.WORKTREE_SETUP, seconds)
    if done.status:
        output = (done.errors.strip() or done.output.strip())[-_END_OF_OUTPUT:]
        raise SetupFailed(
            f"{settings.WORKTREE_SETUP} failed in the new worktree ({shell.ending(done.status)}), so {otherwise}"
            + (f": {output}" if output else ""),
            f"Try it in your own worktree; change it: teams set {settings.WORKTREE_SETUP} COMMAND",
        )


def _copy_ignored(patterns: list[str], top: str, tree: str) -> None:
    """Copy the ignored files of the checkout *top* that match *patterns* and that the worktree *tree* lacks."""
    if not patterns:
        return
    from shutil import copy2

    pathspecs = [f":(glob){pattern}" for pattern in text.file_patterns(patterns)]
    try:
        names = git.names(top, "ls-files", "--others", "--ignored", "--exclude-standard", "-z", "--", *pathspecs)
    except errors.StorageFailed as problem:  # such as a pattern outside the repository
        raise SetupFailed(problem.message, f"Fix it: teams set {settings.WORKTREE_COPY} PATTERNS") from None
    for name in names:
        target = f"{tree}/{name}"
        if os.path.lexists(target):
            continue
        try:
            os.makedirs(os.path.dirname(target), exist_ok=True)
            copy2(f"{top}/{name}", target, follow_symlinks=False)
        except OSError as error:
            why = f"can't copy {name} to {tree}: {error.strerror}"
            raise errors.StorageFailed(why, f"See {settings.WORKTREE_COPY}: teams settings") from None


@contextmanager
def tree(
    team: Team, repository: str, commit: str, path: str, environ: Mapping[str, str], otherwise: str
) -> Iterator[str]:
    """For a `with` block, check out *commit* at *path*, prepare the checkout like a worktree of the team, and remove
    the checkout afterwards. Yields a remark that names the submodules that this machine lacks, or "". If the
    preparation fails, the error message includes *otherwise*, which says what was not done because of the failure.

    Raises:
        SetupFailed, StorageFailed: The checkout can't be made or prepared.
    """
    if os.path.lexists(path):
        clear(repository, path)
    try:
        os.makedirs(os.path.dirname(path), 0o700, exist_ok=True)
    except OSError as error:
        raise disk.failed("make", os.path.dirname(path), error) from None
    try:  # forced twice, since git may remember a locked worktree there that is gone
        git.must(repository, "worktree", "add", "--quiet", "--detach", "--force", "--force", path, commit)
        missing = submodules.fill(path, commit)
        furnish(team, repository, path, environ, otherwise)
        missing = [name for name in missing if not disk.names_in(f"{path}/{name}")]  # the set-up may get submodules
        remark = ""
        if missing:
            why = f"no repository on this machine has the commits of submodules: {text.listed(missing)}"
            command = f"teams set {settings.WORKTREE_SETUP} 'git submodule update --init --recursive'"
            remark = f"[{why}; get them: {command}]"
        yield remark
    finally:
        clear(repository, path)


@contextmanager
def own_place(root: str, team: str, repository: str) -> Iterator[str]:
    """Yield, for a `with` block, a path for a checkout that no other process uses. Checkouts that killed processes left
    behind are removed first.
    """
    directory = f"{root}/worktrees/{team}"
    for name in disk.names_in(directory):
        if not (name.startswith(_OWN) and name.endswith(_LOCK)):
            continue
        old_lock = f"{directory}/{name}"
        old_descriptor = locks.hold(old_lock, root)
        if old_descriptor is not None:  # its process has ended
            clear(repository, old_lock.removesuffix(_LOCK))
            disk.discard(old_lock)
            os.close(old_descriptor)
    lock = f"{directory}/{_OWN}{os.urandom(6).hex()}{_LOCK}"
    descriptor = locks.hold(lock, root)
    if descriptor is None:  # another process took the new lock for one that was left behind
        raise errors.StorageFailed(f"{lock} is locked by another", "Try again.")
    try:
        yield lock.removesuffix(_LOCK)
    finally:
        disk.discard(lock)
        os.close(descriptor)


def clear(repository: str, path: str) -> None:
    """Remove the checkout at *path* from the repository, even if the checkout is incomplete. This does not use `git
    worktree prune`, which also forgets other worktrees, with their HEAD, if their directory is away for a while.
    """
    if git.run(repository, "worktree", "remove", "--force", "--force", path).returncode == 0:
        return
    import shutil  # slow to import, and rarely needed

    shutil.rmtree(path, ignore_errors=True)
    git.run(repository, "worktree", "remove", "--force", "--force", path)


def repository(directory: str) -> str:
    """Return the top of the git checkout that contains *directory*.

    Raises:
        InvalidValue: There is no checkout, or it has no commit yet.
    """
    done = git.run(directory, "rev-parse", "--show-toplevel")
    if done.returncode != 0:
        raise errors.InvalidValue(
            f"{directory} is not in a git repository, so it can have no worktree",
            "Change to a checkout, or leave out --worktree.",
        )
    top = done.stdout.removesuffix("\n")
    if git.run(top, "rev-parse", "--verify", "--quiet", "HEAD^{commit}").returncode != 0:
        raise errors.InvalidValue(f"{top} has no commit yet, so it can have no branch", "Commit first: git commit")
    return top


def place_of(root: str, team: str, agent: str) -> tuple[str, str]:
    """Return the path and the branch of the agent's worktree."""
    return f"{root}/worktrees/{team}/{agent}", f"teams/{team}/{agent}"


def refuse_stale(root: str, team: str, agent: str, top: str) -> None:
    """Refuse to make the agent's worktree if its directory or its branch exists already, because somebody's work may be
    there. Refuse also if git can't store the new branch because of the name of an existing branch.
    """
    path, branch = place_of(root, team, agent)
    if os.path.lexists(path):
        raise errors.AlreadyExists(
            f"{path} is there already",
            f"It may hold work: teams worktree diff {agent} --team {team}; if not, remove it, and repeat the command: "
            f"teams worktree remove {agent} --team {team}",
        )
    # git stores a branch as a path, so neither a part of that path nor a path below it may be a branch.
    parts = branch.split("/")
    prefixes = [f"refs/heads/{'/'.join(parts[:end])}" for end in range(1, len(parts) + 1)]
    for reference in git.must(top, "for-each-ref", "--format=%(refname)", *prefixes).split():  # also all below these
        existing = reference.removeprefix("refs/heads/")
        if existing == branch:
            raise errors.AlreadyExists(
                f"the branch {branch} is there already", f"It may hold work: look, then git branch -D {branch}."
            )
        if reference in prefixes or existing.startswith(f"{branch}/"):
            raise errors.AlreadyExists(
                f"the branch {existing} is in the way of {branch}, the branch of the worktree",
                f"Rename it: git branch -m {existing} NAME",
            )


def add(root: str, team: str, agent: str, top: str) -> tuple[str, str]:
    """Make a worktree for the agent, on a new branch that begins at the commit of the checkout *top*. Returns the path
    and the branch.

    Raises:
        AlreadyExists: The worktree or the branch exists.
        Conflict: git did not make the worktree.
        SetupFailed, StorageFailed: The worktree can't be used. It is removed again.
    """
    refuse_stale(root, team, agent, top)
    path, branch = place_of(root, team, agent)
    os.makedirs(os.path.dirname(path), 0o700, exist_ok=True)
    origin = checkouts.of_checkout(top)
    try:  # forced, since git may remember a worktree there whose directory was deleted
        _make(top, path, origin, "--force", "-b", branch, path, origin.base)
    except (SetupFailed, errors.StorageFailed):  # `_make` has removed the worktree again
        git.run(top, "branch", "--quiet", "-D", branch)
        raise
    return path, branch


def _make(top: str, path: str, origin: checkouts.Origin, *words: str) -> None:
    """Make the worktree *path* with `git worktree add` and the arguments *words*, and record its *origin*.

    Raises:
        Conflict: git did not make the worktree.
        SetupFailed: A hook failed. The worktree is removed again.
        StorageFailed: The origin can't be recorded. The worktree is removed again.
    """
    done = git.run(top, "worktree", "add", "--quiet", *words)
    if done.returncode not in (0, *git.FATAL) and os.path.lexists(path):  # git made it; the status is the hook's
        git.run(top, "worktree", "remove", "--force", path)
        why = f"the hook post-checkout of {top} failed in the worktree {path}: {git.why_failed(done)}"
        raise SetupFailed(why, "Mend the hook, and repeat the command.")
    if done.returncode != 0:
        raise errors.Conflict(f"git made no worktree {path}: {done.stderr.strip()}", "See `git worktree list`.")
    try:
        checkouts.note(path, origin)
    except OSError as error:
        git.run(top, "worktree", "remove", "--force", path)
        raise errors.StorageFailed(f"the worktree {path} can't be recorded: {error}", f"Look in {top}.") from None


def add_for_branch(top: str, path: str, branch: str) -> None:
    """Make a worktree at *path* for the existing *branch*, in the repository of the checkout *top*. The worktree
    existed before, but its directory was deleted. The branch stays at its commit. If git still has the HEAD and the
    index of the deleted worktree, the new one gets them.

    Raises:
        Conflict: git did not make the worktree, for example because the branch is checked out elsewhere.
    """
    if data := checkouts.data_of_deleted(top, path):
        _give_directory(path, data)
    else:
        origin = checkouts.of_checkout(top)
        origin.base = git.output_of(top, "merge-base", origin.base, f"refs/heads/{branch}") or origin.base
        _make(top, path, origin, path, branch)
    _mark_unprepared(path)


def _give_directory(path: str, data: str) -> None:
    """Make the directory *path* again for a worktree of which git still has the *data*, with the files in its index. It
    appears in one step, because files that a killed command did not write would look deleted.
    """
    import shutil  # slow to import, and rarely needed

    temporary = f"{os.path.dirname(path)}/{_OWN}{os.urandom(6).hex()}"
    variables = {"GIT_DIR": data, "GIT_WORK_TREE": temporary}
    try:
        os.makedirs(temporary)
        if not os.path.exists(f"{data}/index"):
            git.must(temporary, "read-tree", "HEAD", variables=variables)
        git.must(temporary, "checkout-index", "--all", variables=variables)
        with open(f"{temporary}/.git", "w", encoding="utf-8", errors="surrogateescape") as file:
            file.write(f"gitdir: {data}\n")
        os.rename(temporary, path)
    except OSError as error:
        raise disk.failed("make", path, error) from None
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _mark_unprepared(path: str) -> None:
    """Record that the worktree was made again, but not prepared."""
    with suppress(OSError), open(f"{checkouts.git_directory(path)}/{_UNPREPARED}", "w"):
        pass


def is_ready(path: str) -> bool:
    """Whether the worktree exists, and was prepared if it was made again."""
    return os.path.isdir(path) and not os.path.lexists(f"{checkouts.git_directory(path)}/{_UNPREPARED}")


def provide_again(store: Store, team: Team, session: Session, environ: Mapping[str, str]) -> None:
    """Make the worktree of a session again after it was removed, or after its directory was deleted, and prepare it. If
    only the preparation failed, or was interrupted, it is repeated.

    Raises:
        Conflict: git did not make the worktree, or the session does not say from which checkout to make it.
        SetupFailed, StorageFailed: The worktree can't be prepared.
    """
    path = session.worktree or ""
    if not session.checkout or place_of(store.root, team.name, session.agent)[0] != path:
        raise errors.Conflict(f"its worktree {path} was removed", f"Start another agent instead of {session.agent}.")
    branch = session.branch or ""
    if not os.path.isdir(path):
        if branch and merging.tip_of(session.checkout, branch):
            add_for_branch(session.checkout, path, branch)
        else:
            add(store.root, team.name, session.agent, session.checkout)
            _mark_unprepared(path)
    furnish(team, session.checkout, path, environ, "no turn was begun")
    disk.discard(f"{checkouts.git_directory(path)}/{_UNPREPARED}")
