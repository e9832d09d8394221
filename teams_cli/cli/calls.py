"""Find out who runs a command, in which team and on which store, from the environment and the flags."""

from __future__ import annotations

import os

from teams_cli.agents.seats import terminals_directory
from teams_cli.commands.call import Call
from teams_cli.environment import holder, look_up, root_directory, store_address
from teams_cli.names import HUMAN
from teams_cli.store import opening
from teams_cli.store.files.engine import FILES
from teams_cli.teams import config
from teams_cli.teams.permission import Caller

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from teams_cli.cli.person import PersonTerminal

    AtTerminal = Callable[[str, str], bool | None]
    Setting = tuple[str, str]
    """The value of a setting, and where it comes from."""

FLAGS = ("root", "store", "team", "agent")
"""The flags of every command that say who runs it, and where."""


def make_call(
    flags: Mapping[str, str | None],
    environ: Mapping[str, str],
    ask_at_terminal: AtTerminal,
    say: Callable[[str], Any],
    for_person: bool = False,
) -> Call:
    """Return the call that the environment and the *flags* describe: its store, team and caller. *say* shows a line to
    the person.

    If no name is given, the caller may be the human: the command has to be *for_person*, and typed by a person at a
    terminal. *ask_at_terminal* asks the person at the terminal to allow an operation, and returns None if nobody is
    there. In this case, the human is asked through the team's queue.
    """
    root, root_source = root_directory(flags.get("root"), environ)
    (agent, agent_source), (team, team_source), token = _caller_and_team(flags, root, environ, for_person)
    try:
        directory = os.getcwd()
    except OSError:
        directory = ""
    if not team:
        from teams_cli.agents.seats import bindings

        if team_of_directory := bindings.team_here(root, directory):
            team, team_source = team_of_directory, "here"
    if held := holder(environ):
        from teams_cli.commands import held as of_held

        of_held.refuse_elsewhere(held, root, store_address(flags.get("store"), environ, "")[0], environ)
    settings = config.load(root, environ)
    address, store_source = store_address(flags.get("store"), environ, settings.store)
    store = opening.open_store(root, address or FILES, host=environ.get("TEAMS_HOST", ""), environ=environ)
    caller = _caller(agent, token, environ, settings) if agent else None
    sources = {
        "root": (root, root_source),
        "store": (opening.without_secrets(address or FILES), store_source),
        "team": (team, team_source),
        "agent": (agent, agent_source),
    }
    call = Call(store, settings, caller, team, sources, say, environ, _terminal, directory)
    if caller:

        def approve(operation: str, about: str) -> bool:
            is_allowed = ask_at_terminal(operation, about)
            return call.ask_human(operation, about) if is_allowed is None else is_allowed

        caller.approve = approve
    return call


def _caller_and_team(
    flags: Mapping[str, str | None], root: str, environ: Mapping[str, str], for_person: bool
) -> tuple[Setting, Setting, str]:
    """Return the name of the caller and the name of the team, each with its source, and the caller's token. A name or a
    token that is not known is "".

    The caller is the first of these that is known: the one that a flag names; the member to whom this terminal belongs,
    unless another team is named; the one that the environment names; and the human, if the command is *for_person* and
    a person types it at a terminal.
    """
    name, source = look_up("agent", flags.get("agent"), environ)
    team, team_source = look_up("team", flags.get("team"), environ)
    token = look_up("token", None, environ)[0]
    if source != "flag" and os.path.isdir(terminals_directory(root)):  # on most machines, no terminal is a member's
        from teams_cli.agents.seats import bindings

        member = bindings.of_this_process(root, environ, is_named=bool(name))
        if member and team in ("", member.team):
            source_of_team = "terminal" if team_source == "unset" else team_source
            return (member.agent, "terminal"), (member.team, source_of_team), member.token or token
    if not name and for_person:
        from teams_cli.cli.person import is_person_there
        from teams_cli.processes import TAG

        if is_person_there() and not environ.get(TAG):  # no agent that `teams` started
            return (HUMAN, "person"), (team, team_source), token
    return (name, source), (team, team_source), token


def _caller(name: str, token: str, environ: Mapping[str, str], settings: config.Config) -> Caller:
    """Return the caller with this name. Refuse the name of the human to an agent whose client may not do everything."""
    if name == HUMAN and holder(environ):
        from teams_cli.clients import permissions

        permissions.refuse_more(environ, permissions.LEVELS[-1], "act as the person")
    display, type = look_up("display", None, environ)[0], look_up("type", None, environ)[0]
    return Caller(name, display=display, type=type, token=token, config=settings)


def _terminal() -> PersonTerminal:
    from teams_cli.cli.person import PersonTerminal

    return PersonTerminal()
