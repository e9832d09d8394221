"""The table of commands. Command line, MCP and HTTP derive from the declaration of each command.

A command is declared in a module beside this one, in the table `COMMANDS` of the module. `_DECLARED` lists the modules
with their commands.
"""

from __future__ import annotations

from teams_cli import extensions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from teams_cli.commands.declaration import Command

GROUPS = ("Teams", "Tasks", "Messages", "Questions", "Agents", "Plans and shutdown", "Workflows", "Connect", "Inspect")
"""The groups of commands, in the order in which the help shows them."""

_LOOKING = ("get", "list", "show")
"""Interchangeable first words of commands that read: agents use any of them, whichever the command declares."""
_DECLARED = (
    # Teams
    ("knowledge", "whoami brief"),
    ("teams_whole", "prune up down"),
    ("teams", "spawn-team discover-teams show-team join-team leave-team hand-over define-role"),
    ("teams_whole", "close-team restore-team copy-team set-up-roles"),
    # Tasks
    ("tasks", "get-evidence create-task get-tasks show-task"),
    ("claims", "claim-task release-task heartbeat"),
    ("plans", "review-task"),
    ("updates", "update-task note"),
    # Messages
    ("messages", "send-message broadcast-message announce"),
    ("inbox", "read-messages show-message sent reply ack list-agents attend"),
    ("knowledge", "agree share shared"),
    # Questions
    ("questions", "ask-others answer skip-question show-question get-questions human respond-to-broadcast"),
    # Agents
    ("agents", "run-agent spawn interject pause-agent resume-agent restart-agent stop-agent"),
    ("agents", "recall logs before-complete"),
    ("worktrees", "diff overlaps usage"),
    ("waiting", "wait"),
    ("worktrees", "worktree"),
    # Plans and shutdown
    ("plans", "propose-plan get-plans show-plan approve-plan reject-plan"),
    ("plans", "request-shutdown approve-shutdown reject-shutdown"),
    # Workflows
    ("workflows", "run list-workflows check-workflow"),
    # Connect
    ("connect", "hook install uninstall here"),
    # Inspect
    ("inspection", "history doctor set settings version"),
    ("knowledge", "search"),
    ("inspection", "watch on"),
)
"""The modules of this package, each with the commands that it declares, in the order of the help."""
MODULES = {name: module for module, names in _DECLARED for name in names.split()}

_every: dict[str, Command] = {}


def find(name: str) -> Command | None:
    """Return the command with this *name*, which may also be a synonym, such as `list-tasks` for `get-tasks`; None if
    there is no such command. Only the module that declares the command is imported.

    Raises:
        ExtensionMissing: The command belongs to an extension that is not installed.
    """
    synonyms = meaning_the_same(name)
    for synonym in synonyms:
        if synonym in MODULES:
            return _declared_in(f"{__name__}.{MODULES[synonym]}")[synonym]
    of_extensions = dict(extensions.commands())
    for synonym in synonyms:
        if synonym in of_extensions:
            return _declared_in(of_extensions[synonym])[synonym]
        extensions.refuse_missing(synonym)
    return None


def meaning_the_same(name: str) -> list[str]:
    """Return the *name* and its synonyms. For example, `get-x`, `list-x` and `show-x` are the same command."""
    verb, dash, noun = name.partition("-")
    if not dash or verb not in _LOOKING:
        return [name]
    return [name, *(f"{other}-{noun}" for other in _LOOKING if other != verb)]


def get(name: str) -> Command:
    """Return the command with this *name*.

    Raises:
        KeyError: There is no such command.
    """
    command = find(name)
    if command is None:
        raise KeyError(name)
    return command


def every() -> dict[str, Command]:
    """Return all commands by name, in the order of the help."""
    if not _every:  # filled at once, for other threads read it
        modules = {**{name: f"{__name__}.{module}" for name, module in MODULES.items()}, **dict(extensions.commands())}
        declared = [_declared_in(module)[name] for name, module in modules.items()]
        declared.sort(key=lambda command: GROUPS.index(command.group))
        _every.update({command.name: command for command in declared})
    return _every


def names() -> list[str]:
    """Return the names of all commands without importing their modules, so that completion in the shell is quick."""
    return [*MODULES, *dict(extensions.commands())]


def groups() -> dict[str, list[Command]]:
    """Return the commands of each group. The keys are the headings under which the help shows the groups."""
    return {group: [command for command in every().values() if command.group == group] for group in GROUPS}


def _declared_in(module: str) -> dict[str, Command]:
    commands: dict[str, Command] = __import__(module, fromlist=["COMMANDS"]).COMMANDS
    return commands
