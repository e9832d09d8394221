"""The configuration, `config.json` in the root: the user's permissions, roles, settings and clients for all teams.

For roles and for the commands of `teams`, rules in this file take precedence over rules in OpenCode's own
configuration.
"""

from __future__ import annotations

import os
from zlib import crc32

from teams_cli import errors
from teams_cli.environment import OPENCODE_FILES, opencode_directory
from teams_cli.records.records import Record, field
from teams_cli.store.contract import Kind
from teams_cli.store.documents import decode, encode, loads
from teams_cli.store.files import disk
from teams_cli.store.files.locks import LOCK

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from teams_cli.records.types import HarnessTable, PermissionTable, RoleTable, SettingTable, Text


class Config(Record):
    """The user's configuration. Its fields have the same form as in OpenCode's configuration file."""

    permission: PermissionTable = field(default_factory=dict)
    agent: RoleTable = field(default_factory=dict)
    settings: SettingTable = field(default_factory=dict)
    harness: HarnessTable = field(default_factory=dict)
    store: Text | None = None


def path_in(root: str) -> str:
    """Return the path of the configuration."""
    return f"{root}/config.json"


def load(root: str, environ: Mapping[str, str]) -> Config:
    """Read the configuration in the root, and add roles and rules from OpenCode's own configuration. Where the two
    contradict each other, the configuration in the root takes precedence.

    Raises:
        DamagedRecord: The file is not valid; the error names the field.
    """
    config = own_of(root)
    directory = opencode_directory(root, environ)
    if not any(os.path.exists(f"{directory}/{name}") for name in OPENCODE_FILES):
        return config
    from teams_cli.teams import opencode_rules

    rules, agents = opencode_rules.read(directory)
    if not rules and not agents:
        return config
    tools = opencode_rules.laid_over(rules, config.permission.get("tool", {}))
    return config.having(permission={"tool": tools}, agent={**agents, **config.agent})


def own_of(root: str) -> Config:
    """Read only the configuration in the root, without OpenCode's. Return an empty configuration if there is no file.

    Raises:
        DamagedRecord: The file is not valid; the error names the field.
    """
    path = path_in(root)
    try:
        data = disk.read_file(path)
    except FileNotFoundError:
        return Config()
    # Checking the file takes longer than the rest of a command, so the digest of a valid file is kept beside it.
    digest = b"%d %08x\n" % (len(data), crc32(data))
    digest_path = f"{root}/tmp/config.checked"
    try:
        is_checked = disk.read_file(digest_path) == digest
    except (OSError, errors.TeamsError):
        is_checked = False
    if is_checked:
        document = loads(data.decode())
        document.pop("checksum", None)  # as `decode` does: it is a checksum of these bytes, and no field
        return Config.from_json(document)
    config = decode(data, Kind("config", Config), "", path)  # a kind for this only: it belongs to no team
    try:
        disk.commit(disk.write_temp(f"{root}/tmp", digest), digest_path)
    except (OSError, errors.TeamsError):  # then the file is checked again the next time
        pass
    return config


_PATIENCE = 10
"""The seconds for which a change waits while another process changes the configuration."""


def change(root: str, change_to: Callable[[Config], Config]) -> None:
    """Replace the configuration in the root by what *change_to* makes of it, durably. Other processes change it before
    or after that, so none of their changes is lost.

    Raises:
        DamagedRecord: The file is not valid; the error names the field.
        Busy: Another process was changing the configuration all the time.
    """
    disk.prepare_root(root)
    with LOCK(root, _PATIENCE):
        disk.commit(disk.write_temp(f"{root}/tmp", encode(change_to(own_of(root)))), path_in(root))
