"""Commands that connect clients: their hooks, and the settings that call them."""

from __future__ import annotations

import os
import sys
from shutil import which

from teams_cli import errors
from teams_cli.agents.seats import bindings, doorbells, terminals_directory
from teams_cli.clients import installation, known, own_entries, plugins, profiles, settings_files
from teams_cli.clients.installation import FileChange
from teams_cli.clients.settings_files import Instructions, Ours, SettingsFile
from teams_cli.commands.call import Call
from teams_cli.commands.declaration import Command, argument, in_group, switch
from teams_cli.environment import to_install
from teams_cli.teams import teams

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from teams_cli.clients.contract import Client

_HOOK = """Answer a hook of a client: read the hook's JSON from standard input, and print the answer in the client's
format.

After a tool call, the output of the hook shows each unread message once. At the start of a session, it lists the
members. If the agent is about to stop too early, it says why. If the command fails, it prints nothing and exits with 0.
Wrong usage exits with 1, never with 2.
"""
_INSTALL = """Connect a client: add the hooks and the MCP server, by a plugin or in the client's settings. The change is
shown first.

At a terminal, the command asks before it changes anything, unless you give --yes. Other settings stay as they are. You
can repeat the command safely.

A client becomes a member if it starts in a terminal with TEAMS_TEAM set, or in a directory bound by `teams here`. Then
messages wake it. Elsewhere the hooks print nothing, and the server offers only reading and joining. Agents started by
`run-agent` and `spawn` need no installation.

For Claude Code, Codex, Copilot CLI and Qwen Code, the command installs the plugin of `teams` with the client's own
command. The plugin also adds a skill. The client's settings are changed instead if you give --user, if they were
changed before, or if the client or this `teams` is not on PATH.

Raises:
    DamagedRecord: The client could not read its settings; they were not changed.
    NotAllowed: The file belongs to another user, or is a link out of the project.
"""
_UNINSTALL = """Disconnect a client: remove the plugin of `teams`, or its hooks and MCP server from the settings.

A file that nobody has changed since the installation is restored byte for byte.

Raises:
    DamagedRecord: The client could not read its settings; they were not changed.
"""
_HERE = """Make each client that you start in or below this directory a member of a team.

First run `teams install CLIENT`, once. Without TEAM, the command shows the team of this directory; with --forget, it
unlinks the directory. Commands that you run in this directory act in its team too, unless you name another.

Raises:
    TeamNotFound: There is no such team.
"""
_NEXT = "restart the client with TEAMS_TEAM=TEAM, or in a directory bound by `teams here TEAM`; or: teams open CLIENT"
_NO_SERVER = "without the MCP server, which is not installed"


def _hook(call: Call, client: str) -> Any:
    raise errors.WrongUsage("a hook can't have other options before it", "Write: teams hook CLIENT")


def _here(call: Call, name: str | None, forget: bool) -> Any:
    directory, root = os.path.realpath(call.directory), os.path.abspath(call.store.root)
    if name and forget:
        raise errors.WrongUsage("give either a team or --forget", "Write: teams here TEAM")
    if "\n" in directory:
        raise errors.InvalidValue("the name of this directory has a line break", "Use another directory.")
    if name:
        teams.get(call.store, name)
    if name or forget:
        bindings.bind_directory(root, directory, name or "")  # "" unlinks the directory
    return {"directory": directory, "team": bindings.team_here(root, directory) or None}


def _client_settings(call: Call, client: str, project: bool, user: bool) -> list[SettingsFile]:
    """Return the client's settings files, with the hooks first: those of the *project*, or else the user's own."""
    if project and user:
        raise errors.WrongUsage("--project and --user can't be combined", "Choose one.")
    if project:
        return settings_files.of_project(client, os.getcwd())
    home = call.environ.get("HOME", "")
    if not home.startswith("/"):
        raise errors.InvalidValue("HOME is not set", "Set it, or use --project.")
    return settings_files.of_user(client, home, call.environ)


def _agents_md(client: str, is_wanted: bool) -> list[SettingsFile]:
    """Return a list with the project's file AGENTS.md, if it is wanted or has instructions of `teams`; else []."""
    project, instructions = os.getcwd(), Instructions()
    path = f"{project}/AGENTS.md"
    try:
        with open(path, "rb") as file:
            is_wanted = is_wanted or instructions.is_in(file.read())
    except OSError:  # there is none, or installing says what is wrong with it
        pass
    return [SettingsFile(known.get(client), path, instructions, project)] if is_wanted else []


