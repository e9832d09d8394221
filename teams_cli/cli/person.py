"""Ask the person at the terminal one question at a time, and show the seconds left."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager

from teams_cli.cli.output import is_fancy, is_json_wanted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from teams_cli.cli.progress import Progress

_WIDTH = 70
_SECONDS = "  • You have {:.0f} seconds to respond"


class PersonTerminal:
    """The terminal of this process, at which a person is asked questions."""

    def __init__(self) -> None:
        self._lines = _InputLines()
        self._out = sys.stdout
        self._progress: Progress | None = None

    def is_here(self) -> bool:
        """Return whether a person at this terminal can be asked a question. Nobody can be asked if another process
        reads the keys, or if the answer of the command is JSON.
        """
        if is_json_wanted(sys.argv) or not is_person_there():
            return False
        try:
            return os.tcgetpgrp(sys.stdin.fileno()) == os.getpgrp()
        except OSError:  # the terminal has no job control, so no other process has the keys
            return True

    @contextmanager
    def beside(self) -> Iterator[None]:
        """In a `with` block, show questions on standard error, beside the answer of the command."""
        self._out = sys.stderr
        try:
            yield
        finally:
            self._out = sys.stdout

    def ask(
        self, asker: str, question: str, seconds_left: Callable[[], float], is_open: Callable[[], bool]
    ) -> str | None:
        """Show a question and return the person's answer; "" means that the person skips the question. Return None if
        the time ran out, or if the question no longer waits for an answer.

        *asker* is the name of the member who asks. *seconds_left* returns the seconds that are left, and *is_open*
        whether the question still waits.
        """
        if self._progress:
            self._progress.pause()
        try:
            self._lines.forget()
            title = f"📢 BROADCAST FROM {asker.upper()}"
            self.tell("\n".join(["", "=" * _WIDTH, title, "=" * _WIDTH, "", question, "", "─" * _WIDTH]))
            self.tell("Options:\n  • Type your response and press Enter\n  • Press Enter alone to skip")
            self.tell(f"{_SECONDS.format(seconds_left())}\n{'=' * _WIDTH}")
            self._write("Your response (or Enter to skip): ")
            while is_open():
                if self._out.isatty():
                    # Save the place of the cursor, go up to the seconds, clear and write them anew, and return.
                    self._write(f"\x1b7\x1b[2A\r\x1b[2K{_SECONDS.format(max(seconds_left(), 0))}\x1b8")
                line = self._lines.next(1.0)
                if line is not None:
                    return line.strip()
            self.tell("\nIts time has ended, it was answered elsewhere, or nobody waits for it.")
            return None
        finally:
            if self._progress:
                self._progress.go_on()

    def agrees(self, question: str) -> bool:
        """Ask the person a question, and return whether the answer is yes. If nobody is at a terminal, return False."""
        if not is_person_there():
            return False
        from teams_cli.commands.questions import Gone

        self._lines.forget()
        sys.stderr.write(f"{question} [y/N] ")
        sys.stderr.flush()
        try:
            line = self._lines.next(None)
        except Gone:
            return False
        return line is not None and line.strip().lower() in ("y", "yes")

    def tell(self, line: str) -> None:
        from teams_cli.text import safe

        self._write(safe(line) + "\n")

    def _write(self, text: str) -> None:
        self._out.write(text)
        self._out.flush()

    def progress(self) -> Progress:
        """Return the display for the progress of a run, to be used in a `with` statement: a bar on a terminal, lines
        elsewhere, nothing if the answer is JSON. It pauses while a question is shown.
        """
        from teams_cli.cli.progress import Progress, Screen

        if is_json_wanted(sys.argv):
            self._progress = Progress(quiet=True)
        else:
            self._progress = Screen() if is_fancy(sys.stderr) else Progress()
        return self._progress


def is_person_there() -> bool:
    """Return whether standard input and standard error are a terminal, at which somebody sits."""
    return sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty()


class _InputLines:
    """Reads lines from the file descriptor of standard input, because Python's buffer could hold lines back."""

    def __init__(self) -> None:
        self.data = b""
        self.has_ended = False

    def forget(self) -> None:
        """Drop what was typed before the question was shown, because it can't be the answer."""
        if sys.stdin is not None and sys.stdin.isatty():
            import termios

            self.data = b""
            termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)

    def next(self, patience: float | None) -> str | None:
        """Return the next line; None if no line comes within *patience* seconds. If *patience* is None, wait without a
        limit.

        Raises:
            Gone: Standard input is closed.
        """
        import select

        from teams_cli.commands.questions import Gone

        if sys.stdin is None:
            raise Gone
        while b"\n" not in self.data and not self.has_ended:
            if not select.select([sys.stdin], [], [], patience)[0]:
                return None
            read = os.read(sys.stdin.fileno(), 65536)
            self.data, self.has_ended = self.data + read, not read
        if not self.data:
            raise Gone
        line, _, self.data = self.data.partition(b"\n")
        return line.decode(errors="surrogateescape")
