"""Logs: what an agent's processes print, one file for its keepers and three for each turn of its client."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from teams_cli.store.contract import Store


ALL = 64 * 1024 * 1024
"""More than any client says that is to be understood; of longer logs the end is read."""
TAIL = 1 << 20
END = 2000
"""Bytes of a log's end that are told when a turn failed."""


def path_of(store: Store, team: str, agent: str) -> str:
    """Where the keepers of the agent write what nobody else takes."""
    return f"{store.root}/logs/{team}/{agent}.log"


def turn_of(store: Store, team: str, agent: str, turn: int) -> str:
    """The path of the files of one turn, without their endings `.out`, `.err` and `.messages.json`."""
    return f"{store.root}/logs/{team}/{agent}.{turn}"


def read(path: str, limit: int) -> str:
    """What the file says; of more than *limit* bytes the end."""
    with open(path, "rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - limit))
        return file.read(limit).decode(errors="replace")


def of_turn(store: Store, team: str, agent: str, turn: int, ending: str, limit: int = ALL) -> str:
    """What is in one of the files of a turn; nothing if there is no such file."""
    try:
        return read(f"{turn_of(store, team, agent, turn)}.{ending}", limit)
    except OSError:
        return ""


def transcript(store: Store, team: str, agent: str, turns: int) -> str:
    """What the agent printed in its turns so far, the one that is going on too."""
    said = (of_turn(store, team, agent, turn, ending) for turn in range(1, turns + 1) for ending in ("out", "err"))
    return "".join(said)


def end_of_turn(store: Store, team: str, agent: str, turn: int, limit: int) -> str:
    """The last that the client said in that turn, on standard error if it said anything there."""
    said = (of_turn(store, team, agent, turn, ending, 4 * limit).strip() for ending in ("err", "out"))
    return next(filter(None, said), "")[-limit:]


def tail(store: Store, team: str, agent: str, turns: int, wanted: int) -> list[str]:
    """The last lines that the agent printed, of no more turns than they are in."""
    found: list[str] = []
    for turn in range(turns, 0, -1):
        said = (of_turn(store, team, agent, turn, ending, TAIL) for ending in ("out", "err"))
        found = "".join(said).splitlines() + found
        if len(found) >= wanted:
            break
    return found[-wanted:]


class Follower:
    """What an agent prints, line by line, in the turns so far and in those to come."""

    def __init__(self, store: Store, team: str, agent: str) -> None:
        self._base = (store, team, agent)
        self._read: dict[str, int] = {}

    def lines(self, turns: int, ended: bool = False) -> list[str]:
        """The lines that came since the last time; a line that is not ended only when the agent has *ended*."""
        paths = (f"{turn_of(*self._base, turn)}.{end}" for turn in range(1, turns + 1) for end in ("out", "err"))
        return [line for path in paths for line in self._new(path, ended)]

    def _new(self, path: str, ended: bool) -> list[str]:
        at = self._read.get(path, 0)
        try:
            with open(path, "rb") as file:
                file.seek(at)
                data = file.read(ALL)
        except OSError:
            return []
        if not ended:
            data = data[: data.rfind(b"\n") + 1]
        self._read[path] = at + len(data)
        return data.decode(errors="replace").splitlines()


def clipped(text: str, limit: int, path: str) -> str:
    """The text; of one that has more than *limit* bytes the end, under a line that says where all of it is."""
    data = text.encode(errors="replace")
    if len(data) <= limit:
        return data.decode()
    head = f"[the beginning of {len(data)} bytes is in {path}]\n"
    return head + data[len(head) - limit :].decode(errors="ignore")
