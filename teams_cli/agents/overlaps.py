"""Overlaps: find where the work of an agent, committed or not, conflicts with the work of another agent, or with the
branch that it will be merged into. The agents are notified before they merge.
"""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from hashlib import sha256
from itertools import combinations
from typing import Any

from teams_cli import environment, errors, text
from teams_cli.agents import checkouts, git, merging, regions
from teams_cli.agents.checkouts import Tree
from teams_cli.agents.regions import Snapshots
from teams_cli.messages import messages
from teams_cli.store.contract import Store
from teams_cli.store.files import disk
from teams_cli.tasks import landings, tasks, touching
from teams_cli.tasks.tasks import FINISHED, IN_PROGRESS
from teams_cli.teams import presence, teams
from teams_cli.teams.teams import Team

_EVERY = 15.0
"""Seconds between two comparisons of uncommitted files; a commit is compared as soon as it is seen."""
_MOST_LANDINGS = 50
"""Number of the latest landings that are searched for the cause of a conflict."""
_MOST_PARSED, _MOST_FILES = 20, 100
"""Maximum numbers of an agent's changed files that are recorded: with the names of the changed functions, and in all.
"""


class Overlap:
    """A conflict between the work of two agents: the *files* with conflicts, and in *places* the functions and lines
    that conflict in each file. The first of the two agents is expected to land first.
    """

    def __init__(self, first: Tree, second: Tree, places: list[dict[str, Any]]) -> None:
        self.trees = (first, second)
        self.places = places
        self.files = [place["file"] for place in places]

    def to_json(self) -> dict[str, Any]:
        """Return the overlap as `teams overlaps --json` prints it."""
        agents = [tree.agent for tree in self.trees]
        places = [{**place, "lines": dict(zip(agents, place["lines"], strict=True))} for place in self.places]
        branches = [tree.branch for tree in self.trees]
        return {"agents": agents, "branches": branches, "files": self.files, "places": places, "first": agents[0]}


def of_team(store: Store, team: Team) -> list[Overlap]:
    """Show where the work of the team's agents on this machine conflicts, including uncommitted work. Nothing is
    changed.

    The command compares worktrees that will be merged into the same branch: those of agents that `teams` started, and
    those in which members last worked. For each conflict, the answer first names the agent that is expected to land
    first.

    Raises:
        StorageFailed: This version of git can't compare the worktrees.
    """
    by_repository: dict[str, list[Tree]] = {}
    for tree in checkouts.trees(store, team):
        by_repository.setdefault(_repository_of(tree), []).append(tree)
    overlaps: list[Overlap] = []
    for repository, trees in by_repository.items():
        with Snapshots(repository) as snapshots:
            overlaps += _find_overlaps(snapshots, store, team.name, combinations(trees, 2))
    return overlaps


def _find_overlaps(
    snapshots: Snapshots, store: Store, team: str, pairs: Iterable[tuple[Tree, Tree]]
) -> Iterator[Overlap]:
    """Yield an overlap for each pair of worktrees that conflict and will be merged into the same branch. A pair is
    skipped if the branch already contains the work of one of them.
    """
    target_of = _targets(store, team, snapshots.main)
    claimed_at = {task.owner: task.claimed_at or "" for task in tasks.labelled(store, team, IN_PROGRESS)}

    def landing_order(tree: Tree) -> tuple[str, str]:
        """Return a sort key that puts agents without a task in progress first, then the others by the time of their
        claim.
        """
        return claimed_at.get(tree.agent, ""), tree.agent

    for pair in pairs:
        target, other_target = map(target_of, pair)
        if target != other_target:
            continue
        tip = merging.tip_of(snapshots.main, target)
        if any(snapshots.holds(tree.worktree, tip, snapshots.of(tree.worktree)) for tree in pair):
            continue
        first, second = sorted(pair, key=landing_order)
        commits = snapshots.of(first.worktree), snapshots.of(second.worktree)
        if places := _conflicting_places(snapshots, first.worktree, *commits):
            yield Overlap(first, second, places)


