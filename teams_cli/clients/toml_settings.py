"""Settings as TOML. Our server is in a block at the end of the file, or in an option of a command line."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from typing import Any

from teams_cli import errors
from teams_cli.clients import own_entries
from teams_cli.clients.settings_files import Ours, name_taken

_BEGIN, _END = "# teams: begin", "# teams: end"
_BEGIN_LINE = re.compile(rf"(?:\r?\n)?^{_BEGIN}\r?\n", re.MULTILINE)
_END_LINE = re.compile(rf"^{_END}(?:\r?\n|\Z)", re.MULTILINE)
_ASSIGNMENTS = r"(?:[a-z_]+ *=.*(?:\n|\Z))*"
_TABLE_OF_SERVER = re.compile(rf"^\[mcp_servers\.{own_entries.NAME}\]\r?\n{_ASSIGNMENTS}", re.MULTILINE)
_HOOKS_FILE = "hooks.json"
_TRUST_TABLE = re.compile(rf"""^\[hooks\.state\.("(?:[^"\\\n]|\\.)*"|'[^'\n]*')\]\r?\n{_ASSIGNMENTS}""", re.MULTILINE)
"""A table that says that the user trusts a hook. The name of the table ends with a key such as "FILE:stop:0:0"."""


class Toml:
    """Settings as TOML. Our server is among the `mcp_servers`, in a block between two comment lines."""

    def without_ours(self, path: str, data: bytes, before: bytes | None = None) -> bytes | None:
        """Return the file without our block; None if nothing is left. If somebody else wrote lines into the block,
        these lines stay. A text that only looks like our block, such as one in a string, stays too.

        Raises:
            DamagedRecord: The file is not valid TOML, or our server was moved to a place where it can't be found.
        """
        document = _read(path, data)
        if not own_entries.is_our_server(_servers(document).get(own_entries.NAME)):
            return data
        wanted_document = _without_server(document)
        # The text is edited, so that comments stay. It is right if its content lacks our server and nothing else.
        for text in _candidates(data.decode()):
            try:
                candidate = _loads(text)
            except ValueError:
                continue
            if own_entries.NAME not in _servers(candidate) and _is_same(_without_server(candidate), wanted_document):
                return text.encode() or None
        raise errors.DamagedRecord(
            f"{path}: the server of teams can't be found among the others", "Remove [mcp_servers.team] by hand."
        )

    def with_ours(self, path: str, data: bytes | None, ours: Ours) -> bytes:
        """Return the file with our block at its end.

        Raises:
            DamagedRecord: The file is not valid TOML, or its servers are written in a form to which none can be added.
            InvalidValue: The file has another server with our name.
        """
        document = _read(path, data or b"")
        if not ours.server:
            return data or b""
        entry = ours.client.server_entry(ours.server)
        if own_entries.NAME in _servers(document):
            raise name_taken(path)
        block = f"{_BEGIN}\n[mcp_servers.{own_entries.NAME}]\n{lines(entry)}{_END}\n"
        whole = data or b""
        if whole:
            whole += b"\n" if whole.endswith(b"\n") else b"\n\n"  # an empty line before the block
        whole += block.encode()
        wanted_document = {**document, "mcp_servers": {**_servers(document), own_entries.NAME: entry}}
        try:
            is_right = _is_same(_loads(whole.decode()), wanted_document)
        except ValueError:  # such as an inline table, which is closed
            is_right = False
        if not is_right:
            raise errors.DamagedRecord(
                f"{path}: mcp_servers: can't be added to", "Write it as tables: [mcp_servers.NAME]."
            )
        return whole

    def hook_commands(self, data: bytes) -> list[str]:
        """Return an empty list: a client whose settings are TOML has its hooks in another file."""
        return []

    def without_stale_trust(self, path: str, data: bytes) -> bytes | None:
        """Return the file without stale trust tables, in which Codex notes that its user trusts a hook; None if nothing
        is left. A table is stale if its hook was ours or is gone.
        """
        hooks = _read(path, data).get("hooks")
        trusted = hooks.get("state", {}) if isinstance(hooks, dict) else {}
        hooks_file = f"{os.path.dirname(os.path.realpath(path))}/{_HOOKS_FILE}"
        stale = set()
        for key in trusted:
            file = key.rsplit(":", 3)[0]
            if os.path.realpath(file) == hooks_file and not _has_others_hook(hooks_file, key):
                stale.add(key)

        def unless_stale(table: re.Match[str]) -> str:
            key = _loads(f"key = {table[1]}")["key"]  # its quotes may be single or double ones
            return "" if key in stale else table[0]

        return _TRUST_TABLE.sub(unless_stale, data.decode()).encode() or None


def lines(document: Mapping[str, Any]) -> str:
    """Return the document as TOML, one line for each key.

    Raises:
        InvalidValue: A text in the document is not Unicode, such as the bytes of a path.
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


def _loads(text: str) -> dict[str, Any]:
    import tomllib  # slow to import; few commands read these settings

    return tomllib.loads(text)


def _servers(document: dict[str, Any]) -> dict[str, Any]:
    servers = document.get("mcp_servers")
    return servers if isinstance(servers, dict) else {}


def _without_server(document: dict[str, Any]) -> dict[str, Any]:
    others = {name: server for name, server in _servers(document).items() if name != own_entries.NAME}
    document = {key: value for key, value in document.items() if key != "mcp_servers"}
    return {**document, "mcp_servers": others} if others else document


def _is_same(document: dict[str, Any], other: dict[str, Any]) -> bool:
    return repr(document) == repr(other)  # unlike with `==`, NaN equals NaN


def _candidates(text: str) -> Iterator[str]:
    """Yield texts that may be the file without our server: each lacks one of our blocks, except for the lines of others
    in it, or one of the tables with our server. A text inside a string may look like a block; the caller rejects it.
    """
    for begin in _BEGIN_LINE.finditer(text):
        end = _END_LINE.search(text, begin.end())
        if end:
            inner = text[begin.end() : end.start()]
            yield text[: begin.start()] + _TABLE_OF_SERVER.sub("", inner, count=1) + text[end.end() :]
    for table in _TABLE_OF_SERVER.finditer(text):
        yield text[: table.start()] + text[table.end() :]


def _has_others_hook(path: str, key: str) -> bool:
    """Whether the hooks file *path* has a hook of somebody else at the place in *key*: `FILE:EVENT:ENTRY:NUMBER`."""
    event, entry, number = key.rsplit(":", 3)[1:]
    try:
        with open(path, "rb") as file:
            hooks = json.load(file)["hooks"]
        event_in_file = event.replace("_", "")  # the key has the event in snake case, the file in camel case
        entries_of_event = next(entries for name, entries in hooks.items() if name.lower() == event_in_file)
        command = entries_of_event[int(entry)]["hooks"][int(number)]["command"]
        return not own_entries.is_our_hook(command)
    except (OSError, ValueError, LookupError, TypeError, StopIteration):
        return False
