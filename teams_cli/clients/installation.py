"""Install our hooks and our MCP server in the settings of a client, and remove them again."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from dataclasses import dataclass
from zlib import crc32

from teams_cli import errors
from teams_cli.clients.plugins import LARGEST_RECORD, LARGEST_SETTINGS
from teams_cli.clients.toml_settings import Toml
from teams_cli.store.contract import Store
from teams_cli.store.files import disk
from teams_cli.store.files.locks import Lock, PortableLock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from teams_cli.clients.settings_files import Ours, SettingsFile

_PATIENCE = 30.0
"""The seconds that an installation waits for another one to finish."""


@dataclass
class FileChange:
    """The planned change of a settings file: its bytes *before* and *after* the change, and its *original* bytes, those
    without our entries. Each is None if there is no file.
    """

    file: SettingsFile
    before: bytes | None
    after: bytes | None
    original: bytes | None

    @property
    def diff(self) -> str:
        """The change as a unified diff; "" if nothing changes."""
        from difflib import unified_diff

        contents = (self.before, self.after)
        before, after = ((data or b"").decode(errors="replace").splitlines(keepends=True) for data in contents)
        before_name, after_name = ("/dev/null" if data is None else self.file.path for data in contents)
        diff_lines = unified_diff(before, after, before_name, after_name)
        return "".join(line if line.endswith("\n") else f"{line}\n" for line in diff_lines)


def install(store: Store, file: SettingsFile, ours: Ours) -> FileChange:
    """Return the change that adds our entries to the settings file, or replaces the entries of an older version.

    Raises:
        DamagedRecord: The file is not valid, so the client can't read it; it is not changed.
        NotAllowed: The file belongs to another user, or is a link out of the project.
        InvalidValue: Another server has the name of our server.
    """
    before = _read(file)
    original = _without_ours(store, file, before)
    after = file.format.with_ours(file.path, original, ours)
    return FileChange(file, before, after=after or original, original=original)  # no empty file is made


def uninstall(store: Store, file: SettingsFile) -> FileChange:
    """Return the change that removes our entries from the settings file. If nobody has edited the file since they were
    installed, the file gets exactly its former bytes back.

    Raises:
        DamagedRecord, NotAllowed: As for `install`.
    """
    before = _read(file)
    original = _without_ours(store, file, before)
    if original and isinstance(file.format, Toml):
        original = file.format.without_stale_trust(file.path, original)
    return FileChange(file, before, after=original, original=original)


def one_at_a_time(store: Store) -> Lock:
    """Return the lock to hold while settings files are read and changed, so that installations run one at a time."""
    disk.prepare_root(store.root)
    directory = f"{store.root}/installed"
    disk.make_directories(directory, store.root)
    return PortableLock(directory, _PATIENCE)


def apply(store: Store, change: FileChange) -> None:
    """Write the changed file. If it now has our entries, first store a record of its original content. If it has its
    original content again, remove this record.
    """
    path = os.path.realpath(change.file.path)
    record = _read_record(store, change.file)  # refuses a damaged record before anything is changed
    if change.before == change.after:
        return
    if _read(change.file) != change.before:
        raise errors.StorageFailed(f"{path} was changed just now", "Check it, and repeat the command.")
    directory, missing = os.path.dirname(path), []
    while not os.path.isdir(directory):
        missing.append(directory)
        directory = os.path.dirname(directory)
    made_directories = missing or record.get("made", [])  # they are removed together with the file
    if change.after == change.original:  # the file has none of our entries now
        disk.rewrite(path, change.after)
        with suppress(OSError):  # a directory that is not empty stays
            for name in made_directories:
                os.rmdir(name)
        disk.discard(_record_path(store, change.file))
    else:  # the record first: without it, the original could not be restored
        disk.prepare_root(store.root)
        record_path = _record_path(store, change.file)
        disk.make_directories(os.path.dirname(record_path), store.root)
        before, after = _text(change.original), _text(change.after)
        document = {"path": path, "before": before, "after": after, "made": made_directories}
        # Bytes that are not UTF-8 stand as halves of surrogate pairs, which `json.loads` reads again.
        data = json.dumps(document, indent=2, ensure_ascii=False).encode(errors="surrogatepass") + b"\n"
        disk.commit(disk.write_temp(f"{store.root}/tmp", data), record_path)
        disk.rewrite(path, change.after)


def _read(file: SettingsFile) -> bytes | None:
    """Return the content of the file; None if there is no file. Refuse a file that `install` must not write."""
    real = os.path.realpath(file.path)
    if file.project and not real.startswith(os.path.realpath(file.project) + "/"):
        raise errors.NotAllowed(f"{file.path} is a link out of the project", "Replace it with a file.")
    existing = real
    while not os.path.lexists(existing):  # without a file, its nearest directory must belong to the user
        existing = os.path.dirname(existing)
    if os.path.islink(existing):  # realpath stops at a link only if it leads in a circle
        raise errors.NotAllowed(f"{existing} is a link to itself", "Replace it with a file, or remove it.")
    if hasattr(os, "geteuid") and os.stat(existing).st_uid != os.geteuid():
        raise errors.NotAllowed(f"{existing} belongs to another user", "Install for yourself: --user.")
    try:
        return disk.read_file(real, LARGEST_SETTINGS)
    except FileNotFoundError:
        return None


def _record_path(store: Store, file: SettingsFile) -> str:
    return f"{store.root}/installed/{file.client.name}-{crc32(os.path.realpath(file.path).encode()):08x}.json"


def backup_of(store: Store, file: SettingsFile) -> str:
    """Return the path of the record with the original content of the file; "" if there is no record."""
    path = _record_path(store, file)
    return path if os.path.exists(path) else ""


def _read_record(store: Store, file: SettingsFile) -> dict[str, Any]:
    """Return the record of our last change of the file: its content `before` and `after` the change, and the
    directories `made` for it. Return {} if there is no record, or if it is not valid JSON.
    """
    path = _record_path(store, file)
    try:
        record = json.loads(disk.read_file(path, LARGEST_RECORD))
    except (FileNotFoundError, ValueError):
        return {}
    is_valid = isinstance(record, dict) and {"before", "after", "made"} <= set(record)
    if is_valid:
        has_texts = all(isinstance(record[key], str | None) for key in ("before", "after"))
        made = record["made"]
        is_valid = has_texts and isinstance(made, list) and all(isinstance(directory, str) for directory in made)
    if not is_valid:
        raise errors.DamagedRecord(f"{path}: differs from the backup of {file.path}", "Compare both, and move it away.")
    return dict(record)


def _text(data: bytes | None) -> str | None:
    return None if data is None else data.decode("utf-8", "surrogateescape")


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else text.encode("utf-8", "surrogateescape")


def _without_ours(store: Store, file: SettingsFile, data: bytes | None) -> bytes | None:
    """Return the content of the file without our entries; None if no file would be left. *data* is its content now. If
    nobody has edited the file since our last change, the result is exactly its content before our first change.
    """
    if data is None:
        return None
    record = _read_record(store, file)
    if not record:
        return file.format.without_ours(file.path, data)
    original = _bytes(record["before"])
    is_edited = _bytes(record["after"]) != data
    return file.format.without_ours(file.path, data, original) if is_edited else original
