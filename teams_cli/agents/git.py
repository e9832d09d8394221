"""Run git on the repository around a directory. Environment variables that name another repository, which git sets for
its hooks, are removed.
"""

from __future__ import annotations

import errno
import os
import time

from teams_cli import errors
from teams_cli.clients import environments

TYPE_CHECKING = False
if TYPE_CHECKING:
    import subprocess

_TRIES, _PAUSE = 20, 0.05
"""Number of attempts to run `git worktree list`, and the seconds between two attempts."""
_PATIENCE = 600.0
"""Seconds after which git is killed, because a hook of the repository may never end."""

NOBODY = {
    "GIT_AUTHOR_NAME": "teams",
    "GIT_AUTHOR_EMAIL": "teams@localhost",
    "GIT_COMMITTER_NAME": "teams",
    "GIT_COMMITTER_EMAIL": "teams@localhost",
}
"""Environment variables that give git an author and a committer if none is configured."""
STATUS = ("status", "--porcelain", "-z", "--untracked-files=all", "--no-renames", "--ignore-submodules=dirty")
"""The git command that lists all files that differ from HEAD or are untracked, each behind two letters and a space."""
FATAL = (128, 129)
"""The exit statuses of git itself if it can't do what it was told."""
SUBMODULE = "160000"
"""The mode of a submodule in a tree or an index."""
LOOKING = (
    "--no-optional-locks",
    *("-c", "core.fsmonitor=false", "-c", "core.untrackedCache=false"),
    *("-c", "core.trustctime=true", "-c", "core.checkStat=default"),
)
"""Options that make git check every file, ignore settings that skip files, and write nothing."""


def run(
    directory: str, *words: str, variables: dict[str, str] | None = None, stdin: str | None = None
) -> subprocess.CompletedProcess[str]:
    """Run git in *directory* until it ends. *stdin* is its standard input; None means no input. Ctrl-C does not
    interrupt git, because git runs in its own process session. The output is decoded in a way that keeps all bytes of
    file names.

    Raises:
        InvalidValue: git is not installed.
        Busy: git took too long, was ended by a signal, or can't be started at the moment.
        StorageFailed: git can't be started.
    """
    import subprocess  # slow to import; most commands run no git

    removed = [word for name in environments.OF_A_REPOSITORY for word in ("-u", name)]
    added = [f"{name}={value}" for name, value in (variables or {}).items()]
    try:
        ended = subprocess.run(
            ["env", *removed, *added, "git", "-C", directory, *words],
            input=os.fsencode(stdin or ""),
            capture_output=True,
            start_new_session=True,
            timeout=_PATIENCE,
        )
    except subprocess.TimeoutExpired:
        raise errors.Busy(f"git {words[0]} was ended after {_PATIENCE:g} seconds", f"Try it in {directory}.") from None
    except OSError as error:
        why = f"git can't be run: {error.strerror}"
        if error.errno in (errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE):  # these may pass
            raise errors.Busy(why, "Try again.") from None
        raise errors.StorageFailed(why, "Check what this machine lacks: df -h; ulimit -a") from None
    printed, complaint = os.fsdecode(ended.stdout), os.fsdecode(ended.stderr)
    done = subprocess.CompletedProcess(ended.args, ended.returncode, printed, complaint)
    if done.returncode in (126, 127):  # of `env`: git can't be executed, or was not found
        raise errors.InvalidValue(f"git can't be run: {done.stderr.strip()}", "Install git, or do without worktrees.")
    if done.returncode < 0:
        raise errors.Busy(f"git {words[0]} was ended by signal {-done.returncode}", "Try again.")
    return done


def output_of(directory: str, *words: str) -> str:
    """Run git in *directory*, and return its output without surrounding blanks, or "" if git fails."""
    done = run(directory, *words)
    return done.stdout.strip() if done.returncode == 0 else ""


def must(directory: str, *words: str, variables: dict[str, str] | None = None, stdin: str | None = None) -> str:
    """Run git in *directory*, and return its output. Raises StorageFailed if git fails."""
    done = run(directory, *words, variables=variables, stdin=stdin)
    if done.returncode:
        command = words[len(LOOKING) if words[0] == LOOKING[0] else 0]  # the word after the options
        raise errors.StorageFailed(f"git {command}: {why_failed(done)}", f"Try it in {directory}.")
    return done.stdout


def why_failed(done: subprocess.CompletedProcess[str]) -> str:
    """Return what a failed git printed. If it printed nothing, for example because a hook refused silently, return its
    exit status.
    """
    printed = (done.stderr or done.stdout).strip()
    return printed or f"exit status {done.returncode}, perhaps of a hook of the repository"


def lines(printed: str) -> list[str]:
    """Split what git *printed* at line feeds. Names of branches and directories may have other characters at which
    `splitlines` would split, too.
    """
    return printed.removesuffix("\n").split("\n") if printed else []


def names(directory: str, *words: str, variables: dict[str, str] | None = None) -> list[str]:
    """Run a git command that prints file names separated by NUL (`-z`), and return the names."""
    return [name for name in must(directory, *words, variables=variables).split("\0") if name]


def common_directory(directory: str) -> str:
    """Return git's common directory, which all worktrees of the repository around *directory* share."""
    return must(directory, "rev-parse", "--path-format=absolute", "--git-common-dir").removesuffix("\n")


def worktrees(directory: str) -> list[str]:
    """Return the lines of `git worktree list --porcelain`. Git fails while another process adds or removes a worktree;
    therefore a failed call is retried for a second.
    """
    for _ in range(_TRIES):
        done = run(directory, "worktree", "list", "--porcelain")
        if done.returncode == 0:
            return _with_main_checkout(directory, lines(done.stdout))
        time.sleep(_PAUSE)
    raise errors.StorageFailed(f"git worktree list: {done.stderr.strip()}", f"Try it in {directory}.")


def _with_main_checkout(directory: str, rows: list[str]) -> list[str]:
    """Return the *rows* of `git worktree list`, run in *directory*, with the path of the main checkout first. For a
    submodule, and for a repository whose data is not in `.git`, git lists the directory with the data instead. This
    directory stays if git does not know the checkout that belongs to it.
    """
    main = rows[0].removeprefix("worktree ")
    if rows[1:2] == ["bare"] or not os.path.isdir(main) or os.path.lexists(f"{main}/.git"):
        return rows
    for place in (main, directory):  # in `main`, git knows the checkout from core.worktree
        top, _, data = output_of(place, "rev-parse", "--show-toplevel", "--absolute-git-dir").partition("\n")
        if top and os.path.realpath(data) == os.path.realpath(main):
            return [f"worktree {top}", *rows[1:]]
    return rows
