"""Overlaps: find where the work of one agent, committed or not, conflicts with that of another or with the branch that
it is to join, and notify the agents before they merge.
"""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256
from itertools import combinations
from typing import Any

from teams_cli import environment, errors, text
from teams_cli.agents import checkouts, git, merging, regions
from teams_cli.agents.checkouts import Tree
from teams_cli.agents.regions import Snapshots
from teams_cli.messages import messages
from teams_cli.store.contract import Store
from teams_cli.tasks import landings, tasks, touching
from teams_cli.tasks.tasks import FINISHED, IN_PROGRESS
from teams_cli.teams import presence, teams
from teams_cli.teams.teams import Team

_EVERY = 15.0
"""Seconds between two comparisons of uncommitted files; a commit is compared as soon as it is seen."""
_LAST = 50
"""The number of landings among which the cause of a conflict is looked for."""
_MOST_PARSED, _MOST_FILES = 20, 100
"""How many changed files of an agent are recorded at most: with the names of functions, and in all."""


class Overlap:
    """Work of two agents that conflicts: the *files*, and the *places* in them, as `regions.place` returns them. The
    first agent is expected to land first.
    """

    def __init__(self, one: Tree, other: Tree, places: list[dict[str, Any]]) -> None:
        self.trees = (one, other)
        self.places = places
        self.files = [place["file"] for place in places]

    def to_json(self) -> dict[str, Any]:
        """Return the overlap as `teams overlaps --json` prints it."""
        agents = [each.agent for each in self.trees]
        places = [{**place, "lines": dict(zip(agents, place["lines"], strict=True))} for place in self.places]
        branches = [each.branch for each in self.trees]
        return {"agents": agents, "branches": branches, "files": self.files, "places": places, "first": agents[0]}


def of_team(store: Store, team: Team) -> list[Overlap]:
    """Show where the work of the team's agents on this machine conflicts, committed or not. Nothing is changed.

    It compares worktrees that will be merged into the same branch: those of started agents, and those where members
    last worked. The first agent named is expected to land first.

    Raises:
        StorageFailed: This version of git can't compare the worktrees.
    """
    every = checkouts.trees(store, team)
    overlaps: list[Overlap] = []
    for common in dict.fromkeys(map(_common, every)):
        with Snapshots(common) as shot:
            pairs = combinations([tree for tree in every if _common(tree) == common], 2)
            overlaps += _between(shot, store, team.name, pairs)
    return overlaps


def _between(shot: Snapshots, store: Store, team: str, pairs: Iterable[tuple[Tree, Tree]]) -> Iterator[Overlap]:
    """Yield the overlaps among pairs of worktrees of one repository. A pair is compared only if both worktrees are to
    join the same branch, and that branch does not contain the work of either.
    """
    goals = _goals(store, team)
    began = {task.owner: task.claimed_at or "" for task in tasks.labelled(store, team, IN_PROGRESS)}
    for pair in pairs:
        goal, *others = {_goal(tree, shot.main, goals) for tree in pair}
        tip = merging.tip_of(shot.main, goal)
        if others or any(shot.holds(tree.worktree, tip, shot.of(tree.worktree)) for tree in pair):
            continue
        # An agent without a task in progress has completed it, and lands first; else the one that began first does.
        one, other = sorted(pair, key=lambda tree: (began.get(tree.agent, ""), tree.agent))
        if places := _places(shot, one.worktree, shot.of(one.worktree), shot.of(other.worktree)):
            yield Overlap(one, other, places)


def with_tip(
    shot: Snapshots, store: Store, team: str, directory: str, commit: str, onto: str, tip: str
) -> dict[str, Any]:
    """Return where *commit* conflicts with *tip*, the commit of the branch *onto* that it is to join. `places` are the
    conflicts. `against` is the team's landing that last changed one of these files, or None; it has `landing`, `task`,
    `title`, `owner`, and `at`, when it landed.
    """
    places = _places(shot, directory, commit, tip)
    files = {place["file"] for place in places}
    against = _landed_before(shot, store, team, directory, commit, onto, files) if files else None
    return {"places": places, "against": against}


