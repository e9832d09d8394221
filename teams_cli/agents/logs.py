"""Logs: what an agent's processes print, one file for its keepers and three for each turn of its client.

Those of the last turns are kept, as far as there is room for them, and none when the agent has left the team.
"""

from __future__ import annotations

import os
from contextlib import suppress

from teams_cli import errors
from teams_cli.agents import sessions
from teams_cli.store.contract import Store
from teams_cli.store.files import disk
from teams_cli.teams import teams

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import IO


ALL = 64 * 1024 * 1024
"""More than any client says that is to be understood, and the room that the logs of an agent have; of longer ones the
end is kept, and read."""
TAIL = 1 << 20
END = 2000
"""Bytes of a log's end that are told when a turn failed."""
_TURNS = 100
_PARTS = ("out", "err", "messages.json")


def path_of(store: Store, team: str, agent: str) -> str:
    """The log of the agent's supervisors."""
    return f"{store.root}/logs/{team}/{agent}.log"


def begin(store: Store, team: str, agent: str) -> str:
    """Make the directory of `path_of`, and put aside what was written there once there is much of it; the path."""
    path = path_of(store, team, agent)
    disk.make_directories(os.path.dirname(path), store.root)
    if _size(path) > TAIL:
        with suppress(OSError):  # else the log goes on in the same file
            os.replace(path, f"{path}.1")
    return path


def end(store: Store, team: str, agent: str) -> None:
    """Remove what `begin` made, if nothing was written there."""
    path = path_of(store, team, agent)
    if not _size(path):
        disk.discard(path)


def turn_of(store: Store, team: str, agent: str, turn: int) -> str:
    """The path of the files of one turn, without their endings `.out`, `.err` and `.messages.json`."""
    return f"{store.root}/logs/{team}/{agent}.{turn}"


class Complaints:
    """The failures of a background process that retries: each is logged once, until another failure occurs or it
    succeeds.
    """

    def __init__(self) -> None:
        self._last = ""

    def is_new(self, problem: errors.TeamsError) -> bool:
        """Whether it is another than the last."""
        before, self._last = self._last, problem.message
        return before != problem.message

    def end(self) -> None:
        """Note that all went well."""
        self._last = ""


def read(path: str, limit: int) -> str:
    """The content of the file; if it has more than *limit* bytes, only the end."""
    with open(path, "rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - limit))
        return file.read(limit).decode(errors="replace")


def rotate(store: Store, team: str, agent: str, turns: int) -> None:
    """Make room once a turn is over: the logs of the last one are cut to their end, and the oldest are removed.

    A program that has a log file open keeps reading the old content.
    """
    room = ALL
    for turn in range(turns, 0, -1):
        paths = [f"{turn_of(store, team, agent, turn)}.{part}" for part in _PARTS]
        if not any(map(os.path.lexists, paths)):
            return
        if turn == turns:
            for path in paths[:2]:
                _cut(path, ALL)
        room -= sum(map(_size, paths))
        if turn < turns and (room < 0 or turns - turn >= _TURNS):
            for path in paths:
                disk.discard(path)


def _cut(path: str, limit: int) -> None:
    """Leave the last *limit* bytes of a file, in a new one."""
    if _size(path) <= limit:
        return
    with open(path, "rb") as file, open(f"{path}.cut", "wb", opener=_private) as end:
        file.seek(-limit, os.SEEK_END)
        left = limit
        while left and (data := file.read(min(left, TAIL))):
            end.write(data)
            left -= len(data)
    os.replace(f"{path}.cut", path)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _size(path: str) -> int:
    try:
        return os.lstat(path).st_size
    except OSError:
        return 0


def sweep(store: Store, team: str, ending: str = "") -> None:
    """Remove the logs of agents that have left the team and that nothing runs of; *ending* is one whose keeper asks."""
    directory = os.path.dirname(path_of(store, team, ""))
    names = disk.names_in(directory)
    members_of = teams.get(store, team)
    for agent in {name.partition(".")[0] for name in names}:
        member = members_of.find(agent)
        if member is not None and not member.active and (agent == ending or not _is_kept(store, team, agent)):
            for name in names:
                if name.partition(".")[0] == agent:
                    disk.discard(f"{directory}/{name}")


def _is_kept(store: Store, team: str, agent: str) -> bool:
    session = sessions.find(store, team, agent)
    return session is not None and (not session.ended or session.keeper_lives)


def of_turn(store: Store, team: str, agent: str, turn: int, ending: str, limit: int = ALL) -> str:
    """The content of a file of a turn; empty if there is no such file."""
    try:
        return read(f"{turn_of(store, team, agent, turn)}.{ending}", limit)
    except OSError:
        return ""


def transcript(store: Store, team: str, agent: str, turns: int) -> str:
    """The output of the agent in its turns so far, including the present one."""
    texts = (of_turn(store, team, agent, turn, ending) for turn in range(1, turns + 1) for ending in ("out", "err"))
    return "".join(texts)


def end_of_turn(store: Store, team: str, agent: str, turn: int, limit: int) -> str:
    """The last that the client said in that turn, on standard error if it said anything there."""
    ends = (of_turn(store, team, agent, turn, ending, 4 * limit).strip() for ending in ("err", "out"))
    return next(filter(None, ends), "")[-limit:]


def tail(store: Store, team: str, agent: str, turns: int, wanted: int) -> list[str]:
    """The last lines that the agent printed. Only the turns that contain them are read."""
    lines: list[str] = []
    for turn in range(turns, 0, -1):
        texts = (of_turn(store, team, agent, turn, ending, TAIL) for ending in ("out", "err"))
        lines = "".join(texts).splitlines() + lines
        if len(lines) >= wanted:
            break
    return lines[-wanted:]


class Follower:
    """The output of an agent, line by line, in past and future turns.

    Files are held open, so that what was there when they were removed is read to its end.
    """

    def __init__(self, store: Store, team: str, agent: str) -> None:
        self._base = (store, team, agent)
        self._files: dict[str, IO[bytes]] = {}

    def lines(self, turns: int, ended: bool = False) -> list[str]:
        """The lines that came since the last time; one without an end once its turn is over, or all have *ended*."""
        return [
            line
            for turn in range(1, turns + 1)
            for part in _PARTS[:2]
            for line in self._new(f"{turn_of(*self._base, turn)}.{part}", ended or turn < turns)
        ]

    def _new(self, path: str, ended: bool) -> list[str]:
        try:
            file = self._files.get(path) or self._files.setdefault(path, open(path, "rb"))  # noqa: SIM115
        except OSError:
            return []
        start = file.tell()
        data = file.read(ALL)
        if not ended:
            data = data[: data.rfind(b"\n") + 1]
            file.seek(start + len(data))
        return data.decode(errors="replace").splitlines()

    def close(self) -> None:
        for file in self._files.values():
            file.close()


def clipped(text: str, limit: int, path: str) -> str:
    """The text; of one that has more than *limit* bytes the end, under a line that says where all of it is."""
    data = text.encode(errors="replace")
    if len(data) <= limit:
        return data.decode()
    head = f"[the beginning of {len(data)} bytes is in {path}]\n"
    return head + data[len(head) - limit :].decode(errors="ignore")
