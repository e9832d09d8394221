"""Finds the extensions, which are the folders beside this file, and what each extension brings to the core.

An extension is a folder whose `__init__.py` holds one table, `EXTENSION`. The core names no extension. When the core
needs a command, a kind of record or an optional function of an extension, it asks here. Only then is the extension's
module imported.
"""

from __future__ import annotations

import os

from teams_cli import errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import Any


class Extension:
    """The table of one extension, which says what the extension brings. The table refers to a module in the extension's
    folder as `module`, and to a value in a module as `module:name`.

    * *commands*: the module that declares each command, in that module's table `COMMANDS`.
    * *rights*: who may run each of these commands. `reads` marks a command that only reads. For a command that changes
      something, it is `everybody`, `members`, `workers` or `leaders`.
    * *kinds*: the kinds of record that the extension keeps in a team.
    * *settings*: the settings of teams, each a `Setting`.
    * *checks*: functions `(store, team, fix)` for `teams doctor`. They yield the problems of a team, each as three
      strings: its level, its description, and its remedy.
    * *after*: for the name of a change, the function `(store, team, entry)` in the module `after` to call after that
      change. The name is the one in the field `what` of the history, such as `task completed`; `*` stands for every
      change.
    * *clients*: the clients that the extension can start.
    * *provides*: optional functions, by the name under which the core looks them up.
    """

    def __init__(
        self,
        commands: Mapping[str, str] | None = None,
        rights: Mapping[str, str] | None = None,
        kinds: Sequence[str] = (),
        settings: Mapping[str, str] | None = None,
        checks: Sequence[str] = (),
        after: Mapping[str, str] | None = None,
        clients: Mapping[str, str] | None = None,
        provides: Mapping[str, str] | None = None,
    ) -> None:
        self.commands = commands or {}
        self.rights = rights or {}
        self.kinds = kinds
        self.settings = settings or {}
        self.checks = checks
        self.after = after or {}
        self.clients = clients or {}
        self.provides = provides or {}


BROUGHT_BY = {
    "serve": "http",
    "mcp": "mcp",
    "open": "terminals",
    "attach": "terminals",
    "land": "landing",
    "get-landings": "landing",
    "import": "exchange",
    "export": "exchange",
    "schema": "exchange",
}
"""The extension of each of these commands, so that an error can name an extension that is missing."""
_EXTRAS = ("mcp", "postgres", "review")
"""The extensions for which pip installs further packages; the others need only what the core needs."""
_tables: dict[str, Extension] = {}
"""The tables of all installed extensions, by the name of the extension; empty until `every` loads them."""


def every() -> Mapping[str, Extension]:
    """Return the tables of all extensions that are installed, by the name of the extension."""
    if not _tables:
        folders = sorted(entry.name for entry in os.scandir(__path__[0]) if os.path.exists(f"{entry.path}/__init__.py"))
        _tables.update({folder: _load(f"{folder}:EXTENSION") for folder in folders})
    return _tables


def commands() -> Iterator[tuple[str, str]]:
    """Yield each command that an extension brings, with the name of the module that declares the command."""
    for name, extension in every().items():
        for command, module in extension.commands.items():
            yield command, f"{__name__}.{name}.{module}"


def refuse_missing(command: str) -> None:
    """Raise an error if *command* belongs to an extension of this program; otherwise do nothing. Call this only if no
    installed extension has the command.

    Raises:
        ExtensionMissing: The extension of the command is not installed.
    """
    if command in BROUGHT_BY:
        raise _missing(f"`teams {command}`", BROUGHT_BY[command])


def rights() -> dict[str, str]:
    """Return who may run each command of the extensions, in the words that `Extension` explains under *rights*."""
    return {command: right for extension in every().values() for command, right in extension.rights.items()}


def kinds() -> list[Any]:
    """Return the kinds of record that extensions keep in a team."""
    return [_load(f"{folder}.{place}") for folder, extension in every().items() for place in extension.kinds]


def settings() -> dict[str, Any]:
    """Return the settings that extensions bring, by their keys."""
    return {
        key: _load(f"{folder}.{place}")
        for folder, extension in every().items()
        for key, place in extension.settings.items()
    }


def checks() -> list[Callable[..., Any]]:
    """Return the functions that find problems of a team for `teams doctor`."""
    return [_load(f"{folder}.{place}") for folder, extension in every().items() for place in extension.checks]


def after(what: str) -> Iterator[tuple[str, Callable[..., Any]]]:
    """Yield the functions to call after the change *what*, which is named as in the history, each with the name of its
    extension.

    This function runs after every change. To save time, it loads no tables unless an extension has a module `after`.
    """
    folders = [entry.name for entry in os.scandir(__path__[0]) if os.path.exists(f"{entry.path}/after.py")]
    for folder in sorted(folders):
        for change, function in every()[folder].after.items():
            if change in (what, "*"):
                yield folder, _load(f"{folder}.after:{function}")


def clients() -> list[str]:
    """Return the names of the clients that the extensions can start."""
    return [name for extension in every().values() for name in extension.clients]


def client(name: str) -> Any | None:
    """Return the client called *name*, or None if no installed extension can start it."""
    for folder, extension in every().items():
        if place := extension.clients.get(name):
            return _load(f"{folder}.{place}")
    return None


def provided(function: str) -> Callable[..., Any] | None:
    """Return the function that an installed extension provides under the name *function*, or None if none does."""
    for folder, extension in every().items():
        if place := extension.provides.get(function):
            loaded: Callable[..., Any] = _load(f"{folder}.{place}")
            return loaded
    return None


def needed(function: str, what: str, extension: str) -> Callable[..., Any]:
    """Return the function that the *extension* provides under the name *function*. If the extension is missing, the
    error says that *what* needs it.

    Raises:
        ExtensionMissing: The extension is not installed.
    """
    loaded = provided(function)
    if loaded is None:
        raise _missing(what, extension)
    return loaded


def _missing(what: str, extension: str) -> errors.ExtensionMissing:
    """Return the error which says that *what* needs the *extension*, and how to install it."""
    from teams_cli.environment import to_install

    if extension in _EXTRAS:
        lack, hint = "which is not installed", to_install(extension)
    else:
        lack, hint = "whose folder is missing", to_install("all")
    return errors.ExtensionMissing(f"{what} needs the extension {extension}, {lack}", hint)


def _load(place: str) -> Any:
    """Return the value at *place*, which has the form `module:name`. The module is imported from this package."""
    module, _, name = place.partition(":")
    return getattr(__import__(f"{__name__}.{module}", fromlist=[name]), name)
