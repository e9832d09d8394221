"""Lands by pull request: pushes the commits, opens the pull request with `gh`, and reads its outcome."""

from __future__ import annotations

import json
import os
import re
import sys

from teams_cli import errors, processes, text
from teams_cli.agents import git, merging
from teams_cli.agents.background import LANDER
from teams_cli.extensions.landing import outcomes, trust
from teams_cli.store.contract import Store, update
from teams_cli.tasks import landings, tasks
from teams_cli.tasks.landings import LANDING, Landing
from teams_cli.tasks.tasks import Task
from teams_cli.teams import settings, teams

TYPE_CHECKING = False
if TYPE_CHECKING:
    import subprocess
    from collections.abc import Mapping, Sequence
    from typing import Any


_REMOTE = "origin"
_IN_REPOSITORY = '.[] | select(.isCrossRepository | not) | "\\(.url) \\(.headRefOid)"'
"""A filter for the output of `gh`: the address and commit of each pull request whose branch is in the repository
itself. A branch in a fork may have the same name.
"""
FIELDS = "state,headRefOid,reviews,statusCheckRollup"
"""The fields of a pull request that are read."""
_FAILED = ("FAILURE", "ERROR", "TIMED_OUT", "STARTUP_FAILURE")
_PROJECT_MEMBERS = ("OWNER", "MEMBER", "COLLABORATOR")
"""The roles in the project whose requests for changes count. Anybody may review a public pull request."""
_FOREIGN_MARK = re.compile(r"^\[foreign [^\]]*\] ")
_JOB = re.compile(r"/job/(\d+)")
_SHOWN_OF_LOG = 2000
"""How many characters from the end of a failed check's log are shown."""


def open_request(landing: Landing, task: Task, pushed_before: Sequence[str], environ: Mapping[str, str]) -> str:
    """Push the commits and open a pull request, unless it exists already. Return the address of the pull request.
    *pushed_before* has the commits that were pushed for earlier landings of the task.

    Raises:
        Conflict: The push or the request failed. The error says how to do it by hand.
    """
    if url := find(landing, environ):  # an earlier lander opened it, and died before it recorded this
        return url
    branch = _branch(landing)
    _push(landing, branch, pushed_before)
    title = _FOREIGN_MARK.sub("", landing.title)
    request = ["pr", "create", "--base", landing.onto, "--head", branch, "--title", title]
    done = gh(landing, [*request, "--body", _body(landing, task)], environ)
    if done.returncode:  # gh also fails if the branch has a request already
        if existing := _requests(landing, branch, "open", environ, is_pushed=True):
            return existing[0]
        reason = " ".join(done.stderr.split()) or f"exit status {done.returncode}"
        raise errors.Conflict(
            f"{branch} is pushed, but gh opened no pull request: {reason}",
            f"By hand: gh pr create --base {landing.onto} --head {branch}",
        )
    # The last line is the address. Should there be none, `gh` also finds the request by its branch.
    return done.stdout.strip().splitlines()[-1] if done.stdout.strip() else branch


def _push(landing: Landing, branch: str, pushed_before: Sequence[str]) -> None:
    """Push the landing's commit to *branch* of the remote repository. If the local branch was rewritten since its last
    push, replace the remote branch, but only if it is at one of the commits *pushed_before*. Thus nobody else's commits
    are lost.
    """
    remote_branch = f"refs/heads/{branch}"
    arguments = ("push", "--quiet", _REMOTE, f"{landing.head}:{remote_branch}")
    pushed = git.run(landing.repository, *arguments)
    if pushed.returncode == 0:
        return
    for commit in pushed_before:
        replaced = git.run(landing.repository, *arguments, f"--force-with-lease={remote_branch}:{commit}")
        if replaced.returncode == 0:
            return
    raise errors.Conflict(
        f"{branch} could not be pushed to {_REMOTE}: {' '.join(pushed.stderr.split())}",
        f"By hand: git push {_REMOTE} {landing.head[:10]}:{remote_branch}",
    )


