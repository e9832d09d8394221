"""Isolation: confine an agent to its worktree, as far as the agent's client asks `teams` before it writes.

The agent may not write outside its worktree. It may not run git commands that change another worktree, another agent's
branch, or anything that all worktrees share. Programs that a shell runs are not seen; only the client's sandbox can
restrict them.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Sequence

from teams_cli import errors
from teams_cli.agents import checkouts
from teams_cli.agents.sessions import Session
from teams_cli.store.contract import Store
from teams_cli.store.files import disk

_READING = (
    "annotate blame cat-file cherry count-objects describe diff diff-tree for-each-ref grep help log ls-files ls-remote"
    " ls-tree merge-base merge-tree name-rev range-diff rev-list rev-parse shortlog show show-ref status var version"
    " whatchanged"
)
"""The git commands that change nothing."""
_OPTIONS_WITH_VALUE = frozenset(
    ["-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path", "--super-prefix", "--config-env"]
)
_OPERATORS = frozenset(";&|()")
"""The characters of the tokens that end a command, such as `&&` or `;(`."""
_END_OF_COMMAND = frozenset({"{", "}", "then", "do", "else"})
_SHELLS = frozenset({"sh", "bash", "dash", "zsh"})
_BEFORE_COMMAND = frozenset(
    {"env", "command", "exec", "sudo", "nice", "time", "nohup", "timeout", "if", "elif", "while", "until", "!"}
)
"""Words that stand before a command, such as the names of commands that run the command given as their arguments."""
_NO_COMMAND = re.compile(
    r"""\\\n|(?P<quoted>'[^']*'|"(?:[^"\\]|\\[\s\S])*"|\\.)"""
    r"""|<<-?[ \t]*(?P<quote>['"]?)\\?(?P<end>\w+)(?P=quote)(?P<rest>[^\n]*)\n(?:.*\n)*?[ \t]*(?P=end)(?=\n|\Z)"""
    r"|(?:^|(?<=[\s;&|()]))\#[^\n]*",
)
"""The parts of a shell command that a shell runs no commands from: a line break that does not count, quoted texts,
here-documents and comments.
"""


def of_write(session: Session, path: str, allowed: Sequence[str] = ()) -> str:
    """Return why the agent may not write the file *path*, or "" if it may. An agent with a worktree may write in the
    worktree, and below the paths in *allowed*.
    """
    if not session.worktree:
        return ""
    real = os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))
    if os.path.islink(real):  # the file that it links to would be written
        real = os.path.realpath(real)
    if any(f"{real}/".startswith(f"{os.path.realpath(directory)}/") for directory in (session.worktree, *allowed)):
        return ""
    return f"{path} is outside your worktree, {session.worktree}: work on your own copy of it, on {session.branch}"


def broken(sessions: Sequence[Session]) -> Iterator[tuple[Session, str]]:
    """Yield the session of each running agent whose isolation does not hold, and the reason. Another agent may have the
    same ports or worktree, the worktree may be inside another agent's worktree, or a branch that is not the agent's may
    be checked out.
    """
    running = [session for session in sessions if not session.ended]
    worktrees = [(os.path.realpath(session.worktree), session.agent) for session in running if session.worktree]
    port_owners: dict[int, str] = {}
    for session in running:
        if session.port_base:
            owner = port_owners.setdefault(session.port_base, session.agent)
            if owner != session.agent:
                yield session, f"its ports, from {session.port_base} on, also belong to {owner}"
        if not session.worktree:
            continue
        worktree = os.path.realpath(session.worktree)
        sharing = [agent for path, agent in worktrees if path == worktree and agent != session.agent]
        outer = [agent for path, agent in worktrees if worktree.startswith(f"{path}/")]
        branch = checkouts.branch_of(worktree) if os.path.isdir(worktree) else session.branch
        if sharing:
            yield session, f"its worktree, {worktree}, also belongs to {sharing[0]}"
        elif outer:
            yield session, f"its worktree, {worktree}, is inside the worktree of {outer[0]}"
        elif branch != session.branch:
            yield session, f"its worktree has {branch or 'no branch'} checked out, not {session.branch}"


