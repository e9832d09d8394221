"""Records which places this machine trusts: repositories to land into, and pull requests that it opened.

In a store of several machines, any member could write a record of a landing, and so make git and gh run in any
directory. Therefore they run only where somebody on this machine asked for a landing. In a store of one machine, every
place is trusted.
"""

from __future__ import annotations

import os
from hashlib import md5

from teams_cli import errors
from teams_cli.agents import checkouts, merging
from teams_cli.store.contract import Store
from teams_cli.store.files import disk
from teams_cli.tasks.landings import Landing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


def trust(store: Store, team: str, place: str) -> None:
    """Record that *place*, a repository or the address of a pull request, is trusted: git or gh may run for it here.

    Raises:
        StorageFailed: The file cannot be written.
    """
    if not is_trusted(store, team, place):
        disk.prepare_root(store.root)
        path = _path(store, team, place)
        disk.make_directories(os.path.dirname(path), store.root)
        disk.commit(disk.write_temp(f"{store.root}/tmp", place.encode()), path)


def refuse_untrusted(store: Store, team: str, landing: Landing) -> None:
    """Refuse a landing with an invalid commit or branch, or into a repository that is not trusted on this machine.

    Raises:
        NotAllowed: The landing is refused.
    """
    if not merging.is_commit(landing.head):
        raise errors.NotAllowed(f"{landing.head[:60]!r} is not a commit", "See who asked for it: teams history")
    if landing.branch is not None and (landing.branch == landing.onto or landing.branch.startswith("-")):
        raise errors.NotAllowed(
            f"{landing.branch!r} is not a branch that can land on {landing.onto}", "Land your own branch."
        )
    if not is_trusted(store, team, landing.repository):
        refusal = f"nobody on this machine asked to land into {landing.repository}"
        raise errors.NotAllowed(refusal, f"If the repository is right, run there: teams land {landing.task}")


def trusted_places(store: Store, team: str, places: Sequence[str], directory: str) -> list[str]:
    """Return the recorded *places* from which a landing may start.

    In a store of several machines, a place must be in the repository of *directory*, or in a repository that this
    machine trusts.
    """
    if not (store.host and places):
        return list(places)
    here = checkouts.repository_of(directory)[1] if directory else ""
    trusted = []
    for place in places:
        git_directory = checkouts.repository_of(place)[1]  # which all worktrees of a repository share
        if git_directory and (git_directory == here or is_trusted(store, team, git_directory.removesuffix("/.git"))):
            trusted.append(place)
    return trusted


def is_trusted(store: Store, team: str, place: str) -> bool:
    """Return whether *place* is trusted. In a store that only one machine uses, every place is trusted."""
    try:
        return not store.host or disk.read_file(_path(store, team, place)) == place.encode()
    except FileNotFoundError:
        return False


def _path(store: Store, team: str, place: str) -> str:
    return f"{store.root}/landers/{team}/{md5(place.encode(), usedforsecurity=False).hexdigest()}"