def _body(landing: Landing, task: Task) -> str:
    """Return the text of the pull request, which describes the task and its landing."""
    check, review = task.checked or {}, task.reviewed or {}
    has_passed = check.get("status") == 0
    parts = [
        task.result or "",
        f"Check: `{check['command']}` passed on {check.get('commit', '')[:10]}" if has_passed else "",
        f"Review: {review['verdict']} by {review['by']}" if review else "",
        f"Closes {issue}" if (issue := issue_of(task)) else "",
        f"{landing.id} of {landing.task}, by {landing.owner or landing.by}",
    ]
    return "\n\n".join(filter(None, parts))


def issue_of(task: Task) -> str:
    """Return the GitHub issue from which the task was imported, as `owner/repository#12`, or "" if there is none."""
    source = task.source or {}
    return str(source["id"]) if source.get("from") == "github" else ""


def _branch(landing: Landing) -> str:
    """Return the name of the remote branch to push to: the name of the local branch, if this branch still contains the
    landing's commit, and otherwise a name made for the landing.
    """
    branch = landing.branch
    if branch and merging.is_on_branch(landing.repository, branch, landing.head):
        return branch
    return f"teams/{landing.team_name}/{landing.id}"


def find(landing: Landing, environ: Mapping[str, str]) -> str:
    """Return the address of the landing's pull request if it is open or merged. Return "" if there is none, or if
    GitHub can't be asked.
    """
    branch = _branch(landing)
    for state in ("open", "merged"):
        if urls := _requests(landing, branch, state, environ):
            return urls[0]
    return ""


def is_of(landing: Landing, environ: Mapping[str, str]) -> bool:
    """Return whether the recorded pull request is from a branch of the landing and has the landing's commit."""
    branches = (f"teams/{landing.team_name}/{landing.id}", landing.branch)
    return any(landing.url in _requests(landing, branch, "all", environ) for branch in branches if branch)


def _requests(
    landing: Landing, branch: str, state: str, environ: Mapping[str, str], is_pushed: bool = False
) -> list[str]:
    """Return the addresses of the pull requests from *branch* of this repository that have the landing's commit.

    *is_pushed* says that the commit was pushed just now. GitHub may then still show the earlier commit for some
    seconds, so the commits are not compared.
    """
    filters = [f"--head={branch}", f"--base={landing.onto}", f"--state={state}"]
    fields = ["--json", "url,headRefOid,isCrossRepository", "--jq", _IN_REPOSITORY]
    done = gh(landing, ["pr", "list", *filters, *fields], environ)
    rows = [line.split() for line in done.stdout.splitlines()] if done.returncode == 0 else []
    urls_and_commits = [(row[0], row[1]) for row in rows if len(row) == 2]
    if is_pushed:
        return [url for url, _ in urls_and_commits]
    return [url for url, commit in urls_and_commits if merging.holds(landing.repository, commit, landing.head)]


def outcome(landing: Landing, environ: Mapping[str, str]) -> tuple[str, str | None]:
    """Return the outcome of the pull request, and the reason for it: `landed` with None, `refused`, or `red` if a check
    failed or changes were requested. Return "" and None if the pull request is open or unknown.
    """
    done = gh(landing, ["pr", "view", "--json", FIELDS, "--", landing.url or ""], environ)
    try:
        request = json.loads(done.stdout) if done.returncode == 0 else {}
    except ValueError:
        return "", None
    if request.get("state") == "MERGED":
        return "landed", None
    if request.get("state") == "CLOSED":
        return "refused", f"{landing.url} was closed"
    if request.get("headRefOid") != landing.head:
        return "", None  # others added commits, so its reviews and checks do not concern the landing
    if wanted := _wanted_changes(landing, request.get("reviews") or []):
        return "red", wanted
    failed = _failed_check(landing, request.get("statusCheckRollup") or [], environ)
    return ("red", failed) if failed else ("", None)


