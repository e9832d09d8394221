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
"""The seconds for which a background process waits for a server to come back, or for a lock."""
_LEAST_LOCK_TIMEOUT = 10.0


def open_store(
    root: str,
    address: str = FILES,
    patience: float = 10.0,
    host: str = "",
    environ: Mapping[str, str] | None = None,
) -> Store:
    """Open the store at *address*, with *root* for the files of this machine. Each operation of the store waits up to
    *patience* seconds for a server. It waits as long for a lock, but not less than 10 seconds.

    *host* is the name to use for this machine; if it is empty, the machine's own name is used. *environ* is the
    environment of this machine. If it is given, a waiting process may start a helper process, which watches the
    database for all waiting processes of this machine.

    Raises:
        InvalidValue: There is no such kind of store.
        ExtensionMissing: A package that the store needs is not installed.
    """
    lock_timeout = max(patience, _LEAST_LOCK_TIMEOUT)
    if address == FILES:
        return FileStore(root, lock_timeout=lock_timeout)
    scheme = check_address(address).partition("://")[0]
    try:
        engine = extensions.needed(f"store of {scheme}", f"a store at {scheme}://", "postgres")
        store: Store = engine(address, root, host=host, patience=patience, lock_timeout=lock_timeout, environ=environ)
    except ImportError:
        raise errors.ExtensionMissing("a store in PostgreSQL needs its client", to_install("postgres")) from None
    return store


_SCHEMES = ("postgresql", "postgres")


def open_target(root: str, target: str, environ: Mapping[str, str], host: str = "") -> Store:
    """Open the store to which a person wants to copy a team. *target* is the address of a database, or the root
    directory of a store in files.
    """
    if target != FILES and "://" not in target:
        return FileStore(absolute(target, "--to", environ))
    return open_store(root, target, host=host)


def from_environment(environ: Mapping[str, str], patience: float = PATIENT) -> Store:
    """Open the store that the variables in *environ* name."""
    return open_store(
        environ["TEAMS_HOME"], environ.get("TEAMS_STORE") or FILES, patience, environ.get("TEAMS_HOST", ""), environ
    )


def check_address(address: str) -> str:
    """Return the address if it names a kind of store that exists.

    Raises:
        InvalidValue: The address names no kind of store.
    """
    scheme, separator, _ = address.partition("://")
    if address != FILES and not (separator and scheme in _SCHEMES):
        raise errors.InvalidValue(
            f"{without_secrets(address)!r} is not a valid store address",
            f"Write {FILES}, or postgresql://USER@HOST:PORT/DATABASE.",
        )
    return address


def without_secrets(address: str) -> str:
    """Return the address of a database in a form to show to people: without the password."""
    before_query, _, query = address.partition("?")
    scheme, separator, place = before_query.partition("://")
    user, at_sign, host = place.rpartition("@")
    query = "&".join(part for part in query.split("&") if not part.startswith(("password=", "sslpassword=")))
    shown = f"{scheme}{separator}{user.partition(':')[0]}{at_sign}{host}"
    return f"{shown}?{query}" if query else shown
