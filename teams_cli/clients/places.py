"""The settings files of clients: below the user's home, and in a project."""

from __future__ import annotations

import os

from teams_cli.clients import known
from teams_cli.environment import absolute, config_base

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from teams_cli.clients.contract import Client, Home
    from teams_cli.clients.settings_files import Form


class SettingsFile:
    """A file that a client reads: whose it is, where, and in which form."""

    def __init__(self, client: Client, path: str, form: Form, project: str = "") -> None:
        self.client = client
        self.path = path
        self.form = form
        self.project = project


def of_user(name: str, home: str, environ: Mapping[str, str]) -> list[SettingsFile]:
    """Where the client has its user's settings; the hooks are in the first.

    Raises:
        InvalidValue: There is no such client, or it has no settings.
    """
    client, files = _known(name)
    base = f"{home}/{files.directory}"
    if files.directory.startswith(".config/") and (config := config_base(environ)):
        base = config + files.directory.removeprefix(".config")
    said = environ.get(files.variable) and absolute(environ[files.variable], files.variable, environ)
    found = []
    for file in files.files:
        top = said or (home if file.beside else base)
        found.append(SettingsFile(client, f"{os.path.abspath(top)}/{file.of_user}", file.form))
    return found


def of_project(name: str, directory: str) -> list[SettingsFile]:
    """Where the client has the settings of a project; the hooks are in the first.

    Raises:
        InvalidValue: There is no such client, or it has no settings.
    """
    client, files = _known(name)
    top = os.path.abspath(directory)
    return [SettingsFile(client, f"{top}/{file.of_project}", file.form, top) for file in files.files]


def _known(name: str) -> tuple[Client, Home]:
    client = known.find(name)
    if client is None or client.home is None:
        raise known.unknown(name)
    return client, client.home