def _wanted_changes(landing: Landing, reviews: list[dict[str, Any]]) -> str:
    """Return the requests of project members for changes to the landing's commit, as text; "" if there are none. For
    each reviewer, only the last review that is more than a comment counts.
    """
    last_reviews: dict[str, dict[str, Any]] = {}
    for review in reviews:
        if (review.get("commit") or {}).get("oid") == landing.head and review.get("state") != "COMMENTED":
            author = (review.get("author") or {}).get("login") or "?"
            last_reviews[author] = review
    requests = [
        f"changes requested by {author} at {landing.url}{_quoted(review.get('body'))}"
        for author, review in last_reviews.items()
        if review.get("state") == "CHANGES_REQUESTED" and review.get("authorAssociation") in _PROJECT_MEMBERS
    ]
    return "\n".join(requests)


def _failed_check(landing: Landing, checks: list[dict[str, Any]], environ: Mapping[str, str]) -> str:
    """Return a text that names a check whose last run failed, with the end of its log; "" if there is no such check."""
    last_runs = {}
    oldest_first = sorted(checks, key=lambda check: str(check.get("startedAt") or ""))
    for check in oldest_first:
        last_runs[check.get("workflowName"), check.get("name") or check.get("context")] = check
    for check in last_runs.values():
        if (check.get("conclusion") or check.get("state")) in _FAILED:
            url = check.get("detailsUrl") or check.get("targetUrl") or ""
            job = _JOB.search(url)
            log = gh(landing, ["run", "view", "--job", job[1], "--log-failed"], environ).stdout if job else ""
            name = check.get("name") or check.get("context")
            return f"checks failed: {name} {url}{_quoted(log.strip()[-_SHOWN_OF_LOG:])}"
    return ""


def _quoted(foreign: str | None) -> str:
    """Return a text from GitHub as a quotation on new lines, marked as foreign because anybody may have written it."""
    if not (foreign and foreign.strip()):
        return ""
    return "".join(f"\n{line}" for line in [text.FOREIGN, *text.quoted(foreign, "> ")])


def gh(landing: Landing, words: list[str], environ: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """Run `gh` in the repository of the landing. If the repository was moved away, run it in `/`: a command that names
    the pull request by its address works anywhere.
    """
    directory = landing.repository if os.path.isdir(landing.repository) else "/"
    return processes.outcome_of(["gh", *words], directory, environ)


def comment_on_issues(store: Store, team: str, environ: Mapping[str, str]) -> None:
    """Comment on the issue of each landing of this machine that has landed. If our comment is there already, add none.
    If a comment fails, it is tried again when this function is called next.
    """
    landed = to_comment(store, team)
    if not landed or (lock := LANDER.hold(store, team)) is None:
        return  # if another lander holds the lock, it comments
    try:
        for landing in landed:
            try:
                trust.refuse_untrusted(store, team, landing)
                issue = issue_of(tasks.get(store, team, landing.task))
            except errors.TeamsError:
                continue
            if not issue or _comment_once(landing, issue, environ):  # without an issue, nothing is left to do either
                update(store, team, LANDING, landing.id, lambda current: current.having(commented=True))
    finally:
        os.close(lock)


def to_comment(store: Store, team: str) -> list[Landing]:
    """Return the landings of this machine that have landed, and for which `comment_on_issues` has not done its work
    yet. If the setting `landingComments` is off, return an empty list.
    """
    if settings.value(teams.get(store, team), "landingComments") != "on":
        return []
    return [
        landing
        for landing in landings.all_of(store, team, [])
        if landing.state == "landed" and not landing.commented and outcomes.is_of_this_machine(store, landing)
    ]


def _comment_once(landing: Landing, issue: str, environ: Mapping[str, str]) -> bool:
    """Comment on the issue, unless our comment is there already. Return whether the issue has our comment now."""
    repository, _, number = issue.rpartition("#")
    mark = f"({landing.id} of {landing.team_name})"
    address = ["--repo", repository, number]
    done = gh(landing, ["issue", "view", *address, "--json", "comments", "--jq", ".comments[].body"], environ)
    if done.returncode == 0:
        if mark in done.stdout:
            return True
        done = gh(landing, ["issue", "comment", *address, "--body", f"Done: {outcomes.where(landing)} {mark}"], environ)
    if done.returncode:
        sys.stderr.write(f"{landing.id}: no comment at {issue}: {' '.join(done.stderr.split())}\n")
    return done.returncode == 0
