"""Isolation: an agent with a worktree of its own keeps to it, as far as its client asks before it writes.

What is refused: writing a file outside one's tree, and git commands that change another tree, another's branch, or what
all trees of a repository share. What other programs do in a shell is not seen; that is for the client's sandbox.
"""

from __future__ import annotations

import json
import os

from teams_cli import errors, text
from teams_cli.agents import checkouts, git
from teams_cli.agents.sessions import Session
from teams_cli.store.contract import Store
from teams_cli.store.files import disk
from teams_cli.teams import settings
from teams_cli.teams.teams import Team

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence


_READING = frozenset(
    (
        "annotate",
        "blame",
        "cat-file",
        "cherry",
        "count-objects",
        "describe",
        "diff",
        "diff-tree",
        "for-each-ref",
        "grep",
        "help",
        "log",
        "ls-files",
        "ls-remote",
        "ls-tree",
        "merge-base",
        "merge-tree",
        "name-rev",
        "range-diff",
        "rev-list",
        "rev-parse",
        "shortlog",
        "show",
        "show-ref",
        "status",
        "var",
        "version",
        "whatchanged",
    )
)
"""Git commands that change nothing, wherever they run."""
_WITH_VALUE = ("-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path", "--super-prefix", "--config-env")
_END_OF_COMMAND = frozenset({";", "&&", "||", "|", "&", "(", ")", "{", "}", "\n", "then", "do", "else"})
_SHELLS = frozenset({"sh", "bash", "dash", "zsh"})
_BEFORE_COMMAND = frozenset({"env", "command", "exec", "sudo", "nice", "time", "nohup"})


def of_write(session: Session, path: str, allowed: Sequence[str] = ()) -> str:
    """Why the agent may not write that file; empty if it may: it lies in its tree, or below one of the *allowed*."""
    if not session.worktree:
        return ""
    real = os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))
    if os.path.islink(real):
        real = os.path.realpath(real)
    if any(_is_below(real, os.path.realpath(place)) for place in (session.worktree, *allowed)):
        return ""
    return f"{path} is outside your worktree, {session.worktree}: work on your own copy of it, on {session.branch}"


def broken(found: Sequence[Session]) -> Iterator[tuple[Session, str]]:
    """The agents whose isolation does not hold, and how: the tree is another's, another branch is in it, writing
    outside it is let pass, or its ports are another's.
    """
    ports: dict[int, str] = {}
    for session in found:
        if session.port_base and not session.ended:
            other = ports.setdefault(session.port_base, session.agent)
            if other != session.agent:
                yield session, f"its ports, from {session.port_base} on, also belong to {other}"
        if session.worktree and os.path.isdir(session.worktree) and (what := _wrong_tree(session, found)):
            yield session, what


def _wrong_tree(session: Session, found: Sequence[Session]) -> str:
    tree = os.path.realpath(session.worktree or "")
    for other in found:
        place = os.path.realpath(other.worktree) if other.worktree else ""
        if place and other.agent != session.agent and _is_below(tree, place):
            return f"its worktree, {tree}, is inside the worktree of {other.agent}"
    top, common = checkouts.repository_of(tree)
    if top != tree or common == f"{tree}/.git":
        return f"{tree} is no worktree of a repository"
    branch = git.said(tree, "symbolic-ref", "--short", "HEAD")
    if branch != session.branch and not session.ended:
        return f"its worktree has {branch or 'no branch'} checked out, not {session.branch}"
    outside = os.path.dirname(common)
    if not (of_write(session, f"{outside}/file") and of_command(session, f"git -C {outside!r} commit", tree)):
        return f"it may write to {outside}"
    return ""


def _is_below(path: str, directory: str) -> bool:
    return path == directory or path.startswith(f"{directory}/")


def of_command(session: Session, command: str, directory: str) -> str:
    """Why the agent may not run that shell command in that directory; empty if it may, as far as its words tell."""
    if not session.worktree or "git" not in command:
        return ""
    for words, place in _git_commands(command, directory):
        if why := _of_git(session, words, place):
            return f"{why}: keep to your worktree, {session.worktree}, and your branch, {session.branch}"
    return ""


