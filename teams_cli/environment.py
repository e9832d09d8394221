"""Reading flags and environment: where the teams are, who calls, and in which team. Imports nothing."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

SANDBOX = "TEAMS_SANDBOX"
"""Set inside a client's sandbox, where started processes end with the command and reach no model."""
HELD = "TEAMS_PERMISSIONS"
"""The variable with the level of a held client, which limits what it may have others do."""
LEVELS = ("ask", "edit", "all")
"""The permission levels, from the least to the most."""
OWN_PROGRAM = (
    "import sys; sys.path.append(sys.argv.pop(1)); from importlib import import_module; "
    "import_module(sys.argv.pop(1)).main()"
)
"""A word in the command line of our background programs, such as the keeper of an agent."""
_READ = os.O_RDONLY | os.O_CLOEXEC | getattr(os, "O_NONBLOCK", 0)
_LONGEST_LINE = 1 << 16
"""The bytes of a path, or of the name of a branch, with a word before it."""
DEFAULT_BELOW_CONFIG = "opencode/opencode-teams"

_VARIABLES = {
    "agent": ("TEAMS_AGENT_ID", "OPENCODE_AGENT_ID", "JANUS_AGENT_NAME"),
    "display": ("TEAMS_AGENT_NAME", "OPENCODE_AGENT_NAME"),
    "type": ("TEAMS_AGENT_TYPE", "OPENCODE_AGENT_TYPE"),
    "team": ("TEAMS_TEAM", "OPENCODE_TEAM_NAME"),
    "token": ("TEAMS_TOKEN",),
}


_held_above: dict[int, list[dict[str, str]]] = {}
"""The environments of the held processes above this one when it started. They may end later."""


class Holder:
    """An agent that is held to a permission *level* below `all`. *environ* is the environment that `teams` gave its
    client or keeper.
    """

    def __init__(self, level: str, environ: Mapping[str, str]) -> None:
        self.level = level
        self.environ = environ
        self.agent = look_up("agent", None, environ)[0]
        self.team = look_up("team", None, environ)[0]

    def is_elsewhere(self, root: str, store: str, environ: Mapping[str, str]) -> bool:
        """Whether that root, the store of these flags, or the user's rules are not those of the held agent."""
        own = root_directory(None, self.environ)[0]
        places = [(root, own), (opencode_directory(root, environ), opencode_directory(own, self.environ))]
        return any(os.path.realpath(one) != os.path.realpath(other) for one, other in places) or (
            (store or "files") != (store_address(None, self.environ, "")[0] or "files")
        )


def holder(environ: Mapping[str, str]) -> Holder | None:
    """Return the held agent that calls, by the environment of this process and of those above it; None if there is
    none.

    A process may give its children any environment, so the highest held process counts.
    """
    pid = os.getpid()
    if pid not in _held_above:
        _held_above[pid] = [said for said in _environments_above() if said.get(HELD) in LEVELS[:-1]]
    held = [said for said in (environ, *_held_above[pid]) if said.get(HELD) in LEVELS[:-1]]
    return Holder(min((said[HELD] for said in held), key=LEVELS.index), held[-1]) if held else None


def _environments_above() -> Iterator[dict[str, str]]:
    """Yield the environments with which the processes above this one were started, nearest first. The last is a
    background program of ours: whoever started it says nothing about its children.
    """
    pid = os.getppid()
    while pid > 0:
        pairs = (entry.decode(errors="surrogateescape").partition("=") for entry in of_process(pid, "environ"))
        yield {name: value for name, _, value in pairs}
        pid = 0 if OWN_PROGRAM.encode() in of_process(pid, "cmdline") else _parent(pid)


def of_process(pid: int | str, what: str) -> list[bytes]:
    """Return the `environ` or the `cmdline` with which a process was started; empty if it has ended or belongs to
    another user.
    """
    try:
        with open(f"/proc/{pid}/{what}", "rb") as file:
            return file.read().split(b"\0")
    except OSError:
        return []


