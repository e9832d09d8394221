"""Add our entries to the settings files of clients and remove them again, without changing anything else."""

from __future__ import annotations

import json
import os
import re
from typing import NamedTuple

from teams_cli import errors
from teams_cli.clients import known, plugins
from teams_cli.clients.own_entries import NAME, is_our_hook, is_our_server
from teams_cli.environment import absolute, config_base
from teams_cli.store import json_edits
from teams_cli.store.documents import strict_json
from teams_cli.store.files import disk

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any, Protocol

    from teams_cli.clients.contract import Client, Home

    Place = tuple[str | int, ...]

    class FileFormat(Protocol):
        """A format of settings files: puts our entries in, takes them out, and finds our commands among the hooks."""

        def without_ours(self, path: str, data: bytes, before: bytes | None = None) -> bytes | None: ...

        def with_ours(self, path: str, data: bytes | None, ours: Ours) -> bytes: ...

        def hook_commands(self, data: bytes) -> list[str]: ...


_COMMAND = "const command = "
_ALLOWED: Place = ("permissions", "allow")


class Ours(NamedTuple):
    """The entries of `teams` for a client. *hook* is the shell command that answers hooks. *server* is the command line
    of the MCP server; None if the packages that the server needs are not installed.
    """

    client: Client
    hook: str
    server: list[str] | None


class Settings:
    """Settings as JSON. If *hooks* is set, our hooks are put into the file. If *comments* is set, the file may have
    comments.

    *servers* is the key of the MCP servers; "" if our server is not put into the file. *allowed* are the rules that let
    the client run our commands and tools without asking.
    """

    def __init__(
        self, hooks: bool = False, servers: str = "", allowed: tuple[str, ...] = (), comments: bool = False
    ) -> None:
        self.hooks = hooks
        self.servers = servers
        self.allowed = allowed
        self.comments = comments

    def without_ours(self, path: str, data: bytes, before: bytes | None = None) -> bytes | None:
        """Return the file without our entries; None if nothing is left. *before* is the file as it was before our
        installation; None if this is unknown. Rules, lists and objects that were in the file *before* stay in it.
        """
        text, document = self._read(path, data)
        _, document_before = self._read(path, before) if before else ("", {})
        if before is None and not any(_places_of_our_hooks(document)):  # then the rules are the user's, and stay
            document_before = {key: value for key, value in document.items() if key == _ALLOWED[0]}
        is_changed = False
        while place := self._next_of_ours(document, document_before):
            # Objects and lists go with their last entry, unless they were there before.
            while len(place) > 1 and len(_value_at(document, place[:-1])) == 1:
                if _value_at(document_before, place[:-1]) is not None:
                    break
                place = place[:-1]
            text = json_edits.without_member(text, place)
            _, document = self._read(path, _bytes_of(text))
            is_changed = True
        if not is_changed:
            return data
        return _bytes_of(text) if document or json_edits.has_comments(text) else None

    def with_ours(self, path: str, data: bytes | None, ours: Ours) -> bytes:
        """Return the file with our entries. The file *data* must have none of them yet.

        Raises:
            DamagedRecord: The client could not read the file either.
            InvalidValue: The file has another server with our name.
        """
        text, document = self._read(path, data or b"")
        if self.servers and NAME in document.get(self.servers, {}):
            raise name_taken(path)
        for place, value in self._additions(path, document, ours):
            text = json_edits.with_member(text, place, value)
        return _bytes_of(text)

    def _additions(self, path: str, document: dict[str, Any], ours: Ours) -> Iterator[tuple[Place, Any]]:
        """Yield the place and the value of each entry of ours to add."""
        hooks = document.get("hooks", {})
        hook_entries = ours.client.hook_entries(ours.hook) if self.hooks else {}
        for event, entry in hook_entries.items():
            entries = hooks.get(event, [])
            if not isinstance(entries, list):
                raise errors.DamagedRecord(f"{path}: hooks.{event}: is not a list", "Correct the file.")
            yield ("hooks", event, len(entries)), entry
        if self.allowed:
            rules = document.get("permissions", {}).get("allow", [])
            if not isinstance(rules, list):
                raise errors.DamagedRecord(f"{path}: permissions.allow: is not a list", "Correct the file.")
            missing = [rule for rule in self.allowed if rule not in rules]
            for number, rule in enumerate(missing, len(rules)):
                yield (*_ALLOWED, number), rule
        if self.servers and ours.server:
            yield (self.servers, NAME), ours.client.server_entry(ours.server)

    def hook_commands(self, data: bytes) -> list[str]:
        _, document = self._read("", data)
        return [_value_at(document, place)["command"] for place in _places_of_our_hooks(document)]

    def _read(self, path: str, data: bytes) -> tuple[str, dict[str, Any]]:
        """Return the file as text and as a document. Refuse a document whose values under our keys are not objects."""
        text = _text_of(data)
        bare = json_edits.without_comments(text) if self.comments else text
        # A program that cuts a text may leave half of a surrogate pair, which is not UTF-8.
        document = strict_json(bare.encode(errors="backslashreplace"), path) if bare.strip() else {}
        if not isinstance(document, dict):
            raise errors.DamagedRecord(f"{path}: is not an object", "Correct the file, or move it away.")
        # The keys below which we put entries; "" stands for a key that we leave alone.
        for key in filter(None, ("hooks" if self.hooks else "", self.servers, "permissions" if self.allowed else "")):
            if not isinstance(document.get(key, {}), dict):
                raise errors.DamagedRecord(f"{path}: {key}: is not an object", "Correct the file, or move it away.")
        return text, document

    def _next_of_ours(self, document: dict[str, Any], document_before: dict[str, Any]) -> Place:
        """Return the place of the next entry of ours to remove; () if none is left. Rules in *document_before* stay."""
        if self.hooks and (places := list(_places_of_our_hooks(document))):
            place_of_hook = places[-1]
            place_of_entry = place_of_hook[:3]
            has_other_hooks = len(_value_at(document, place_of_hook[:-1])) > 1
            return place_of_hook if has_other_hooks else place_of_entry
        rules, rules_before = _list_at(document, _ALLOWED), _list_at(document_before, _ALLOWED)
        for number, rule in reversed(list(enumerate(rules))):
            if rule in self.allowed and rule not in rules_before:
                return (*_ALLOWED, number)
        place = (self.servers, NAME)
        return place if self.servers and is_our_server(_value_at(document, place)) else ()


