"""Git worktrees: a checkout and a branch of its own for an agent, kept when it is done."""

from __future__ import annotations

import os

from teams_cli import errors, text
from teams_cli.agents import checkouts, ending, git
from teams_cli.agents.sessions import Session
from teams_cli.store.contract import Store
from teams_cli.teams import history
from teams_cli.teams.permission import require

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from teams_cli.teams.caller import Caller


def repository(directory: str) -> str:
    """The top of the git checkout that holds *directory*.

    Raises:
        InvalidValue: It is in none, or nothing was committed yet.
    """
    done = git.run(directory, "rev-parse", "--show-toplevel")
    if done.returncode != 0:
        raise errors.InvalidValue(
            f"{directory} is in no git repository, so there is nothing to make a worktree of",
            "Go to a checkout, or leave out --worktree.",
        )
    top = done.stdout.removesuffix("\n")
    if git.run(top, "rev-parse", "--verify", "--quiet", "HEAD^{commit}").returncode != 0:
        raise errors.InvalidValue(
            f"{top} has no commit yet, so there is nothing to branch off", "Commit something first."
        )
    return top


def place_of(root: str, team: str, agent: str) -> tuple[str, str]:
    """The path and the branch of the agent's worktree."""
    return f"{root}/worktrees/{team}/{agent}", f"teams/{team}/{agent}"


def refuse_stale(root: str, team: str, agent: str, top: str) -> None:
    """Leave alone what is there from another time.

    Raises:
        AlreadyExists: There is a worktree or a branch of that name, with somebody's work in it.
    """
    path, branch = place_of(root, team, agent)
    if os.path.lexists(path):
        raise errors.AlreadyExists(
            f"{path} is there already", "It may hold work: look, then remove it with git worktree remove."
        )
    parts = branch.split("/")
    for above in ("/".join(parts[:count]) for count in range(1, len(parts))):
        if git.run(top, "rev-parse", "--verify", "--quiet", f"refs/heads/{above}").returncode == 0:
            raise errors.AlreadyExists(
                f"a branch is called {above}, so git can make no branch {branch}",
                f"Give that branch another name: git branch -m {above} NAME",
            )
    if git.run(top, "rev-parse", "--verify", "--quiet", f"refs/heads/{branch}").returncode == 0:
        raise errors.AlreadyExists(
            f"the branch {branch} is there already", f"It may hold work: look, then git branch -D {branch}."
        )


def add(root: str, team: str, agent: str, top: str) -> tuple[str, str]:
    """Make a worktree of the checkout *top*, on a new branch from what is checked out; its path and branch.

    Raises:
        AlreadyExists: There is one of that name, with somebody's work in it.
        Conflict: git did not make it.
    """
    refuse_stale(root, team, agent, top)
    path, branch = place_of(root, team, agent)
    os.makedirs(os.path.dirname(path), 0o700, exist_ok=True)
    done = git.run(top, "worktree", "add", "--quiet", "-b", branch, path)
    if done.returncode != 0:
        raise errors.Conflict(f"git made no worktree {path}: {done.stderr.strip()}", "See `git worktree list`.")
    return path, branch


def take_back(top: str, path: str, branch: str) -> None:
    """Remove a worktree that was just made, and its branch; where git can't, it stays, and is refused as stale."""
    git.run(top, "worktree", "remove", "--force", path)
    git.run(top, "branch", "--quiet", "-D", branch)


class Worktree:
    """The worktree of one agent: what it holds that the checkout it was made of does not."""

    def __init__(self, session: Session) -> None:
        assert session.worktree and session.branch
        self.agent = session.agent
        self.path = session.worktree
        self.branch = session.branch
        self.there = os.path.isdir(self.path)
        self.top = checkouts.main_of(self.path) if self.there else ""
        self.base = git.said(self.path, "merge-base", "HEAD", self._theirs()) if self.there else ""
        self.commits = int(git.said(self.path, "rev-list", "--count", f"{self.base}..HEAD") or 0) if self.base else 0
        self.uncommitted = len(git.said(self.path, "status", "--porcelain").splitlines()) if self.there else 0

    def _theirs(self) -> str:
        """The commit that is checked out where the worktree was made."""
        return git.run(self.top, "rev-parse", "HEAD").stdout.strip()

    @property
    def state(self) -> str:
        """`gone`, `empty` when it holds nothing of its own, else `work`."""
        return "gone" if not self.there else "work" if self.commits or self.uncommitted else "empty"

    def line(self, team: str) -> str:
        """What it holds and what the person can do with it, from any shell."""
        where = f"{self.agent} --team {team}"
        if self.state == "empty":
            return f"{self.agent}: nothing on {self.branch}: `teams worktree remove {where} --as human`"
        held = [(self.commits, "commit"), (self.uncommitted, "uncommitted file")]
        holds = " and ".join(text.counted(count, what) for count, what in held if count)
        ways = f"`teams worktree diff {where}`, `teams worktree merge {where} --as human`"
        return f"{self.agent}: {holds or 'no directory'} on {self.branch}: {ways}"

    def to_json(self) -> dict[str, Any]:
        """The worktree as others see it."""
        return {
            "agent": self.agent,
            "path": self.path,
            "branch": self.branch,
            "state": self.state,
            "commits": self.commits,
            "uncommitted": self.uncommitted,
            "repository": self.top or None,
        }


