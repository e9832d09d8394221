"""Tests a client: its program, its settings, the commands of its hooks, and, if wanted, a real turn."""

from __future__ import annotations

import json
import os
import subprocess
from shutil import which
from tempfile import TemporaryDirectory
from uuid import uuid4

from teams_cli import environment, errors
from teams_cli.clients import environments, json_edits, known, permissions, plugins, profiles, settings_files
from teams_cli.clients.contract import COMMON
from teams_cli.clients.own_entries import HOLD, WAIT
from teams_cli.doctor import finding
from teams_cli.membership import joining
from teams_cli.messages import messages
from teams_cli.store.files.engine import FileStore
from teams_cli.teams.permission import Caller

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from teams_cli.clients.contract import Client
    from teams_cli.store.contract import Finding
    from teams_cli.teams.config import Config


_PROBE = "This is a test of the hooks"
_PROMPT = "Answer with one word: ready"
_PATIENCE = 120
_TEAM, _AGENT = "probe", "probe"


def examine(
    client: str, root: str, config: Config | None, environ: Mapping[str, str], directory: str, turn: bool
) -> Iterator[Finding]:
    """Test everything that the hooks of the client need. If *turn* is True, also have the client take a turn.

    A finding of the level `good` says that something works.
    """
    profile = profiles.get(client, config)
    program = which(profile.program, path=environ.get("PATH"))
    if program is None:
        yield finding(client, "problem", f"there is no {profile.program} on PATH", "Install it.")
        return
    version = profiles.version_of(program, environ)
    trouble, remedy = profiles.version_trouble(known.get(client), version)
    if trouble:
        yield finding(client, "warning", trouble, remedy)
    else:
        yield finding(client, "good", f"{program}: {version}")
    commands = []
    if known.get(client).home:
        # The first settings file has the hooks.
        of_user = settings_files.of_user(client, environ.get("HOME", "/"), environ)[0]
        of_project = settings_files.of_project(client, directory)[0]
        commands = of_user.hook_commands() + of_project.hook_commands()
        # Hooks that wait for mail do not answer at once.
        commands = [command for command in commands if not command.endswith((HOLD, WAIT))]
    if plugins.is_installed(root, client):
        commands.append(f"teams hook {client}")
        if not plugins.is_current(root, client):
            yield finding(client, "warning", "its plugin is of an older version of teams", f"teams install {client}")
    if not commands:
        what, remedy = "its settings have no hooks of ours", f"teams install {client}"
        if profiles.placeholder_words(profile, "python", [])["hooks"]:  # we start its agents with our hooks
            yield finding(client, "warning", what, f"{remedy} (agents started by teams need it not)")
        else:
            yield finding(client, "problem", what, remedy)
    for command in dict.fromkeys(commands):
        yield _try_command(known.get(client), command, environ)
    if turn:
        yield _try_turn(known.get(client), profile, environ, directory)


def _store_with_mail(top: str) -> FileStore:
    """Make a store below *top* with a team in which the test's agent has mail, and return it."""
    store = FileStore(f"{top}/root")
    joining.spawn_team(store, _TEAM, Caller("lead"))
    joining.join(store, _TEAM, Caller(_AGENT))
    messages.send(store, _TEAM, Caller("lead"), _AGENT, _PROBE)
    return store


def _variables_of_agent(store: FileStore) -> dict[str, str]:
    return {**store.variables, "TEAMS_TEAM": _TEAM, "TEAMS_AGENT_ID": _AGENT}


def _run(
    words: list[str], environ: dict[str, str], input: str, directory: str | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        words, env=environ, input=input, cwd=directory, capture_output=True, text=True, timeout=_PATIENCE, check=False
    )