def _landed_before(
    shot: Snapshots, store: Store, team: str, directory: str, commit: str, onto: str, files: set[str]
) -> dict[str, Any] | None:
    """Return the last landing on *onto* that changed one of the files, as `with_tip` does; None if there is none or
    *commit* contains it.
    """
    landed = [one for one in landings.all_of(store, team, []) if one.state == "landed" and one.onto == onto]
    here = [one for one in landed if os.path.realpath(one.repository) == shot.main]
    for one in sorted(here, key=lambda one: one.ended_at or "", reverse=True)[:_LAST]:
        merge = one.merge or one.head
        if shot.holds(directory, commit, merge):
            return None
        if files.intersection(shot.files(directory, f"{merge}^1", merge)):
            owner = one.owner or one.by
            return {"landing": one.id, "task": one.task, "title": one.title, "owner": owner, "at": one.ended_at}
    return None


def _goals(store: Store, team: str) -> dict[tuple[str, str], str]:
    """Return, for each repository and branch, the branch on which it was last asked to land."""
    every = landings.all_of(store, team, [])
    return {(os.path.realpath(each.repository), each.branch or ""): each.onto for each in every}


def _common(tree: Tree) -> str:
    return checkouts.repository_of(tree.worktree)[1]


def _goal(tree: Tree, main: str, goals: dict[tuple[str, str], str]) -> str:
    """Return the branch that the work in *tree* is to join: the one on which it was last asked to land, else the branch
    of the *main* checkout.
    """
    return goals.get((main, tree.branch)) or checkouts.branch_of(main)


def _places(shot: Snapshots, directory: str, one: str, other: str) -> list[dict[str, Any]]:
    files = shot.conflicts(directory, one, other)
    base = shot.base(directory, one, other) if files else ""
    if not base:
        return [{"file": name, "symbols": [], "lines": [[], []]} for name in files]
    return [
        regions.place(name, shot.changes(directory, base, one, name), shot.changes(directory, base, other, name))
        for name in files
    ]


def diff(store: Store, team: Team, agent: str, paths: Sequence[str]) -> dict[str, Any]:
    """Show what the agent changes in its worktree, committed or not, compared with the branch of the main checkout.

    Raises:
        AgentNotFound: No worktree of the agent is known on this machine.
        StorageFailed: git failed.
    """
    every = checkouts.trees(store, team)
    tree = next((tree for tree in every if tree.agent == agent), None)
    if tree is None:
        names = text.listed([each.agent for each in every]) or "nobody"
        raise errors.AgentNotFound(
            f"no worktree of {agent} is known on this machine",
            f"Known worktrees: {names}. To make one known, run a `teams` command in it.",
        )
    with Snapshots(_common(tree)) as shot:
        base, commit = _from_main(shot, tree)
        patch = shot.patch(tree.worktree, base, commit, paths)
    return {"agent": agent, "branch": tree.branch, "diff": patch}


def _from_main(shot: Snapshots, tree: Tree) -> tuple[str, str]:
    """Return two commits: the one at which the worktree left the branch of the main checkout, empty if there is none,
    and one that holds all work in the worktree.
    """
    commit = shot.of(tree.worktree)
    return shot.base(tree.worktree, commit, git.output_of(tree.worktree, "rev-parse", "main-worktree/HEAD")), commit


def about(store: Store, team: Team, agent: str, path: str) -> list[str]:
    """Return a line for each agent that also works on the file *path*, which *agent* is about to write. Another agent
    works on it if its task in progress touches the file, or its worktree or branch has changed it.
    """
    top, common = checkouts.repository_of(os.path.dirname(path))
    real = os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))  # it may not exist yet
    inside = os.path.relpath(real, top or ".")
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


