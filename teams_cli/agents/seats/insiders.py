"""Subagents, which are agents inside a client: the member that each subagent is, found by ids that the client gives our
hooks.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress

from teams_cli.store.files import disk

TYPE_CHECKING = False
if TYPE_CHECKING:
    from teams_cli.agents.seats.bindings import Binding

ARGUMENT = "_agent_id"
"""The argument by which our plugin of OpenCode says which subagent calls a tool of our server."""
_CALL_SUFFIX = ".call"


class Insider:
    """The record of the subagent with the id *agent_id*, inside the client of *parent*."""

    def __init__(self, root: str, team: str, parent: str, agent_id: str) -> None:
        self.root = root
        self._directory = f"{root}/subagents/{team}"
        self._path = f"{self._directory}/{parent}.{_file_name(agent_id)}.json"

    def read(self) -> tuple[str, str] | None:
        """Return the name and the token of the member that this subagent is; None before the subagent began, and after
        it ended.
        """
        return _read(self._path)

    def keep(self, agent: str, token: str) -> None:
        """Record the name and the token of the member that this subagent is."""
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
        """Remove the record of the subagent, and those of its tool calls."""
        with suppress(FileNotFoundError), os.scandir(self._directory) as entries:
            inode = os.stat(self._path).st_ino  # `note_call` links the records of calls to this file
            for entry in entries:
                if entry.name.endswith(_CALL_SUFFIX) and entry.inode() == inode:
                    disk.discard(entry.path)
        disk.discard(self._path)


def caller(root: str, parent: Binding, agent_id: str, tool_use_id: str) -> tuple[str, str] | None:
    """Return the name and the token of the member that a subagent is. *agent_id* is the id of the subagent. If
    *agent_id* is "", it is the subagent that made the tool call *tool_use_id*. None if there is no such subagent.
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
    """Return the id of a client, which may have any characters, as part of a file's name."""
    return id.encode().hex()[:150]
