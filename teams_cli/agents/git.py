"""Git, run in a directory, whatever repository the environment speaks of: a hook's is not the agent's."""

from __future__ import annotations

import errno
import os
import time

from teams_cli import errors
from teams_cli.clients import environments

TYPE_CHECKING = False
if TYPE_CHECKING:
    import subprocess

_TRIES = 20
_PAUSE = 0.05
_PATIENCE = 600.0
"""Seconds after which git is ended: a hook of the repository may wait for ever."""


NOBODY = {
    f"GIT_{who}_{what}": said
    for who in ("AUTHOR", "COMMITTER")
    for what, said in (("NAME", "teams"), ("EMAIL", "teams@localhost"))
}
"""The author of commits if none is configured."""
LOOKING = (
    "--no-optional-locks",
    *("-c", "core.fsmonitor=false", "-c", "core.untrackedCache=false"),
    *("-c", "core.trustctime=true", "-c", "core.checkStat=default"),
)
"""Options that make git check every file, ignore settings that skip files, and write nothing."""


def run(
    directory: str, *words: str, variables: dict[str, str] | None = None, given: str | None = None
) -> subprocess.CompletedProcess[str]:
    """Run git there to its end, with *given* on its standard input. A signal to our group does not reach it: what it
    began, it ends. What it prints is not changed: names of files have all characters.

    Raises:
        InvalidValue: There is no git.
        Busy: It took too long or was ended by a signal, and says nothing of what is there; or can't be started now.
        StorageFailed: It can't be started.
    """
    import subprocess  # dear, and many who may need git do not: a task without a check is completed by its owner's word

    unset = [word for name in environments.OF_A_REPOSITORY for word in ("-u", name)]
    set_ = [f"{name}={value}" for name, value in (variables or {}).items()]
    try:
        ended = subprocess.run(
            ["env", *unset, *set_, "git", "-C", directory, *words],
            **({"stdin": subprocess.DEVNULL} if given is None else {"input": os.fsencode(given)}),
            capture_output=True,
            start_new_session=True,
            timeout=_PATIENCE,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise errors.Busy(f"git {words[0]} was ended after {_PATIENCE:g} seconds", f"Try it in {directory}.") from None
    except OSError as error:
        why = f"git can't be run: {error.strerror}"
        if error.errno in (errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE):  # that may pass
            raise errors.Busy(why, "Try again.") from None
        raise errors.StorageFailed(why, "Check what this machine lacks: df -h; ulimit -a") from None
    done = subprocess.CompletedProcess(ended.args, ended.returncode, *map(os.fsdecode, (ended.stdout, ended.stderr)))
    if done.returncode in (126, 127):
        raise errors.InvalidValue(f"git can't be run: {done.stderr.strip()}", "Install git, or do without worktrees.")
    if done.returncode < 0:
        raise errors.Busy(f"git {words[0]} was ended by signal {-done.returncode}", "Try again.")
    return done


def said(directory: str, *words: str) -> str:
    """The output of git; empty if it fails."""
    done = run(directory, *words)
    return done.stdout.strip() if done.returncode == 0 else ""


def must(directory: str, *words: str, variables: dict[str, str] | None = None, given: str | None = None) -> str:
    """The output of git.

    Raises:
        StorageFailed: It refuses.
    """
    done = run(directory, *words, variables=variables, given=given)
    if done.returncode:
        command = words[len(LOOKING) if words[0] == LOOKING[0] else 0]
        why = (done.stderr or done.stdout).strip() or f"exit status {done.returncode}"
        raise errors.StorageFailed(f"git {command}: {why}", f"Try it in {directory}.")
    return done.stdout


def names(directory: str, *words: str, variables: dict[str, str] | None = None, given: str | None = None) -> list[str]:
    """The names of files that git prints with -z."""
    return [name for name in must(directory, *words, variables=variables, given=given).split("\0") if name]


def worktrees(directory: str) -> list[str]:
    """The lines in which git lists the checkouts of the repository. It can't in the moment in which another process
    adds one or removes it, so it is asked again.
    """
    for _ in range(_TRIES):
        done = run(directory, "worktree", "list", "--porcelain")
        if done.returncode == 0:
            return done.stdout.splitlines()
        time.sleep(_PAUSE)
    raise errors.StorageFailed(f"git worktree list: {done.stderr.strip()}", f"Try it in {directory}.")
