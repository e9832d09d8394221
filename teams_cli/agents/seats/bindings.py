"""Find the member in whose terminal a process runs, by process id and thread id, in small files on this machine.

The environment does not name the member, because `teams` did not start the client. Besides, Codex has one daemon for
all terminals, which runs the tools of all of them in the environment of the first terminal. Hooks and commands ask this
module before anything else is loaded, so it imports almost nothing.
"""

from __future__ import annotations

import os

from teams_cli import environment
from teams_cli.agents.seats import terminals_directory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

THREAD = "CODEX_THREAD_ID"
"""The variable in which Codex names its current thread to the tools that it runs."""
DAEMON = b"app-server"
"""The word in the command line of the daemon of Codex, which runs the tools and hooks of all terminals of a user."""
DIRECTORIES = "directories"
"""The file in the root that says which directory belongs to which team. Each line is about one directory."""
_PATIENCE = 20.0
"""The seconds for which a change of this file waits while another process changes a file of the root."""
_FILE_NAME_CHARACTERS = frozenset("0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_-")
_MAX_FILE_NAME = 128
_SHELLS = ("sh", "dash", "bash", "zsh", "fish", "env", "ash", "busybox")
"""Programs through which a client starts its hooks and tools."""
_OPENCODE_SERVER = {b"serve", b"--stdio"}
"""Words in the command line of the server that OpenCode 2 starts below its terminal. This server runs our hooks."""
_MAX_ANCESTORS = 32


class Binding:
    """The member that a client is: its team, its name, and its *token* if the team requires tokens."""

    def __init__(self, team: str, agent: str, token: str = "") -> None:
        self.team = team
        self.agent = agent
        self.token = token


def of_thread(root: str, thread: str) -> Binding | None:
    """Return the member that uses the Codex thread; None if there is none."""
    return _read(f"{terminals_directory(root)}/threads/{thread}", "") if _is_file_name(thread) else None


def of_process(root: str, pid: int) -> Binding | None:
    """Return the member whose client is the process *pid*. None if that process has not joined, or if another process
    has the id by now.
    """
    started, _ = stat_of(pid)
    return _read(f"{terminals_directory(root)}/processes/{pid}", started) if started else None


def of_this_process(root: str, environ: Mapping[str, str], is_named: bool) -> Binding | None:
    """Return the member in whose terminal this process runs; None if there is none. A process that Codex started
    belongs to the member of its thread. Any other process belongs to the member of the nearest client above it, unless
    its environment names a member (*is_named*); the result is None then. A fork that answers a question belongs to
    nobody.
    """
    if environ.get("TEAMS_SHADOW"):  # a fork that answers a question
        return None
    # The nearest client above a process with a thread may be a daemon that another terminal started, with the name of
    # that terminal's member in its environment. So a thread alone decides.
    if thread := environ.get(THREAD, ""):
        return of_thread(root, thread)
    return None if is_named else of_nearest_client(root, os.getppid())


def of_nearest_client(root: str, pid: int) -> Binding | None:
    """Return the member of the nearest process that joined, from *pid* upward; None if there is none."""
    found = client_above(root, pid)
    return found[1] if found else None


def client_above(root: str, pid: int) -> tuple[int, Binding] | None:
    """Return the id of the nearest process that joined, from *pid* upward, and its member; None if there is none."""
    for ancestor in _with_ancestors(pid):
        if binding := of_process(root, ancestor):
            return ancestor, binding
    return None


def nearest_client(pid: int) -> int:
    """Return the id of the nearest process, from *pid* upward, that is neither a shell nor a server of OpenCode; 0 if
    there is none. The process need not have joined.
    """
    for ancestor in _with_ancestors(pid):
        if name_of(ancestor) not in _SHELLS and not _OPENCODE_SERVER.issubset(_command_line(ancestor)):
            return ancestor
    return 0


def parent_of(root: str, client: int, environ: Mapping[str, str]) -> Binding | None:
    """Return the member whose client started *client*, the process id of another client. None if *client* is
    independent.

    A client that a background program of `teams` started, such as a keeper, is independent, and so is Codex's daemon.
    """
    if not os.path.isdir(terminals_directory(root)):  # nobody joined on this machine
        return None
    if not client or of_process(root, client):  # it is unknown, or has joined by itself
        return None
    if DAEMON in _command_line(client):  # whichever terminal came first has started it for all
        return None
    _, parent = stat_of(client)
    for ancestor in _with_ancestors(parent):
        words = _command_line(ancestor)
        if environment.OWN_PROGRAM.encode() in words:  # a background program of `teams`
            return None
        # The daemon runs tools for all terminals: the thread tells which one started this client.
        binding = of_thread(root, environ.get(THREAD, "")) if DAEMON in words else of_process(root, ancestor)
        if binding:
            return binding
    return None


def has_another_client(root: str, binding: Binding, client: int) -> bool:
    """Whether a process other than *client* is a client of the member of *binding*. False if the process *client*
    itself has joined.
    """
    if of_process(root, client):
        return False
    for pid in _joined_pids(root):
        other = of_process(root, pid)
        if other and (other.team, other.agent) == (binding.team, binding.agent):
            return True
    return False


def is_below(pid: int, word: bytes) -> bool:
    """Whether the command line of the process *pid*, or of a process above it, contains *word*."""
    return any(word in _command_line(ancestor) for ancestor in _with_ancestors(pid))


def _with_ancestors(pid: int) -> Iterator[int]:
    """Yield *pid*, the process id of its parent, of the parent's parent, and so on."""
    for _ in range(_MAX_ANCESTORS):
        if pid <= 1:
            return
        yield pid
        pid = stat_of(pid)[1]