def with_tip(
    snapshots: Snapshots, store: Store, team: str, directory: str, commit: str, onto: str, tip: str
) -> dict[str, Any]:
    """Return where *commit* conflicts with *tip*, the current commit of the branch *onto*, into which *commit* will be
    merged. `places` lists the conflicts. `against` describes the landing that last changed one of the files with
    conflicts, with the keys `landing`, `task`, `title`, `owner` and `at`, the time of the landing. It is None if no
    landing of the team changed these files.
    """
    places = _conflicting_places(snapshots, directory, commit, tip)
    files = {place["file"] for place in places}
    against = None
    all_landings = landings.all_of(store, team, []) if files else ()
    landed = [
        landing
        for landing in all_landings
        if landing.state == "landed" and landing.onto == onto and os.path.realpath(landing.repository) == snapshots.main
    ]
    landed.sort(key=lambda landing: landing.ended_at or "", reverse=True)
    for landing in landed[:_MOST_LANDINGS]:
        merge = landing.merge or landing.head
        if snapshots.holds(directory, commit, merge):  # and also the landings before it, which can't be the cause
            break
        if files.intersection(snapshots.files(directory, f"{merge}^1", merge)):
            against = {
                "landing": landing.id,
                "task": landing.task,
                "title": landing.title,
                "owner": landing.owner or landing.by,
                "at": landing.ended_at,
            }
            break
    return {"places": places, "against": against}


def _targets(store: Store, team: str, main: str) -> Callable[[Tree], str]:
    """Return a function that returns the branch into which a worktree's work will be merged: the branch named by the
    last request to land this work or, if there was none, the branch of the *main* checkout.
    """
    branches = {
        landing.branch or "": landing.onto
        for landing in landings.all_of(store, team, [])
        if os.path.realpath(landing.repository) == main
    }
    return lambda tree: branches.get(tree.branch) or checkouts.branch_of(main)


def _repository_of(tree: Tree) -> str:
    return checkouts.repository_of(tree.worktree)[1]


def _conflicting_places(snapshots: Snapshots, directory: str, first: str, second: str) -> list[dict[str, Any]]:
    """Return where two commits conflict: for each file, the functions and the lines of both sides."""
    files = snapshots.conflicts(directory, first, second)
    base = snapshots.base(directory, first, second) if files else ""
    if not base:  # without a common ancestor, whole files conflict
        return [{"file": name, "symbols": [], "lines": [[], []]} for name in files]
    places = []
    for name in files:
        changes = [snapshots.changes(directory, base, commit, name) for commit in (first, second)]
        places.append(regions.place(name, *changes))
    return places


def diff(store: Store, team: Team, agent: str, paths: Sequence[str]) -> dict[str, Any]:
    """Show what the agent changes in its worktree, committed or not, compared with the branch of the main checkout.

    Raises:
        AgentNotFound: No worktree of the agent is known on this machine.
        StorageFailed: git failed.
    """
    trees = {tree.agent: tree for tree in checkouts.trees(store, team)}
    tree = trees.get(agent)
    if tree is None:
        raise errors.AgentNotFound(
            f"no worktree of {agent} is known on this machine",
            f"Known worktrees: {text.listed(list(trees)) or 'nobody'}. To make one known, run a `teams` command in it.",
        )
    with Snapshots(_repository_of(tree)) as snapshots:
        base, commit = _base_and_snapshot(snapshots, tree)
        patch = snapshots.patch(tree.worktree, base, commit, paths)
    return {"agent": agent, "branch": tree.branch, "diff": patch}


def _base_and_snapshot(snapshots: Snapshots, tree: Tree) -> tuple[str, str]:
    """Return two commits: the last one that the worktree has in common with the main checkout, "" if there is none; and
    one with all work in the worktree.
    """
    commit = snapshots.of(tree.worktree)
    main_head = git.output_of(tree.worktree, "rev-parse", "main-worktree/HEAD")
    return snapshots.base(tree.worktree, commit, main_head), commit


def others_working_on(store: Store, team: Team, agent: str, path: str) -> list[str]:
    """Return a line for each agent that also works on the file *path*, which *agent* is about to write. These are the
    agents whose task in progress touches the file, or whose worktree or branch has changed it.
    """
    top, repository = checkouts.repository_of(os.path.dirname(path))
    real = os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))  # it may not exist yet
    file = os.path.relpath(real, top or ".")
    lines = [
        f"{task.id} of {task.owner} touches {file}: {task.title}"
        for task in tasks.labelled(store, team.name, IN_PROGRESS)
        if task.owner != agent and touching.touches(task, file)
    ]
    changed = ("diff", "--name-only", "--no-ext-diff", "--merge-base", "main-worktree/HEAD")  # since its branch began
    untracked = ("ls-files", "--others", "--exclude-standard")
    for tree in checkouts.trees(store, team) if repository else ():
        is_own = tree.agent == agent or os.path.realpath(tree.worktree) == top
        if is_own or _repository_of(tree) != repository:
            continue
        if any(git.output_of(tree.worktree, *words, "--", f":(literal){file}") for words in (changed, untracked)):
            lines.append(f"{tree.agent} has changed {file} on its branch {tree.branch}")
    return lines