def of_command(session: Session, command: str, directory: str) -> str:
    """Return why the agent may not run the shell *command* in *directory*; "" if it runs no forbidden git command."""
    if not session.worktree or "git" not in command:
        return ""
    for words, git_directory in _git_commands(command, directory):
        if why := _why_git_is_forbidden(session, words, git_directory):
            return f"{why}: keep to your worktree, {session.worktree}, and your branch, {session.branch}"
    return ""


def _git_commands(command: str, directory: str) -> Iterator[tuple[list[str], str]]:
    """Yield the arguments of each git command in the shell command, and the directory in which it runs."""
    words: list[str] = []
    outer_directories: list[str] = []  # those of the shells around the subshell
    for token in [*_tokens(command), ";"]:  # so that the last command has an end, too
        is_operator = _OPERATORS.issuperset(token) and token != ""
        if not is_operator and token not in _END_OF_COMMAND:
            words.append(token)
            continue
        words = _without_prefix(words)
        name = os.path.basename(words[0]) if words else ""
        if name == "cd" and len(words) > 1:
            directory = os.path.normpath(os.path.join(directory, words[1]))
        elif name == "eval":
            yield from _git_commands(" ".join(words[1:]), directory)
        elif name in _SHELLS:  # sh -c COMMAND
            options = (number for number, word in enumerate(words) if re.fullmatch("-[a-z]*c[a-z]*", word))
            for script in words[next(options, len(words)) + 1 :][:1]:
                yield from _git_commands(script, directory)
        elif name == "git":
            yield words[1:], directory
        words = []
        for character in token if is_operator else "":
            if character == "(":
                outer_directories.append(directory)
            elif character == ")" and outer_directories:
                directory = outer_directories.pop()


