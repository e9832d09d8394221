"""What a client has to say of itself: how it is started, which language its hooks speak, where its settings are."""

from __future__ import annotations

from teams_cli.clients import own_entries
from teams_cli.text import safe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from teams_cli.clients.profiles import Versions
    from teams_cli.clients.seats import Seat
    from teams_cli.clients.settings_files import Form


_A_DAY = 86400


class SettingsPlace:
    """One file of settings: its place below a project, and below the user's directory of the client.

    One that lies *beside* is below the user's home itself.
    """

    def __init__(self, of_project: str, of_user: str, form: Form, beside: bool = False) -> None:
        self.of_project = of_project
        self.of_user = of_user
        self.form = form
        self.beside = beside


class Home:
    """Where a client has its files: below the user's home, unless *variable* says where; the one with the hooks is
    the first.
    """

    def __init__(self, variable: str, directory: str, *files: SettingsPlace) -> None:
        self.variable = variable
        self.directory = directory
        self.files = files


class PluginCommands:
    """How a client takes a plugin in and out: by these words of the command `plugin` of its *program*. In its settings,
    for one that has no others the file *settings* below the user's home, it leaves keys *beside* what was there. Its
    *form* is how something of ours is put into the first of them, too.
    """

    def __init__(
        self,
        program: str,
        install: str,
        uninstall: str,
        beside: tuple[str, ...] = (),
        settings: str = "",
        form: Form | None = None,
    ) -> None:
        self.program = program
        self.install = install
        self.uninstall = uninstall
        self.beside = beside
        self.settings = settings
        self.form = form


class Client:
    """One client. What most do stands here; the module of a client says where it differs."""

    profile: Mapping[str, Any]
    """How it is started, resumed and interrupted, and where its answer is: the document of a `Profile`."""
    dialect: Dialect | None = None
    """How it speaks to hooks; None for a client that has none."""
    events: tuple[str, ...] = ()
    """The events in its settings at which there may be something to say."""
    sitting: tuple[str, ...] = ()
    """Further events, at which it tells what it is doing when it sits in a terminal."""
    waiting: tuple[str, ...] = ()
    """The events from which on a hook may wait for mail beside it, and wake it by its end."""
    seat: Seat | None = None
    """How it sits in a terminal; None for one that nobody sits in front of."""
    hook_timeout: int | None = None
    """How long a hook may take, in the client's own unit; None for its default."""
    home: Home | None = None
    """Its settings; None for one that has none to be installed in."""
    plugin: PluginCommands | None = None
    """How it takes our plugin in; None for one that has no command for plugins."""
    versions: Versions | None = None
    """Those that our hooks and our server were tried with."""
    remedy = ""
    """What helps when its hooks are installed and do not fire."""

    @property
    def name(self) -> str:
        """What it is called, by the user too."""
        return str(self.profile["name"])

    def hook_entry(self, command: str) -> dict[str, Any]:
        """Our hook as it stands in the settings, under each event."""
        hook: dict[str, Any] = {"type": "command", "command": command}
        if self.hook_timeout is not None:
            hook["timeout"] = self.hook_timeout
        return {"hooks": [hook]}

    def agent_entries(self, command: str) -> dict[str, dict[str, Any]]:
        """What stands in the settings of a client that nobody sits in front of, by event."""
        entries = {event: self.hook_entry(command) for event in self.events}
        if entries and self.dialect and self.dialect.guard:
            guard = self.dialect.guard
            entries[guard.event] = {"matcher": guard.matcher, **self.hook_entry(command)}
        return entries

    def hook_entries(self, command: str) -> dict[str, dict[str, Any]]:
        """All that stands in the settings for our hooks, by event, for clients in terminals too."""
        entries = self.agent_entries(command)
        entries |= {event: self.hook_entry(command) for event in self.sitting}
        for event in self.waiting:
            waits = f"{command} {own_entries.WAIT}"
            entries[event]["hooks"].append(
                {"type": "command", "command": waits, "asyncRewake": True, "timeout": _A_DAY}
            )
        return entries

    def server_entry(self, words: list[str]) -> dict[str, Any]:
        """Our MCP server as it stands in the settings, *words* being what starts it."""
        return {"command": words[0], "args": words[1:]}

    def hook_words(self, python: str, level: str | None = None) -> list[str]:
        """What its command line needs so that its hooks are ours, whatever the user's files say. *level* is what it may
        do.

        Empty for a client that has no such words: it needs `teams install`.
        """
        return []

    def server_words(self, python: str, variables: Iterable[str]) -> list[str]:
        """What its command line needs to have our MCP server; *variables* are the names of those that it is started
        with. Empty for a client that has no such words.
        """
        return []

    def once(self, python: str, directory: str, environ: Mapping[str, str]) -> tuple[list[str], dict[str, str]]:
        """What brings our hooks and our server to one run in a terminal, the user's settings left alone: words for the
        command line, and variables; files that it takes are written to *directory*.
        """
        return [], {}

    def settings_once(self, python: str) -> dict[str, Any]:
        """Our hooks and our server as the JSON settings of a client would have them."""
        entries = self.hook_entries(self.hook_command(python))
        settings: dict[str, Any] = {"hooks": {event: [entry] for event, entry in entries.items()}}
        if own_entries.is_server_available():
            settings["mcpServers"] = {own_entries.NAME: self.server_entry(self.server_command(python))}
        return settings

    def hook_command(self, python: str) -> str:
        """The shell command that answers its hooks."""
        return own_entries.hook_command(python, self.name)

    def server_command(self, python: str) -> list[str]:
        """The words that start our MCP server."""
        return own_entries.server_command(python)