def all_of(store: Store, team: str) -> list[Worktree]:
    """The worktrees of the team's agents that are there."""
    made = [Worktree(session) for session in ending.all_of(store, team, []) if session.worktree]
    return [tree for tree in made if tree.there]


def of_agent(store: Store, team: str, agent: str) -> Worktree:
    """The agent's worktree.

    Raises:
        AgentNotFound: It has none, or not any more.
    """
    found = all_of(store, team)
    for tree in found:
        if tree.agent == agent:
            return tree
    known = ", ".join(tree.agent for tree in found) or "none"
    raise errors.AgentNotFound(f"{agent} has no worktree in team {team}", f"Agents with one: {known}.")


def diff(tree: Worktree) -> str:
    """All that the agent changed since its worktree was made, committed or not, as a patch."""
    listed = git.run(tree.path, "ls-files", "--others", "--exclude-standard", "-z").stdout.split("\0")[:-1]
    parts = [git.run(tree.path, "diff", "--no-ext-diff", "--binary", tree.base).stdout]
    for name in listed:  # not added yet, so that `git diff` alone does not know them
        new = ("--no-index", "--", "/dev/null", name)
        parts.append(git.run(tree.path, "diff", "--no-ext-diff", "--binary", *new).stdout)
    return "".join(parts)


def merge(store: Store, team: str, caller: Caller | None, agent: str) -> dict[str, Any]:
    """Commit what the agent left uncommitted, merge its branch into the checkout, and remove worktree and branch.

    Raises:
        Conflict: The agent is at work, the changes do not fit together, or those in the checkout are in the way; both
            are as they were.
        AgentNotFound: The agent has no worktree.
    """
    caller = require(store, team, caller, "worktree", agent).caller
    tree = _at_rest(store, team, agent)
    if tree.uncommitted:
        git.must(tree.path, "add", "--all")
        git.must(tree.path, "commit", "--quiet", "--no-verify", "-m", f"Work of {agent} in {team}")
    done = git.run(tree.top, "merge", "--no-edit", "--no-ff", "-m", f"Merge the work of {agent} in {team}", tree.branch)
    if done.returncode:
        unmerged = git.run(tree.top, "diff", "--name-only", "--diff-filter=U").stdout.split()
        if unmerged:
            git.run(tree.top, "merge", "--abort")
        why = f"conflicts in {', '.join(unmerged)}" if unmerged else (done.stderr or done.stdout).strip()
        raise errors.Conflict(
            f"{tree.branch} can't be merged into {tree.top}: {why}",
            f"Merge it by hand there: git merge {tree.branch}; then teams worktree remove {agent}",
        )
    merged = git.run(tree.top, "rev-parse", "HEAD").stdout.strip()
    drop(tree)
    history.note(store, team, caller.name, "worktree merged", agent=agent, commit=merged)
    return {**tree.to_json(), "state": "merged", "commit": merged}


def remove(store: Store, team: str, caller: Caller | None, agent: str, force: bool = False) -> dict[str, Any]:
    """Remove the agent's worktree and its branch.

    Raises:
        Conflict: It holds work that is not merged, or the agent is at work, and *force* was not given.
        AgentNotFound: The agent has no worktree.
    """
    caller = require(store, team, caller, "worktree", agent).caller
    tree = of_agent(store, team, agent) if force else _at_rest(store, team, agent)
    if tree.state == "work" and not force:
        raise errors.Conflict(
            f"{tree.path} holds work: {tree.commits} commits, {tree.uncommitted} uncommitted files",
            f"See it: teams worktree diff {agent}; keep it: teams worktree merge {agent}; else --force.",
        )
    drop(tree)
    history.note(store, team, caller.name, "worktree removed", agent=agent)
    return {**tree.to_json(), "state": "removed"}


def _at_rest(store: Store, team: str, agent: str) -> Worktree:
    session = ending.current(store, team, agent)
    if session and not session.ended:
        raise errors.Conflict(f"{agent} is at work in its worktree", f"Wait for it: teams wait --agent {agent}")
    return of_agent(store, team, agent)


def drop(tree: Worktree) -> None:
    """Remove the worktree and its branch, whatever they hold."""
    git.must(tree.top, "worktree", "remove", "--force", tree.path)
    git.must(tree.top, "branch", "--quiet", "-D", tree.branch)
