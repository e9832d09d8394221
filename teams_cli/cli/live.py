"""The live view on a terminal: drawn anew for each frame and each key, in one column or two."""

from __future__ import annotations

import os
import select
import sys
import termios
import threading
import tty
from contextlib import contextmanager, suppress

from rich.console import Console
from rich.live import Live
from rich.text import Text

from teams_cli.cli import picture
from teams_cli.text import safe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any, TextIO

    Frame = dict[str, Any]


_TICK = 1.0
"""The seconds after which the view is drawn again without a key or a frame."""
_SEQUENCES = {"[A": "k", "[B": "j", "[5~": "page up", "[6~": "page down", "[H": "g", "[F": "G", "[Z": "backtab"}
_HELP = ("q quit", "a answer", "j k scroll", "Tab next agent", "Enter output", "g G top, end")
"""The help for the keys. A narrow terminal leaves out the last ones."""
_HELP_OUTPUT = ("q or Esc back", "j k scroll", "G follow")


class LiveScreen:
    """The state of the live view. *frame* is the newest frame, *offset* the number of lines by which it is scrolled,
    *chosen* an agent, and *opened* the agent whose output is shown. *asked* is the question that the person answers,
    and *typed* the answer so far. Each of these texts is "" if there is no such thing.

    The function *output_of* returns the output of an agent. The function *answer* takes the id of a question and the
    answer to it, and returns the outcome in words.
    """

    def __init__(self, output_of: Callable[[str], list[Any]], answer: Callable[[str, str], str] | None = None) -> None:
        self.frame: Frame | None = None
        self.offset = 0
        self.chosen = ""
        self.opened = ""
        self.follows = True
        self._output_of = output_of
        self._answer = answer
        self.asked = ""
        self.typed = ""
        self.outcome = ""
        """A line about what the last key did. It is shown in place of the help for the keys."""

    def press(self, key: str, height: int) -> bool:
        """Handle the key. Return False if it ends the view."""
        self.outcome = ""
        if self.asked:
            self._type(key)
        elif key == "a" and self._answer:
            rows = self.frame["waiting"] if self.frame else []
            self.asked = next((row["id"] for row in rows if row["kind"] == "question"), "")
            self.typed = ""
            self.outcome = "" if self.asked else "no question waits for you"
        elif key in ("q", "\x1b"):
            quits = key == "q" and not self.opened
            self.opened, self.offset = "", 0
            return not quits
        elif key in ("\t", "backtab"):
            self._choose(1 if key == "\t" else -1)
        elif key in ("\r", "\n") and self.chosen:
            self.opened, self.offset, self.follows = self.chosen, 0, True
        else:
            self._scroll(key, height)
        return True

    def _type(self, key: str) -> None:
        """Handle a key while the person types an answer."""
        if key in ("\r", "\n"):
            assert self._answer
            self.outcome, self.asked = self._answer(self.asked, self.typed.strip()), ""
        elif key == "\x1b":
            self.asked = ""
        elif key in ("\x7f", "\b"):
            self.typed = self.typed[:-1]
        elif len(key) == 1 and key.isprintable():
            self.typed += key

    def _choose(self, step: int) -> None:
        """Mark an agent as chosen: the next one in the list if *step* is 1, or the one before if *step* is -1."""
        names = [row["name"] for row in self.frame["agents"]] if self.frame else []
        if not names:
            return
        if self.chosen in names:
            self.chosen = names[(names.index(self.chosen) + step) % len(names)]
        else:
            self.chosen = names[0] if step > 0 else names[-1]

    def _scroll(self, key: str, height: int) -> None:
        """Handle a key that scrolls. After `G`, the end of the output stays in view while it grows. The other keys stop
        this.
        """
        page = max(1, height - 6)
        steps = {"j": 1, "k": -1, " ": page, "page down": page, "page up": -page, "g": -1_000_000, "G": 1_000_000}
        self.offset += steps.get(key, 0)  # `lines` keeps it within the lines that there are
        self.follows = key == "G" or (self.follows and key not in steps)

    def lines(self, width: int, height: int) -> list[Text]:
        """Return the lines that fill the whole terminal."""
        if self.frame is None:
            return [Text("…")]
        head = picture.head(self.frame, width)
        help: tuple[str, ...] = _HELP_OUTPUT if self.opened else _HELP
        lines = self._output(width) if self.opened else picture.body(self.frame, width, self.chosen)
        room = max(1, height - len(head) - 1)
        last_offset = max(0, len(lines) - room)
        self.offset = last_offset if self.opened and self.follows else max(0, min(self.offset, last_offset))
        shown = lines[self.offset : self.offset + room]
        if self.offset < last_offset:
            help = (f"{last_offset - self.offset} more below", *help)
        return [*head, *shown, *[Text()] * (room - len(shown)), self._foot(_fitting(help, width), width)]

    def _foot(self, help: str, width: int) -> Text:
        """Return the last line: what the last key did, or else the *help* for the keys. While the person types an
        answer, it shows this answer, or its end if it is long.
        """
        if not self.asked:
            foot = Text(safe(self.outcome) or help, style="bold" if self.outcome else "dim")
            foot.truncate(width, overflow="ellipsis")
            return foot
        label = f"{self.asked} (Enter sends, alone it skips; Esc leaves): "
        room = max(10, width - len(label) - 1)
        return Text(f"{label}{safe(self.typed)[-room:]}█", style="bold magenta")

    def _output(self, width: int) -> list[Text]:
        """Return the output of the opened agent as lines of at most *width* characters. If `teams` did not start the
        agent, return what the history says of it instead.
        """
        output = self._output_of(self.opened)
        is_history = output and not isinstance(output[0], str)
        title = "What {} did; teams did not start it, and has no output" if is_history else "Output of {}"
        lines = [Text(title.format(safe(self.opened)), style="bold")]
        for part in output or ["Nothing was printed yet."]:
            text = safe(part if isinstance(part, str) else picture.entry_text(part)).expandtabs()
            lines += [Text(text[start : start + width]) for start in range(0, max(1, len(text)), width)]
        return lines


