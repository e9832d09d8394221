"""The repositories and pull requests of landings that began on this machine: others who write to the same store do not
decide where git and `gh` run here, and with which words.
"""

from __future__ import annotations

from hashlib import md5

from teams_cli import errors
from teams_cli.agents import checkouts, merging
from teams_cli.store.contract import Store
from teams_cli.store.files import disk
from teams_cli.tasks.landings import Landing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


def note(store: Store, team: str, said: str) -> None:
    """Keep that landings of the team may be in that repository, or in the pull request of that address.

    Raises:
        StorageFailed: It can't be written.
    """
    if store.host and not _is_known(store, team, said):
        disk.prepare_root(store.root)
        disk.make_directories(_directory(store, team), store.root)
        disk.commit(disk.write_temp(f"{store.root}/tmp", said.encode()), _path(store, team, said))


def check(store: Store, team: str, landing: Landing) -> None:
    """Raises NotAllowed: Nobody asked for such a landing on this machine."""
    if not merging.is_commit(landing.head):
        raise errors.NotAllowed(f"{landing.head[:60]!r} is not a commit", "See who asked for it: teams history")
    if landing.branch is not None and (landing.branch == landing.onto or landing.branch.startswith("-")):
        raise errors.NotAllowed(
            f"{landing.branch!r} is not a branch that can land on {landing.onto}", "Land your own branch."
        )
    if store.host and not _is_known(store, team, landing.repository):
        said = f"nobody asked on this machine for landings in {landing.repository}"
        raise errors.NotAllowed(said, f"If it is right, ask there: teams land {landing.task}")


def has_opened(store: Store, team: str, landing: Landing) -> bool:
    """Whether it is noted that this machine opened the landing's pull request, where others write to the same store."""
    return not store.host or _is_known(store, team, landing.url or "")


def trusted(store: Store, team: str, said: Sequence[str], directory: str) -> list[str]:
    """Of the places that records say, those where that is reason to land from there: where others write to the same
    store, only those of the repository that *directory* is in, or of one where landings were asked for on this machine.
    """
    if not (store.host and said):
        return list(said)
    here = checkouts.repository_of(directory)[1] if directory else ""
    common_of = {place: checkouts.repository_of(place)[1] for place in said}
    return [
        place for place, common in common_of.items() if common and (common == here or _asked_in(store, team, common))
    ]


def _asked_in(store: Store, team: str, common: str) -> bool:
    return _is_known(store, team, common.removesuffix("/.git"))


def _is_known(store: Store, team: str, said: str) -> bool:
    try:
        return disk.read_file(_path(store, team, said)) == said.encode()
    except FileNotFoundError:
        return False


def _directory(store: Store, team: str) -> str:
    return f"{store.root}/landers/{team}"


def _path(store: Store, team: str, said: str) -> str:
    return f"{_directory(store, team)}/{md5(said.encode(), usedforsecurity=False).hexdigest()}"