def _places_of_our_hooks(document: dict[str, Any]) -> Iterator[Place]:
    for event, entries in document.get("hooks", {}).items():
        for entry_number, entry in enumerate(entries if isinstance(entries, list) else ()):
            hooks = entry.get("hooks") if isinstance(entry, dict) else None
            for hook_number, hook in enumerate(hooks if isinstance(hooks, list) else ()):
                if isinstance(hook, dict) and is_our_hook(hook.get("command")):
                    yield ("hooks", event, entry_number, "hooks", hook_number)


def _list_at(document: Any, place: Place) -> list[Any]:
    value = _value_at(document, place)
    return value if isinstance(value, list) else []


def _value_at(document: Any, place: Place) -> Any:
    for key in place:
        try:
            document = document[key]
        except (LookupError, TypeError):
            return None
    return document


def _text_of(data: bytes) -> str:
    """Return the content of a file as text. Bytes that are not UTF-8 are kept for `_bytes_of`."""
    return data.decode(errors="surrogateescape")


def _bytes_of(text: str) -> bytes:
    return text.encode(errors="surrogateescape")


class Plugin:
    """A plugin file of ours. It is a copy of the file *source*, in which one line is replaced: the line with the
    command that the plugin calls.
    """

    def __init__(self, source: str) -> None:
        self.source = source

    def without_ours(self, path: str, data: bytes, before: bytes | None = None) -> bytes | None:
        """Return None if the file is our plugin, in any version; else return the content of the file unchanged."""
        first_line = self._lines()[0]  # the same in all versions
        return None if data.startswith(first_line.encode()) else data

    def with_ours(self, path: str, data: bytes | None, ours: Ours) -> bytes:
        """Return the plugin with our command in it.

        Raises:
            InvalidValue: There is another file of that name.
        """
        if data is not None:
            raise errors.InvalidValue(f"{path} exists, and is not from teams", "Move it away, or install by hand.")
        command_line = f"{_COMMAND}{json.dumps(ours.hook)}\n"
        lines = [command_line if line.startswith(_COMMAND) else line for line in self._lines()]
        return "".join(lines).encode()

    def hook_commands(self, data: bytes) -> list[str]:
        """Return the command of ours that the plugin in the file calls, in a list; empty if the file has none."""
        lines = data.decode(errors="replace").splitlines()
        commands = [json.loads(line.removeprefix(_COMMAND)) for line in lines if line.startswith(_COMMAND)]
        return commands[:1]

    def _lines(self) -> list[str]:
        with open(self.source, encoding="utf-8") as file:
            return file.readlines()


