"""Installing our hooks into the settings of a client, and taking them out again; nothing else in them is touched."""

from __future__ import annotations

import json
import os
from zlib import crc32

from teams_cli import hook_settings
from teams_cli.errors import DamagedRecord, InvalidValue, NotAllowed, StorageFailed
from teams_cli.store import disk, root_directory
from teams_cli.store.documents import strict_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from teams_cli.store.contract import Store

_PLUGIN = f"{os.path.dirname(__file__)}/plugins/opencode.js"
_PLACES = {
    "claude": (".claude/settings.json", "CLAUDE_CONFIG_DIR", ".claude"),
    "codex": (".codex/hooks.json", "CODEX_HOME", ".codex"),
    "gemini": (".gemini/settings.json", "", ".gemini"),
    "qwen": (".qwen/settings.json", "", ".qwen"),
    "opencode": (".opencode/plugin/teams.js", "OPENCODE_CONFIG_DIR", ".config/opencode"),
}
"""Below a project; what says where the user's own are; where those are unless it does, below the home."""
CLIENTS = tuple(_PLACES)


class Place:
    """A file that a client reads: whose it is, and where."""

    def __init__(self, client: str, path: str, project: str = "") -> None:
        self.client = client
        self.path = path
        self.project = project


class Change:
    """What is to become of one file: its bytes before and after, None for no file; and those before any of it."""

    def __init__(self, place: Place, before: bytes | None, after: bytes | None, original: bytes | None) -> None:
        self.place = place
        self.before = before
        self.after = after
        self.original = original

    @property
    def diff(self) -> str:
        """The change as a unified diff; empty when there is none."""
        from difflib import unified_diff

        before, after = _lines(self.before), _lines(self.after)
        old, new = ("/dev/null" if data is None else self.place.path for data in (self.before, self.after))
        return "".join(line if line.endswith("\n") else f"{line}\n" for line in unified_diff(before, after, old, new))


def _lines(data: bytes | None) -> list[str]:
    return (data or b"").decode(errors="replace").splitlines(keepends=True)


def user_place(client: str, home: str, environ: Mapping[str, str]) -> Place:
    """Where the client has its user's settings.

    Raises:
        InvalidValue: There is no such client.
    """
    below, variable, directory = _known(client)
    base = f"{home}/{directory}"
    if client == "opencode" and environ.get("XDG_CONFIG_HOME"):
        base = f"{environ['XDG_CONFIG_HOME']}/opencode"
    base = environ.get(variable) or base
    return Place(client, f"{os.path.abspath(base)}/{below.partition('/')[2]}")


def project_place(client: str, directory: str) -> Place:
    """Where the client has the settings of a project.

    Raises:
        InvalidValue: There is no such client.
    """
    top = os.path.abspath(directory)
    return Place(client, f"{top}/{_known(client)[0]}", top)


def _known(client: str) -> tuple[str, str, str]:
    if client not in _PLACES:
        raise InvalidValue(f"there is no client {client!r}", f"Clients: {', '.join(CLIENTS)}.")
    return _PLACES[client]


def install(store: Store, place: Place, command: str) -> Change:
    """What installing changes: our hooks, calling *command*, are added, or put in the place of older ones of ours.

    Raises:
        DamagedRecord: The file that is there is not what the client could read; it is left as it is.
        NotAllowed: The file is not the user's, or a link out of the project.
    """
    before = _read(place)
    original = _without(store, place, before)
    if place.client == "opencode":
        if original is not None:
            raise InvalidValue(f"{place.path} is there, and not ours", "Move it away, or install by hand.")
        after = _plugin(command)
    else:
        after = _merged(place, original, command)
    return Change(place, before, after, original)


def uninstall(store: Store, place: Place) -> Change:
    """What uninstalling changes: the file becomes byte for byte what it was, if nobody else changed it since; if
    somebody did, our hooks are taken out.

    Raises:
        DamagedRecord, NotAllowed: As for `install`.
    """
    before = _read(place)
    after = _without(store, place, before)
    return Change(place, before, after, after)


def apply(store: Store, change: Change) -> None:
    """Write the file, after keeping a copy of what it was.

    Raises:
        StorageFailed: The system refused; the file is as it was.
    """
    path = os.path.realpath(change.place.path)
    kept = _kept(store, change.place)
    if change.before == change.after:
        return
    if _read(change.place) != change.before:
        raise StorageFailed(f"{path} was changed just now", "Look at it, and repeat.")
    made = _missing(os.path.dirname(path)) or kept.get("made", [])
    if change.after == change.original:
        _write(path, change.after)
        _remove_empty(made)
        disk.discard(_backup(store, change.place))
    else:
        _keep(store, change, made)
        _write(path, change.after)


def _write(path: str, data: bytes | None) -> None:
    if data is None:
        return disk.discard(path)
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        mode = os.stat(path).st_mode & 0o777 if os.path.exists(path) else 0o644
    except OSError as error:
        raise disk.failed("write", path, error) from None
    temp = disk.write_temp(os.path.dirname(path), data)
    os.chmod(temp, mode)
    disk.commit(temp, path)


