"""The directory that holds everything: made for its owner alone, used only when that is so."""

from __future__ import annotations

import os
import stat

from teams_cli import errors
from teams_cli.store.files import disk

_README = """\
This directory holds the teams, tasks and messages of `teams`, as JSON files to read with cat and jq.

teams/<team>/team.json           the team and its members
teams/<team>/messages/           one file a message, never changed; of a closed team, many in packed.json
teams/<team>/inboxes/            what each member has read and handled
tasks/<team>/task-<n>.json       one file a task
index/                           derived, for searching; may be removed
config.json                      optional: permissions, roles, defaults (see the project's README)

The program takes a lock on `.lock` before it changes a file beside it. Edit a file by hand only while nothing runs.
"""
_NETWORK = (" - nfs", " - cifs", " - smb", " - fuse", " - 9p ", " - ceph", " - afs")


def check_owner(root: str) -> None:
    """Refuse a root that another user owns or may write to; one that is not there yet is fine.

    Raises:
        NotAllowed: Others could have put in it what would be believed here.
    """
    try:
        found = os.stat(root)
    except FileNotFoundError:
        return
    except OSError as error:
        raise disk.failed("read", root, error) from None
    if not stat.S_ISDIR(found.st_mode):
        raise errors.StorageFailed(f"{root} is not a directory", "Choose another with --root.")
    if hasattr(os, "geteuid") and found.st_uid != os.geteuid():
        raise errors.NotAllowed(f"{root} belongs to another user", "Choose your own with --root.")
    if found.st_mode & 0o022:
        raise errors.NotAllowed(f"others may write to {root}", f"Run: chmod go-w {root}")


def prepare(root: str) -> None:
    """Make the root, if need be, and see that it is on a local disk.

    Raises:
        StorageFailed: It can't be made, or its file system does not exclude writers of other machines.
    """
    if not os.path.isdir(f"{root}/tmp") or not os.path.lexists(f"{root}/README"):
        disk.make_directories(f"{root}/tmp", root)
        disk.make_directories(f"{root}/teams", root)
        disk.commit(disk.write_temp(f"{root}/tmp", _README.encode()), f"{root}/README")  # last: all else is there
    network = network_file_system(root)
    if network:
        raise errors.StorageFailed(
            f"{root} is on {network}, where locks do not exclude other machines", "Choose a local disk with --root."
        )


def network_file_system(path: str) -> str:
    """The type of the file system that holds *path*, if it is one of the network; empty otherwise or if unknown."""
    try:
        if os.major(os.stat(path).st_dev):  # a device of this machine: what is mounted is only asked for what has none
            return ""
        with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as file:
            table = file.read()
    except OSError:
        return ""
    if not any(mark in table for mark in _NETWORK):
        return ""
    real, best, found = os.path.realpath(path), -1, ""
    for line in table.splitlines():
        point = line.split(" ")[4].replace("\\040", " ")
        if len(point) >= best and (real + "/").startswith(point.rstrip("/") + "/"):
            best, found = len(point), line
    return found.partition(" - ")[2].split(" ")[0] if any(mark in found for mark in _NETWORK) else ""
