"""Parsers for what a client prints in its terminal, and for what a person types there."""

from __future__ import annotations

from teams_cli.clients.seats import IDLE, PERMISSION, WORKING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from teams_cli.records.types import TerminalState

_ESC = 0x1B
_OSC = b"\x1b]"
"""The beginning of an operating system command: a control sequence with text, such as the title of the window."""
LISTENING = b"\x1b]7501;?\x1b\\"
"""The answer to a client that asks whether its terminal understands reports of its state."""
_QUERY, _STATE = b"7501;?", b"7501;"
_TITLES = (b"0;", b"2;")
"""The beginnings of the commands that set the title of the window."""
_STATES: dict[bytes, TerminalState] = {b"idle": IDLE, b"done": IDLE, b"working": WORKING, b"blocked": PERMISSION}
_MAX_SEQUENCE = 4096
"""Maximum number of bytes of a control sequence. A longer sequence is treated as ordinary output."""
_ANSWERS = b"cRntyIO"
"""The last bytes of the control sequences that terminals send by themselves, for example to report their type, the
position of the cursor, or the focus.
"""
_CLEARS = (b"\r", b"\x03", b"\x15")
"""Enter, Ctrl-C and Ctrl-U: after one of these keys alone, the input line is empty."""


class StateReader:
    """Finds the state of a client in its output, all of which must be passed to `feed`. The client reports a state by
    the control sequence OSC 7501, or by a character in the title of its window. *titles* has the state that each such
    character stands for.
    """

    def __init__(self, titles: Mapping[str, TerminalState]) -> None:
        self._titles = {mark.encode(): state for mark, state in titles.items()}
        self._unfinished = b""
        """The beginning of a control sequence whose end the client has not printed yet."""
        self._state: TerminalState | None = None
        self.new_states: list[TerminalState] = []
        """The states since this list was last emptied, oldest first. It is a list because a short turn may begin and
        end before the state is looked at.
        """
        self.is_queried = False
        """Whether the client asked whether its terminal understands reports. It is reset by the code that answers."""
        self.takes_pastes = False
        """Whether the client has asked its terminal to mark pasted text."""

    def feed(self, data: bytes) -> bytes:
        """Read the output that the client prints next. Returns the part that the terminal must show: everything except
        queries that this program answers itself. A control sequence that is not complete yet is held back until a later
        call.
        """
        if b"?2004" in data:
            self.takes_pastes = data.rfind(b"?2004h") > data.rfind(b"?2004l")
        data = self._unfinished + data
        self._unfinished = b""
        shown = bytearray()
        position = 0
        while (start := data.find(_OSC, position)) >= 0:
            end, after = _end_of_string(data, start + len(_OSC))
            if end < 0:  # the rest of the command is still to come
                break
            command = data[start + len(_OSC) : end]
            self._note_command(command)
            shown_until = start if command == _QUERY else after  # this program answers queries itself
            shown += data[position:shown_until]
            position = after
        # Now *start* is the beginning of an unfinished command, or -1.
        if start < 0 and data.endswith(b"\x1b"):  # perhaps the first byte of the next command
            start = len(data) - 1
        if start >= 0 and len(data) - start <= _MAX_SEQUENCE:
            self._unfinished = data[start:]
            data = data[:start]
        return bytes(shown) + data[position:]

    def _note_command(self, command: bytes) -> None:
        """Record what *command*, the text of an OSC escape sequence, holds: the question whether the terminal
        understands reports of the client's state, or such a report, or a title of the window that shows the state.
        """
        state = None
        if command == _QUERY:
            self.is_queried = True
        elif command.startswith(_STATE):
            for field in command.removeprefix(_STATE).replace(b";", b":").split(b":"):
                name, _, value = field.partition(b"=")
                if name == b"state":
                    state = _STATES.get(value)
        elif command.startswith(_TITLES):
            state = next((meaning for mark, meaning in self._titles.items() if mark in command), None)
        if state and state != self._state:
            self._state = state
            self.new_states.append(state)


def _end_of_string(data: bytes, start: int) -> tuple[int, int]:
    """Return the position where the text of a control sequence ends, and the position after the sequence. If the end of
    the sequence is missing, the first number is -1, and the second has no meaning.
    """
    bell = data.find(b"\x07", start)
    terminator = data.find(b"\x1b\\", start)
    if bell >= 0 and (terminator < 0 or bell < terminator):
        return bell, bell + 1
    return terminator, terminator + 2


def plain(data: bytes) -> str:
    """Return the text in terminal output. Each control sequence is replaced with a space."""
    text = bytearray()
    position = 0
    while position < len(data):
        end = _end_of_key(data, position)
        text += data[position:end] if data[position] != _ESC else b" "
        position = end
    return "".join(c if c.isprintable() or c.isspace() else " " for c in text.decode(errors="replace"))


class Typing:
    """Records in `is_dirty` whether the input line of a client holds text that a person typed. Bytes that the terminal
    sends by itself do not count. Any key but Enter may fill the line, for example from the history.
    """

    def __init__(self) -> None:
        self.is_dirty = False
        self._last_key = 0.0

    def feed(self, data: bytes, now: float) -> None:
        """Read the next bytes that come from the terminal, at the time *now*."""
        typed = typed_in(data)
        if not typed:
            return
        self._last_key = now
        # Enter after Escape (Alt-Enter) or after a backslash sends nothing: it begins another line of the input.
        is_sent = typed.endswith(b"\r") and not typed.endswith((b"\x1b\r", b"\\\r"))
        self.is_dirty = typed not in _CLEARS and not is_sent

    def quiet_for(self, now: float) -> float:
        """Return the seconds since a person last pressed a key."""
        return now - self._last_key


def typed_in(data: bytes) -> bytes:
    """Return the bytes of *data* that a person typed, without the answers and the mouse and focus reports that the
    terminal sends by itself.
    """
    typed = bytearray()
    position = 0
    while position < len(data):
        end = _end_of_key(data, position)
        key = data[position:end]
        is_answer = key.startswith(b"\x1b[") and key[-1:] in _ANSWERS
        is_report = key.startswith((b"\x1b]", b"\x1bP", b"\x1b_", b"\x1b[<", b"\x1b[M", b"\x1b[?"))
        if not (is_answer or is_report):
            typed += key
        position = end
    return bytes(typed)


def _end_of_key(data: bytes, start: int) -> int:
    """Return where the key or the control sequence that begins at *start* ends."""
    if data[start] != _ESC or start + 1 >= len(data):  # an ordinary byte, or Escape alone
        return start + 1
    kind = data[start + 1 : start + 2]
    if kind == b"[":  # parameters follow, up to a last byte from @ to ~
        end = start + 2
        while end < len(data) and not 0x40 <= data[end] <= 0x7E:
            end += 1
        return min(end + 1, len(data))
    if kind in (b"]", b"P", b"_"):  # a sequence with text
        end, after = _end_of_string(data, start + 2)
        return len(data) if end < 0 else after
    return start + 2
