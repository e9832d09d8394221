"""Opening the store that an address names: files under the root unless it is that of a database."""

from __future__ import annotations

from teams_cli import errors, extensions
from teams_cli.environment import absolute, to_install
from teams_cli.store.contract import Store
from teams_cli.store.files.engine import FILES, FileStore

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

PATIENT = 24 * 3600.0
"""Seconds for which those that work on their own wait for a server to come back, or for a lock."""
_TURN = 10.0
"""Seconds that a change waits at least for its turn."""


def open_store(
    root: str,
    address: str = FILES,
    patience: float = 10.0,
    host: str = "",
    environ: Mapping[str, str] | None = None,
) -> Store:
    """The store at *address*, waiting *patience* seconds for its server, with *root* for what belongs to this machine.
    A caller with more patience than a command waits as long for locks.

    The machine is called *host*, or as it calls itself. Who waits in the store may start a process that serves all who
    wait on this machine, if it hands over *environ*, its environment.

    Raises:
        InvalidValue: There is no such kind of store.
        ExtensionMissing: What it needs is not installed.
    """
    if address == FILES:
        return FileStore(root, lock_timeout=max(patience, _TURN))
    scheme = check_address(address).partition("://")[0]
    try:
        engine = extensions.needed(f"store of {scheme}", f"a store at {scheme}://", "postgres")
        store: Store = engine(
            address, root, host=host, patience=patience, lock_timeout=max(patience, _TURN), environ=environ
        )
    except ImportError:
        raise errors.ExtensionMissing("a store in PostgreSQL needs its client", to_install("postgres")) from None
    return store


_SCHEMES = ("postgresql", "postgres")
"""The schemes of store addresses that an extension opens."""


def open_target(root: str, word: str, environ: Mapping[str, str], host: str = "") -> Store:
    """The store that *word* means to someone who copies: an address, or a directory for the files of another root."""
    if word != FILES and "://" not in word:
        return FileStore(absolute(word, "--to", environ))
    return open_store(root, word, host=host)


def from_environment(environ: Mapping[str, str], patience: float = PATIENT) -> Store:
    """The store that whoever started this process has, by the variables that it was given."""
    return open_store(
        environ["TEAMS_HOME"], environ.get("TEAMS_STORE") or FILES, patience, environ.get("TEAMS_HOST", ""), environ
    )


def check_address(address: str) -> str:
    """The address, if it names a kind of store.

    Raises:
        InvalidValue: It does not.
    """
    scheme, mark, _ = address.partition("://")
    if address != FILES and not (mark and scheme in _SCHEMES):
        raise errors.InvalidValue(
            f"{without_secrets(address)!r} is not a valid store address",
            f"Write {FILES}, or postgresql://USER@HOST:PORT/DATABASE.",
        )
    return address


def without_secrets(address: str) -> str:
    """The address for people: without a password."""
    scheme, separator, rest = address.partition("://")
    place, question, query = rest.partition("?")
    who, at, where = place.rpartition("@")
    kept = "&".join(part for part in query.split("&") if not part.startswith(("password=", "sslpassword=")))
    return f"{scheme}{separator}{who.partition(':')[0]}{at}{where}{question if kept else ''}{kept}"
