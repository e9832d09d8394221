"""Read flags and the environment: where the teams are, who the caller is, and in which team. Also read small files in
git's directories, such as HEAD. Of `teams`, this module imports only `errors`, and only to raise an error.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

SANDBOX = "TEAMS_SANDBOX"
"""The variable that is set inside a client's sandbox. A process that is started in a sandbox ends with its command and
reaches no model.
"""
HELD = "TEAMS_PERMISSIONS"
"""The variable with the permission level of a held client, which limits what the client may let other agents do."""
LEVELS = ("ask", "edit", "all")
"""The permission levels, from the least to the most."""
FLAGS = {"--root": "root", "--store": "store", "--team": "team", "-t": "team", "--as": "agent"}
"""The options of every command that say who runs it, and where; and the names of their values."""
OWN_PROGRAM = (
    "import sys; sys.path.append(sys.argv.pop(1)); from importlib import import_module; "
    "import_module(sys.argv.pop(1)).main()"
)
"""A word in the command line of each background program of `teams`, such as the keeper of an agent."""
_READ = os.O_RDONLY | os.O_CLOEXEC | getattr(os, "O_NONBLOCK", 0)
_LONGEST_LINE = 1 << 16
"""The most bytes of a line in one of git's files: a path or the name of a branch, with the word before it."""
DEFAULT_BELOW_CONFIG = "opencode/opencode-teams"

_VARIABLES = {
    "agent": ("TEAMS_AGENT_ID", "OPENCODE_AGENT_ID", "JANUS_AGENT_NAME"),
    "display": ("TEAMS_AGENT_NAME", "OPENCODE_AGENT_NAME"),
    "type": ("TEAMS_AGENT_TYPE", "OPENCODE_AGENT_TYPE"),
    "team": ("TEAMS_TEAM", "OPENCODE_TEAM_NAME"),
    "token": ("TEAMS_TOKEN",),
}


_held_above: dict[int, list[dict[str, str]]] = {}
"""By process id: the environments of the held processes above that process. They were read once, because the processes
above may end. A forked child has its own id, and so its own entry.
"""


class Holder:
    """An agent that is held to a permission *level* below `all`. *environ* is the environment that `teams` gave to the
    agent's client or keeper.
    """

    def __init__(self, level: str, environ: Mapping[str, str]) -> None:
        self.level = level
        self.environ = environ
        self.agent = look_up("agent", None, environ)[0]
        self.team = look_up("team", None, environ)[0]

    def is_elsewhere(self, root: str, store: str, environ: Mapping[str, str]) -> bool:
        """Return whether a command with this *root*, *store* (an address) and *environ* uses other teams than those
        that `teams` gave the held agent, or other rules of the user.
        """
        own_root, _ = root_directory(None, self.environ)
        own_store, _ = store_address(None, self.environ, "")
        rules, own_rules = opencode_directory(root, environ), opencode_directory(own_root, self.environ)
        return (
            os.path.realpath(root) != os.path.realpath(own_root)
            or os.path.realpath(rules) != os.path.realpath(own_rules)
            or (store or "files") != (own_store or "files")
        )


def split_option(word: str) -> tuple[str, str, str]:
    """Return the flag in an option, what separates it from a value in the same word, and this value. The value of an
    option such as `-t` follows at once; nothing separates the two, so the value stands in both places.
    """
    return word.partition("=") if word.startswith("--") else (word[:2], word[2:], word[2:])


def holder(environ: Mapping[str, str]) -> Holder | None:
    """Return the agent that runs this command, as found in the environments of this process and of the processes above
    it. Return None unless the agent is held to a permission level below `all`.

    A held process may give its children any environment. So the agent is taken from the highest held process. The level
    is the lowest that any of the held processes has.
    """
    pid, lower_levels = os.getpid(), LEVELS[:-1]
    if pid not in _held_above:  # read once, because these processes may end
        _held_above[pid] = [variables for variables in _environments_above() if variables.get(HELD) in lower_levels]
    held = [variables for variables in (environ, *_held_above[pid]) if variables.get(HELD) in lower_levels]
    if not held:
        return None
    levels = [variables[HELD] for variables in held]
    return Holder(min(levels, key=LEVELS.index), held[-1])