def _fitting(parts: tuple[str, ...], width: int) -> str:
    """Return the first *parts*, joined to one text: as many as fit into the *width*."""
    fitting = ""
    for part in parts:
        longer = f"{fitting} · {part}" if fitting else part
        if len(longer) > width:
            break
        fitting = longer
    return fitting


def show(
    frames: Iterator[Frame],
    out: TextIO,
    output_of: Callable[[str], list[Any]],
    answer: Callable[[str, str], str] | None = None,
) -> None:
    """Show each of the *frames* in place of the last one, until they end or the person quits.

    The function *output_of* returns the output of an agent. The function *answer* takes the id of a question and the
    answer to it, and returns the outcome in words. If it is None, the person can't answer here.
    """
    console = Console(file=out, highlight=False)
    screen = LiveScreen(output_of, answer)
    reader = _FrameReader(frames)
    view = Live(console=console, screen=True, auto_refresh=False, vertical_overflow="crop")
    with _keyboard() as keyboard, view:
        shown: list[Text] = []
        while True:
            ready = select.select([reader.pipe, *keyboard], [], [], _TICK)[0]
            if reader.pipe in ready:
                screen.frame = reader.take()
                if reader.has_ended:
                    break
            if keyboard and keyboard[0] in ready:
                keys = _pressed_keys(keyboard[0])
                if not keys or not all(screen.press(key, console.height) for key in keys):
                    break
            lines = screen.lines(console.width, console.height)
            if lines != shown:
                shown = lines
                view.update(Text("\n", no_wrap=True, overflow="crop").join(lines), refresh=True)
    reader.check()


class _FrameReader:
    """Reads the frames in a thread, so that the view can react to keys while no new frame has come."""

    def __init__(self, frames: Iterator[Frame]) -> None:
        self.pipe, self._bell = os.pipe()
        self.has_ended = False
        self._newest: Frame | None = None
        self._error: BaseException | None = None
        threading.Thread(target=self._run, args=(frames,), daemon=True).start()

    def _run(self, frames: Iterator[Frame]) -> None:
        """Read the frames until they end. After each, write to the pipe for which the function `show` waits."""
        try:
            for frame in frames:
                self._newest = frame
                os.write(self._bell, b".")  # wakes `show`, which waits for this pipe and for keys
        except BaseException as error:  # raised again by `check`, where it is caught as in any command
            self._error = error
        self.has_ended = True
        with suppress(OSError):
            os.write(self._bell, b".")

    def take(self) -> Frame | None:
        """Return the newest frame. Call this when `pipe` can be read."""
        os.read(self.pipe, 4096)
        return self._newest

    def check(self) -> None:
        """If the frames ended with an error, raise this error."""
        if self._error is not None:
            raise self._error


@contextmanager
def _keyboard() -> Iterator[list[int]]:
    """In a `with` block, let keys be read at once, without waiting for the end of a line. The value is a list with the
    file descriptor of the keyboard. It is empty if there is no keyboard.
    """
    try:
        keyboard = sys.stdin.fileno()
        before = termios.tcgetattr(keyboard)
    except (OSError, ValueError, AttributeError, termios.error):
        yield []
        return
    tty.setcbreak(keyboard)
    try:
        yield [keyboard]
    finally:
        termios.tcsetattr(keyboard, termios.TCSADRAIN, before)


def _pressed_keys(keyboard: int) -> list[str]:
    """Return the keys that were pressed; empty if the keyboard is gone."""
    try:
        typed = os.read(keyboard, 256).decode(errors="replace")
    except OSError:
        return []
    first, *parts = typed.split("\x1b")
    keys = list(first)
    for part in parts:  # each follows an escape, which begins a sequence or is a key itself
        sequence = next((sequence for sequence in _SEQUENCES if part.startswith(sequence)), "")
        keys += [_SEQUENCES.get(sequence, "\x1b"), *part[len(sequence) :]]
    return keys
