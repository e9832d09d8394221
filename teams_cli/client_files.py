"""Files in which clients have their settings: how ours is put into one, and taken out, with all else left as it is."""

from __future__ import annotations

import json
import os
import re
import tomllib

from teams_cli import hook_settings, mcp_settings
from teams_cli.errors import DamagedRecord, InvalidValue
from teams_cli.store.documents import strict_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_PLUGIN = f"{os.path.dirname(__file__)}/plugins/opencode.js"
_BEGIN, _END = "# teams: begin", "# teams: end"
_BLOCK = re.compile(rf"\n?{_BEGIN}\n.*?{_END}\n", re.DOTALL)


class Ours:
    """What is to be put in: the shell command that answers hooks, and the words that start the MCP server; None where
    what that needs is not installed.
    """

    def __init__(self, hook: str, server: list[str] | None) -> None:
        self.hook = hook
        self.server = server


class Settings:
    """Settings as JSON: our hooks in it, if it is for *hooks*, and our server among the *servers*, the key of those."""

    def __init__(self, client: str, hooks: bool = False, servers: str = "") -> None:
        self.client = client
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
            _put_in_hooks(path, self.client, document, ours.hook)
        if self.servers and ours.server:
            found = document.setdefault(self.servers, {})
            if mcp_settings.NAME in found:
                raise _taken(path)
            found[mcp_settings.NAME] = mcp_settings.entry(self.client, ours.server)
        return _encode(document, data or b"") if document or data else b""

    def _document(self, path: str, data: bytes) -> dict[str, Any]:
        document = strict_json(data, path) if data.strip() else {}
        for key in ("hooks" if self.hooks else "", self.servers):
            if not isinstance(document, dict) or not isinstance(document.get(key, {}), dict):
                raise DamagedRecord(f"{path}: {key}: is not an object", "Correct the file, or move it away.")
        return document

    def _take_out_server(self, document: dict[str, Any]) -> None:
        found = document.get(self.servers, {})
        if mcp_settings.is_ours(found.get(mcp_settings.NAME)):
            del found[mcp_settings.NAME]
            if not found:
                del document[self.servers]


class Plugin:
    """A plugin of ours, a file of its own."""

    def without_ours(self, path: str, data: bytes) -> bytes | None:
        """Nothing, if it is ours, in any version."""
        return None if data.startswith(_plugin("").splitlines()[0]) else data

    def with_ours(self, path: str, data: bytes | None, ours: Ours) -> bytes:
        """The plugin.

        Raises:
            InvalidValue: There is another of that name.
        """
        if data is not None:
            raise InvalidValue(f"{path} is there, and not ours", "Move it away, or install by hand.")
        return _plugin(ours.hook)


class Toml:
    """Settings as TOML, with our server in a block of its own at the end."""

    def without_ours(self, path: str, data: bytes) -> bytes | None:
        """The file without our block; None when nothing is left."""
        text = data.decode(errors="surrogateescape")
        left = _BLOCK.sub("", text)
        return data if left == text else left.encode(errors="surrogateescape") or None

    def with_ours(self, path: str, data: bytes | None, ours: Ours) -> bytes:
        """The file with our block.

        Raises:
            DamagedRecord: It is no TOML, or nothing can be added to its servers.
            InvalidValue: It has another server of that name.
        """
        document = self._document(path, data or b"")
        if not ours.server:
            return data or b""
        entry = mcp_settings.entry("codex", ours.server)
        servers = document.setdefault("mcp_servers", {})
        if not isinstance(servers, dict) or mcp_settings.NAME in servers:
            raise _taken(path)
        lines = [f"{key} = {json.dumps(value)}\n" for key, value in entry.items()]
        block = "".join([_BEGIN, f"\n[mcp_servers.{mcp_settings.NAME}]\n", *lines, _END, "\n"])
        parts = [data or b"", b"\n" if data and not data.endswith(b"\n") else b"", b"\n" if data else b""]
        whole = b"".join(parts) + block.encode()
        servers[mcp_settings.NAME] = entry
        if self._document(path, whole) != document:
            raise DamagedRecord(f"{path}: mcp_servers: can't be added to", "Write it as tables: [mcp_servers.NAME].")
        return whole

    def _document(self, path: str, data: bytes) -> dict[str, Any]:
        try:
            return tomllib.loads(data.decode())
        except ValueError as error:
            raise DamagedRecord(f"{path}: {error}", "Correct the file, or move it away.") from None


Form = Settings | Plugin | Toml


def _taken(path: str) -> InvalidValue:
    name = mcp_settings.NAME
    return InvalidValue(f"{path} has a server called {name!r}, and it is not ours", "Call that one otherwise first.")


def _take_out_hooks(document: dict[str, Any]) -> None:
    """Remove our hooks, and what is empty then."""
    hooks = document.get("hooks", {})
    before = json.dumps(hooks)
    for event, found in list(hooks.items()):
        if isinstance(found, list):
            hooks[event] = [entry for entry in map(_entry_without, found) if entry is not None]
            if found and not hooks[event]:
                del hooks[event]
    if not hooks and json.dumps(hooks) != before:
        del document["hooks"]


def _entry_without(entry: Any) -> Any:
    """The entry of an event without our hook; None if it had no other."""
    inner = entry.get("hooks") if isinstance(entry, dict) else None
    if not isinstance(inner, list):
        return entry
    kept = [hook for hook in inner if not (isinstance(hook, dict) and hook_settings.is_ours(hook.get("command")))]
    if len(kept) == len(inner):
        return entry
    return {**entry, "hooks": kept} if kept else None


def _put_in_hooks(path: str, client: str, document: dict[str, Any], command: str) -> None:
    hooks = document.setdefault("hooks", {})
    for event in hook_settings.EVENTS[client]:
        if not isinstance(hooks.setdefault(event, []), list):
            raise DamagedRecord(f"{path}: hooks.{event}: is not a list", "Correct the file.")
        hooks[event].append(hook_settings.entry(client, command))


def _encode(document: dict[str, Any], like: bytes) -> bytes:
    """The settings, indented as they were."""
    indent: int | str = 2
    for line in like.splitlines()[1:2]:
        blank = line[: len(line) - len(line.lstrip())].decode()
        indent = blank or 2
    text = json.dumps(document, indent=indent, ensure_ascii=False)
    return (text + ("\n" if not like or like.endswith(b"\n") else "")).encode()


def _plugin(command: str) -> bytes:
    """Our plugin for OpenCode, calling that command."""
    with open(_PLUGIN, encoding="utf-8") as file:
        return file.read().replace('"teams hook claude"', json.dumps(command)).encode()
