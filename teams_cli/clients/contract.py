"""The declaration of a client: its command lines, the dialect of its hooks, and the places of its settings files."""

from __future__ import annotations

from typing import NamedTuple

from teams_cli.clients import own_entries
from teams_cli.text import safe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from teams_cli.clients.profiles import Versions
    from teams_cli.clients.settings_files import FileFormat
    from teams_cli.records.types import TerminalState


_A_DAY = 86400
_HOLD_TIMEOUT = 900
"""The seconds that a hook may delay the end of a turn. Qwen Code reads values of 1000 or more as milliseconds."""


class SettingsPlace(NamedTuple):
    """The place of a settings file, and its *format*.

    *of_project* is the path of the file below a project. *of_user* is its path below the directory that holds the
    user's settings for the client or, if *is_in_home* is set, below the user's home.
    """

    of_project: str
    of_user: str
    format: FileFormat
    is_in_home: bool = False


class Home:
    """The settings files of a client. They are in *directory* below the user's home, or in the directory that the
    environment variable *variable* names ("" if the client reads no such variable). The first file has the hooks.
    """

    def __init__(self, variable: str, directory: str, *files: SettingsPlace) -> None:
        self.variable = variable
        self.directory = directory
        self.files = files


class PluginCommands(NamedTuple):
    """The commands with which a client installs and removes our plugin.

    *install* and *uninstall* are subcommands of the command *noun* of *program*. If *noun* is not `plugin`, the command
    takes the folder of the plugin and no catalogue. *leftovers* are keys that stay in the client's settings after the
    plugin was removed.

    *settings* is the path of the client's settings file below the user's home; "" if the client's `home` names its
    settings files. If a plugin can't bring all of our entries to the client, *format* is the format in which we put
    these entries into the first settings file; else None.
    """

    program: str
    install: str
    uninstall: str
    leftovers: tuple[str, ...] = ()
    settings: str = ""
    format: FileFormat | None = None
    noun: str = "plugin"


class Socket(NamedTuple):
    """The socket on which a client takes messages.

    *address_variable* and *token_variable* name the environment variables from which the client's hooks get the address
    of the socket and the token for it. If the client's command line has one of the words *asking_options*, the client
    asks its person about messages from the socket. If *framed* is set, each line that is sent to the socket states the
    version of the protocol.
    """

    address_variable: str
    token_variable: str
    asking_options: tuple[str, ...] = ()
    framed: bool = False


class Daemon(NamedTuple):
    """The daemon of a client, which runs the tools and hooks of all the client's terminals. They get the daemon's
    environment, not that of the terminal.

    *word* is in the daemon's command line and not in those of terminals. The daemon's socket is at *path* below the
    directory that the variable *home* names, or else below *directory* in HOME.
    """

    word: str
    home: str
    directory: str
    path: str

    def address(self, environ: Mapping[str, str]) -> str:
        """Return the path of the daemon's socket, for a client with the environment *environ*."""
        home = environ.get(self.home) or f"{environ.get('HOME', '')}/{self.directory}"
        return f"{home}/{self.path}"


class Seat(NamedTuple):
    """The properties of a client in a terminal.

    *headless* is a text of words separated by blanks. A client with one of these words in its command line runs without
    a person. To wake the client, the *ways* are tried one after the other; *stops* are the ways to interrupt it.
    *resume* are the options that open an earlier session, *first* are the options that begin a session with a prompt,
    and *set* has environment variables for the client. *titles* maps characters in the title of its window to states.

    If *begins_silently* is set, the client calls no hook when it begins a turn for which it was woken. Its state is
    then unknown until its next tool call or the end of the turn. *password_variable* names the variable with the
    password of a client that listens at the address in its options `--port` and `--hostname`; "" for other clients.
    """

    headless: str
    ways: tuple[str, ...] = ()
    resume: tuple[str, ...] = ()
    first: tuple[str, ...] = ("{prompt}",)
    stops: tuple[str, ...] = ()
    socket: Socket | None = None
    daemon: Daemon | None = None
    password_variable: str = ""
    begins_silently: bool = False
    titles: Mapping[str, TerminalState] = {}
    set: Mapping[str, str] = {}

    def is_headless(self, words: Sequence[str]) -> bool:
        """Whether a client with the command line *words* runs without a person: for a single turn, or to serve
        programs.
        """
        return any(word in words[1:] for word in self.headless.split())