def _parent(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return int(file.read().rpartition(b")")[2].split()[1])
    except OSError:
        return 0


def to_install(extra: str) -> str:
    """Return how to install an extra into this installation, which pip, pipx or uv may have made."""
    wanted = f"'.[{extra}]'"
    way = f"{sys.executable} -m pip install {wanted}"
    if "/uv/tools/" in sys.prefix:
        way = f"uv tool install --force {wanted}"
    elif "/pipx/" in sys.prefix:
        way = f"pipx install --force {wanted}"
    return f"Install it, in a clone of teams: {way}"


def look_up(what: str, said: str | None, environ: Mapping[str, str]) -> tuple[str, str]:
    """Return the value of an identity setting and its source: a flag, else the first variable that is set."""
    if said:
        return said, "flag"
    for variable in _VARIABLES[what]:
        if environ.get(variable):
            return environ[variable], variable
    return "", "unset"


def is_worktree(top: str) -> bool:
    """Whether the top of a git checkout is a worktree, and not the main checkout of its repository."""
    return bool(top) and "/worktrees/" in git_line(f"{top}/.git")


def checkout_around(directory: str) -> str:
    """Return the top of the git checkout that contains the directory; empty if there is none. Runs no process."""
    top = directory
    while top and not _is_checkout(top):
        above = os.path.dirname(top)
        top = above if above != top else ""
    return top


def _is_checkout(top: str) -> bool:
    """Whether git accepts the directory as a checkout. It ignores a `.git` directory without `HEAD`."""
    own = f"{top}/.git"
    return os.path.lexists(own) and (os.path.isfile(own) or os.path.lexists(f"{own}/HEAD"))


def commit_in(worktree: str) -> str:
    """Return the commit of a git worktree other than the main checkout; empty if no file has it. Runs no process."""
    own = git_line(f"{worktree}/.git").removeprefix("gitdir: ")
    head = git_line(f"{own}/HEAD")
    branch = head.removeprefix("ref: ")
    return head if head == branch else git_line(f"{os.path.join(own, git_line(f'{own}/commondir'))}/{branch}")


def git_line(path: str) -> str:
    """Return the content of one of git's files with a single line, such as the `.git` of a worktree; empty if it is no
    file.
    """
    try:  # five of these are read with every command of who is in a worktree, and `open` takes four times as long
        descriptor = os.open(path, _READ)
    except OSError:
        return ""
    try:
        line = os.read(descriptor, _LONGEST_LINE).partition(b"\n")[0].rstrip(b"\r")
    except OSError:  # a directory
        return ""
    finally:
        _release(descriptor)
    return line.decode(errors="surrogateescape")


def _release(descriptor: int) -> None:
    try:
        os.close(descriptor)
    except OSError:  # of a file that was only read this changes nothing
        return


def likely_teams(names: list[str], is_open: Callable[[str], bool]) -> list[str]:
    """Return the teams that may be meant if none is named: the open ones, or all if none is open.

    A closed team offers little to do. A single team is not looked into.
    """
    return (len(names) > 1 and [name for name in names if is_open(name)]) or names


def only_team(names: list[str], is_open: Callable[[str], bool]) -> str:
    """Return the team to use if none is named; empty if that is not clear."""
    likely = likely_teams(names, is_open)
    return likely[0] if len(likely) == 1 else ""


def store_address(said: str | None, environ: Mapping[str, str], configured: str | None) -> tuple[str, str]:
    """Return the address of the store, empty for files below the root, and its source: a flag, else the environment,
    else the user's `config.json`.
    """
    if said:
        return said, "flag"
    if environ.get("TEAMS_STORE"):
        return environ["TEAMS_STORE"], "TEAMS_STORE"
    return (configured, "config.json") if configured else ("", "default")


def root_directory(said: str | None, environ: Mapping[str, str]) -> tuple[str, str]:
    """Return the directory with the teams, and the source of that setting.

    Raises:
        InvalidValue: It would be another directory in each directory.
    """
    if said:
        return absolute(said, "--root", environ), "flag"
    if environ.get("TEAMS_HOME"):
        return absolute(environ["TEAMS_HOME"], "TEAMS_HOME", environ), "TEAMS_HOME"
    if base := config_base(environ):
        return f"{base}/{DEFAULT_BELOW_CONFIG}", "XDG_CONFIG_HOME"
    return absolute(f"~/.config/{DEFAULT_BELOW_CONFIG}", "the default root", environ), "default"


def config_base(environ: Mapping[str, str]) -> str:
    """Return the directory of XDG_CONFIG_HOME; empty if it is not absolute, which its specification says to ignore."""
    base = _expanded(environ.get("XDG_CONFIG_HOME", ""), environ)
    return base if base.startswith("/") else ""


def absolute(directory: str, what: str, environ: Mapping[str, str]) -> str:
    """Expand `~` and `$HOME` at the beginning of a directory: settings of clients are not expanded by a shell.

    Raises:
        InvalidValue: It does not begin at `/` then, so each directory would have one of its own.
    """
    path = _expanded(directory, environ)
    if path.startswith("/"):
        return os.path.abspath(path)
    from teams_cli import errors

    if directory.startswith(_HOME):
        raise errors.InvalidValue(
            f"{what} is {directory!r}, and this user has no home directory", "Set HOME, or TEAMS_HOME to a whole path."
        )
    raise errors.InvalidValue(
        f"{what} is {directory!r}, which does not begin with /", "Give the whole path, or one that begins with ~/."
    )


_HOME = ("~", "$HOME", "${HOME}")


def _expanded(path: str, environ: Mapping[str, str]) -> str:
    for home in _HOME:
        if path == home or path.startswith(f"{home}/"):
            return (environ.get("HOME") or os.path.expanduser("~")).rstrip("/") + path.removeprefix(home) or "/"
    return os.path.expanduser(path) if path.startswith("~") else path


OPENCODE_FILES = ("opencode.json", "opencode.jsonc")
"""The files that OpenCode reads in its directory. The second counts before the first."""


def opencode_directory(root: str, environ: Mapping[str, str]) -> str:
    """Return the directory of OpenCode's own configuration: the one around the root if that is in its usual place, else
    the user's.
    """
    if root.endswith(f"/{DEFAULT_BELOW_CONFIG}"):
        return os.path.dirname(root)
    return f"{config_base(environ) or _expanded('~/.config', environ)}/opencode"
