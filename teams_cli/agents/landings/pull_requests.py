"""Landing where a branch takes nothing but pull requests: the commits are pushed, and `gh` opens the request."""

from __future__ import annotations

import subprocess

from teams_cli.agents import git
from teams_cli.agents.landings import merging
from teams_cli.agents.landings.landings import Landing
from teams_cli.errors import Conflict
from teams_cli.records.annotations import Mapping

_REMOTE = "origin"
_PATIENCE = 120.0
_OVER = {"MERGED": "landed", "CLOSED": "refused"}


def opened(landing: Landing, environ: Mapping[str, str]) -> str:
    """Push the commits and open a pull request; its address.

    Raises:
        Conflict: It could not be; says how to do it by hand.
    """
    branch = _branch(landing)
    pushed = git.run(landing.repository, "push", "--quiet", _REMOTE, f"{landing.head}:refs/heads/{branch}")
    if pushed.returncode:
        raise Conflict(
            f"{branch} could not be pushed to {_REMOTE}: {' '.join(pushed.stderr.split())}",
            f"By hand: git push {_REMOTE} {landing.head[:10]}:refs/heads/{branch}",
        )
    words = ["pr", "create", "--base", landing.onto, "--head", branch, "--title", landing.title]
    done = _gh(
        landing, [*words, "--body", f"{landing.id} of {landing.task}, by {landing.owner or landing.by}"], environ
    )
    if done.returncode:
        why = " ".join(done.stderr.split()) or f"exit status {done.returncode}"
        raise Conflict(
            f"{branch} is pushed, but gh opened no pull request: {why}",
            f"By hand: gh pr create --base {landing.onto} --head {branch}",
        )
    return done.stdout.strip().splitlines()[-1] if done.stdout.strip() else branch


def _branch(landing: Landing) -> str:
    """Where to push them: to the branch of that name, if it has them here too, else to one of the landing's own."""
    said = landing.branch
    if said and (tip := merging.tip(landing.repository, said)) and merging.holds(landing.repository, tip, landing.head):
        return said
    return f"teams/{landing.team_name}/{landing.id}"


def outcome(landing: Landing, environ: Mapping[str, str]) -> str:
    """What became of the request: `landed` or `refused`; empty while it is open, or where that can't be known."""
    done = _gh(landing, ["pr", "view", "--json", "state", "--jq", ".state", "--", landing.url or ""], environ)
    return _OVER.get(done.stdout.strip(), "") if done.returncode == 0 else ""


def _gh(landing: Landing, words: list[str], environ: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    command = ["gh", *words]
    try:
        return subprocess.run(
            command,
            cwd=landing.repository,
            env=dict(environ),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_PATIENCE,
            check=False,
        )
    except FileNotFoundError:
        return subprocess.CompletedProcess(command, 127, "", "there is no gh on this machine")
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(command, 124, "", f"gh did not answer within {_PATIENCE:g} seconds")
