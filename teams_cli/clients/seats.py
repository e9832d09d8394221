"""Clients in terminals: which runs have no person, how each client is woken, and what its hooks report about its
state.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from teams_cli.records.types import TerminalState

IDLE: TerminalState = "idle"
WORKING: TerminalState = "working"
PERMISSION: TerminalState = "permission"
UNKNOWN: TerminalState = "unknown"
GONE: TerminalState = "gone"

BELL, QUEUE, CONTROL, SOCKET, HTTP = "bell", "queue", "control", "socket", "http"
"""The ways to wake a client. A hook, a plugin or our wrapper listens to our bell. The others are the client's own
queue, the socket of its daemon, its own socket, and its own HTTP server.
"""

TERMINAL_STATE = "TerminalState"
"""The event by which our plugin and our wrapper report the state of the client."""

_STATES: dict[str, TerminalState] = {
    "SessionStart": IDLE,
    "UserPromptSubmit": WORKING,
    "PreToolUse": WORKING,
    "PostToolUse": WORKING,
    "PostToolBatch": WORKING,
    "PermissionRequest": PERMISSION,
    "Stop": IDLE,
    "StopFailure": IDLE,
    "Interrupt": IDLE,
    "SessionEnd": GONE,
    "BeforeAgent": WORKING,
    "AfterTool": WORKING,
    "AfterAgent": IDLE,
}
_NOTICES: dict[str, TerminalState] = {
    "permission_prompt": PERMISSION,
    "ToolPermission": PERMISSION,
    "idle_prompt": IDLE,
}
_EXPLICIT_STATES = (IDLE, WORKING, PERMISSION)
_NO_CHANGE = {("SessionStart", "compact"), ("SessionEnd", "clear"), ("SessionEnd", "resume")}
_LONGEST_WISH = 200
_SUBJECT_KEYS = ("command", "file_path", "filePath", "path")
"""The keys that say what a tool is used on; the first that has a value counts."""


class Socket:
    """The socket of a client, which takes messages for this client.

    *address_variable* and *token_variable* name the environment variables in which the client's hooks find the address
    of the socket and the token for it. If the client's command line has one of the words *asking_options*, the client
    asks its person about messages from the socket. If *framed* is set, each line states the version of the protocol.
    """

    def __init__(
        self, address_variable: str, token_variable: str, *, asking_options: str = "", framed: bool = False
    ) -> None:
        self.address_variable = address_variable
        self.token_variable = token_variable
        self.asking_options = frozenset(asking_options.split())
        self.framed = framed


class Daemon:
    """The daemon of a client, which runs the tools and hooks of all the client's terminals. They get the daemon's
    environment, not that of the terminal.

    *word* is in the daemon's command line and not in those of terminals. The daemon's socket is at *path* below the
    directory that the variable *home* names, or else below *directory* in HOME.
    """

    def __init__(self, word: str, *, home: str, directory: str, path: str) -> None:
        self.word = word
        self._home = home
        self._directory = directory
        self._path = path

    def address(self, environ: Mapping[str, str]) -> str:
        """Return the path of the daemon's socket, for a client with the environment *environ*."""
        home = environ.get(self._home) or f"{environ.get('HOME', '')}/{self._directory}"
        return f"{home}/{self._path}"


class Seat:
    """The properties of a client in a terminal.

    A run with one of the words *headless* in its command line has no person. To wake the client, the *ways* are tried
    one after the other; *stops* are the ways to interrupt it. *resume* are the options that open a session of the
    client, *first* are the options that begin a session with a prompt, and *set* has variables for the client. *titles*
    maps characters in the title of the client's window to states.

    If *begins_silently* is set, the client calls no hook when it begins a turn for which it was woken. Its state is
    then known again only at its next tool call or at the end of the turn. *password_variable* names the variable with
    the password of a client that listens at the address in its options `--port` and `--hostname`; "" for other clients.
    """

    def __init__(
        self,
        headless: str,
        ways: tuple[str, ...] = (),
        *,
        resume: tuple[str, ...],
        first: tuple[str, ...] = ("{prompt}",),
        stops: tuple[str, ...] = (),
        socket: Socket | None = None,
        daemon: Daemon | None = None,
        password_variable: str = "",
        begins_silently: bool = False,
        titles: Mapping[str, TerminalState] | None = None,
        set: Mapping[str, str] | None = None,
    ) -> None:
        self.headless = frozenset(headless.split())
        self.ways = ways
        self.resume = resume
        self.first = first
        self.stops = stops
        self.socket = socket
        self.daemon = daemon
        self.password_variable = password_variable
        self.begins_silently = begins_silently
        self.titles = titles or {}
        self.set = set or {}

    def is_headless(self, words: Sequence[str]) -> bool:
        """Whether a run with the command line *words* has no person: it takes a single turn, or serves programs."""
        return not self.headless.isdisjoint(words[1:])


def state_in(event: Mapping[str, Any]) -> TerminalState | None:
    """Return the state of the client that the *event* of a hook reports; None if it reports no state. If the event has
    a field `state`, this is the state.
    """
    if event.get("state") in _EXPLICIT_STATES:
        return event["state"]  # type: ignore[no-any-return]  # it is one of the states
    name = str(event.get("hook_event_name"))
    if name == "Notification":
        return _NOTICES.get(str(event.get("notification_type")))
    why = str(event.get("source") or event.get("reason") or "")
    return None if (name, why) in _NO_CHANGE else _STATES.get(name)


def permission_for(event: Mapping[str, Any]) -> str | None:
    """Return on one line what the client asks its person to permit; None if the *event* does not say it."""
    details = event.get("tool_input") or event.get("details")
    texts = [details.get(key) for key in _SUBJECT_KEYS] if isinstance(details, dict) else []
    subject = next((text for text in [*texts, event.get("message")] if text), "")
    words = " ".join(str(subject).split())
    tool = str(event.get("tool_name") or "")
    wish = f"{tool}: {words}" if tool and words else tool or words
    return wish[:_LONGEST_WISH] or None
