"""The person at the terminal: shown one question at a time, with the seconds left counting down."""

from __future__ import annotations

import os
import sys

from teams_cli.records.annotations import Callable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from teams_cli.cli.progress import Progress

_WIDTH = 70


class Terminal:
    """Standard input and output as the console uses them."""

    def __init__(self) -> None:
        self._lines = _Lines()

    def ask(self, asker: str, question: str, left: Callable[[], float], open: Callable[[], bool]) -> str | None:
        """Show a question and take a line; blank for a skip, None when its time was over first."""
        self._lines.forget()
        self._banner(asker, question, left())
        while open():
            self._count_down(left())
            line = self._lines.next(1.0)
            if line is not None:
                return line.strip()
        self.tell("\nIts time is over, or it was answered elsewhere.")
        return None

    def agrees(self, question: str) -> bool:
        """Ask for a yes; False where there is nobody at a terminal to say it."""
        if sys.stdin is None or not sys.stdin.isatty() or not sys.stderr.isatty():
            return False
        self._lines.forget()
        sys.stderr.write(f"{question} [y/N] ")
        sys.stderr.flush()
        return (self._lines.next(float("inf")) or "").strip().lower() in ("y", "yes")

    def tell(self, line: str) -> None:
        """Show a line."""
        from teams_cli.text import safe

        sys.stdout.write(safe(line) + "\n")
        sys.stdout.flush()

    def progress(self) -> Progress:
        """Show the progress of a run, for the length of a `with` block."""
        from teams_cli.cli.progress import for_this_process

        return for_this_process()

    def _banner(self, asker: str, question: str, left: float) -> None:
        self.tell("\n".join(["", "=" * _WIDTH, f"QUESTION FROM {asker.upper()}", "=" * _WIDTH, "", question, ""]))
        self.tell("─" * _WIDTH)
        self.tell("Type your answer and press Enter; Enter alone skips the question.")
        self.tell(f"You have {left:.0f} seconds to answer.")
        sys.stdout.write("Your answer (or Enter to skip): ")
        sys.stdout.flush()

    def _count_down(self, left: float) -> None:
        """Rewrite the line with the seconds, leaving what is being typed where it is."""
        if sys.stdout.isatty():
            sys.stdout.write(f"\x1b7\x1b[1A\r\x1b[2KYou have {max(left, 0):.0f} seconds to answer.\x1b8")
            sys.stdout.flush()


class _Lines:
    """The lines of standard input as they come, none of them kept back unseen in a buffer."""

    def __init__(self) -> None:
        self.data = b""
        self.ended = False

    def forget(self) -> None:
        """Drop what was typed at a terminal before anything was asked: it answers something else."""
        if sys.stdin is not None and sys.stdin.isatty():
            import termios

            self.data = b""
            termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)

    def next(self, patience: float) -> str | None:
        """The next line, if it comes in time.

        Raises:
            Gone: Standard input is closed.
        """
        import select

        from teams_cli.commands.call import Gone

        if sys.stdin is None:
            raise Gone
        while b"\n" not in self.data and not self.ended:
            if not select.select([sys.stdin], [], [], patience)[0]:
                return None
            read = os.read(sys.stdin.fileno(), 65536)
            self.data, self.ended = self.data + read, not read
        if not self.data:
            raise Gone
        line, _, self.data = self.data.partition(b"\n")
        return line.decode(errors="surrogateescape")
