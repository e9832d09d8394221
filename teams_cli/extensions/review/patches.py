"""Trying a patch: the tests of what it changes, on a copy of the checkout that has it."""

from __future__ import annotations

import os
import shutil

from teams_cli.extensions.review import change as changes
from teams_cli.extensions.review import trials
from teams_cli.extensions.review.findings import Finding
from teams_cli.extensions.review.git import Git

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_PLAIN = ("-c", "user.name=teams", "-c", "user.email=teams@localhost", "-c", "commit.gpgsign=false")


def try_out(
    repo: str,
    patch: str,
    work: str,
    environ: Mapping[str, str],
    seconds: float,
    told: Callable[[str], None],
    there: bool = False,
) -> list[Finding]:
    """The tests that fail with the patch and did not without; what was run goes to *told*.

    With *there* the checkout has the patch already, so the copy is taken back before it is applied again.

    Raises:
        GitFailed: The patch does not fit.
    """
    copy = os.path.join(work, "tried")
    shutil.rmtree(copy, ignore_errors=True)
    os.makedirs(copy)
    trials.copy_checkout(Git(repo, environ), repo, copy)
    git = Git(copy, _with_their_packages(repo, environ))
    git("init", "-q")
    _leave_packages(repo, copy)
    if there:
        git("apply", "--reverse", patch)
    git("add", "-A", "-f", "--", ".", ":!node_modules")
    git(*_PLAIN, "commit", "-q", "--no-verify", "--allow-empty", "-m", "before")
    git("apply", patch)
    change = changes.collect(copy, os.path.join(work, "tried-work"), "HEAD", git.environ)
    return list(trials.findings(change, git, git.environ, seconds, told))


def _with_their_packages(repo: str, environ: Mapping[str, str]) -> dict[str, str]:
    """The environment in which the repository's own Python is found, which is not in the copy."""
    places = [os.path.join(repo, name) for name in (".venv", "venv", "env")]
    own = next((place for place in places if os.access(os.path.join(place, "bin/python"), os.X_OK)), "")
    return {**environ, **({"VIRTUAL_ENV": own} if own else {})}


def _leave_packages(repo: str, copy: str) -> None:
    """Have the packages of node, which are not in the copy, found there all the same."""
    if os.path.isdir(modules := os.path.join(repo, "node_modules")) and not os.path.exists(f"{copy}/node_modules"):
        os.symlink(modules, os.path.join(copy, "node_modules"))
        with open(os.path.join(copy, ".git/info/exclude"), "a", encoding="utf-8") as file:
            file.write("/node_modules\n")