def _command_line(pid: int) -> list[bytes]:
    return environment.of_process(pid, "cmdline")


def _joined_pids(root: str) -> list[int]:
    """Return the ids of the processes that joined, including processes whose end nobody has reported."""
    try:
        return [int(name) for name in os.listdir(f"{terminals_directory(root)}/processes") if name.isdigit()]
    except OSError:
        return []


def name_of(pid: int) -> str:
    """Return the name of the program that the process runs, cut to 15 characters."""
    try:
        with open(f"/proc/{pid}/comm", "rb") as file:
            return file.read().decode(errors="replace").strip()
    except OSError:
        return ""


def stat_of(pid: int) -> tuple[str, int]:
    """Return the time at which the process started, in ticks since the machine started, and the process id of its
    parent; "" and 0 if there is no such process. For a zombie (ended, but not waited for), return "" and the parent.
    """
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return "", 0
    return ("" if fields[0] == b"Z" else fields[19].decode()), int(fields[1])


def bind(root: str, binding: Binding, pid: int, thread: str = "") -> None:
    """Record that the process *pid* is a client of the member of *binding*. If the client has a Codex *thread*, record
    that the thread belongs to this member too.
    """
    started = stat_of(pid)[0]
    if started:
        _write(f"{terminals_directory(root)}/processes", str(pid), started, binding)
    if _is_file_name(thread):
        _write(f"{terminals_directory(root)}/threads", thread, "", binding)


def bind_without_person(root: str, binding: Binding, pid: int) -> None:
    """Record that the process *pid* is a client of the member of *binding*, with no person in front of it. The records
    of ended processes are removed here, because nothing else reports their end.
    """
    bind(root, binding, pid)
    for joined_pid in _joined_pids(root):
        started, _ = stat_of(joined_pid)
        if not started:
            release(root, joined_pid)


def release(root: str, pid: int) -> None:
    """Remove the record of the process *pid*, which has ended. Its Codex thread stays recorded, because the member may
    resume it.
    """
    try:
        os.remove(f"{terminals_directory(root)}/processes/{pid}")
    except OSError:
        return


def terminal_file(root: str, team: str, agent: str, suffix: str) -> str:
    """Return the path of a file of the agent's terminal. *suffix* is the kind of file, such as `bell` or `json`."""
    return f"{terminals_directory(root)}/teams/{team}/{agent}.{suffix}"


def note_state(root: str, team: str, agent: str, state: str) -> None:
    """Write the state of the agent's client, such as `idle`, to the file that the wrapper around the client watches."""
    _replace(terminal_file(root, team, agent, "state"), state.encode())


def bind_directory(root: str, path: str, team: str) -> None:
    """Link the directory *path* to the *team*, so that clients that start there join the team. If *team* is "", the
    link is removed. Each change writes all links, so simultaneous changes are made one after the other.

    Raises:
        Busy: Another process was changing a file of the root all the time.
        StorageFailed: The file can't be written.
    """
    from teams_cli.store.files import disk  # hooks import this module, but never write this file
    from teams_cli.store.files.locks import LOCK

    disk.prepare_root(root)
    with LOCK(root, _PATIENCE):
        teams_by_directory = linked_directories(root)
        teams_by_directory.pop(path, None)
        if team:
            teams_by_directory[path] = team
        lines = "".join(f"{name} {directory}\n" for directory, name in teams_by_directory.items())
        disk.commit(disk.write_temp(f"{root}/tmp", lines.encode(errors="surrogateescape")), f"{root}/{DIRECTORIES}")


def team_here(root: str, path: str) -> str:
    """Return the team of the directory *path*, or of the nearest directory above it that has a team; "" if none has."""
    teams_by_directory = linked_directories(root)
    while path not in teams_by_directory and path != os.path.dirname(path):
        path = os.path.dirname(path)
    return teams_by_directory.get(path, "")


def linked_directories(root: str) -> dict[str, str]:
    """Return the directories that are linked to a team, each with the name of its team."""
    try:
        with open(f"{root}/{DIRECTORIES}", encoding="utf-8", errors="surrogateescape", newline="\n") as file:
            lines = file.read().split("\n")  # a name may have other characters that `splitlines` divides at
    except OSError:
        return {}
    teams_by_directory = {}
    for line in lines:
        team, _, path = line.partition(" ")
        if path:
            teams_by_directory[path] = team
    return teams_by_directory


def is_locked(path: str) -> bool:
    """Whether a process holds the lock of the file at *path*."""
    import fcntl

    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def _is_file_name(text: str) -> bool:
    return 0 < len(text) <= _MAX_FILE_NAME and _FILE_NAME_CHARACTERS.issuperset(text)


def _read(path: str, started: str) -> Binding | None:
    """Return the binding in the file; None if it was written for a process that did not start at *started*."""
    try:
        with open(path, encoding="utf-8") as file:
            lines = file.read().split("\n")
    except (OSError, ValueError):
        return None
    if len(lines) < 4 or lines[0] != started:
        return None
    return Binding(*lines[1:4])


def _write(directory: str, name: str, started: str, binding: Binding) -> None:
    """Write a binding to a file, one field per line. *started* is the start time of its process, or "" for a thread."""
    lines = [started, binding.team, binding.agent, binding.token, ""]
    _replace(f"{directory}/{name}", "\n".join(lines).encode())


def _replace(path: str, data: bytes) -> None:
    """Replace the content of the file in one step, so that a reader never sees an incomplete file."""
    from teams_cli.store.files import disk  # most hooks write nothing

    disk.replace_unsynced(path, data)
