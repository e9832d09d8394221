"""The clients that `teams` knows: a module each here, and what extensions bring. A file that is added is one more."""

from __future__ import annotations

import os

from teams_cli import errors, extensions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from teams_cli.clients.contract import Client

DIRECTORY = os.path.dirname(os.path.abspath(__file__))


def names() -> list[str]:
    """The names of all clients, in order."""
    return sorted([*_own(), *extensions.clients()])


def _own() -> list[str]:
    found = (file.removesuffix(".py") for file in os.listdir(DIRECTORY) if file.endswith(".py"))
    return [name for name in found if not name.startswith("_")]


def find(name: str | None) -> Client | None:
    """The client of that name; None if none is known by it."""
    if not name:
        return None
    if name not in _own():
        return extensions.client(name)
    client: Client = __import__(f"{__name__}.{name}", fromlist=["CLIENT"]).CLIENT
    return client


def get(name: str) -> Client:
    """The client of that name.

    Raises:
        InvalidValue: None is known by it; the hint names those that can be installed in.
    """
    client = find(name)
    if client is None:
        raise unknown(name)
    return client


def unknown(name: str) -> errors.InvalidValue:
    """What is wrong with a name that is no client's, or one's that has no settings."""
    return errors.InvalidValue(f"there is no client {name!r}", f"Clients: {', '.join(installable())}.")


def all_clients() -> list[Client]:
    """All of them, in the order of their names."""
    return [get(name) for name in names()]


def installable() -> tuple[str, ...]:
    """The names of those that have settings for our hooks and our server to be put into, or take our plugin."""
    return tuple(client.name for client in all_clients() if client.home or client.plugin)


def with_hooks() -> tuple[str, ...]:
    """The names of those that call our hooks."""
    return tuple(client.name for client in all_clients() if client.dialect)