class Client:
    """The declaration of a client. The defaults fit most clients; the module of a client overrides what differs. The
    parameter *python* of its methods is the path of the Python interpreter that runs our commands.
    """

    profile: Mapping[str, Any]
    """The document of the client's `Profile`: its command lines, and where its output has the answer."""
    dialect: Dialect | None = None
    """The dialect of the client's hooks; None for a client without hooks."""
    events: tuple[str, ...] = ()
    """The events at which our hook is called, with or without a person."""
    sitting: tuple[str, ...] = ()
    """Further events at which our hook is called, only in terminals, so that we learn the state of the client."""
    waiting: tuple[str, ...] = ()
    """The events after which a second hook waits for mail in the background; the end of this hook wakes the client."""
    holding: tuple[str, ...] = ()
    """The events at the end of a turn at which our hook may wait up to a quarter of an hour while an agent works for
    this one.
    """
    seat: Seat | None = None
    """The properties of the client in a terminal; None if the client has no terminal."""
    hook_timeout: int | None = None
    """The time that a hook may take, in the client's own unit; None for the client's default."""
    home: Home | None = None
    """The settings files of the client; None if it has no settings files that we change."""
    plugin: PluginCommands | None = None
    """The commands that install our plugin; None if the client takes no plugin."""
    versions: Versions | None = None
    """The versions of the client that our hooks and our server were tried with."""
    remedy = ""
    """Advice for the user if hooks are installed but the client never calls them."""

    @property
    def name(self) -> str:
        """The name of the client."""
        return str(self.profile["name"])

    def hook_entry(self, command: str) -> dict[str, Any]:
        """Return our hook, the shell *command*, as an entry of the client's settings."""
        hook: dict[str, Any] = {"type": "command", "command": command}
        if self.hook_timeout is not None:
            hook["timeout"] = self.hook_timeout
        return {"hooks": [hook]}

    def agent_entries(self, command: str) -> dict[str, dict[str, Any]]:
        """Return, by event, the entries that the settings of a client need for hooks if no person is at the client."""
        entries = {event: self.hook_entry(command) for event in self.events}
        for event in self.holding:
            entries[event]["hooks"][0] |= {"command": f"{command} {own_entries.HOLD}", "timeout": _HOLD_TIMEOUT}
        if entries and self.dialect and self.dialect.guard:
            guard = self.dialect.guard
            entries[guard.event] = {"matcher": guard.matcher, **self.hook_entry(command)}
        return entries

    def hook_entries(self, command: str) -> dict[str, dict[str, Any]]:
        """Return all our hooks as entries of the client's settings, each under its event. In addition to the hooks of
        `agent_entries`, these are the hooks that only a client in a terminal needs.
        """
        entries = self.agent_entries(command)
        entries |= {event: self.hook_entry(command) for event in self.sitting}
        for event in self.waiting:
            waiting_command = f"{command} {own_entries.WAIT}"
            hook = {"type": "command", "command": waiting_command, "asyncRewake": True, "timeout": _A_DAY}
            entries[event]["hooks"].append(hook)
        return entries

    def server_entry(self, words: list[str]) -> dict[str, Any]:
        """Return our MCP server as an entry of the client's settings. *words* is the command line of the server."""
        return {"command": words[0], "args": words[1:]}

    def hook_words(self, python: str, level: str | None = None) -> list[str]:
        """Return the options that give the client our hooks at the permission *level*, whether or not the user's
        settings have them. Empty for a client without such options: it has our hooks only after `teams install`.
        """
        return []

    def server_words(self, python: str, variables: Iterable[str]) -> list[str]:
        """Return the options that give the client our MCP server; empty for a client without such options. *variables*
        are the names of the environment variables that the client must pass to the server.
        """
        return []

    def once(self, python: str, directory: str, environ: Mapping[str, str]) -> tuple[list[str], dict[str, str]]:
        """Return options and environment variables that give our hooks and our server to a single run of the client in
        a terminal. The user's settings are not changed: if the run needs settings files, they are written to
        *directory*.
        """
        return [], {}

    def terminal_words(self, environ: Mapping[str, str]) -> list[str]:
        """Return options for a client that is started in a terminal. They give its hooks the variables *environ*."""
        return []

    def settings_once(self, python: str) -> dict[str, Any]:
        """Return settings, as JSON, that give our hooks and our server to a single run of the client."""
        entries = self.hook_entries(self.hook_command(python))
        settings: dict[str, Any] = {"hooks": {event: [entry] for event, entry in entries.items()}}
        if own_entries.is_server_available():
            settings["mcpServers"] = {own_entries.NAME: self.server_entry(self.server_command(python))}
        return settings

    def hook_command(self, python: str) -> str:
        """Return the shell command that the client runs as a hook."""
        import shlex  # slow to import, and only needed for settings that are written

        return shlex.join(own_entries.program(python, "hook", self.name))

    def server_command(self, python: str) -> list[str]:
        """Return the command line that starts our MCP server, as words."""
        return own_entries.program(python, "mcp")


