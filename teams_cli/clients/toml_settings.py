"""Settings as TOML: our server in a block at the end of the file, and as an option of a command line."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from typing import Any

from teams_cli import errors
from teams_cli.clients import own_entries
from teams_cli.clients.settings_files import Ours, taken

_BEGIN, _END = "# teams: begin", "# teams: end"
_BEGINNING = re.compile(rf"(?:\r?\n)?^{_BEGIN}\r?\n", re.MULTILINE)
_ENDING = re.compile(rf"^{_END}(?:\r?\n|\Z)", re.MULTILINE)
_HEAD = re.compile(rf"^\[mcp_servers\.{own_entries.NAME}\]\r?\n(?:[a-z_]+ *=.*(?:\n|\Z))*", re.MULTILINE)


_HOOKS = "hooks.json"
_NOTE = re.compile(
    r"""^\[hooks\.state\.("(?:[^"\\\n]|\\.)*"|'[^'\n]*')\]\r?\n(?:[a-z_]+ *=.*(?:\n|\Z))*""", re.MULTILINE
)


class Toml:
    """Settings as TOML, with our server among its `mcp_servers`, between two comment lines of ours."""

    def without_ours(self, path: str, data: bytes, before: bytes | None = None) -> bytes | None:
        """Return the file without our block; None if nothing is left. Lines that others wrote into the block stay, and
        so does text that only looks like the block.

        Raises:
            DamagedRecord: It is not valid TOML, or our server was moved to a place where it can't be found.
        """
        document = _read(path, data)
        if not own_entries.is_our_server(_servers(document).get(own_entries.NAME)):
            return data
        wanted = _without_server(document)
        for left in _candidates(data.decode()):
            candidate = _parsed(left)
            if candidate is None or own_entries.NAME in _servers(candidate):
                continue
            if _same(_without_server(candidate), wanted):
                return left.encode() or None
        raise errors.DamagedRecord(
            f"{path}: the server of teams can't be found among the others", "Remove [mcp_servers.team] by hand."
        )

    def with_ours(self, path: str, data: bytes | None, ours: Ours) -> bytes:
        """Return the file with our block.

        Raises:
            DamagedRecord: It is not valid TOML, or its servers are written so that none can be added.
            InvalidValue: It has another server with our name.
        """
        document = _read(path, data or b"")
        if not ours.server:
            return data or b""
        entry = ours.client.server_entry(ours.server)
        servers = document.setdefault("mcp_servers", {})
        if not isinstance(servers, dict) or own_entries.NAME in servers:
            raise taken(path)
        block = f"{_BEGIN}\n[mcp_servers.{own_entries.NAME}]\n{lines(entry)}{_END}\n"
        parts = [data or b"", b"\n" if data and not data.endswith(b"\n") else b"", b"\n" if data else b""]
        whole = b"".join(parts) + block.encode()
        servers[own_entries.NAME] = entry
        if not _same(_read(path, whole), document):
            raise errors.DamagedRecord(
                f"{path}: mcp_servers: can't be added to", "Write it as tables: [mcp_servers.NAME]."
            )
        return whole

    def hook_commands(self, data: bytes) -> list[str]:
        """Return an empty list, because the hooks are in another file."""
        return []

    def without_traces(self, path: str, data: bytes) -> bytes | None:
        """Return the file without the notes by which the client knows that its user trusts hooks which are gone. None
        if nothing is left.
        """
        document = _read(path, data)
        noted = document.get("hooks", {}).get("state", {}) if isinstance(document.get("hooks"), dict) else {}
        beside = f"{os.path.dirname(os.path.realpath(path))}/{_HOOKS}"
        of_file = [key for key in noted if os.path.realpath(key.rsplit(":", 3)[0]) == beside]  # FILE:stop:0:0
        gone = {key for key in of_file if not _has_hook(beside, key)}
        text = data.decode()
        left = _NOTE.sub(lambda note: "" if _loads(f"key = {note[1]}")["key"] in gone else note[0], text)
        return left.encode() or None


def lines(document: Mapping[str, Any]) -> str:
    """Return the document as TOML, one line for each key.

    Raises:
        InvalidValue: A text in it is not Unicode, such as the bytes of a path.
    """
    import tomlkit

    _refuse_bytes(document)
    return tomlkit.dumps(document)


def inline(document: Mapping[str, Any]) -> str:
    """Return the document as TOML on one line."""
    import tomlkit

    _refuse_bytes(document)
    table = tomlkit.inline_table()
    table.update(document)
    return table.as_string()


def _refuse_bytes(document: Mapping[str, Any]) -> None:
    try:
        json.dumps(document, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise errors.InvalidValue(
            f"can't be written as TOML: {document!a}", "Rename paths that are not UTF-8."
        ) from None


def _read(path: str, data: bytes) -> dict[str, Any]:
    try:
        return _loads(data.decode())
    except ValueError as error:
        raise errors.DamagedRecord(f"{path}: {error}", "Correct the file, or move it away.") from None


def _parsed(text: str) -> dict[str, Any] | None:
    try:
        return _loads(text)
    except ValueError:
        return None


def _loads(text: str) -> dict[str, Any]:
    import tomllib  # slow to import; few commands read these settings

    return tomllib.loads(text)


def _servers(document: dict[str, Any]) -> dict[str, Any]:
    servers = document.get("mcp_servers")
    return servers if isinstance(servers, dict) else {}


def _without_server(document: dict[str, Any]) -> dict[str, Any]:
    others = {name: server for name, server in _servers(document).items() if name != own_entries.NAME}
    rest = {key: value for key, value in document.items() if key != "mcp_servers"}
    return {**rest, "mcp_servers": others} if others else rest


def _same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether both documents are equal, with NaN equal to NaN."""
    return repr(one) == repr(other)


def _candidates(text: str) -> Iterator[str]:
    """Yield texts that may be the file without our server: each lacks one of our blocks, or one of the tables with our
    server. Other lines in a block stay.

    A block inside a string is tried, too. Without it the document differs, so the caller rejects that text.
    """
    for begin in _BEGINNING.finditer(text):
        end = _ENDING.search(text, begin.end())
        if end:
            inner = text[begin.end() : end.start()]
            yield text[: begin.start()] + _HEAD.sub("", inner, count=1) + text[end.end() :]
    for table in _HEAD.finditer(text):
        yield text[: table.start()] + text[table.end() :]


def _has_hook(path: str, key: str) -> bool:
    """Whether the file has a hook that is not ours at the place that *key* names."""
    event, entry, number = key.rsplit(":", 3)[1:]
    try:
        with open(path, "rb") as file:
            hooks = json.load(file)["hooks"]
        hooks_of_event = next(entries for name, entries in hooks.items() if name.lower() == event.replace("_", ""))
        return not own_entries.is_our_hook(hooks_of_event[int(entry)]["hooks"][int(number)]["command"])
    except (OSError, ValueError, LookupError, TypeError, StopIteration):
        return False
