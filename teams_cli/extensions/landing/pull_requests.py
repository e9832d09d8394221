"""Landing where a branch takes nothing but pull requests: the commits are pushed, and `gh` opens the request."""

from __future__ import annotations

from teams_cli import errors, processes
from teams_cli.agents import git, merging
from teams_cli.tasks.landings import Landing

TYPE_CHECKING = False
if TYPE_CHECKING:
    import subprocess
    from collections.abc import Mapping

_REMOTE = "origin"
_OWN = '.[] | select(.isCrossRepository | not) | "\\(.url) \\(.headRefOid)"'
"""Address and commit of the requests whose branches are in the repository itself: one of a fork may be called alike."""
_OVER = {"MERGED": "landed", "CLOSED": "refused"}


def opened(landing: Landing, environ: Mapping[str, str]) -> str:
    """Push the commits and open a pull request; its address.

    Raises:
        Conflict: It could not be; says how to do it by hand.
    """
    branch = _branch(landing)
    pushed = git.run(landing.repository, "push", "--quiet", _REMOTE, f"{landing.head}:refs/heads/{branch}")
    if pushed.returncode:
        raise errors.Conflict(
            f"{branch} could not be pushed to {_REMOTE}: {' '.join(pushed.stderr.split())}",
            f"By hand: git push {_REMOTE} {landing.head[:10]}:refs/heads/{branch}",
        )
    words = ["pr", "create", "--base", landing.onto, "--head", branch, "--title", landing.title]
    done = _gh(
        landing, [*words, "--body", f"{landing.id} of {landing.task}, by {landing.owner or landing.by}"], environ
    )
    if done.returncode and (there := found(landing, environ)):
        return there  # who opened it was ended before that was noted
    if done.returncode:
        why = " ".join(done.stderr.split()) or f"exit status {done.returncode}"
        raise errors.Conflict(
            f"{branch} is pushed, but gh opened no pull request: {why}",
            f"By hand: gh pr create --base {landing.onto} --head {branch}",
        )
    return done.stdout.strip().splitlines()[-1] if done.stdout.strip() else branch


def _branch(landing: Landing) -> str:
    """Where to push them: to the branch of that name, if it has them here too, else to one of the landing's own."""
    said = landing.branch
    if said and (tip := merging.tip(landing.repository, said)) and merging.holds(landing.repository, tip, landing.head):
        return said
    return _own_branch(landing)


def _own_branch(landing: Landing) -> str:
    return f"teams/{landing.team_name}/{landing.id}"


def found(landing: Landing, environ: Mapping[str, str]) -> str:
    """The address of the request that is open for it; empty if none is, or where that can't be known."""
    return next(iter(_requests(landing, _branch(landing), "open", environ)), "")


def is_of(landing: Landing, environ: Mapping[str, str]) -> bool:
    """Whether the request of its address is one of its branch and has its commit."""
    branches = [_own_branch(landing), *([landing.branch] if landing.branch else [])]
    return any(landing.url in _requests(landing, branch, "all", environ) for branch in branches)


def _requests(landing: Landing, branch: str, state: str, environ: Mapping[str, str]) -> list[str]:
    """The addresses of the requests of a branch of this repository that have the landing's commit."""
    wanted = [f"--head={branch}", f"--base={landing.onto}", f"--state={state}"]
    done = _gh(landing, ["pr", "list", *wanted, "--json", "url,headRefOid,isCrossRepository", "--jq", _OWN], environ)
    rows = [line.split() for line in done.stdout.splitlines()] if done.returncode == 0 else []
    return [row[0] for row in rows if len(row) == 2 and merging.holds(landing.repository, row[1], landing.head)]


def outcome(landing: Landing, environ: Mapping[str, str]) -> str:
    """What became of the request: `landed` or `refused`; empty while it is open, or where that can't be known."""
    done = _gh(landing, ["pr", "view", "--json", "state", "--jq", ".state", "--", landing.url or ""], environ)
    return _OVER.get(done.stdout.strip(), "") if done.returncode == 0 else ""


def _gh(landing: Landing, words: list[str], environ: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    return processes.outcome_of(["gh", *words], landing.repository, environ)
