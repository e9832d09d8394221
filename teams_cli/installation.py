"""Installing our hooks and our MCP server into the settings of a client, and taking both out again."""

from __future__ import annotations

import json
import os
from zlib import crc32

from teams_cli.client_files import Form, Ours, Plugin, Settings, Toml
from teams_cli.errors import InvalidValue, NotAllowed, StorageFailed
from teams_cli.store import disk, root_directory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from teams_cli.store.contract import Store


class Place:
    """A file that a client reads: whose it is, where, and in which form."""

    def __init__(self, client: str, path: str, form: Form, project: str = "") -> None:
        self.client = client
        self.path = path
        self.form = form
        self.project = project


class Home:
    """Where a client has its files: below the user's home, unless *variable* says where."""

    def __init__(self, variable: str, directory: str, *files: tuple[str, str, Form]) -> None:
        self.variable = variable
        self.directory = directory
        self.files = files
        """Each below a project, below the directory, and its form; the one with the hooks first."""


_HOMES = {
    "claude": Home(
        "CLAUDE_CONFIG_DIR",
        ".claude",
        (".claude/settings.json", "settings.json", Settings("claude", hooks=True)),
        (".mcp.json", ".claude.json", Settings("claude", servers="mcpServers")),
    ),
    "codex": Home(
        "CODEX_HOME",
        ".codex",
        (".codex/hooks.json", "hooks.json", Settings("codex", hooks=True)),
        (".codex/config.toml", "config.toml", Toml()),
    ),
    "gemini": Home(
        "",
        ".gemini",
        (".gemini/settings.json", "settings.json", Settings("gemini", hooks=True, servers="mcpServers")),
    ),
    "qwen": Home(
        "", ".qwen", (".qwen/settings.json", "settings.json", Settings("qwen", hooks=True, servers="mcpServers"))
    ),
    "opencode": Home(
        "OPENCODE_CONFIG_DIR",
        ".config/opencode",
        (".opencode/plugin/teams.js", "plugin/teams.js", Plugin()),
        ("opencode.json", "opencode.json", Settings("opencode", servers="mcp")),
    ),
}
CLIENTS = tuple(_HOMES)


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


def user_places(client: str, home: str, environ: Mapping[str, str]) -> list[Place]:
    """Where the client has its user's settings; the hooks are in the first.

    Raises:
        InvalidValue: There is no such client.
    """
    known = _known(client)
    base = f"{home}/{known.directory}"
    if client == "opencode" and environ.get("XDG_CONFIG_HOME"):
        base = f"{environ['XDG_CONFIG_HOME']}/opencode"
    said = environ.get(known.variable)
    found = []
    for _, below, form in known.files:
        top = said or (home if below == ".claude.json" else base)  # that one lies beside its directory
        found.append(Place(client, f"{os.path.abspath(top)}/{below}", form))
    return found


def project_places(client: str, directory: str) -> list[Place]:
    """Where the client has the settings of a project; the hooks are in the first.

    Raises:
        InvalidValue: There is no such client.
    """
    top = os.path.abspath(directory)
    return [Place(client, f"{top}/{below}", form, top) for below, _, form in _known(client).files]


def _known(client: str) -> Home:
    if client not in _HOMES:
        raise InvalidValue(f"there is no client {client!r}", f"Clients: {', '.join(CLIENTS)}.")
    return _HOMES[client]


def install(store: Store, place: Place, ours: Ours) -> Change:
    """What installing changes: ours is added, or put in the place of what an older version added.

    Raises:
        DamagedRecord: The file that is there is not what the client could read; it is left as it is.
        NotAllowed: The file is not the user's, or a link out of the project.
        InvalidValue: What ours is called is there, and not ours.
    """
    before = _read(place)
    original = _without(store, place, before)
    after = place.form.with_ours(place.path, original, ours)
    return Change(place, before, after or original, original)


def uninstall(store: Store, place: Place) -> Change:
    """What uninstalling changes: the file becomes byte for byte what it was, if nobody else changed it since; if
    somebody did, ours is taken out.

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
    return f"{store.root}/installed/{place.client}-{crc32(os.path.realpath(place.path).encode()):08x}.json"


def backup_of(store: Store, place: Place) -> str:
    """Where what the file was before is kept; empty if it is not."""
    path = _backup(store, place)
    return path if os.path.exists(path) else ""


def _keep(store: Store, change: Change, made: list[str]) -> None:
    """Keep what the file was before any of our changes, and what we make of it."""
    root_directory.prepare(store.root)
    path = _backup(store, change.place)
    disk.make_directories(os.path.dirname(path), store.root)
    document = {
        "path": os.path.realpath(change.place.path),
        "before": _text(change.original),
        "after": _text(change.after),
        "made": made,
    }
    disk.commit(disk.write_temp(f"{store.root}/tmp", json.dumps(document, indent=2).encode() + b"\n"), path)


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
    return place.form.without_ours(place.path, data)
