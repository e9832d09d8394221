"""Logs: the output of an agent's processes. The keepers of an agent, which run its turns, share one file. Each turn of
its client has three files.

The logs of the latest turns are kept as long as there is room for them. When the agent has left the team, all its logs
are removed.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import IO

from teams_cli import errors
from teams_cli.agents import sessions
from teams_cli.store.contract import Store
from teams_cli.store.files import disk
from teams_cli.teams import teams

ALL = 64 * 1024 * 1024
"""Maximum total size, in bytes, of the logs of an agent's turns, and of one log. Only the end of a longer log is kept.
"""
TAIL = 1 << 20
"""Number of bytes read at a time; also the size above which the log of the keepers is renamed."""
END = 2000
"""Number of characters from the end of a log that are reported when a turn fails."""
_MOST_TURNS = 100
"""Maximum number of turns of an agent whose logs are kept."""
_ENDINGS = ("out", "err", "messages.json")
"""The endings of the names of a turn's files."""


def path_of(store: Store, team: str, agent: str) -> str:
    """Return the path of the log of the agent's keepers. *agent* may also be the name of another background process."""
    return f"{store.root}/logs/{team}/{agent}.log"


def begin(store: Store, team: str, agent: str) -> str:
    """Make the directory for the log of the agent's keepers, and rename a long log so that its name ends in `.1`.
    Returns the path of the log.
    """
    path = path_of(store, team, agent)
    disk.make_directories(os.path.dirname(path), store.root)
    if _size(path) > TAIL:
        with suppress(OSError):  # else the same file grows
            os.replace(path, f"{path}.1")
    return path


def end(store: Store, team: str, agent: str) -> None:
    """Remove the log of the agent's keepers if it is empty."""
    path = path_of(store, team, agent)
    if not _size(path):
        disk.discard(path)


def turn_of(store: Store, team: str, agent: str, turn: int) -> str:
    """Return the path of a turn's files without their endings, which are `.out`, `.err` and `.messages.json`."""
    return f"{store.root}/logs/{team}/{agent}.{turn}"


class Complaints:
    """Remembers the last failure of a process that retries, so that the process logs a repeated failure only once."""

    def __init__(self) -> None:
        self._last = ""

    def is_new(self, problem: errors.TeamsError) -> bool:
        """Record a failure, and return whether it differs from the last failure."""
        before, self._last = self._last, problem.message
        return before != problem.message

    def end(self) -> None:
        """Forget the last failure, after a success."""
        self._last = ""