def _install(
    call: Call, client: str, project: bool, user: bool, only_print: bool, yes: bool, plugin: bool, agents_md: bool
) -> Any:
    """Add the plugin to the client or, if it can't have one, change its settings. First show the change, and ask."""
    ours = _ours(client, project)
    if not ours.server:
        call.say(f"{_NO_SERVER}. {to_install('mcp')}, and install the client again")
    if agents_md and not project:
        raise errors.WrongUsage("AGENTS.md belongs to a project", "Give --project, in its directory.")
    program = which(profiles.get(client, None).start[0], path=call.environ.get("PATH"))
    trouble = ""
    if program:
        version = profiles.version_of(program, call.environ)
        trouble = ". ".join(filter(None, profiles.version_trouble(known.get(client), version)))
    if trouble:
        call.say(trouble)
    asks = not (only_print or yes) and call.person is not None and call.person.is_here()
    # A client without a directory for settings can be connected only by a plugin.
    has_plugin = known.get(client).home is None or plugins.is_installed(call.store.root, client)
    needs_plugin = plugin or (has_plugin and not project)
    plugin_is_default = bool(program) and not (trouble or project or user)
    if needs_plugin or (plugin_is_default and _can_have_plugin(call, client)):
        planned = _change_plugin(call, client, True, is_wanted=True)
        if only_print or (asks and not _agrees(call, planned["commands"])):
            return planned
        try:
            return _change_plugin(call, client, False, is_wanted=True)
        except errors.StorageFailed as problem:
            if needs_plugin:
                raise
            call.say(f"{problem.message}. Its settings are changed instead")
    files = _client_settings(call, client, project, user) + (_agents_md(client, True) if agents_md else [])
    return _change_settings(call, client, files, ours, only_print, asks)


def _change_settings(
    call: Call, client: str, files: list[SettingsFile], ours: Ours, only_print: bool, asks: bool
) -> Any:
    """Write *ours*, the hooks and the MCP server, into the *files* with settings. With *asks*, ask the person first."""
    planned = [installation.install(call.store, file, ours) for file in files]
    asks = asks and any(change.diff for change in planned)
    if only_print or (asks and not _agrees(call, [change.diff.rstrip("\n") for change in planned])):
        return _outcome(call, planned, True) | ({"asked": True} if asks else {})
    with installation.one_at_a_time(call.store):
        changes = [installation.install(call.store, file, ours) for file in files]  # the files may have changed
        for change in changes:
            installation.apply(call.store, change)
    doorbells.readmit(terminals_directory(call.store.root), client)
    if changes[0].diff and (remedy := known.get(client).remedy):
        call.say(remedy)
    return _outcome(call, changes, only_print) | {"next": _NEXT} | ({"asked": True} if asks else {})


def _can_have_plugin(call: Call, name: str) -> bool:
    """Return whether a plugin exists and would run this program, and the user's settings have no hooks of `teams`."""
    client, program = known.get(name), which("teams", path=call.environ.get("PATH"))
    if client.plugin is None or program is None:
        return False
    if os.path.dirname(os.path.realpath(program)) != os.path.realpath(os.path.dirname(sys.executable)):
        return False  # the plugin runs `teams` from PATH, which must be this program
    return not any(file.hook_commands() for file in _client_settings(call, name, project=False, user=True))


def _change_plugin(call: Call, name: str, only_print: bool, is_wanted: bool) -> Any:
    """Add the plugin to the client, or remove it if *is_wanted* is false. With *only_print*, only return the plan."""
    client, root = known.get(name), call.store.root
    if client.plugin is None:
        raise errors.InvalidValue(
            f"there is no plugin of teams for {name}", f"Leave out --plugin: teams install {name}"
        )
    if is_wanted and not which("teams", path=call.environ.get("PATH")):
        raise errors.InvalidValue("the plugin calls `teams`, which is not on PATH", "Put it there, and repeat.")
    document: dict[str, Any] = {"client": name, "path": plugins.directory(), "diff": "", "backup": None, "files": []}
    document["commands"] = [" ".join(command) for command in plugins.commands(client.plugin, is_wanted)]
    is_installed = plugins.is_installed(root, name)
    is_done = plugins.is_current(root, name) if is_wanted else not is_installed
    if only_print or is_done:
        return {**document, "changed": False, "planned": only_print}
    home = call.environ.get("HOME", "")
    files = settings_files.of_user(name, home, call.environ) if client.home else []
    if not is_wanted:
        doorbells.dismiss(terminals_directory(root), name)
    with installation.one_at_a_time(call.store):
        if is_installed:  # if the plugin is wanted, an older version is replaced
            for file in _beside_plugin(client, files):
                installation.apply(call.store, installation.uninstall(call.store, file))
            plugins.uninstall(root, name, client.plugin, call.environ)
        if not is_wanted:
            return {**document, "changed": True, "planned": False}
        for file in reversed(files):  # entries in the settings would act in addition to the plugin
            installation.apply(call.store, installation.uninstall(call.store, file))
        paths = [file.path for file in files] or [f"{home}/{client.plugin.settings}"]
        plugins.install(root, name, client.plugin, paths, call.environ)
        for file in _beside_plugin(client, files):
            installation.apply(call.store, installation.install(call.store, file, _ours(name, project=False)))
    doorbells.readmit(terminals_directory(root), name)
    return {**document, "changed": True, "planned": False, "next": _NEXT}


def _beside_plugin(client: Client, files: list[SettingsFile]) -> list[SettingsFile]:
    """Return a list with the client's settings file, if the file needs an entry in addition to the plugin; else []."""
    file_format = client.plugin.format if client.plugin else None
    return [SettingsFile(client, files[0].path, file_format)] if file_format and files else []