def _environments_above() -> Iterator[dict[str, str]]:
    """Yield the environments with which the processes above this one were started, the nearest process first. Stop
    after the first background program of `teams`: any agent's command may have started it, so the processes above it
    say nothing.
    """
    pid = os.getppid()
    while pid > 0:
        yield variables_of(pid)
        if OWN_PROGRAM.encode() in of_process(pid, "cmdline"):
            return
        pid = parent_of(pid)


def of_process(pid: int | str, what: str) -> list[bytes]:
    """Return how the process *pid* was started: if *what* is `environ`, the entries of its environment; if *what* is
    `cmdline`, the words of its command line. Return an empty list if the process has ended or belongs to another user.
    """
    try:
        with open(f"/proc/{pid}/{what}", "rb") as file:
            return file.read().split(b"\0")
    except OSError:
        return []


def variables_of(pid: int) -> dict[str, str]:
    """Return the environment with which the process *pid* was started; empty if the process can't be read."""
    pairs = (entry.decode(errors="surrogateescape").partition("=") for entry in of_process(pid, "environ"))
    return {name: value for name, _, value in pairs}


def parent_of(pid: int) -> int:
    """Return the id of the process's parent; 0 if the process has ended or can't be read."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()  # those after the name, which is in parentheses
            return int(fields[1])
    except OSError:
        return 0


def to_install(extra: str) -> str:
    """Return in words how to add an extra of `teams` to this installation, which pip, pipx or uv may have made."""
    if "/uv/tools/" in sys.prefix:
        install = "uv tool install --force"
    elif "/pipx/" in sys.prefix:
        install = "pipx install --force"
    else:
        install = f"{sys.executable} -m pip install"
    return f"Install it, in a clone of teams: {install} '.[{extra}]'"


def look_up(setting: str, flag: str | None, environ: Mapping[str, str]) -> tuple[str, str]:
    """Return the value of the identity *setting*, such as `agent` or `team`, and its source: the *flag*, or else the
    first variable of the setting that has a value in *environ*, or else `unset`.
    """
    if flag:
        return flag, "flag"
    for variable in _VARIABLES[setting]:
        if environ.get(variable):
            return environ[variable], variable
    return "", "unset"


def is_worktree(checkout: str) -> bool:
    """Return whether *checkout* is a linked worktree of a git repository. False for its main checkout, and for ""."""
    return bool(checkout) and "/worktrees/" in git_line(f"{checkout}/.git")


def checkout_around(directory: str) -> str:
    """Return the top of the git checkout that contains the directory; empty if there is none. Runs no process."""
    # git ignores a `.git` directory without `HEAD`
    while directory and not (os.path.isfile(f"{directory}/.git") or os.path.lexists(f"{directory}/.git/HEAD")):
        parent = os.path.dirname(directory)
        if parent == directory:
            return ""
        directory = parent
    return directory


def commit_in(worktree: str) -> str:
    """Return the commit of a linked git worktree; "" if no file has it, for example because git packed the branch."""
    git_directory = git_line(f"{worktree}/.git").removeprefix("gitdir: ")
    head = git_line(f"{git_directory}/HEAD")
    if not head.startswith("ref: "):
        return head
    return git_line(f"{common_git_directory(git_directory)}/{head.removeprefix('ref: ')}")


def common_git_directory(git_directory: str) -> str:
    """Return the directory with the data that all checkouts share. *git_directory* has the data of a single one."""
    return os.path.join(git_directory, git_line(f"{git_directory}/commondir"))


def git_line(path: str) -> str:
    """Return the first line of one of git's files, such as the `.git` of a worktree; "" if the file can't be read."""
    try:  # a command in a worktree reads five such files, and `open` would take four times as long
        descriptor = os.open(path, _READ)
    except OSError:
        return ""
    try:
        line = os.read(descriptor, _LONGEST_LINE).partition(b"\n")[0].rstrip(b"\r")
    except OSError:  # a directory
        return ""
    finally:
        try:
            os.close(descriptor)
        except OSError:  # the file was only read, so nothing is lost
            pass
    return line.decode(errors="surrogateescape")


def likely_teams(names: list[str], is_open: Callable[[str], bool]) -> list[str]:
    """Return the teams that a command may mean if it names none: the open teams, or all teams if none is open."""
    if len(names) < 2:  # no choice, so no record of a team needs to be read
        return names
    return [name for name in names if is_open(name)] or names


def only_team(names: list[str], is_open: Callable[[str], bool]) -> str:
    """Return the team that a command uses if it names none; "" if there is no team, or if several could be meant."""
    likely = likely_teams(names, is_open)
    return likely[0] if len(likely) == 1 else ""


def store_address(flag: str | None, environ: Mapping[str, str], configured: str | None) -> tuple[str, str]:
    """Return the address of the store and the source of the address: the *flag*, else the environment, else the address
    *configured* in the user's `config.json`. If none of them has an address, return "" for it, which means files below
    the root.
    """
    if flag:
        return flag, "flag"
    if environ.get("TEAMS_STORE"):
        return environ["TEAMS_STORE"], "TEAMS_STORE"
    if configured:
        return configured, "config.json"
    return "", "default"


def root_directory(flag: str | None, environ: Mapping[str, str]) -> tuple[str, str]:
    """Return the directory with the teams, and where it is set: `flag`, `default`, or the name of a variable."""
    if flag:
        return absolute(flag, "--root", environ), "flag"
    if environ.get("TEAMS_HOME"):
        return absolute(environ["TEAMS_HOME"], "TEAMS_HOME", environ), "TEAMS_HOME"
    if base := config_base(environ):
        return f"{base}/{DEFAULT_BELOW_CONFIG}", "XDG_CONFIG_HOME"
    return absolute(f"~/.config/{DEFAULT_BELOW_CONFIG}", "the default root", environ), "default"


def config_base(environ: Mapping[str, str]) -> str:
    """Return the directory that XDG_CONFIG_HOME names; "" if the variable is not set, or has a relative path, which the
    XDG specification says to ignore.
    """
    base = _expanded(environ.get("XDG_CONFIG_HOME", ""), environ)
    return base if base.startswith("/") else ""


def absolute(directory: str, what: str, environ: Mapping[str, str]) -> str:
    """Return *directory* with `~` or `$HOME` at its beginning expanded: no shell expands these in the settings of
    clients. *what* names the setting in errors.

    Raises:
        InvalidValue: The result is not absolute, so its meaning would depend on the current directory.
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
    """Return the path with the user's home directory in place of `~` or `$HOME` at its beginning, or with another
    user's home directory in place of `~NAME`.
    """
    for home in _HOME:
        if path == home or path.startswith(f"{home}/"):
            home_directory = (environ.get("HOME") or os.path.expanduser("~")).rstrip("/")
            return home_directory + path.removeprefix(home) or "/"  # the home may be the root directory
    return os.path.expanduser(path) if path.startswith("~") else path


OPENCODE_FILES = ("opencode.json", "opencode.jsonc")
"""The files that OpenCode reads in its directory. The second overrides the first."""


def opencode_directory(root: str, environ: Mapping[str, str]) -> str:
    """Return the directory of OpenCode's configuration. If the *root* is in its usual place, this is the directory that
    contains the root. Otherwise it is `opencode` in the user's directory for configuration, such as `~/.config`.
    """
    if root.endswith(f"/{DEFAULT_BELOW_CONFIG}"):
        return os.path.dirname(root)
    return f"{config_base(environ) or _expanded('~/.config', environ)}/opencode"
