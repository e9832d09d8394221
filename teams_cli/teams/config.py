"""`config.json` of the root: the user's permissions, roles, defaults and harness profiles for all teams.

It is laid over what OpenCode's own configuration says about roles and about rights on our tools.
"""

from __future__ import annotations

import os
from zlib import crc32

from teams_cli.environment import OPENCODE_FILES, opencode_directory
from teams_cli.records.json_text import loads
from teams_cli.records.records import Record, field
from teams_cli.store.documents import decode, encode
from teams_cli.store.files import disk

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from teams_cli.records.types import HarnessTable, PermissionTable, RoleTable, SettingTable, Text


class Config(Record):
    """The user's configuration; the shapes are those of the OpenCode configuration file."""

    permission: PermissionTable = field(default_factory=dict)
    agent: RoleTable = field(default_factory=dict)
    settings: SettingTable = field(default_factory=dict)
    harness: HarnessTable = field(default_factory=dict)
    store: Text | None = None


class _ConfigKind:
    """The kind that `decode` needs for the configuration, which is no record of a team."""

    record = Config
    key = ""

    @staticmethod
    def number_in(key: str) -> int:
        """None: it has no number."""
        return 0


def path_in(root: str) -> str:
    return f"{root}/config.json"


def load(root: str, environ: Mapping[str, str]) -> Config:
    """Read the configuration, laid over what OpenCode's own configuration says.

    Raises:
        DamagedRecord: The file is not valid; names the field.
    """
    own = own_of(root)
    directory = opencode_directory(root, environ)
    if not any(os.path.exists(f"{directory}/{name}") for name in OPENCODE_FILES):
        return own
    from teams_cli.teams import opencode_rules

    permission, agent = opencode_rules.read(directory)
    if not permission and not agent:
        return own
    tools = opencode_rules.laid_over(permission, own.permission.get("tool", {}))
    return own.having(permission={"tool": tools}, agent={**agent, **own.agent})


def own_of(root: str) -> Config:
    """Read the configuration in the root's file alone; empty if there is no file.

    Raises:
        DamagedRecord: The file is not valid; names the field.
    """
    path = path_in(root)
    try:
        data = disk.read_file(path)
    except FileNotFoundError:
        return Config()
    seen = f"{root}/tmp/config.checked"
    if _checked_before(seen, data):
        document = loads(data.decode())
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
    """Whether exactly these bytes were accepted before. Checking them takes longer than the rest of a command."""
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