def _missing(directory: str) -> list[str]:
    """The directories that have to be made, the innermost first."""
    found = []
    while not os.path.isdir(directory):
        found.append(directory)
        directory = os.path.dirname(directory)
    return found


def _remove_empty(directories: list[str]) -> None:
    for directory in directories:
        try:
            os.rmdir(directory)
        except OSError:  # somebody uses it
            return


def _read(place: Place) -> bytes | None:
    """What the file says; None if there is none. Links are followed if they stay where they should."""
    real = os.path.realpath(place.path)
    if place.project and not real.startswith(os.path.realpath(place.project) + "/"):
        raise NotAllowed(f"{place.path} is a link out of the project", "Replace it by a file.")
    existing = real
    while not os.path.lexists(existing):
        existing = os.path.dirname(existing)
    if hasattr(os, "geteuid") and os.stat(existing).st_uid != os.geteuid():
        raise NotAllowed(f"{existing} belongs to another user", "Install for yourself: --user.")
    try:
        return disk.read_file(real)
    except FileNotFoundError:
        return None


def _backup(store: Store, place: Place) -> str:
    return f"{store.place}/installed/{place.client}-{crc32(os.path.realpath(place.path).encode()):08x}.json"


def backup_of(store: Store, place: Place) -> str:
    """Where what the file was before is kept; empty if it is not."""
    path = _backup(store, place)
    return path if os.path.exists(path) else ""


def _keep(store: Store, change: Change, made: list[str]) -> None:
    """Keep what the file was before any of our changes, and what we make of it."""
    root_directory.prepare(store.place)
    path = _backup(store, change.place)
    disk.make_directories(os.path.dirname(path), store.place)
    document = {
        "path": os.path.realpath(change.place.path),
        "before": _text(change.original),
        "after": _text(change.after),
        "made": made,
    }
    disk.commit(disk.write_temp(f"{store.place}/tmp", json.dumps(document, indent=2).encode() + b"\n"), path)


def _kept(store: Store, place: Place) -> dict[str, Any]:
    """What was kept at the last change; empty if nothing was."""
    try:
        return dict(json.loads(disk.read_file(_backup(store, place))))
    except (FileNotFoundError, ValueError):
        return {}


def _text(data: bytes | None) -> str | None:
    return None if data is None else data.decode("utf-8", "surrogateescape")


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else text.encode("utf-8", "surrogateescape")


def _without(store: Store, place: Place, data: bytes | None) -> bytes | None:
    """The file without anything of ours: what it was before, if it is still what we made of it."""
    if data is None:
        return None
    kept = _kept(store, place)
    if kept and _bytes(kept["after"]) == data:
        return _bytes(kept["before"])
    if place.client == "opencode":
        return None if data.startswith(_plugin("").splitlines()[0]) else data
    document = _document(place, data)
    if not _take_out(document):
        return data
    return _encode(document, data) if document else None


def _document(place: Place, data: bytes) -> dict[str, Any]:
    """The settings in the file.

    Raises:
        DamagedRecord: They are not JSON, or their hooks have no shape that the client reads.
    """
    document = strict_json(data, place.path) if data.strip() else {}
    if not isinstance(document, dict) or not isinstance(document.get("hooks", {}), dict):
        raise DamagedRecord(f"{place.path}: hooks: is not an object", "Correct the file, or move it away.")
    return document


def _take_out(document: dict[str, Any]) -> bool:
    """Remove our hooks, and what is empty then; whether there were any."""
    hooks = document.get("hooks", {})
    before = json.dumps(hooks)
    for event, found in list(hooks.items()):
        if isinstance(found, list):
            hooks[event] = [entry for entry in map(_entry_without, found) if entry is not None]
            if found and not hooks[event]:
                del hooks[event]
    if json.dumps(hooks) == before:
        return False
    if not hooks:
        del document["hooks"]
    return True


def _entry_without(entry: Any) -> Any:
    """The entry of an event without our hook; None if it had no other."""
    inner = entry.get("hooks") if isinstance(entry, dict) else None
    if not isinstance(inner, list):
        return entry
    kept = [hook for hook in inner if not (isinstance(hook, dict) and hook_settings.is_ours(hook.get("command")))]
    if len(kept) == len(inner):
        return entry
    return {**entry, "hooks": kept} if kept else None


def _merged(place: Place, data: bytes | None, command: str) -> bytes:
    document = _document(place, data) if data else {}
    hooks = document.setdefault("hooks", {})
    for event in hook_settings.EVENTS[place.client]:
        if not isinstance(hooks.setdefault(event, []), list):
            raise DamagedRecord(f"{place.path}: hooks.{event}: is not a list", "Correct the file.")
        hooks[event].append(hook_settings.entry(place.client, command))
    return _encode(document, data or b"")


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