def _agrees(call: Call, planned: list[str]) -> bool:
    """Show the *planned* changes, and return whether there is a person who agrees to them."""
    for line in planned:
        call.say(line)
    return call.person is not None and call.person.agrees("Make this change?")


def _ours(name: str, project: bool) -> Ours:
    """Return what `teams` writes into the client's settings: the command of its hooks, and the MCP server, if any."""
    # The settings of a project are for everybody who works on it, so these entries name no path of this machine.
    client = known.get(name)
    hook = f"teams hook {name}" if project else client.hook_command(sys.executable)
    server = ["teams", "mcp"] if project else client.server_command(sys.executable)
    return Ours(client, hook, server if own_entries.is_server_available() else None)


def _uninstall(call: Call, client: str, project: bool, user: bool, only_print: bool) -> Any:
    if not project and (known.get(client).home is None or plugins.is_installed(call.store.root, client)):
        return _change_plugin(call, client, only_print, is_wanted=False)
    files = _client_settings(call, client, project, user) + (_agents_md(client, False) if project else [])
    if only_print:
        return _outcome(call, [installation.uninstall(call.store, file) for file in files], only_print)
    doorbells.dismiss(terminals_directory(call.store.root), client)
    with installation.one_at_a_time(call.store):
        changes = [installation.uninstall(call.store, file) for file in files]
        for change in reversed(changes):  # the first file is removed last, with the directory made for it
            installation.apply(call.store, change)
    return _outcome(call, changes, only_print)


def _outcome(call: Call, changes: list[FileChange], only_print: bool) -> dict[str, Any]:
    """Return the outcome as JSON. `diff` and `changed` cover all files. The other keys are about the first file, which
    has the hooks.
    """
    files: list[dict[str, Any]] = [
        {
            "path": change.file.path,
            "changed": change.before != change.after and not only_print,
            "diff": change.diff,
            "removed": change.before is not None and change.after is None,
            "backup": installation.backup_of(call.store, change.file) or None,
        }
        for change in changes
    ]
    whole = {"diff": "".join(file["diff"] for file in files), "changed": any(file["changed"] for file in files)}
    return {"client": changes[0].file.client.name, **files[0], **whole, "files": files}


_SCOPE = (
    argument("CLIENT", "The client.", name="client", choices=known.installable()),
    switch("--project", "Use the settings of the project in the current directory."),
    switch("--user", "Use your own settings."),
    switch("--print", "Show the change without making it.", name="only_print"),
)


def words_of_change(done: dict[str, Any]) -> list[str]:
    if "commands" in done:
        if done["planned"]:
            outcome = "would run"
        elif done["changed"]:
            outcome = "ran"
        else:
            outcome = "not needed"
        lines = [f"{outcome}: {command}" for command in done["commands"]]
    elif done["diff"]:
        lines = [line for file in done["files"] for line in _file_lines(file, done.get("asked", False))]
    else:
        return [f"{file['path']}: nothing to change" for file in done["files"]]
    return [*lines, f"next: {done['next']}"] if "next" in done else lines


def _file_lines(file: dict[str, Any], asked: bool) -> list[str]:
    if file["removed"]:
        return [f"{file['path']}: {'removed' if file['changed'] else 'would be removed'}"]
    lines: list[str] = [] if asked else file["diff"].splitlines()  # a person who was asked has seen them
    if asked and not file["changed"]:
        lines.append(f"{file['path']}: left as it is")
    if file["changed"]:
        lines.append(f"{file['path']}: changed" + (f"; before: {file['backup']}" if file["backup"] else ""))
    return lines


COMMANDS = in_group(
    "Connect",
    Command(
        "hook",
        _hook,
        argument("CLIENT", "The client.", name="client", choices=known.with_hooks()),
        doc=_HOOK,
        changes=False,
        words=lambda said: [str(said)],
        traits="at_shell",
        held="client",
        example="hook claude",
    ),
    Command(
        "install",
        _install,
        *_SCOPE,
        switch("--yes", "Make the change without asking."),
        switch("--agents-md", "With --project: also add instructions for work in a team to AGENTS.md."),
        switch("--plugin", "Install the plugin, or fail if that is impossible, as it is for OpenCode and Gemini CLI."),
        doc=_INSTALL,
        in_team=False,
        changes=False,
        words=words_of_change,
        traits="at_shell",
        example="install claude",
        also="setup connect client clients",
    ),
    Command(
        "uninstall",
        _uninstall,
        *_SCOPE,
        doc=_UNINSTALL,
        in_team=False,
        changes=False,
        words=words_of_change,
        traits="at_shell",
        example="uninstall claude",
        also="disconnect",
    ),
    Command(
        "here",
        _here,
        argument("TEAM", "The team; without it, the command shows the present team.", name="name", required=False),
        switch("--forget", "Unlink the directory from its team."),
        doc=_HERE,
        in_team=False,
        changes=False,
        words=lambda document: [f"{document['directory']}: {document['team'] or 'belongs to no team'}"],
        traits="at_shell",
        example="here alpha",
    ),
)
