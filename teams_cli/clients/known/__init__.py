"""The clients that `teams` knows: one for each module in this package, and those of extensions."""

from __future__ import annotations

import os

from teams_cli import errors, extensions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from teams_cli.clients.contract import Client

DIRECTORY = os.path.dirname(os.path.abspath(__file__))


def names() -> list[str]:
    """Return the names of all clients, sorted."""
    return sorted([*_names_here(), *extensions.clients()])


def _names_here() -> list[str]:
    modules = (file.removesuffix(".py") for file in os.listdir(DIRECTORY) if file.endswith(".py"))
    return [name for name in modules if not name.startswith("_")]


def find(name: str | None) -> Client | None:
    """Return the client of that name; None if the name is unknown."""
    if not name:
        return None
    if name not in _names_here():
        return extensions.client(name)
    client: Client = __import__(f"{__name__}.{name}", fromlist=["CLIENT"]).CLIENT
    return client


def get(name: str) -> Client:
    """Return the client of that name.

    Raises:
        InvalidValue: The client is unknown; the hint names the clients that `teams install` knows.
    """
    client = find(name)
    if client is None:
        raise unknown(name)
    return client


def unknown(name: str) -> errors.InvalidValue:
    """Return the error for a client *name* that does not exist, or that has no settings into which we can put our
    entries.
    """
    return errors.InvalidValue(f"there is no client {name!r}", f"Clients: {', '.join(installable())}.")


def all_clients() -> list[Client]:
    """Return all clients, sorted by name."""
    return [get(name) for name in names()]


def installable() -> tuple[str, ...]:
    """Return the names of clients in which `teams install` can put our hooks, our server or our plugin."""
    return tuple(client.name for client in all_clients() if client.home or client.plugin)


def with_hooks() -> tuple[str, ...]:
    """Return the names of clients that call our hooks."""
    return tuple(client.name for client in all_clients() if client.dialect)
