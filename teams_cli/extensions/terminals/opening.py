"""Opening a client in a terminal as a member: what it is started with, for that one run."""

from __future__ import annotations

import json
import os
import sys
from shutil import which

from teams_cli import errors
from teams_cli.agents import ports
from teams_cli.agents.seats import sitting, terminals_directory
from teams_cli.agents.sessions import Session
from teams_cli.clients import environments, hook_settings, known, places, plugins, profiles
from teams_cli.membership import joining
from teams_cli.store.contract import Store
from teams_cli.store.files import disk
from teams_cli.teams.caller import Caller

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from teams_cli.clients.contract import Client
    from teams_cli.clients.profiles import Profile
    from teams_cli.clients.seats import Seat
    from teams_cli.teams.config import Config


class OpenRequest:
    """What is to be opened: a client with its own options, under a name, wrapped or not, in a directory."""

    def __init__(
        self,
        client: str,
        options: Sequence[str],
        directory: str,
        *,
        agent: str | None = None,
        wrap: bool = False,
        session: Session | None = None,
        is_kept: bool = True,
    ) -> None:
        self.client = client
        self.options = list(options)
        self.directory = session.directory if session else directory
        self.agent = session.agent if session else agent
        self.wrap = wrap
        self.session = session
        self.is_kept = is_kept
        """Whether `teams` keeps the agent whose session it is."""

    @property
    def variables(self) -> dict[str, str]:
        """What the agent that is taken over is started with by `teams`, too."""
        if self.session is None:
            return {}
        port = {ports.VARIABLE: str(self.session.port_base)} if self.session.port_base else {}
        return {**(self.session.variables or {}), **port}


class Opened:
    """A client that is ready to be started: its words, its environment, where it works, who it is. *order* is what our
    wrapper, or a detached terminal, is told of it.
    """

    def __init__(self, order: dict[str, Any], environ: dict[str, str], directory: str) -> None:
        self.order = order
        self.environ = environ
        self.directory = directory
        self.agent: str = order["agent"]

    @property
    def words(self) -> list[str]:
        """What starts it in a terminal that is there: in our wrapper, where that is to wake it."""
        if not self.order["types"]:
            return list(self.order["words"])
        wrapper = hook_settings.of_module(sys.executable, "teams_cli.extensions.terminals.wrapper")
        return [*wrapper, json.dumps(self.order)]


def prepare(store: Store, team: str, wish: OpenRequest, config: Config | None, environ: Mapping[str, str]) -> Opened:
    """Make the client a member, and say what it is to be started with.

    Raises:
        InvalidValue: There is no such client, or nobody sits in front of it; it is not installed.
        NotAllowed: It may not join.
    """
    client = known.get(wish.client)
    if client.seat is None:
        raise known.unknown(client.name)
    profile = profiles.get(client.name, config)
    program = profile.start[0]
    if which(program, path=environ.get("PATH")) is None:
        raise errors.NotFound(f"{program} is not on PATH", "Install it.")
    agent, own = _identity(store, team, wish)
    clean = environments.clean(environ, profile.strip, profile.keep)
    brought, variables = _brought(store, client, wish.directory, environ)
    words = [program, *brought, *_resumed(client.seat, profile, wish.session), *wish.options]
    order = {
        "words": words,
        "root": os.path.abspath(store.root),
        "team": team,
        "agent": agent,
        "hook": hook_settings.program(sys.executable, "hook", client.name),
        "titles": client.seat.titles,
        "types": wish.wrap or not client.seat.ways,
    }
    whole = {**clean, **client.seat.set, **variables, **wish.variables, **store.variables, **own, "TEAMS_TEAM": team}
    return Opened(order, whole, wish.directory)


def _resumed(seat: Seat, profile: Profile, session: Session | None) -> list[str]:
    """The words that open the session of an agent that is taken over, with the model that it was given."""
    if session is None:
        return []
    return [
        *profiles.of_model(profile, session.model),
        *profiles.fill(list(seat.resume), {"session_id": session.session_id}),
    ]


def _identity(store: Store, team: str, wish: OpenRequest) -> tuple[str, dict[str, str]]:
    """The name of the member that it becomes, and the variables that say so."""
    caller = Caller(wish.agent) if wish.agent else None
    if caller and wish.session and wish.is_kept:
        caller.token = joining.renew_token(store, team, caller.name)
    elif caller:
        caller.token = str(sitting.secrets_of(store, team, caller.name).get("token") or "")
    member, token = joining.join(store, team, caller)
    own = {"TEAMS_AGENT_ID": member.agent_id, "TEAMS_AGENT_TYPE": member.agent_type or member.role}
    token = token or (caller.token if caller else "")
    return member.agent_id, {**own, **({"TEAMS_TOKEN": token} if token else {})}


def _brought(
    store: Store, client: Client, directory: str, environ: Mapping[str, str]
) -> tuple[list[str], dict[str, str]]:
    """What brings our hooks, unless the client's settings have them: those of before are not called twice."""
    found = []
    if client.home:
        found = places.of_user(client.name, environ.get("HOME") or "/", environ)[:1]
        found += places.of_project(client.name, directory)[:1]
    if plugins.is_installed(store.root, client.name) or any(_has_ours(place) for place in found):
        return [], {}
    return client.once(sys.executable, f"{terminals_directory(store.root)}/settings", environ)


def _has_ours(place: places.SettingsFile) -> bool:
    try:
        data = disk.read_file(place.path)
    except FileNotFoundError:
        return False
    return bool(place.form.hook_commands(data))
