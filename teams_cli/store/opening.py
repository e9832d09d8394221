"""Opening the store that an address names: files below the root, or a database."""

from __future__ import annotations

from teams_cli import errors, extensions
from teams_cli.environment import absolute, to_install
from teams_cli.store.contract import Store
from teams_cli.store.files.engine import FILES, FileStore

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

PATIENT = 24 * 3600.0
"""The seconds for which background processes wait for a server to come back, or for a lock."""
_TURN = 10.0
"""The least number of seconds that a change waits for its turn."""


def open_store(
    root: str,
    address: str = FILES,
    patience: float = 10.0,
    host: str = "",
    environ: Mapping[str, str] | None = None,
) -> Store:
    """Open the store at *address*, with *root* for the files of this machine. Wait up to *patience* seconds for a
    server or a lock.

    *host* is the name of this machine; the default is its own name. With *environ*, its environment, a process that
    waits may start the process that serves all that wait on this machine.

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
    """Open the store that a person names to copy a team: an address, or the root directory of other files."""
    if word != FILES and "://" not in word:
        return FileStore(absolute(word, "--to", environ))
    return open_store(root, word, host=host)


def from_environment(environ: Mapping[str, str], patience: float = PATIENT) -> Store:
    """Open the store that the environment of this process names."""
    return open_store(
        environ["TEAMS_HOME"], environ.get("TEAMS_STORE") or FILES, patience, environ.get("TEAMS_HOST", ""), environ
    )


def check_address(address: str) -> str:
    """Return the address if it names a kind of store.

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
    """Return the address without a password, for people."""
    scheme, separator, rest = address.partition("://")
    place, question, query = rest.partition("?")
    who, at, where = place.rpartition("@")
    kept = "&".join(part for part in query.split("&") if not part.startswith(("password=", "sslpassword=")))
    return f"{scheme}{separator}{who.partition(':')[0]}{at}{where}{question if kept else ''}{kept}"