def _git_commands(command: str, directory: str) -> Iterator[tuple[list[str], str]]:
    """The words behind each `git`, and where it runs: `cd` goes along."""
    import shlex

    lexer = shlex.shlex(command.replace("\n", " ; "), posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    try:
        tokens = list(lexer)
    except ValueError:  # no command that a shell would run
        return
    words: list[str] = []
    for token in [*tokens, ";"]:
        if token not in _END_OF_COMMAND:
            words.append(token)
            continue
        while words and ("=" in words[0].partition("/")[0] or words[0] in _BEFORE_COMMAND):
            words = words[1:]
        if words[:1] == ["cd"] and len(words) > 1:
            directory = os.path.normpath(os.path.join(directory, words[1]))
        elif words and os.path.basename(words[0]) in _SHELLS and len(words) > 2:
            yield from _git_commands(words[-1], directory)
        elif words and os.path.basename(words[0]) == "git":
            yield words[1:], directory
        words = []


def _of_git(session: Session, words: list[str], place: str) -> str:
    while words and words[0].startswith("-"):
        option, equals, value = words[0].partition("=")
        taken = 1
        if option in _WITH_VALUE and not equals:
            value, taken = (words[1] if len(words) > 1 else ""), 2
        if option in ("-C", "--work-tree", "--git-dir"):
            place = os.path.normpath(os.path.join(place, value))
        words = words[taken:]
    if not words or words[0] in _READING:
        return ""
    top, common = checkouts.repository_of(place)
    own, ours = checkouts.repository_of(session.worktree or "")
    if common != ours:  # another repository, a clone of one's own say
        return ""
    if top != own:
        return f"git {words[0]} would change {top}"
    return _shared(session, words[0], words[1:])


def _shared(session: Session, command: str, words: list[str]) -> str:
    """Why a command in one's own tree is not to be run: it changes what belongs to another, or to all."""
    arguments = [word for word in words if not word.startswith("-")]
    options = {word for word in words if word.startswith("-")}
    if command == "worktree" and arguments[:1] not in ([], ["list"]):
        return f"git worktree {arguments[0]} changes the worktrees of others"
    if command == "stash" and arguments[:1] not in (["list"], ["show"]):
        return "all worktrees share git stash: commit instead"
    if command == "update-ref" and f"refs/heads/{session.branch}" not in arguments:
        return "git update-ref changes the branch of another agent"
    if command == "branch" and options & {"-d", "-D", "-m", "-M", "-f", "--delete", "--move", "--force"}:
        others = [name for name in arguments if name != session.branch and not name.startswith(f"{session.branch}-")]
        return f"git branch would change {others[0]}, which is not yours" if others else ""
    if command in ("checkout", "switch") and options & {"-B", "-C", "--force-create"}:
        return f"git {command} would move a branch that may be another's"
    if command == "push" and arguments[:1] in (["."], ["./"]):
        return "git push to this repository would change the branch of another"
    return ""


VARIABLE = "TEAMS_PORT_BASE"
EACH = 20
"""Ports that an agent may take, from its base on."""
_FIRST, _END = 10_000, 32_000
"""Below those that Linux gives to clients by itself."""


def base_of(store: Store, team: str, agent: str) -> int:
    """The first port of the agent, always the same; those of teams that are gone are given again.

    Raises:
        StorageFailed: All are taken, or what is noted of them can't be written.
    """
    from filelock import FileLock  # dear, and only where an agent is started

    path = f"{store.root}/ports.json"
    disk.prepare_root(store.root)
    try:
        with FileLock(f"{path}.lock", mode=0o600):
            teams = set(store.teams())
            given = {name: base for name, base in _given(path).items() if name.partition("/")[0] in teams}
            name = f"{team}/{agent}"
            if name not in given:
                taken = set(given.values())
                given[name] = next((base for base in range(_FIRST, _END, EACH) if base not in taken), 0)
                if not given[name]:
                    raise errors.StorageFailed("all ranges of ports are taken", "Remove closed teams: teams prune")
                disk.commit(disk.write_temp(f"{store.root}/tmp", json.dumps(given, indent=2).encode()), path)
            return given[name]
    except OSError as error:
        why = f"can't note the ports of {agent} in {path}: {error.strerror}"
        raise errors.StorageFailed(why, "Look at the disk.") from None


def _given(path: str) -> dict[str, int]:
    """The base of each agent; what can't be read was never given."""
    try:
        with open(path, encoding="utf-8") as file:
            document = json.load(file)
    except (OSError, ValueError):
        return {}
    return (
        {str(name): base for name, base in document.items() if type(base) is int} if isinstance(document, dict) else {}
    )


_END_OF_OUTPUT = 2000


class SetupFailed(errors.TeamsError):
    """The command that prepares a worktree failed; nothing is started in it."""


def furnish(team: Team, top: str, tree: str, environ: Mapping[str, str], otherwise: str) -> None:
    """Bring into the new worktree *tree* of the checkout *top* what the team's settings say: `worktree.copy`, then
    `worktree.setup`, which is run with *environ*. *otherwise* says what did not happen if that fails.

    Raises:
        SetupFailed: The command failed, with the end of what it said.
        InvalidValue: The patterns lead out of the repository.
        StorageFailed: A file could not be copied.
    """
    _copy(str(settings.value(team, settings.WORKTREE_COPY)).split(), top, tree)
    script = str(settings.value(team, settings.WORKTREE_SETUP))
    if not script:
        return
    from teams_cli.agents import shell

    seconds = float(settings.value(team, "checkTimeout"))
    done = shell.run(script, tree, environ, settings.WORKTREE_SETUP, seconds)
    if done.status:
        output = (done.errors.strip() or done.output.strip())[-_END_OF_OUTPUT:]
        how = f"exit status {done.status}" if done.status > 0 else f"ended by signal {-done.status}"
        raise SetupFailed(
            f"{settings.WORKTREE_SETUP} failed in the new worktree ({how}), so {otherwise}"
            + (f": {output}" if output else ""),
            f"Try it in your own worktree; change it: teams set {settings.WORKTREE_SETUP} COMMAND",
        )


def _copy(patterns: list[str], top: str, tree: str) -> None:
    """Copy the files of the checkout that git ignores and a pattern names; those that are there already stay."""
    if not patterns:
        return
    from shutil import copy2

    named = [f":(glob){pattern}" for pattern in text.file_patterns(patterns)]
    try:
        listed = git.names(top, "ls-files", "--others", "--ignored", "--exclude-standard", "-z", "--", *named)
    except errors.StorageFailed as problem:  # a pattern that is outside the repository, say
        raise SetupFailed(problem.message, f"Fix it: teams set {settings.WORKTREE_COPY} PATTERNS") from None
    for name in listed:
        target = f"{tree}/{name}"
        if os.path.lexists(target):
            continue
        try:
            os.makedirs(os.path.dirname(target), exist_ok=True)
            copy2(f"{top}/{name}", target, follow_symlinks=False)
        except OSError as error:
            why = f"can't copy {name} to {tree}: {error.strerror}"
            raise errors.StorageFailed(why, f"See {settings.WORKTREE_COPY}: teams settings") from None