class ToolGuard:
    """How a client asks before it uses a tool that changes something: the *event*; the tools that write files, its
    *writers*; those that run commands, its *shells*. One that *tells* puts what it is told then before its model; to
    another it is told after the tool.
    """

    def __init__(self, event: str, writers: tuple[str, ...], shells: tuple[str, ...], tells: bool = True) -> None:
        self.event = event
        self.writers = writers
        self.shells = shells
        self.tells = tells

    @property
    def matcher(self) -> str:
        """What names these tools in the client's settings, so that it asks for no others."""
        return f"^({'|'.join((*self.writers, *self.shells))})$"


class Dialect:
    """How one client speaks: what it calls the moments at which it asks, and how it is told to go on. One that *joins*
    puts what was said before its end was refused before the final answer; one with a *guard* asks before it writes.
    """

    def __init__(
        self,
        start: str,
        prompt: str,
        tools: tuple[str, ...],
        stop: str,
        block: str = "block",
        joins: bool = False,
        guard: ToolGuard | None = None,
    ) -> None:
        self.moments = {prompt: "prompt", start: "start", stop: "stop", **dict.fromkeys(tools, "tools")}
        self.after_tool = tools[0]
        self.block = block
        self.joins = joins
        self.guard = guard

    def moment(self, event: dict[str, Any]) -> str:
        """At which moment the client asks: `start`, `prompt`, `tools`, `stop`; empty for any other."""
        return self.moments.get(str(event.get("hook_event_name")), "")

    def context(self, event: dict[str, Any], text: str) -> dict[str, Any]:
        """What makes the client put the text before its model."""
        name = event["hook_event_name"]
        return {"hookSpecificOutput": {"hookEventName": name, "additionalContext": safe(text)}}

    def denial(self, event: dict[str, Any], reason: str) -> dict[str, Any]:
        """What keeps the client from using the tool that it asks about."""
        reason = safe(reason)
        if self.block == "deny":
            return {"decision": "deny", "reason": reason}
        decision = {"permissionDecision": "deny", "permissionDecisionReason": reason}
        return {"hookSpecificOutput": {"hookEventName": event["hook_event_name"], **decision}}

    def refusal(self, reason: str) -> dict[str, Any]:
        """What makes the client go on, with the reason as the next turn."""
        return {"decision": self.block, "reason": safe(reason)}


_WRITERS = ("Edit", "MultiEdit", "Write", "NotebookEdit")
COMMON = Dialect(
    "SessionStart",
    "UserPromptSubmit",
    ("PostToolUse", "PostToolBatch"),
    "Stop",
    guard=ToolGuard("PreToolUse", _WRITERS, ("Bash",)),
)
"""What Claude Code began with, and others took over."""
