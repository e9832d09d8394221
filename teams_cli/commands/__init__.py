"""The commands, each declared once: its words, what it runs, and what it answers; every face derives from this.

`INDEX` says in which module a command is, so that only that one is imported to run it.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from teams_cli.commands.declaration import Command

GROUPS: dict[str, dict[str, str]] = {
    "Teams": dict.fromkeys(
        [
            "spawn-team",
            "discover-teams",
            "show-team",
            "join-team",
            "leave-team",
            "hand-over",
            "close-team",
            "restore-team",
            "copy-team",
            "define-role",
            "set-up-roles",
        ],
        "teams",
    )
    | {"whoami": "overview", "brief": "overview"},
    "Tasks": dict.fromkeys(
        ["create-task", "get-tasks", "show-task", "claim-task", "update-task", "release-task", "heartbeat"], "tasks"
    ),
    "Messages": dict.fromkeys(
        ["send-message", "broadcast-message", "announce", "read-messages", "reply", "ack", "list-agents", "attend"],
        "messages",
    ),
    "Questions": dict.fromkeys(
        ["ask-others", "answer", "skip-question", "show-question", "get-questions", "human", "respond-to-broadcast"],
        "questions",
    ),
    "Agents": dict.fromkeys(["run-agent", "spawn"], "agents")
    | {"wait": "waiting"}
    | dict.fromkeys(["interject", "pause-agent", "resume-agent", "stop-agent", "recall", "before-complete"], "agents"),
    "Plans and shutdown": dict.fromkeys(
        [
            "propose-plan",
            "get-plans",
            "approve-plan",
            "reject-plan",
            "request-shutdown",
            "approve-shutdown",
            "reject-shutdown",
        ],
        "plans",
    ),
    "Workflows": dict.fromkeys(["run", "list-workflows", "check-workflow"], "workflows"),
    "Connect": dict.fromkeys(["mcp", "serve", "hook", "install", "uninstall"], "connection"),
    "Inspect": {"watch": "watching"} | dict.fromkeys(["history", "doctor", "set", "settings", "version"], "inspection"),
}

INDEX = {name: module for commands in GROUPS.values() for name, module in commands.items()}


def find(name: str) -> Command:
    """The command of that name, which must be in the index."""
    module = __import__(f"teams_cli.commands.{INDEX[name]}", fromlist=["COMMANDS"])
    command: Command = module.COMMANDS[name]
    return command