def read(path: str, limit: int) -> str:
    """Return the content of the file, or only its last *limit* bytes if it is longer."""
    with open(path, "rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - limit))
        return file.read(limit).decode(errors="replace")


def rotate(store: Store, team: str, agent: str, turns: int) -> None:
    """Make room after the turn with the number *turns*: cut its long logs down to their ends, and remove the logs of
    the oldest turns. A program that has a log open keeps reading the old content.
    """
    room = ALL
    for turn in range(turns, 0, -1):
        paths = [f"{turn_of(store, team, agent, turn)}.{ending}" for ending in _ENDINGS]
        if not any(map(os.path.lexists, paths)):  # the logs of earlier turns were removed before
            return
        if turn == turns:
            for path in paths[:2]:  # the output and the errors; the messages are short
                _keep_end(path)
        room -= sum(map(_size, paths))
        if turn < turns and (room < 0 or turns - turn >= _MOST_TURNS):  # the last turn always stays
            for path in paths:
                disk.discard(path)


def _keep_end(path: str) -> None:
    """Replace a file that is longer than ALL bytes by a file with its end."""
    if _size(path) <= ALL:
        return
    descriptor = os.open(f"{path}.cut", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with open(path, "rb") as file, open(descriptor, "wb") as end:
        file.seek(-ALL, os.SEEK_END)
        bytes_left = ALL  # a client that still writes may make the file longer
        while bytes_left and (data := file.read(min(bytes_left, TAIL))):
            end.write(data)
            bytes_left -= len(data)
    os.replace(f"{path}.cut", path)


def _size(path: str) -> int:
    try:
        return os.lstat(path).st_size
    except OSError:
        return 0


def sweep(store: Store, team: str, exiting_agent: str = "") -> None:
    """Remove the logs of agents that have left the team and have no process. The *exiting_agent*, whose keeper is about
    to exit, counts as having no process.
    """
    directory = os.path.dirname(path_of(store, team, ""))
    files_of: dict[str, list[str]] = {}
    for name in disk.names_in(directory):
        files_of.setdefault(name.partition(".")[0], []).append(name)
    roster = teams.get(store, team)
    for agent, names in files_of.items():
        member = roster.find(agent)
        if member is None or member.active:  # a log of no agent stays, too
            continue
        session = sessions.find(store, team, agent)
        has_process = session is not None and (not session.ended or session.keeper_lives)
        if has_process and agent != exiting_agent:
            continue
        for name in names:
            disk.discard(f"{directory}/{name}")


def of_turn(store: Store, team: str, agent: str, turn: int, ending: str, limit: int = ALL) -> str:
    """Return the last *limit* bytes of one file of a turn, or "" if there is no such file. *ending* selects the file:
    `out`, `err` or `messages.json`.
    """
    try:
        return read(f"{turn_of(store, team, agent, turn)}.{ending}", limit)
    except OSError:
        return ""


def transcript(store: Store, team: str, agent: str, turns: int) -> str:
    """Return the output of the agent in all its turns, including the current one."""
    texts = (of_turn(store, team, agent, turn, ending) for turn in range(1, turns + 1) for ending in ("out", "err"))
    return "".join(texts)


def end_of_turn(store: Store, team: str, agent: str, turn: int) -> str:
    """Return the last characters that the client printed in a turn: on standard error, or on standard output if it
    printed nothing there.
    """
    for ending in ("err", "out"):  # a character has at most four bytes
        if printed := of_turn(store, team, agent, turn, ending, 4 * END).strip():
            return printed[-END:]
    return ""


def tail(store: Store, team: str, agent: str, turns: int, count: int) -> list[str]:
    """Return the last *count* lines that the agent printed, reading only the turns that contain them."""
    lines: list[str] = []
    for turn in range(turns, 0, -1):
        texts = (of_turn(store, team, agent, turn, ending, TAIL) for ending in ("out", "err"))
        lines = "".join(texts).splitlines() + lines
        if len(lines) >= count:
            break
    return lines[-count:]


class Follower:
    """Reads the output of an agent line by line, through past and future turns. It keeps files open, so that a removed
    log is still read to its end.
    """

    def __init__(self, store: Store, team: str, agent: str) -> None:
        self._base = (store, team, agent)
        self._files: dict[str, IO[bytes]] = {}

    def lines(self, turns: int, ended: bool = False) -> list[str]:
        """Return the lines that were printed since the last call. *turns* is the number of the last turn; *ended*
        says that this turn has ended. An unfinished line is returned only after the end of its turn.
        """
        lines: list[str] = []
        paths = [f"{turn_of(*self._base, turn)}.{ending}" for turn in range(1, turns + 1) for ending in _ENDINGS[:2]]
        for path in paths:
            try:
                if path not in self._files:
                    self._files[path] = open(path, "rb")  # noqa: SIM115
            except OSError:  # its turn has not begun, or it was removed
                continue
            file = self._files[path]
            start = file.tell()
            data = file.read(ALL)
            if not ended and path in paths[-2:]:  # of the last turn: leave an unfinished line for the next call
                data = data[: data.rfind(b"\n") + 1]
                file.seek(start + len(data))
            lines += data.decode(errors="replace").splitlines()
        return lines

    def close(self) -> None:
        """Close the files that are kept open."""
        for file in self._files.values():
            file.close()


def clipped(text: str, limit: int, path: str) -> str:
    """Return the text if it has at most *limit* bytes, otherwise its end, below a line that names the file *path*,
    which has the whole text.
    """
    data = text.encode(errors="replace")
    if len(data) <= limit:
        return data.decode()
    head = f"[the beginning of {len(data)} bytes is in {path}]\n"
    room = max(0, limit - len(head.encode(errors="replace")))
    return head + data[len(data) - room :].decode(errors="ignore")
