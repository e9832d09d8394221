"""Occupants: who works in a directory, by the records of the team and by what the system says of its processes."""

from __future__ import annotations

import os
from collections.abc import Iterator

from teams_cli import errors
from teams_cli.agents import ending, sessions
from teams_cli.agents.seats.terminals import TERMINAL
from teams_cli.store.contract import Store


def refuse(store: Store, team: str, directory: str) -> None:
    """Refuse to remove a directory in which somebody works, here or below.

    Raises:
        Conflict: Somebody does; names them.
    """
    if occupants := list(dict.fromkeys([*_by_records(store, team, directory), *_by_processes(directory)])):
        raise errors.Conflict(
            f"{directory} is in use by {', '.join(occupants[:5])}{', and others' if len(occupants) > 5 else ''}",
            "End them (teams stop-agent AGENT), or leave the directory, and repeat the command.",
        )


def _by_records(store: Store, team: str, directory: str) -> Iterator[str]:
    for session, _ in store.scan(team, sessions.SESSION, []):
        if _is_in(session.directory, directory) and not session.ended and not ending.is_lost(store, team, session):
            yield session.agent
    for terminal, _ in store.scan(team, TERMINAL, []):
        if _is_in(terminal.directory, directory) and terminal.has_ended is False:
            yield terminal.agent


def _by_processes(directory: str) -> Iterator[str]:
    for name in os.listdir("/proc") if os.path.isdir("/proc/self") else ():
        if name.isdigit() and int(name) != os.getpid() and _is_in(_place_of(name), directory):
            yield f"process {name} ({_program(name)})"


def _place_of(pid: str) -> str:
    try:
        return os.readlink(f"/proc/{pid}/cwd")
    except OSError:  # it ended, or belongs to another user
        return ""


def _program(pid: str) -> str:
    try:
        with open(f"/proc/{pid}/comm", encoding="utf-8", errors="replace") as file:
            return file.read().strip()
    except OSError:
        return "ended"


def _is_in(place: str, directory: str) -> bool:
    real = os.path.realpath(directory)
    return bool(place) and f"{os.path.realpath(place)}/".startswith(f"{real}/")
