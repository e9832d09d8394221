"""Files in which clients have their settings: how ours is put into one, and taken out, with all else left as it is."""

from __future__ import annotations

import json
import os

from teams_cli import errors
from teams_cli.clients import hook_settings, mcp_settings
from teams_cli.store.documents import strict_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Protocol

    from teams_cli.clients.contract import Client


_COMMAND = "const command = "


class Ours:
    """What is to be put in for a client: the shell command that answers hooks, and the words that start the MCP server;
    None where what that needs is not installed.
    """

    def __init__(self, client: Client, hook: str, server: list[str] | None) -> None:
        self.client = client
        self.hook = hook
        self.server = server


if TYPE_CHECKING:

    class Form(Protocol):
        """A form of settings: how ours is put in and taken out, and which commands of ours are in it."""

        def without_ours(self, path: str, data: bytes) -> bytes | None: ...

        def with_ours(self, path: str, data: bytes | None, ours: Ours) -> bytes: ...

        def hook_commands(self, data: bytes) -> list[str]: ...


class Settings:
    """Settings as JSON: our hooks in it, if it is for *hooks*, and our server among the *servers*, the key of those."""

    def __init__(self, hooks: bool = False, servers: str = "") -> None:
        self.hooks = hooks
        self.servers = servers

    def without_ours(self, path: str, data: bytes) -> bytes | None:
        """The file without anything of ours; None when nothing is left.

        Raises:
            DamagedRecord: It is not what the client could read.
        """
        document = self._document(path, data)
        before = json.dumps(document)
        if self.hooks:
            _take_out_hooks(document)
        if self.servers:
            self._take_out_server(document)
        if json.dumps(document) == before:
            return data
        return _encode(document, data) if document else None

    def with_ours(self, path: str, data: bytes | None, ours: Ours) -> bytes:
        """The file, which has nothing of ours, with it.

        Raises:
            DamagedRecord: It is not what the client could read.
            InvalidValue: It has another server of that name.
        """
        document = self._document(path, data) if data else {}
        if self.hooks:
            _put_in_hooks(path, document, ours)
        if self.servers and ours.server:
            found = document.setdefault(self.servers, {})
            if mcp_settings.NAME in found:
                raise taken(path)
            found[mcp_settings.NAME] = ours.client.server_entry(ours.server)
        return _encode(document, data or b"") if document or data else b""

    def hook_commands(self, data: bytes) -> list[str]:
        """The commands of ours that the settings have for any event."""
        found = json.loads(data)["hooks"].values()
        inner = [hook for event in found if isinstance(event, list) for entry in event for hook in entry["hooks"]]
        return [hook["command"] for hook in inner if hook_settings.is_ours(hook.get("command"))]

    def _document(self, path: str, data: bytes) -> dict[str, Any]:
        document = strict_json(data, path) if data.strip() else {}
        for key in ("hooks" if self.hooks else "", self.servers):
            if not isinstance(document, dict) or not isinstance(document.get(key, {}), dict):
                raise errors.DamagedRecord(f"{path}: {key}: is not an object", "Correct the file, or move it away.")
        return document

    def _take_out_server(self, document: dict[str, Any]) -> None:
        found = document.get(self.servers, {})
        if mcp_settings.is_ours(found.get(mcp_settings.NAME)):
            del found[mcp_settings.NAME]
            if not found:
                del document[self.servers]


class Plugin:
    """A plugin of ours, a file of its own, copied from *source* but for the line with the command that it calls."""

    def __init__(self, source: str) -> None:
        self.source = source

    def without_ours(self, path: str, data: bytes) -> bytes | None:
        """Nothing, if it is ours, in any version."""
        return None if data.startswith(self._lines()[0].encode()) else data

    def with_ours(self, path: str, data: bytes | None, ours: Ours) -> bytes:
        """The plugin.

        Raises:
            InvalidValue: There is another of that name.
        """
        if data is not None:
            raise errors.InvalidValue(f"{path} exists, and is not from teams", "Move it away, or install by hand.")
        said = f"{_COMMAND}{json.dumps(ours.hook)}\n"
        return "".join(said if line.startswith(_COMMAND) else line for line in self._lines()).encode()

    def hook_commands(self, data: bytes) -> list[str]:
        """The commands of ours that the file calls."""
        lines = data.decode(errors="replace").splitlines()
        return [json.loads(line.removeprefix(_COMMAND)) for line in lines if line.startswith(_COMMAND)][:1]

    def _lines(self) -> list[str]:
        with open(self.source, encoding="utf-8") as file:
            return file.readlines()


def taken(path: str) -> errors.InvalidValue:
    """What is wrong when another server has the name of ours."""
    name = mcp_settings.NAME
    return errors.InvalidValue(f"{path} has another server called {name!r}", "Rename that server first.")


def _take_out_hooks(document: dict[str, Any]) -> None:
    """Remove our hooks, and what is empty then."""
    hooks = document.get("hooks", {})
    before = json.dumps(hooks)
    for event, found in list(hooks.items()):
        if isinstance(found, list):
            hooks[event] = [left for entry in found for left in _entry_without(entry)]
            if found and not hooks[event]:
                del hooks[event]
    if not hooks and json.dumps(hooks) != before:
        del document["hooks"]


def _entry_without(entry: Any) -> list[Any]:
    """The entry of an event without our hook, alone in a list; an empty one if it had no other."""
    inner = entry.get("hooks") if isinstance(entry, dict) else None
    if not isinstance(inner, list):
        return [entry]
    kept = [hook for hook in inner if not (isinstance(hook, dict) and hook_settings.is_ours(hook.get("command")))]
    if len(kept) == len(inner):
        return [entry]
    return [{**entry, "hooks": kept}] if kept else []


def _put_in_hooks(path: str, document: dict[str, Any], ours: Ours) -> None:
    hooks = document.setdefault("hooks", {})
    for event, entry in ours.client.hook_entries(ours.hook).items():
        if not isinstance(hooks.setdefault(event, []), list):
            raise errors.DamagedRecord(f"{path}: hooks.{event}: is not a list", "Correct the file.")
        hooks[event].append(entry)


def _encode(document: dict[str, Any], like: bytes) -> bytes:
    """The settings, indented as they were."""
    indent: int | str = 2
    for line in like.splitlines()[1:2]:
        blank = line[: len(line) - len(line.lstrip())].decode()
        indent = blank or 2
    text = json.dumps(document, indent=indent, ensure_ascii=False)
    # Half a character, as programs leave that cut texts, can stand in JSON by its number alone.
    return (text + ("\n" if not like or like.endswith(b"\n") else "")).encode(errors="backslashreplace")


def kept_once(path: str, document: dict[str, Any]) -> str:
    """Write settings that are for runs that `teams` opens alone, for their owner; the path."""
    return written_once(path, json.dumps(document, indent=2).encode())


def written_once(path: str, data: bytes) -> str:
    """Write a file that is for runs that `teams` opens alone, for its owner; the path."""
    os.makedirs(os.path.dirname(path), 0o700, exist_ok=True)
    temp = f"{path}.{os.getpid()}"
    descriptor = os.open(temp, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    with open(descriptor, "wb") as file:
        file.write(data)
    os.replace(temp, path)
    return path