def _changed(tree: Tree, inside: str) -> bool:
    """Whether the agent changed the file at the path *inside* its worktree, committed or not, since its branch left the
    main checkout.
    """
    words = ("diff", "--name-only", "--no-ext-diff", "--merge-base", "main-worktree/HEAD", "--", f":(literal){inside}")
    if git.output_of(tree.worktree, *words):
        return True
    return bool(git.output_of(tree.worktree, "ls-files", "--others", "--exclude-standard", "--", f":(literal){inside}"))


class Teller:
    """Compares an agent's work with that of others again and again, notifies each agent once of a conflict, and records
    which files the agent changes.
    """

    def __init__(self, store: Store, team: str, agent: str) -> None:
        self.store = store
        self.team = team
        self.agent = agent

    def look(self) -> str:
        """Compare the agent's work with all others if it changed, else with the others that changed since the last look
        of any process. Uncommitted changes are looked at every 15 seconds at most.

        Returns why the comparison failed, else an empty string: a failure must not stop the agent. It is tried twice if
        git was busy.
        """
        try:
            try:
                self._look_at_all()
            except errors.Busy:
                self._look_at_all()
        except errors.TeamsError as problem:
            return problem.message
        except (OSError, ValueError) as problem:
            return str(problem)
        return ""

    def _look_at_all(self) -> None:
        every = checkouts.trees(self.store, teams.get(self.store, self.team))
        own = next((tree for tree in every if tree.agent == self.agent), None)
        if own is not None:
            self._look(own, [tree for tree in every if tree is not own])

    def _look(self, own: Tree, others: list[Tree]) -> None:
        seen = _Seen(f"{self.store.root}/teams/{self.team}/inboxes/{self.agent}.compared")
        commit, common = environment.commit_in(own.worktree), _common(own)
        if seen.commit == commit and 0 <= self.store.now().timestamp() - seen.written_at < _EVERY:
            return
        near = [tree for tree in others if _common(tree) == common]
        states = {tree.worktree: _state(tree) for tree in (own, *near)}
        has_moved = {place for place, state in states.items() if state != seen.states.get(place)}
        with Snapshots(common) as shot:
            onto = _goal(own, shot.main, _goals(self.store, self.team))
            tip = merging.tip_of(shot.main, onto)
            if own.worktree in has_moved:
                self._note_files(shot, own)
            moved = near if own.worktree in has_moved else [tree for tree in near if tree.worktree in has_moved]
            noted = presence.load(self.store, self.team, self.agent).conflicts or {}
            unmoved = {onto, *(tree.agent for tree in near)} - {tree.agent for tree in moved}
            conflicts = {name: places for name, places in noted.items() if name in unmoved}
            for overlap in _between(shot, self.store, self.team, [(own, tree) for tree in moved]):
                tell(self.store, self.team, overlap)
                other = next(tree for tree in overlap.trees if tree is not own)
                conflicts[other.agent] = _in_words(overlap.places, int(other is overlap.trees[0]))
            if tip and (own.worktree in has_moved or seen.states.get(onto) != tip):
                conflicts[onto] = self._compare_with_tip(shot, own, onto, tip)
        conflicts = {name: places for name, places in conflicts.items() if places}
        presence.note_conflicts(self.store, self.team, self.agent, conflicts)
        seen.write(commit, {**states, onto: tip})

    def _compare_with_tip(self, shot: Snapshots, own: Tree, onto: str, tip: str) -> str:
        """Return in words where the agent's work conflicts with the branch *onto*, or "" if nowhere. The agent is
        notified once of each landing or commit that its work conflicts with. It is not notified if all its tasks are
        finished, or if it asked to land this commit, because the answer to that names the conflict.
        """
        commit = shot.of(own.worktree)
        conflict = with_tip(shot, self.store, self.team, own.worktree, commit, onto, tip)
        places = _in_words(conflict["places"])
        if not places:
            return ""
        asked = landings.all_of(self.store, self.team, [])
        own_tasks = [task for task in tasks.all_of(self.store, self.team, []) if task.owner == self.agent]
        is_done = bool(own_tasks) and all(task.status in FINISHED for task in own_tasks)
        if is_done or any(one.head == commit and one.onto == onto for one in asked):
            return places
        against = conflict["against"]
        cause = f" ({landings.whose(against)}, which landed)" if against else ""
        body = f"your work conflicts with {onto}{cause} in {places}. Merge it now: git merge {onto}"
        files = [place["file"] for place in conflict["places"]]
        uid = f"behind-{_digest([self.agent, onto, *files, str(against)])}~{self.agent}"
        messages.notify(self.store, self.team, self.agent, body, uid, "info", event="work-conflicts")
        return places

    def _note_files(self, shot: Snapshots, own: Tree) -> None:
        """Record the files that the agent changes, so that others choose tasks that touch none of them."""
        base, commit = _from_main(shot, own)
        files = shot.files(own.worktree, base, commit) if base else []
        changing = [shot.region(own.worktree, base, commit, path) for path in files[:_MOST_PARSED]]
        presence.note_changing(self.store, self.team, self.agent, [*changing, *files[_MOST_PARSED:_MOST_FILES]])


