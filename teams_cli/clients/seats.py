"""How each client sits in a terminal: which runs are not for a person, how it is woken, what its hooks say of it."""

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
"""The ways to wake: a hook or plugin that waits for our bell, as our wrapper does; the client's own queue, the socket
of its daemon, its own socket, its server if it was told to have one.
"""

TERMINAL_STATE = "TerminalState"
"""The event by which our plugin and our wrapper tell what the client said of itself."""

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
_SAID = (IDLE, WORKING, PERMISSION)
_GOES_ON = {("SessionStart", "compact"), ("SessionEnd", "clear"), ("SessionEnd", "resume")}
_LONGEST = 200


class Socket:
    """A client's own socket: its hooks find the *address* and the *token* of it in the variables of these names. With
    one of the words *holds* in its command line the client asks its person about what comes by it. On one that is
    *framed* every line says by which version of the protocol it is.
    """

    def __init__(self, address: str, token: str, *, holds: str = "", framed: bool = False) -> None:
        self.address = address
        self.token = token
        self.holds = frozenset(holds.split())
        self.framed = framed


class Daemon:
    """What runs the tools and hooks of all terminals of a client: the process and the environment of a hook are its.
    The *word* in its command line tells it from them. Its socket is at *path* in the directory that the variable *home*
    names, or in *directory* below HOME where that is not set.
    """

    def __init__(self, word: str, *, home: str, directory: str, path: str) -> None:
        self.word = word
        self._home = home
        self._directory = directory
        self._path = path

    def address(self, environ: Mapping[str, str]) -> str:
        """Where its socket is, for who has that environment."""
        top = environ.get(self._home) or f"{environ.get('HOME', '')}/{self._directory}"
        return f"{top}/{self._path}"


class Seat:
    """How one client sits. Runs with one of the words *headless* are nobody's terminal; the *ways* to wake it are tried
    in this order, and it can be interrupted by those in *stops*. *resume* opens one of its sessions in a terminal
    again, *first* begins one with a prompt; *set* is what it is started with. *titles* says by which mark in the title
    of its window it means which state.

    One that *begins_silently* calls no hook when it begins a turn that it was woken for: what it does then is known
    with its next tool call, or the end of the turn. One that *serves* listens where its options `--port` and
    `--hostname` say, and asks for the password in the variable of that name.
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
        serves: str = "",
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
        self.serves = serves
        self.begins_silently = begins_silently
        self.titles = titles or {}
        self.set = set or {}

    def is_headless(self, words: Sequence[str]) -> bool:
        """Whether a run with that command line takes one turn, or serves programs."""
        return not self.headless.isdisjoint(words[1:])


def state_said(event: Mapping[str, Any]) -> TerminalState | None:
    """What a hook's event says of the client's state; None if nothing. What it says outright goes first."""
    if event.get("state") in _SAID:
        return event["state"]  # type: ignore[no-any-return]  # one of the words, as was just looked at
    name = str(event.get("hook_event_name"))
    if name == "Notification":
        return _NOTICES.get(str(event.get("notification_type")))
    why = str(event.get("source") or event.get("reason") or "")
    return None if (name, why) in _GOES_ON else _STATES.get(name)


def permission_for(event: Mapping[str, Any]) -> str | None:
    """What the client asks its person to permit, in a line; None if the event does not say."""
    given = event.get("tool_input") or event.get("details")
    wish = given if isinstance(given, dict) else {}
    named = (wish.get(key) for key in ("command", "file_path", "filePath", "path"))
    subject = next(filter(None, named), None) or event.get("message") or ""
    words = [str(event.get("tool_name") or ""), " ".join(str(subject).split())]
    line = ": ".join(word for word in words if word)
    return line[:_LONGEST] or None