class ToolGuard(NamedTuple):
    """Describes how a client asks our hook before it uses a tool that changes something. *event* is the event at which
    it asks.

    *writers* are the tools that write files, and *shells* the tools that run commands. If *tells* is set, the model
    gets a warning from the hook before the tool runs, otherwise only after it ran.
    """

    event: str
    writers: tuple[str, ...]
    shells: tuple[str, ...]
    tells: bool = True

    @property
    def matcher(self) -> str:
        """The pattern of the names of all these tools, for the client's settings."""
        return f"^({'|'.join((*self.writers, *self.shells))})$"


class Dialect:
    """The words that a client and its hooks exchange. *start*, *prompt*, *tools* and *stop* are the names of the events
    when a session starts, when a prompt is given, after the use of tools, and when a turn stops. A hook's answer with
    the decision *block* keeps the client from stopping.

    If *joins* is set, and a hook refused the end of a turn, the client's final answer also includes the text from
    before the refusal. With a *guard*, the client asks before it uses a tool that changes something.
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
        """Return the moment that the event reports: `start`, `prompt`, `tools` or `stop`; "" for any other event."""
        return self.moments.get(str(event.get("hook_event_name")), "")

    def context(self, event: dict[str, Any], text: str) -> dict[str, Any]:
        """Return the answer that shows the text to the client's model."""
        name = event["hook_event_name"]
        return {"hookSpecificOutput": {"hookEventName": name, "additionalContext": safe(text)}}

    def denial(self, event: dict[str, Any], reason: str) -> dict[str, Any]:
        """Return the answer that forbids the client to use the tool in the event."""
        reason = safe(reason)
        if self.block == "deny":  # this client takes the same answer for tools as for the end of a turn
            return {"decision": "deny", "reason": reason}
        decision = {"permissionDecision": "deny", "permissionDecisionReason": reason}
        return {"hookSpecificOutput": {"hookEventName": event["hook_event_name"], **decision}}

    def refusal(self, reason: str) -> dict[str, Any]:
        """Return the answer that keeps the client from ending its turn. The client's model reads the *reason* next."""
        return {"decision": self.block, "reason": safe(reason)}


_WRITERS = ("Edit", "MultiEdit", "Write", "NotebookEdit")
COMMON = Dialect(
    "SessionStart",
    "UserPromptSubmit",
    ("PostToolUse", "PostToolBatch"),
    "Stop",
    guard=ToolGuard("PreToolUse", _WRITERS, ("Bash",)),
)
"""The dialect of Claude Code, which other clients use as well."""
