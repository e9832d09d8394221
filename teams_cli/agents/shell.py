"""Run shell commands in a process group of their own, with their output in files until they end."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from typing import IO

from teams_cli import errors

KEPT = 1024 * 1024 - 200
"""Maximum number of bytes of output that are kept. With the line that says how much is missing, they fit into one
result.
"""
_MOST_OF_ERRORS = 2000
"""Number of characters from the end of standard error that `Finished.reason` shows."""
TIMEOUT = 124
"""The exit status of a command that took too long, as in timeout(1)."""
PATIENCE = 1800.0
"""Seconds that a command may take by default."""


def ending(status: int) -> str:
    """Describe how a process ended. *status* is its exit status, or the negative number of a signal."""
    return f"exit status {status}" if status >= 0 else f"ended by signal {-status}"


@dataclass
class Finished:
    """The outcome of a command: its exit status (the negative number of the signal if a signal ended it), output and
    errors. *is_cut* says that the output was longer than KEPT bytes, so that *output* has only its end.
    """

    status: int
    output: str
    errors: str
    is_cut: bool = False

    @property
    def reason(self) -> str:
        """The reason for a failure: the exit status, and the end of standard error."""
        errors = self.errors.strip()[-_MOST_OF_ERRORS:]
        return f"{ending(self.status)}: {errors}" if errors else ending(self.status)


class ShellCommand:
    """A running `sh -c SCRIPT`. Its output goes to files, so that a process that it leaves behind can't hold a pipe
    open.
    """

    def __init__(self, script: str, directory: str, environment: Mapping[str, str]) -> None:
        """Start the command.

        Raises:
            OSError: The command can't be started: the directory does not exist, or the environment is too large.
        """
        self._output = tempfile.TemporaryFile()  # noqa: SIM115  # closed when it ends
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115
        try:
            self._process = subprocess.Popen(
                ["sh", "-c", script],
                cwd=directory,
                env=dict(environment),
                stdin=subprocess.DEVNULL,
                stdout=self._output,
                stderr=self._errors,
                process_group=0,
            )
        except BaseException:
            self._close()
            raise

    def wait(self, seconds: float) -> bool:
        """Wait at most *seconds* for the command to end, and return whether it ended."""
        try:
            self._process.wait(max(seconds, 0))
        except subprocess.TimeoutExpired:
            return False
        return True

    def finish(self, end: bool = False) -> Finished:
        """Kill what is left of the command and its process group, and return the outcome of the command. With *end*,
        the command first gets SIGTERM and has two seconds to end by itself.
        """
        if end:
            self._signal(signal.SIGTERM)
            self.wait(2.0)
        self._signal(signal.SIGKILL)
        status = self._process.wait()
        is_cut = self._output.seek(0, os.SEEK_END) > KEPT
        finished = Finished(status, _tail(self._output), _tail(self._errors), is_cut)
        self._close()
        return finished

    def _signal(self, number: int) -> None:
        try:
            os.killpg(self._process.pid, number)
        except (ProcessLookupError, PermissionError):  # the group is gone, or is ending
            return

    def _close(self) -> None:
        self._output.close()
        self._errors.close()


def run(script: str, directory: str, environment: Mapping[str, str], what: str, seconds: float = PATIENCE) -> Finished:
    """Run the shell command *script* in *directory*, and return its outcome. A command that takes longer than *seconds*
    is ended, and its status is TIMEOUT. The command is also ended if this process is interrupted. *what* names the
    command in errors.
    """
    try:
        command = ShellCommand(script, directory, environment)
    except OSError as error:
        raise errors.TaskFailed(f"can't run {what}: {error.strerror}", f"Does {directory} exist?") from None
    try:
        has_ended = command.wait(seconds)
        done = command.finish(end=not has_ended)
        if has_ended:
            return done
        return Finished(TIMEOUT, done.output, f"{done.errors}ended after {seconds:g} seconds\n")
    except BaseException:
        command.finish(end=True)
        raise


def fitting(text: str, limit: int = KEPT) -> str:
    """Return the text if it has at most *limit* bytes, otherwise its end, below a line on how much is missing."""
    data = text.encode()
    return text if len(data) <= limit else _end_of(data[-limit:], len(data))


def _tail(file: IO[bytes]) -> str:
    """Return the output in the file, or only its end if the output is longer than KEPT bytes."""
    size = file.seek(0, os.SEEK_END)
    file.seek(max(size - KEPT, 0))
    data = file.read(KEPT)
    if size > KEPT:
        return _end_of(data, size)
    return fitting(data.decode(errors="replace"), KEPT)  # a byte that is not UTF-8 becomes three bytes


def _end_of(data: bytes, size: int) -> str:
    """Return the end of *data*, below a line that says how many of the *size* bytes are missing."""
    # Decoding may make the data longer, so it is cut again.
    kept_text = data.decode(errors="replace").encode()[-KEPT:].decode(errors="ignore")
    return f"[{size} bytes of text; all but the last {len(kept_text.encode())} are left out]\n{kept_text}"
