"""The standard streams of a command. A stream may be closed, be on a full disk, or be unable to show every
character.
"""

from __future__ import annotations

import errno
import io
import os
import sys

from teams_cli import errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


class Closed(io.TextIOBase):
    """Takes the place of a standard output that was closed before the command started."""

    def write(self, text: str) -> int:
        """Raise the error that writing to a closed file raises."""
        raise OSError(errno.EBADF, os.strerror(errno.EBADF))


def prepare() -> None:
    """Make stdout and stderr accept every text: characters that they cannot show are escaped.

    An unbuffered output, as with PYTHONUNBUFFERED in many containers, is replaced by a buffered one. In an unbuffered
    output, Python would not notice that a full disk took only a part of an answer.
    """
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115  # it stays open
    if sys.stdout is None:
        sys.stdout = Closed()
    elif isinstance(sys.stdout, io.TextIOWrapper):
        if isinstance(sys.stdout.buffer, io.RawIOBase):
            sys.stdout = open(sys.stdout.fileno(), "w", encoding=sys.stdout.encoding, closefd=False)  # noqa: SIM115
        sys.stdout.reconfigure(errors="backslashreplace")


def written(write: Callable[[], Any]) -> Any:
    """Call *write*, which prints the answer of a command, flush the output, and return what *write* returned.

    Raises:
        StorageFailed: The answer could not be written.
        BrokenPipeError: Nobody reads the answer any more.
    """
    try:
        result = write()
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise errors.StorageFailed(
            f"can't write the answer: {error.strerror}", "The command was done; only its answer is lost."
        ) from None
    return result


def finish() -> None:
    """Flush stdout and stderr. If flushing fails, drop the text, so that Python does not report the same failure again
    as it exits.
    """
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            try:
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
            except OSError:
                continue