class _Seen:
    """Keeps the state of all worktrees at the last comparison in a file, so that no other process repeats it."""

    def __init__(self, path: str) -> None:
        self._path = path
        self.commit, self.states, self.written_at = "", dict[str, str](), 0.0
        try:
            with open(path, encoding="utf-8") as file:
                kept = json.load(file)
                self.written_at = os.fstat(file.fileno()).st_mtime
            self.commit, self.states = str(kept["commit"]), dict(kept["states"])
        except (OSError, ValueError, KeyError, TypeError):
            return

    def write(self, commit: str, states: dict[str, str]) -> None:
        """Write the file. If that fails, the next look compares the same again; nobody is notified twice."""
        os.makedirs(os.path.dirname(self._path), 0o700, exist_ok=True)
        temporary = f"{self._path}.{os.getpid()}"
        with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600), "w") as file:
            json.dump({"commit": commit, "states": states}, file)
        os.rename(temporary, self._path)


def _state(tree: Tree) -> str:
    """Return a digest that changes whenever a tracked or untracked file of the worktree does."""
    entries = git.must(tree.worktree, *git.LOOKING, *git.STATUS)
    digest = sha256(git.output_of(tree.worktree, "rev-parse", "HEAD").encode())
    for entry in entries.split("\0"):
        path = os.path.join(tree.worktree, entry[3:])
        status = os.lstat(path) if entry and os.path.lexists(path) else None
        digest.update(f"{entry}{status.st_mtime_ns if status else ''}\0".encode(errors="surrogateescape"))
    return digest.hexdigest()


def _in_words(places: list[dict[str, Any]], mine: int = 0) -> str:
    return text.listed([regions.in_words(place, mine) for place in places])


def _digest(words: list[str]) -> str:
    return sha256("\0".join(words).encode(errors="surrogateescape")).hexdigest()[:16]


def tell(store: Store, team: str, overlap: Overlap) -> None:
    """Notify both agents of an overlap, only once for the same files. The notice wakes nobody."""
    of_team = teams.get(store, team)
    first, second = overlap.trees
    names = sorted((first.agent, second.agent))
    digest = _digest([*names, *overlap.files])
    for mine, theirs in ((first, second), (second, first)):
        if of_team.member(mine.agent):
            places = _in_words(overlap.places, int(mine is second))
            lead = "You are" if mine is first else f"{theirs.agent} is"
            last = f"{theirs.agent} merges that" if mine is first else "merge their branch when it has landed"
            body = (
                f"your work conflicts with {theirs.agent}'s, {theirs.branch}, in {places}."
                f" {lead} expected to land first; {last}."
                f" See it: teams diff {theirs.agent} {shlex.quote(overlap.files[0])}"
            )
            messages.notify(
                store, team, mine.agent, body, f"overlap-{digest}~{mine.agent}", "info", event="work-conflicts"
            )
