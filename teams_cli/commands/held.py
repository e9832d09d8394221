"""Restrict agents with permissions below `all` to the commands and options that the declarations open (`Command.held`),
under their own name and in their own directory.

Command line, MCP and HTTP all check here: before a store is opened, and before a command runs.
"""

from __future__ import annotations

import os

from teams_cli import environment, errors
from teams_cli.clients import permissions
from teams_cli.environment import Holder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from teams_cli.agents.sessions import Session
    from teams_cli.commands.call import Call
    from teams_cli.commands.declaration import Command, Parameter

_OWN, _BELOW, _WRITTEN = ".", "/", ">"
"""The limits of `Command.held` for the agent's own team, paths below its working directory, and files to write."""


def refuse_elsewhere(holder: Holder, root: str, store: str, environ: Mapping[str, str]) -> None:
    """Refuse a restricted agent whose root, store or user's rules are not those with which it was started.

    Raises:
        NotAllowed: The root, the store or the user's rules differ.
    """
    if holder.is_elsewhere(root, store, environ):
        raise permissions.not_allowed(
            holder.level,
            "use another data directory, store or configuration",
            "Leave out --root and --store, and do not change TEAMS_HOME, TEAMS_STORE, XDG_CONFIG_HOME or HOME.",
        )


def allowed_values(command: Command, call: Call, values: dict[str, Any]) -> dict[str, Any]:
    """Return the *values* to run the command with. If the caller's permissions are not restricted, they are unchanged.

    For a caller with restricted permissions, the command's declaration must open the command and each value. Links in
    paths are resolved, and the *call* gets the identity and the directory with which the agent was started.

    If the caller runs in another process, for example if it uses HTTP, its session has its permissions.

    Raises:
        NotAllowed: The command, an option or a value is closed to the caller, or the caller acts as somebody else.
    """
    holder = environment.holder(call.environ)
    session = _session(call, holder)
    level = session.permissions if session and not session.ended else None
    if holder:
        level = holder.level
    if level is None or level == permissions.LEVELS[-1]:  # the highest level, `all`, has no limits
        return values
    if holder:
        _refuse_other_identity(holder, call)
    if command.held is None:
        raise permissions.not_allowed(level, f"run `teams {command.name}`")
    directory = call.current_directory  # `_act_as_started` may change it
    own_directory = os.path.realpath(session.worktree or session.directory) if session else ""
    _act_as_started(call, holder, own_directory)
    limits = dict(_name_and_limit(opened) for opened in command.held.split())
    resolved: dict[str, Any] = {}
    for parameter in command.own:
        limit, value = limits.get(parameter.name), values[parameter.name]
        is_given = parameter.is_given(value)
        if is_given and limit == _WRITTEN and level == permissions.LEVELS[0]:
            raise permissions.not_allowed(level, f"write a file with {parameter.flags[0]}")
        if limit not in (_BELOW, _WRITTEN):
            if is_given:
                _refuse_value(level, command, parameter, limit, value, call.given_team)
        elif value and (session or is_given):  # the default is the directory of the process
            start = directory if is_given else call.current_directory  # where a relative path begins
            paths = value if parameter.many else [value]
            whole_paths = [_path_inside(level, own_directory, start, path, parameter) for path in paths]
            resolved[parameter.name] = tuple(whole_paths) if parameter.many else whole_paths[0]
    return {**values, **resolved}


def _act_as_started(call: Call, holder: Holder | None, own_directory: str) -> None:
    """Give the *call* the display name and the type with which its agent was started, so that an agent that left and
    joins again still has them. If the call is made in a repository inside *own_directory*, let it act in
    *own_directory* instead, because git must not obey configuration that the agent can write.
    """
    if call.caller:
        environ = holder.environ if holder else {}
        call.caller.display = environment.look_up("display", None, environ)[0]
        call.caller.type = environment.look_up("type", None, environ)[0]
    directory = call.current_directory
    if own_directory and directory and _is_in_inner_repository(own_directory, directory):
        call.current_directory = own_directory