class ConflictWatch:
    """Compares an agent's work with the work of other agents again and again. Notifies both agents of a conflict, once,
    and records which files the agent changes.
    """

    def __init__(self, store: Store, team: str, agent: str) -> None:
        self.store = store
        self.team = team
        self.agent = agent

    def notify_of_conflicts(self) -> str:
        """Compare the agent's work with the work of each other agent, and notify both of a conflict. A pair is skipped
        if the work of neither has changed since any process compared it last. Uncommitted changes are compared at most
        every 15 seconds.

        Returns why the comparison failed, or "" if it succeeded. No error is raised, because a failure must not stop
        the agent. If git was busy, the comparison is tried once more.
        """
        try:
            try:
                self._compare()
            except errors.Busy:
                self._compare()
        except errors.TeamsError as problem:
            return problem.message
        except (OSError, ValueError) as problem:
            return str(problem)
        return ""

    def _compare(self) -> None:
        """Compare once, unless the agent has no worktree here, or was compared a moment ago and has committed nothing
        since.
        """
        trees = checkouts.trees(self.store, teams.get(self.store, self.team))
        own_tree = next((tree for tree in trees if tree.agent == self.agent), None)
        if own_tree is None:
            return
        last_comparison = _LastComparison(f"{self.store.root}/teams/{self.team}/inboxes/{self.agent}.compared")
        head = environment.commit_in(own_tree.worktree)
        was_just_compared = 0 <= self.store.now().timestamp() - last_comparison.written_at < _EVERY
        if was_just_compared and last_comparison.commit == head:
            return
        repository = _repository_of(own_tree)
        others = [tree for tree in trees if tree is not own_tree and _repository_of(tree) == repository]
        states = {tree.worktree: _state(tree) for tree in (own_tree, *others)}
        states_before = last_comparison.states
        changed = [tree for tree in (own_tree, *others) if states[tree.worktree] != states_before.get(tree.worktree)]
        own_has_changed = own_tree in changed
        earlier_conflicts = presence.load(self.store, self.team, self.agent).conflicts or {}
        with Snapshots(repository) as snapshots:
            target = _targets(self.store, self.team, snapshots.main)(own_tree)
            tip = merging.tip_of(snapshots.main, target)
            if own_has_changed:  # record the changed files, so that others choose tasks that touch none of them
                base, commit = _base_and_snapshot(snapshots, own_tree)
                files = snapshots.files(own_tree.worktree, base, commit) if base else []
                parsed = [snapshots.region(own_tree.worktree, base, commit, path) for path in files[:_MOST_PARSED]]
                changing = [*parsed, *files[_MOST_PARSED:_MOST_FILES]]
                presence.note_facts(self.store, self.team, self.agent, changing=changing or None)
            compared_now = self._compare_with(snapshots, own_tree, others if own_has_changed else changed)
            if tip and (own_has_changed or states_before.get(target) != tip):
                compared_now[target] = self._compare_with_tip(snapshots, own_tree, target, tip)
        existing_names = {target, *(tree.agent for tree in others)}
        conflicts = {}  # an earlier conflict stays if it was not compared now
        for name, places in {**earlier_conflicts, **compared_now}.items():
            if places and name in existing_names:
                conflicts[name] = places
        presence.note_facts(self.store, self.team, self.agent, conflicts=conflicts or None)
        last_comparison.write(head, {**states, target: tip})

    def _compare_with(self, snapshots: Snapshots, own: Tree, others: list[Tree]) -> dict[str, str]:
        """Return a dictionary that says, by agent, where this agent's work conflicts with each of the *others*, or ""
        if it does not. Both agents of a conflict are notified once.
        """
        conflicts = {tree.agent: "" for tree in others}
        for overlap in _find_overlaps(snapshots, self.store, self.team, [(own, tree) for tree in others]):
            notify_both(self.store, self.team, overlap)
            side = overlap.trees.index(own)
            conflicts[overlap.trees[1 - side].agent] = _in_words(overlap.places, side)
        return conflicts

    def _compare_with_tip(self, snapshots: Snapshots, own: Tree, target: str, tip: str) -> str:
        """Return a text that says where the agent's work conflicts with *tip*, the commit of the branch *target*; "" if
        it does not. The agent is notified once, unless its tasks are finished, or it asked to land this commit, because
        the answer to its request then names the conflict.
        """
        commit = snapshots.of(own.worktree)
        conflict = with_tip(snapshots, self.store, self.team, own.worktree, commit, target, tip)
        places_in_words = _in_words(conflict["places"])
        if not places_in_words:
            return ""
        own_tasks = [task for task in tasks.all_of(self.store, self.team, []) if task.owner == self.agent]
        if own_tasks and all(task.status in FINISHED for task in own_tasks):
            return places_in_words
        for landing in landings.all_of(self.store, self.team, []):
            if landing.head == commit and landing.onto == target:  # the agent asked to land its work
                return places_in_words
        against = conflict["against"]
        cause = f" ({landings.whose(against)}, which landed)" if against else ""
        body = f"your work conflicts with {target}{cause} in {places_in_words}. Merge it now: git merge {target}"
        files = [place["file"] for place in conflict["places"]]
        uid = f"behind-{_digest([self.agent, target, *files, str(against)])}~{self.agent}"
        messages.notify(self.store, self.team, self.agent, body, uid, "info", event="work-conflicts")
        return places_in_words


