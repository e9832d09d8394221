"""Overlaps: where what one agent changes meets what another does, before it is merged. They are told, not decided."""

from __future__ import annotations

import os
from hashlib import sha256
from itertools import combinations

from teams_cli import errors, text
from teams_cli.agents import checkouts, git
from teams_cli.agents.checkouts import Tree
from teams_cli.messages import messages
from teams_cli.store.contract import Store
from teams_cli.tasks import landings, touching
from teams_cli.teams import teams
from teams_cli.teams.teams import Team

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

_CONFLICTS = 1


class Overlap:
    """Two branches of agents that can't be merged as they are: the *files* in which they conflict."""

    def __init__(self, one: Tree, other: Tree, files: list[str]) -> None:
        self.trees = (one, other)
        self.files = files

    def to_json(self) -> dict[str, Any]:
        """The overlap as others see it."""
        return {
            "agents": [each.agent for each in self.trees],
            "branches": [each.branch for each in self.trees],
            "files": self.files,
        }


def of_team(store: Store, team: Team) -> list[Overlap]:
    """Show which branches of the team's agents on this machine conflict. Nothing is merged.

    It compares the worktrees of started agents, and those where members were last seen at work.

    Raises:
        StorageFailed: This git can't compare them.
    """
    pairs = combinations(checkouts.trees(store, team), 2)
    found = [Overlap(one, other, files) for one, other in pairs if (files := _conflicts(one, other))]
    return _that_meet(store, team.name, found)


def _that_meet(store: Store, team: str, found: list[Overlap]) -> list[Overlap]:
    """Those whose branches are to join the same one: by the last landing that was asked for of each, else that of the
    main checkout.
    """
    every = landings.all_of(store, team, []) if found else ()
    asked = {(os.path.realpath(one.repository), one.branch): one.onto for one in every}

    def goal(tree: Tree) -> str:
        main = checkouts.repository_of(tree.worktree)[1].removesuffix("/.git")
        said = asked.get((main, tree.branch))
        return said or checkouts.branch_of(main)

    return [overlap for overlap in found if not asked or len({goal(tree) for tree in overlap.trees}) == 1]


def _conflicts(one: Tree, other: Tree) -> list[str]:
    """The files in which the two branches conflict; none where they are of different repositories."""
    if checkouts.repository_of(one.worktree)[1] != checkouts.repository_of(other.worktree)[1]:
        return []
    words = ("merge-tree", "--write-tree", "--name-only", "--no-messages", "-z", one.branch, other.branch)
    done = git.run(one.worktree, *words)
    if done.returncode == 0:
        return []
    if done.returncode != _CONFLICTS:
        raise errors.StorageFailed(f"git merge-tree: {done.stderr.strip()}", "It takes git 2.38 or later.")
    return sorted(set(done.stdout.split("\0")[1:]) - {""})


def about(store: Store, team: Team, agent: str, path: str) -> list[str]:
    """What others have to do with the file that the agent is about to write, in a line each: whose task in progress
    touches it, whose branch or worktree has changed it.
    """
    top, common = checkouts.repository_of(os.path.dirname(path))
    inside = os.path.relpath(_real(path), top or ".")
    lines = [
        f"{task.id} of {task.owner} touches {inside}: {task.title}"
        for task in touching.in_progress(store, team.name, agent)
        if touching.touches(task, inside)
    ]
    for tree in checkouts.trees(store, team) if common else ():
        ours = tree.agent == agent or os.path.realpath(tree.worktree) == top
        if not ours and checkouts.repository_of(tree.worktree)[1] == common and _changed(tree, inside):
            lines.append(f"{tree.agent} has changed {inside} on its branch {tree.branch}")
    return lines


def _real(path: str) -> str:
    """The path with the links of its directory followed: the file itself may be one, or not be there yet."""
    return os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))


def _changed(tree: Tree, inside: str) -> bool:
    """Whether the agent changed the file since its branch left what is checked out at the top, committed or not."""
    words = ("diff", "--name-only", "--no-ext-diff", "--merge-base", "main-worktree/HEAD", "--", f":(literal){inside}")
    if git.said(tree.worktree, *words):
        return True
    return bool(git.said(tree.worktree, "ls-files", "--others", "--exclude-standard", "--", f":(literal){inside}"))


class Teller:
    """Tells an agent and the others, once each, that its branch conflicts with theirs."""

    def __init__(self, store: Store, team: str, agent: str) -> None:
        self.store = store
        self.team = team
        self.agent = agent
        self._seen: dict[str, str] = {}

    def look(self) -> None:
        """Compare the agent's branch with those that are others than at the last look, or all if it has changed itself.

        That it can't be told is no reason for the agent to stop.
        """
        try:
            for overlap in _that_meet(self.store, self.team, list(self._new())):
                tell(self.store, self.team, overlap)
        except (errors.TeamsError, OSError):
            return

    def _new(self) -> Iterator[Overlap]:
        every = checkouts.trees(self.store, teams.get(self.store, self.team))
        own = next((tree for tree in every if tree.agent == self.agent), None)
        tips = _tips(own.worktree, every) if own else {}
        before, self._seen = self._seen, tips
        if own is None or tips == before or own.branch not in tips:
            return
        for other in every:
            moved = any(tips.get(name) != before.get(name) for name in (own.branch, other.branch))
            if other is not own and moved and (files := _conflicts(own, other)):
                yield Overlap(own, other, files)


def _tips(directory: str, trees: list[Tree]) -> dict[str, str]:
    """What the branches of agents point to, by their names."""
    words = [f"refs/heads/{tree.branch}" for tree in trees]
    listed = git.said(directory, "for-each-ref", "--format=%(refname:lstrip=2) %(objectname)", *words)
    return dict(line.rsplit(" ", 1) for line in listed.splitlines())


def tell(store: Store, team: str, overlap: Overlap) -> None:
    """Tell both of an overlap, each once for the same files: whoever finds it does, and it wakes nobody."""
    known = teams.get(store, team)
    one, other = sorted(overlap.trees, key=lambda tree: tree.agent)
    digest = sha256("\0".join([one.agent, other.agent, *overlap.files]).encode(errors="surrogateescape")).hexdigest()
    files = text.listed(overlap.files)
    for mine, theirs in ((one, other), (other, one)):
        if known.member(mine.agent):
            body = (
                f"your branch conflicts with {theirs.agent}'s, {theirs.branch}, in {files}: agree with {theirs.agent}"
                " who changes what (all: teams overlaps)"
            )
            messages.notify(store, team, mine.agent, body, f"overlap-{digest[:16]}~{mine.agent}", "info")