def _refuse_value(
    level: str, command: Command, parameter: Parameter, limit: str | None, value: Any, own_team: str
) -> None:
    """Refuse a value that the *limit* does not allow. None allows no value, "" every value, and `_OWN` the *own_team*;
    other limits list the allowed values.
    """
    if limit is None:
        flag = parameter.flags[0]
        raise permissions.not_allowed(level, f"give {flag} to `teams {command.name}`", f"Leave {flag} out.")
    if limit == "":
        return
    allowed = [own_team] if limit == _OWN else limit.split(",")
    if value not in allowed:
        only = " or ".join(filter(None, allowed))
        instead = f"It may give {only}." if only else ""
        raise permissions.not_allowed(level, f"give {value} to `teams {command.name}`", instead)


def _name_and_limit(opened: str) -> tuple[str, str]:
    """Split a word of `Command.held` into the name of a parameter and its limit; "" if the word has no limit."""
    name, equals, limit = opened.partition("=")
    if equals:
        return name, limit
    name = opened.rstrip(_BELOW + _WRITTEN)
    return name, opened.removeprefix(name)


def _path_inside(level: str, allowed: str, start: str, path: str, parameter: Parameter) -> str:
    """Return the *path*, which is relative to *start*, with all links resolved. Refuse a path outside the *allowed*
    directory, and every path if *allowed* is "". Also refuse a path from which a program might take commands: a hidden
    file, a file with a second hard link, or another repository.
    """
    whole_path = os.path.realpath(os.path.join(start, path))
    is_inside = bool(allowed) and (whole_path == allowed or whole_path.startswith(f"{allowed.rstrip('/')}/"))
    is_hidden = any(part.startswith(".") for part in whole_path.removeprefix(allowed).split("/"))
    has_other_names = os.path.isfile(whole_path) and os.stat(whole_path).st_nlink > 1
    is_in_inner = os.path.isdir(whole_path) and _is_in_inner_repository(allowed, whole_path)
    if is_inside and not is_hidden and not has_other_names and not is_in_inner:
        return whole_path
    excluded = "none that is hidden, has another name or is in a repository inside"
    hint = f"Name a file or directory in {allowed}, {excluded}." if allowed else ""
    raise permissions.not_allowed(level, f"give {parameter.flags[0]} {path}, outside its working directory", hint)


def _is_in_inner_repository(working_directory: str, directory: str) -> bool:
    """Return whether the *directory* is in a repository inside *working_directory*. The agent can write the git
    configuration of such a repository, and so make git run commands.
    """
    inner = environment.checkout_around(os.path.realpath(directory))
    outer = environment.checkout_around(working_directory)
    if not inner or not outer or inner == outer:
        return False
    from teams_cli.agents import checkouts

    return checkouts.git_directory(inner).startswith(f"{working_directory}/")


def _refuse_other_identity(holder: Holder, call: Call) -> None:
    """Refuse a call in a team other than the restricted agent's, or under a name other than its own or its child's."""
    name = call.caller.name if call.caller else ""
    if holder.agent and name != holder.agent:
        try:
            member = call.load_team().member(name)
        except errors.TeamsError:  # without the team, nothing shows that the name is a child's
            member = None
        if member is None or member.child_of != holder.agent:  # it runs in no client of the agent
            action = f"act as {name}" if name else "act under no name"
            raise permissions.not_allowed(holder.level, action, f"You are {holder.agent}: leave out --as.")
    if holder.team and call.given_team not in ("", holder.team):
        hint = f"Your team is {holder.team}: leave out --team."
        raise permissions.not_allowed(holder.level, f"act in team {call.given_team}", hint)


def _session(call: Call, holder: Holder | None) -> Session | None:
    """Return the session of the calling agent, or of the agent in whose client it runs; None if there is none."""
    if call.caller is None or call.caller.is_human:
        return None
    from teams_cli.agents import sessions

    try:
        team = call.load_team()
        member = team.find(call.agent)
        parent = (holder and holder.agent) or (member and member.child_of)
        return sessions.find(call.store, team.name, parent or call.agent)
    except errors.TeamsError:
        return None
