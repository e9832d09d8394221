"""`config.json` of the root: the user's own permissions, roles, defaults and harness profiles, for all teams."""

from __future__ import annotations

from zlib import crc32

from teams_cli.records.annotations import HarnessTable, PermissionTable, RoleTable, SettingTable, Text
from teams_cli.records.records import Record, field
from teams_cli.store.documents import decode, encode
from teams_cli.store.files import disk


class Config(Record):
    """The user's configuration; the shapes are those of the OpenCode configuration file."""

    permission: PermissionTable = field(default_factory=dict)
    agent: RoleTable = field(default_factory=dict)
    settings: SettingTable = field(default_factory=dict)
    harness: HarnessTable = field(default_factory=dict)
    store: Text | None = None


class _ConfigKind:
    """What `decode` has to know of the one file that is no record of a team."""

    record = Config
    key = ""

    @staticmethod
    def number_in(key: str) -> int:
        """None: it has no number."""
        return 0


def path_in(root: str) -> str:
    return f"{root}/config.json"


def load(root: str) -> Config:
    """The configuration; an empty one when there is no file.

    Raises:
        DamagedRecord: The file is not of the form; names the field.
    """
    path = path_in(root)
    try:
        data = disk.read_file(path)
    except FileNotFoundError:
        return Config()
    seen = f"{root}/tmp/config.checked"
    if _checked_before(seen, data):
        import json

        document = json.loads(data)
        document.pop("checksum", None)  # as decode does: it is of these bytes, and not of the record
        return Config.from_json(document)
    config: Config = decode(data, _ConfigKind, "", path)  # type: ignore[arg-type]
    _remember(root, seen, data)
    return config


def save(root: str, config: Config) -> None:
    """Write the configuration.

    Raises:
        StorageFailed, OutcomeUnknown: As for every change.
    """
    disk.commit(disk.write_temp(f"{root}/tmp", encode(config)), path_in(root))


def _checked_before(seen: str, data: bytes) -> bool:
    """Whether these very bytes were found good before: checking them takes longer than all else a command does."""
    try:
        return disk.read_file(seen) == _mark(data)
    except Exception:
        return False


def _remember(root: str, seen: str, data: bytes) -> None:
    try:
        disk.commit(disk.write_temp(f"{root}/tmp", _mark(data)), seen)
    except Exception:
        return


def _mark(data: bytes) -> bytes:
    return b"%d %08x\n" % (len(data), crc32(data))