def _try_command(client: Client, command: str, environ: Mapping[str, str]) -> Finding:
    """Run the hook *command* as after a tool call. Return a finding that says whether it shows the agent's mail."""
    name_in_command = command.split()[-1]  # each of our hook commands ends with the name of a client
    dialect = known.get(name_in_command).dialect or COMMON
    event = json.dumps({"hook_event_name": dialect.after_tool})
    with TemporaryDirectory() as top:
        variables = {**environments.unnamed(environ), **_variables_of_agent(_store_with_mail(top))}
        done = _run(["sh", "-c", command], variables, event)
    if done.returncode == 0 and _PROBE in done.stdout:
        return finding(client.name, "good", f"answers: {command}")
    why = (done.stderr.strip() or f"exit status {done.returncode}, and nothing said")[-300:]
    return finding(client.name, "problem", f"does not answer: {command}: {why}", f"teams install {client.name}")


def _try_turn(client: Client, profile: profiles.Profile, environ: Mapping[str, str], directory: str) -> Finding:
    """Have the client take a turn with its own settings. Return a finding that says whether a hook of `teams` ran."""
    mode = permissions.mode(profile, "edit")
    with TemporaryDirectory() as top:
        store = _store_with_mail(top)
        values = {"prompt": _PROMPT, "session_id": str(uuid4()), "agent": _AGENT}
        values |= profiles.of_place(store.root, store.variables)
        command = profiles.fill(profile.start, values, {"permissions": mode.words})
        try:
            variables = {**profile.environment(environ, _variables_of_agent(store)), **mode.set}
            done = _run(command, variables, _PROMPT, directory)
        except (OSError, subprocess.TimeoutExpired) as error:
            return finding(client.name, "problem", f"took no turn: {error}", f"Try it: {profile.program}")
        # Each of our hooks notes in this file that the agent is alive.
        has_fired = os.path.exists(f"{store.root}/teams/{_TEAM}/inboxes/{_AGENT}.seen")
    if has_fired:
        return finding(client.name, "good", "a hook fired in a turn of the client")
    why = (done.stderr.strip() or done.stdout.strip())[-300:]
    what = f"no hook fired in a turn of the client (status {done.returncode}): {why}"
    return finding(client.name, "problem", what, client.remedy or f"teams install {client.name}")


_VARIABLES = ("TEAMS_HOME", "XDG_CONFIG_HOME")
"""The variables on which the directory for the teams depends."""


def roots_apart(root: str, environ: Mapping[str, str]) -> Iterator[Finding]:
    """Yield a finding for each client whose settings name another directory for the teams than *root*."""
    for client in known.all_clients():
        if not client.home:
            continue
        for file in settings_files.of_user(client.name, environ.get("HOME") or "/", environ):
            for variables in _variables_in(_settings_in(file.path)):
                where = f"{client.name}: {file.path}"
                try:
                    root_of_client = environment.root_directory(None, {**environ, **variables})[0]
                except errors.TeamsError as error:
                    yield finding(where, "warning", error.message, error.hint)
                    continue
                if os.path.realpath(root_of_client) != os.path.realpath(root):
                    what = f"{client.name} keeps its teams in {root_of_client}, and this command in {root}"
                    yield finding(where, "warning", what, f"Say the same in both: TEAMS_HOME={root}")


def _settings_in(path: str) -> Any:
    """Return the document in the settings file at *path*; None if it can't be read."""
    import tomllib

    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
        return tomllib.loads(text) if path.endswith(".toml") else json.loads(json_edits.without_comments(text))
    except (OSError, ValueError):  # another finding reports it
        return None


def _variables_in(settings: Any) -> Iterator[dict[str, str]]:
    """Yield the variables of `teams` that the client sets for its processes, from each part of the settings."""
    parts: list[Any] = []
    if isinstance(settings, dict):
        variables = {key: settings[key] for key in _VARIABLES if isinstance(settings.get(key), str) and settings[key]}
        if variables and not any("{" in value for value in variables.values()):  # the client fills in the braces
            yield variables
        parts = list(settings.values())
    elif isinstance(settings, list):
        parts = settings
    for part in parts:
        yield from _variables_in(part)
