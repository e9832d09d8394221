"""The commands, each declared once: its words, what it runs, and what it answers; every face derives from this.

A command is declared in one of the modules beside this one, in its table `COMMANDS`; `MODULES` says which.
"""

from __future__ import annotations

from teams_cli import extensions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from teams_cli.commands.declaration import Command

GROUPS = (
    "Teams",
    "Tasks",
    "Messages",
    "Questions",
    "Agents",
    "Plans and shutdown",
    "Workflows",
    "Connect",
    "Inspect",
)
"""The parts of the help, in this order."""

_LOOKING = ("get", "list", "show")
"""The first words of commands that look: agents say any of them, so each means what another is declared with."""
MODULES = {
    # Teams
    "whoami": "knowledge",
    "brief": "knowledge",
    "prune": "teams_whole",
    "up": "teams_whole",
    "down": "teams_whole",
    "spawn-team": "teams",
    "discover-teams": "teams",
    "show-team": "teams",
    "join-team": "teams",
    "leave-team": "teams",
    "hand-over": "teams",
    "define-role": "teams",
    "close-team": "teams_whole",
    "restore-team": "teams_whole",
    "copy-team": "teams_whole",
    "set-up-roles": "teams_whole",
    # Tasks
    "get-evidence": "tasks",
    "create-task": "tasks",
    "get-tasks": "tasks",
    "show-task": "tasks",
    "claim-task": "claims",
    "release-task": "claims",
    "heartbeat": "claims",
    "review-task": "plans",
    "update-task": "updates",
    "note": "updates",
    # Messages
    "send-message": "messages",
    "broadcast-message": "messages",
    "announce": "messages",
    "read-messages": "inbox",
    "show-message": "inbox",
    "sent": "inbox",
    "reply": "inbox",
    "ack": "inbox",
    "list-agents": "inbox",
    "attend": "inbox",
    "agree": "knowledge",
    "share": "knowledge",
    "shared": "knowledge",
    # Questions
    "ask-others": "questions",
    "answer": "questions",
    "skip-question": "questions",
    "show-question": "questions",
    "get-questions": "questions",
    "human": "questions",
    "respond-to-broadcast": "questions",
    # Agents
    "run-agent": "agents",
    "spawn": "agents",
    "interject": "agents",
    "pause-agent": "agents",
    "resume-agent": "agents",
    "restart-agent": "agents",
    "stop-agent": "agents",
    "recall": "agents",
    "logs": "agents",
    "before-complete": "agents",
    "diff": "worktrees",
    "overlaps": "worktrees",
    "usage": "worktrees",
    "wait": "waiting",
    "worktree": "worktrees",
    # Plans and shutdown
    "propose-plan": "plans",
    "get-plans": "plans",
    "show-plan": "plans",
    "approve-plan": "plans",
    "reject-plan": "plans",
    "request-shutdown": "plans",
    "approve-shutdown": "plans",
    "reject-shutdown": "plans",
    # Workflows
    "run": "workflows",
    "list-workflows": "workflows",
    "check-workflow": "workflows",
    # Connect
    "hook": "connect",
    "install": "connect",
    "uninstall": "connect",
    "here": "connect",
    # Inspect
    "history": "inspection",
    "doctor": "inspection",
    "set": "inspection",
    "settings": "inspection",
    "version": "inspection",
    "search": "knowledge",
    "watch": "inspection",
    "on": "inspection",
}
"""The module beside this one that declares each command, in the order of the help."""

_every: dict[str, Command] = {}


def find(name: str) -> Command | None:
    """The command of that name, or of one that begins with another word for looking, as `list-tasks` for `get-tasks`;
    None if there is none. Only the module that declares it is imported.
    """
    meant = meaning_the_same(name)
    for known in meant:
        if known in MODULES:
            return _declared_in(f"{__name__}.{MODULES[known]}")[known]
    brought = dict(extensions.commands())
    for known in meant:
        if known in brought:
            return _declared_in(brought[known])[known]
        extensions.refuse_missing(known)
    return None


def meaning_the_same(name: str) -> list[str]:
    """The name, and the same with each other word for looking."""
    verb, dash, rest = name.partition("-")
    return [name, *(f"{other}-{rest}" for other in _LOOKING if dash and verb in _LOOKING and other != verb)]


def get(name: str) -> Command:
    """The command of that name.

    Raises:
        KeyError: There is none.
    """
    command = find(name)
    if command is None:
        raise KeyError(name)
    return command


def every() -> dict[str, Command]:
    """All commands by name, in the order of the help."""
    if not _every:  # filled at once, for other threads read it
        modules = {**{name: f"{__name__}.{module}" for name, module in MODULES.items()}, **dict(extensions.commands())}
        declared = [_declared_in(module)[name] for name, module in modules.items()]
        declared.sort(key=lambda command: GROUPS.index(command.group))
        _every.update({command.name: command for command in declared})
    return _every


def names() -> list[str]:
    """The names of all commands, without importing the modules that declare them: Tab waits for it."""
    return [*MODULES, *dict(extensions.commands())]


def groups() -> dict[str, list[Command]]:
    """The parts of the help with their commands."""
    return {group: [command for command in every().values() if command.group == group] for group in GROUPS}


def _declared_in(module: str) -> dict[str, Command]:
    commands: dict[str, Command] = __import__(module, fromlist=["COMMANDS"]).COMMANDS
    return commands