_BEGIN, _END = "<!-- teams: begin -->", "<!-- teams: end -->"
_BLOCK = re.compile(rf"(?:\r?\n)?^{_BEGIN}\r?$.*?^{_END}\r?$\n?", re.MULTILINE | re.DOTALL)


class Instructions:
    """Instructions for agents as Markdown, such as AGENTS.md. Our instructions are a block between two comment
    lines.
    """

    def without_ours(self, path: str, data: bytes, before: bytes | None = None) -> bytes | None:
        """Return the file without our block; None if nothing is left."""
        if not self.is_in(data):
            return data
        return _bytes_of(_BLOCK.sub("", _text_of(data), count=1)) or None

    def with_ours(self, path: str, data: bytes | None, ours: Ours) -> bytes:
        """Return the file with our block at its end."""
        text = _text_of(data or b"")
        gap = ""
        if text:  # an empty line separates our block from the text
            gap = "\n" if text.endswith("\n") else "\n\n"
        block = "\n".join([_BEGIN, plugins.TEXT, _END, ""])
        return _bytes_of(f"{text}{gap}{block}")

    def is_in(self, data: bytes) -> bool:
        """Whether our block is in the file."""
        return _BEGIN.encode() in data

    def hook_commands(self, data: bytes) -> list[str]:
        return []


def name_taken(path: str) -> errors.InvalidValue:
    """Return the error for a file that has another server with the name of ours."""
    return errors.InvalidValue(f"{path} has another server called {NAME!r}", "Rename that server first.")


def write_settings_once(path: str, document: dict[str, Any]) -> str:
    """Write *document* as JSON settings for a client that `teams` starts, and return *path*."""
    return write_once(path, json.dumps(document, indent=2).encode())


def write_once(path: str, data: bytes) -> str:
    """Write a file for a client that `teams` starts, which only the user can read, and return *path*."""
    disk.replace_unsynced(path, data)
    return path


class SettingsFile(NamedTuple):
    """A settings file of a client. *project* is the directory of the project with the file; "" for the user's file."""

    client: Client
    path: str
    format: FileFormat
    project: str = ""

    def hook_commands(self) -> list[str]:
        """Return the commands of our hooks in the file; an empty list if it can't be read."""
        try:
            with open(self.path, "rb") as file:
                return self.format.hook_commands(file.read())
        except (OSError, ValueError, LookupError, TypeError, AttributeError):
            return []


def of_user(name: str, home: str, environ: Mapping[str, str]) -> list[SettingsFile]:
    """Return the user's settings files of the client; the first of them has the hooks.

    Raises:
        InvalidValue: There is no such client, or the client has no settings.
    """
    client, home_of_client = _client_with_home(name)
    directory = f"{home}/{home_of_client.directory}"
    # The user may have moved ~/.config, by XDG_CONFIG_HOME.
    if home_of_client.directory.startswith(".config/") and (config := config_base(environ)):
        directory = config + home_of_client.directory.removeprefix(".config")
    variable = home_of_client.variable
    from_environment = environ.get(variable, "")
    if from_environment:
        from_environment = absolute(from_environment, variable, environ)
    files = []
    for place in home_of_client.files:
        parent = from_environment or (home if place.is_in_home else directory)
        files.append(SettingsFile(client, f"{os.path.abspath(parent)}/{place.of_user}", place.format))
    return files


def of_project(name: str, directory: str) -> list[SettingsFile]:
    """Return the settings files of the client in the project at *directory*; the first of them has the hooks."""
    client, home_of_client = _client_with_home(name)
    project = os.path.abspath(directory)
    return [
        SettingsFile(client, f"{project}/{place.of_project}", place.format, project) for place in home_of_client.files
    ]


def _client_with_home(name: str) -> tuple[Client, Home]:
    client = known.find(name)
    if client is None or client.home is None:
        raise known.unknown(name)
    return client, client.home
