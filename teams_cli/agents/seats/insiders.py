"""Find out which member a subagent is, by ids that the client gives our hooks. Subagents are agents inside a client."""

from __future__ import annotations

import json
import os
from contextlib import suppress

from teams_cli.store.files import disk

TYPE_CHECKING = False
if TYPE_CHECKING:
    from teams_cli.agents.seats.bindings import Binding

ARGUMENT = "_agent_id"
"""The argument in which our plugin for OpenCode names the subagent that calls a tool of our server."""
_CALL_SUFFIX = ".call"


class Insider:
    """The record of the subagent with the id *agent_id*, which runs inside the client of *parent*."""

    def __init__(self, root: str, team: str, parent: str, agent_id: str) -> None:
        self.root = root
        self._directory = f"{root}/subagents/{team}"
        self._path = f"{self._directory}/{parent}.{_file_name(agent_id)}.json"

    def read(self) -> tuple[str, str] | None:
        """Return the member name and the token of this subagent; None if the subagent has not begun or has ended."""
        return _read(self._path)

    def keep(self, agent: str, token: str) -> None:
        """Record the member name and the token of this subagent."""
        os.makedirs(self._directory, 0o700, exist_ok=True)
        data = json.dumps({"agent": agent, "token": token}).encode()
        disk.commit(disk.write_temp(f"{self.root}/tmp", data), self._path)

    def note_call(self, tool_use_id: str) -> None:
        """Record that the subagent is about to make the tool call *tool_use_id*. When this call reaches the server of
        `teams`, only its id shows which subagent makes it.
        """
        with suppress(FileExistsError, FileNotFoundError):
            os.link(self._path, f"{self._directory}/{_file_name(tool_use_id)}{_CALL_SUFFIX}")

    def forget(self) -> None:
        """Remove the records of the subagent and of its tool calls."""
        with suppress(FileNotFoundError), os.scandir(self._directory) as entries:
            inode = os.stat(self._path).st_ino  # `note_call` links the records of calls to this file
            for entry in entries:
                if entry.name.endswith(_CALL_SUFFIX) and entry.inode() == inode:
                    disk.discard(entry.path)
        disk.discard(self._path)


def caller(root: str, parent: Binding, agent_id: str, tool_use_id: str) -> tuple[str, str] | None:
    """Return the member name and the token of the subagent *agent_id* or, if *agent_id* is "", of the subagent that
    made the tool call *tool_use_id*. None if there is no such subagent.
    """
    if agent_id:
        return Insider(root, parent.team, parent.agent, agent_id).read()
    return _read(f"{root}/subagents/{parent.team}/{_file_name(tool_use_id)}{_CALL_SUFFIX}") if tool_use_id else None


def _read(path: str) -> tuple[str, str] | None:
    try:
        record = json.loads(disk.read_file(path))
    except FileNotFoundError:
        return None
    return record["agent"], record["token"]


def _file_name(id: str) -> str:
    """Return an id that a client gave, which may have any characters, in a form that can be part of a file name."""
    return id.encode().hex()[:150]
