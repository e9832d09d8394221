"""Overlaps: where what one agent changes meets what another does, before it is merged. They are told, not decided."""

from __future__ import annotations

import os
from hashlib import sha256
from itertools import combinations

from teams_cli.agents import git, sessions
from teams_cli.agents.sessions import SESSION, Session
from teams_cli.errors import StorageFailed, TeamsError
from teams_cli.messages import messages
from teams_cli.records.annotations import Any, Iterator
from teams_cli.store.contract import Store
from teams_cli.tasks import touching

_NAMED = 5
_CONFLICTS = 1


class Overlap:
    """Two branches of agents that can't be merged as they are: the *files* in which they conflict."""

    def __init__(self, one: Session, other: Session, files: list[str]) -> None:
        self.sessions = (one, other)
        self.files = files

    def to_json(self) -> dict[str, Any]:
        """The overlap as others see it."""
        return {
            "agents": [each.agent for each in self.sessions],
            "branches": [each.branch for each in self.sessions],
            "files": self.files,
        }


def of_team(store: Store, team: str) -> list[Overlap]:
    """Where branches of the team's agents conflict, as far as these are on this machine; nothing is merged.

    Raises:
        StorageFailed: This git can't tell.
    """
    found = []
    for one, other in combinations(_with_trees(store, team), 2):
        if files := _conflicts(one, other):
            found.append(Overlap(one, other, files))
    return found


def _with_trees(store: Store, team: str) -> list[Session]:
    """The agents that have a worktree here."""
    every = (session for session, _ in store.scan(team, SESSION, []))
    return [session for session in every if session.worktree and session.branch and os.path.isdir(session.worktree)]


def _conflicts(one: Session, other: Session) -> list[str]:
    """The files in which the two branches conflict; none where they are of different repositories."""
    assert one.worktree and one.branch and other.worktree and other.branch
    if repository_of(one.worktree)[1] != repository_of(other.worktree)[1]:
        return []
    words = ("merge-tree", "--write-tree", "--name-only", "--no-messages", "-z", one.branch, other.branch)
    done = git.run(one.worktree, *words)
    if done.returncode == 0:
        return []
    if done.returncode != _CONFLICTS:
        raise StorageFailed(f"git merge-tree: {done.stderr.strip()}", "It takes git 2.38 or later.")
    return sorted(set(done.stdout.split("\0")[1:]) - {""})


def repository_of(path: str) -> tuple[str, str]:
    """The top of the checkout that holds *path*, and the directory that all worktrees of its repository have in common;
    both empty where there is none. No process is needed to tell.
    """
    top = os.path.realpath(path)
    while not os.path.lexists(f"{top}/.git"):
        if top == (top := os.path.dirname(top)):
            return "", ""
    place = f"{top}/.git"
    if os.path.isdir(place):
        return top, place
    own = os.path.join(top, _line(place).removeprefix("gitdir: "))
    return top, os.path.realpath(os.path.join(own, _line(f"{own}/commondir")))


def _line(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return file.readline().rstrip("\n")
    except OSError:
        return ""


def about(store: Store, team: str, agent: str, path: str) -> list[str]:
    """What others have to do with the file that the agent is about to write, in a line each: whose task in progress
    touches it, whose branch or worktree has changed it.
    """
    top, common = repository_of(os.path.dirname(path))
    inside = os.path.relpath(_real(path), top or ".")
    lines = [
        f"{task.id} of {task.owner} touches {inside}: {task.title}"
        for task in touching.in_progress(store, team, agent)
        if touching.touches(task, inside)
    ]
    for session in _with_trees(store, team) if common else ():
        assert session.worktree
        if session.agent != agent and repository_of(session.worktree)[1] == common and _changed(session, inside):
            lines.append(f"{session.agent} has changed {inside} on its branch {session.branch}")
    return lines


def _real(path: str) -> str:
    """The path with the links of its directory followed: the file itself may be one, or not be there yet."""
    return os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))


def _changed(session: Session, inside: str) -> bool:
    """Whether the agent changed the file since its branch left what is checked out at the top, committed or not."""
    assert session.worktree
    words = ("diff", "--name-only", "--no-ext-diff", "--merge-base", "main-worktree/HEAD", "--", f":(literal){inside}")
    if git.said(session.worktree, *words):
        return True
    return bool(git.said(session.worktree, "ls-files", "--others", "--exclude-standard", "--", f":(literal){inside}"))


class Teller:
    """Tells an agent and the others, once each, that its branch conflicts with theirs."""

    def __init__(self, store: Store, team: str, session: Session) -> None:
        self.store = store
        self.team = team
        self.session = session
        self._seen: dict[str, str] = {}

    def look(self) -> None:
        """Compare the agent's branch with those that are others than at the last look, or all if it has changed itself.

        That it can't be told is no reason for the agent to stop.
        """
        try:
            for overlap in self._new():
                tell(self.store, self.team, overlap)
        except (TeamsError, OSError):
            return

    def _new(self) -> Iterator[Overlap]:
        if not self.session.branch or not self.session.worktree:
            return
        tips = _tips(self.session.worktree)
        before, self._seen = self._seen, tips
        own = self.session.branch
        if tips == before or own not in tips:
            return
        for other in _with_trees(self.store, self.team):
            assert other.branch
            moved = any(tips.get(name) != before.get(name) for name in (own, other.branch))
            if other.agent != self.session.agent and moved and (files := _conflicts(self.session, other)):
                yield Overlap(self.session, other, files)


def _tips(directory: str) -> dict[str, str]:
    """What the branches of agents point to, by their names."""
    listed = git.said(directory, "for-each-ref", "--format=%(refname:short) %(objectname)", "refs/heads/teams/")
    return dict(line.rsplit(" ", 1) for line in listed.splitlines())


def tell(store: Store, team: str, overlap: Overlap) -> None:
    """Tell both of an overlap, each once for the same files: whoever finds it does, and it wakes nobody."""
    one, other = sorted(overlap.sessions, key=lambda session: session.agent)
    digest = sha256("\0".join([one.agent, other.agent, *overlap.files]).encode(errors="surrogateescape")).hexdigest()
    files = ", ".join(overlap.files[:_NAMED])
    if len(overlap.files) > _NAMED:
        files += f" and {len(overlap.files) - _NAMED} more"
    for mine, theirs in ((one, other), (other, one)):
        if sessions.find(store, team, mine.agent) is not None:
            body = (
                f"your branch conflicts with {theirs.agent}'s, {theirs.branch}, in {files}: agree with {theirs.agent}"
                " who changes what (all: teams overlaps)"
            )
            messages.notify(store, team, mine.agent, body, f"overlap-{digest[:16]}~{mine.agent}", "info")