class _LastComparison:
    """The last comparison of an agent's work: the commit of its worktree, and the state of each worktree and of the
    branch that it was compared with. It is kept in a file, so that no other process repeats the comparison.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self.commit = ""
        self.states: dict[str, str] = {}
        self.written_at = 0.0
        try:
            with open(path, encoding="utf-8") as file:
                document = json.load(file)
                self.written_at = os.fstat(file.fileno()).st_mtime
            self.commit, self.states = str(document["commit"]), dict(document["states"])
        except (OSError, ValueError, KeyError, TypeError):  # as if nothing was ever compared
            return

    def write(self, commit: str, states: dict[str, str]) -> None:
        """Write the file. If writing fails, the comparison is repeated next time, but nobody is notified twice."""
        disk.replace_unsynced(self._path, json.dumps({"commit": commit, "states": states}).encode())


def _state(tree: Tree) -> str:
    """Return a digest of the worktree, which changes whenever HEAD, or a file that git does not ignore, changes."""
    entries = git.must(tree.worktree, *git.LOOKING, *git.STATUS)
    digest = sha256(git.output_of(tree.worktree, "rev-parse", "HEAD").encode())
    for entry in entries.split("\0"):
        path = os.path.join(tree.worktree, entry[3:])
        status = os.lstat(path) if entry and os.path.lexists(path) else None
        digest.update(f"{entry}{status.st_mtime_ns if status else ''}\0".encode(errors="surrogateescape"))
    return digest.hexdigest()


def _in_words(places: list[dict[str, Any]], side: int = 0) -> str:
    """Return a text that describes the *places* for the first agent (*side* 0) or the second agent (*side* 1)."""
    return text.listed([regions.in_words(place, side) for place in places])


def _digest(words: list[str]) -> str:
    return sha256("\0".join(words).encode(errors="surrogateescape")).hexdigest()[:16]


def notify_both(store: Store, team_name: str, overlap: Overlap) -> None:
    """Notify both agents of an overlap, once for each set of files with conflicts. The notices wake nobody."""
    team = teams.get(store, team_name)
    first, second = overlap.trees
    digest = _digest([*sorted((first.agent, second.agent)), *overlap.files])
    for side, (mine, theirs) in enumerate(((first, second), (second, first))):
        if not team.member(mine.agent):
            continue
        if mine is first:
            order = f"You are expected to land first; {theirs.agent} merges that."
        else:
            order = f"{theirs.agent} is expected to land first; merge their branch when it has landed."
        places = _in_words(overlap.places, side)
        body = (
            f"your work conflicts with {theirs.agent}'s, {theirs.branch}, in {places}."
            f" {order} See it: teams diff {theirs.agent} {shlex.quote(overlap.files[0])}"
        )
        uid = f"overlap-{digest}~{mine.agent}"
        messages.notify(store, team_name, mine.agent, body, uid, "info", event="work-conflicts")