def _tokens(command: str) -> Iterator[str]:
    """Yield the words and operators of the shell command. If a quotation has no end, yield those before it."""
    import shlex

    def without_text(match: re.Match[str]) -> str:
        return match["quoted"] or match["rest"] or ""

    lexer = shlex.shlex(_NO_COMMAND.sub(without_text, command).replace("\n", " ; "), posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    lexer.commenters = ""  # it would also take a `#` inside a word for a comment
    try:
        yield from lexer
    except ValueError:
        return


def _without_prefix(words: list[str]) -> list[str]:
    """Return the words of a command without the variables that it sets and the words that may stand before it."""
    while words:
        # A word that sets a variable has its equals sign before any slash.
        if "=" in words[0].partition("/")[0]:
            words = words[1:]
        elif words[0] in _BEFORE_COMMAND:
            words = words[1:]
            while words and (words[0].startswith("-") or words[0][:1].isdigit()):  # options, or how long it may take
                words = words[1:]
        else:
            break
    return words


def _why_git_is_forbidden(session: Session, words: list[str], directory: str) -> str:
    """Return why the agent may not run git with the arguments *words* in the directory, or "" if it may."""
    while words and words[0].startswith("-"):
        option, equals, value = words[0].partition("=")
        words = words[1:]
        if option in _OPTIONS_WITH_VALUE and not equals:  # its value is the next word
            value, words = (words[0] if words else ""), words[1:]
        if option in ("-C", "--work-tree", "--git-dir"):
            directory = os.path.normpath(os.path.join(directory, value))
    if not words or words[0] in _READING.split():
        return ""
    top, repository = checkouts.repository_of(directory)
    own_top, own_repository = checkouts.repository_of(session.worktree or "")
    if repository != own_repository:  # another repository, such as a clone
        return ""
    if top != own_top:
        return f"git {words[0]} would change {top}"
    command, *words = words  # it runs in the agent's worktree, and may change what other agents use
    arguments = [word for word in words if not word.startswith("-")]
    options = {word for word in words if word.startswith("-")}
    first_argument = arguments[0] if arguments else ""
    if command == "worktree" and first_argument not in ("", "list"):
        return f"git worktree {first_argument} changes the worktrees of others"
    if command == "stash" and first_argument not in ("list", "show"):  # without an argument, it makes a stash
        return "all worktrees share git stash: commit instead"
    if command == "update-ref" and f"refs/heads/{session.branch}" not in arguments:
        return "git update-ref changes the branch of another agent"
    if command == "branch":
        changed_branches = _changed_branches(options, arguments)
        prefix = f"{session.branch}-"
        others = [name for name in changed_branches if name != session.branch and not name.startswith(prefix)]
        return f"git branch would change {others[0]}, which is not yours" if others else ""
    moves_branch = any(option.startswith(("-B", "-C")) or option == "--force-create" for option in options)
    if command in ("checkout", "switch") and moves_branch:
        return f"git {command} would move a branch that may be another's"
    is_to_change = command == "push" or (command == "fetch" and any(":" in word for word in arguments[1:]))
    if is_to_change and first_argument.startswith((".", "/", "file://")):
        path = os.path.normpath(os.path.join(directory, first_argument.removeprefix("file://")))
        if checkouts.repository_of(path.removesuffix("/.git"))[1] == own_repository:
            return f"git {command} to this repository would change the branch of another"
    return ""


_LONG_OPTIONS = ("--copy", "--delete", "--force", "--move")
"""Options of `git branch` that change existing branches. The first letter of each is its short form."""


def _changed_branches(options: set[str], arguments: list[str]) -> list[str]:
    """Return the existing branches, if there are any, that `git branch` would delete, rename, move or overwrite with
    these options and *arguments*.
    """
    letters = {letter for option in options if not option.startswith("--") for letter in option[1:]}
    long_names = [option for option in options if option.startswith("--")]
    letters |= {long[2] for long in _LONG_OPTIONS for name in long_names if long.startswith(name)}  # git shortens them
    if letters & set("dDmM"):
        return arguments
    if "C" in letters or letters >= {"c", "f"}:
        return arguments[-1:]  # the others are only read
    if "f" in letters:
        return arguments[:1]
    return []


VARIABLE = "TEAMS_PORT_BASE"
"""The environment variable with the first of an agent's ports."""
EACH = 20
"""The number of ports for each agent, beginning with its base port."""
_FIRST, _END = 10_000, 32_000
"""The range of ports for agents. It lies below the range from which Linux takes ports for outgoing connections."""


def base_of(store: Store, team: str, agent: str) -> int:
    """Return the first of the ports that are reserved for the agent. Every call for the agent returns the same port.
    Ports of agents in teams that no longer exist are given to other agents.

    Raises:
        StorageFailed: No ports are left, or `ports.json` can't be written.
    """
    from filelock import FileLock  # slow to import; only needed when an agent starts

    path, owner = f"{store.root}/ports.json", f"{team}/{agent}"
    disk.prepare_root(store.root)
    try:
        with FileLock(f"{path}.lock", mode=0o600):
            teams = set(store.teams())
            try:
                document = json.loads(disk.read_file(path))
            except (FileNotFoundError, ValueError):
                document = {}
            bases: dict[str, int] = {}  # the base port of each agent, by `TEAM/AGENT`
            for key, base in document.items() if isinstance(document, dict) else ():  # a damaged file has none
                if type(base) is int and key.partition("/")[0] in teams:
                    bases[key] = base
            if owner not in bases:
                free = set(range(_FIRST, _END, EACH)) - set(bases.values())
                if not free:
                    raise errors.StorageFailed("all ranges of ports are taken", "Remove closed teams: teams prune")
                bases[owner] = min(free)
                disk.commit(disk.write_temp(f"{store.root}/tmp", json.dumps(bases, indent=2).encode()), path)
            return bases[owner]
    except OSError as error:
        why = f"can't note the ports of {agent} in {path}: {error.strerror}"
        raise errors.StorageFailed(why, "Look at the disk.") from None
