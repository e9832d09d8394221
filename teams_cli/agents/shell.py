"""Shell commands: run for real, in a process group of their own, with their output kept aside until they end."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import tempfile
import time

from teams_cli import errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import IO

KEPT = 1024 * 1024 - 200
"""Bytes of output that become a result; with the line that says how much is missing they fit in one."""
_TOLD = 2000
TIMEOUT = 124
"""The exit status of a command that took too long, as of timeout(1)."""
PATIENCE = 1800.0
"""Seconds that a command may take where nothing else is said."""


class Finished:
    """The outcome of a command: its exit status (negative: the signal that ended it), output and errors."""

    def __init__(self, status: int, output: str, errors: str) -> None:
        self.status = status
        self.output = output
        self.errors = errors

    @property
    def reason(self) -> str:
        """Why it failed, with the end of what it said on standard error."""
        how = f"exit status {self.status}" if self.status >= 0 else f"ended by signal {-self.status}"
        errors = self.errors.strip()[-_TOLD:]
        return f"{how}: {errors}" if errors else how


class ShellCommand:
    """A running `sh -c SCRIPT`. Output goes to files: what it leaves running can't hold us up by a pipe."""

    def __init__(self, script: str, directory: str, environment: Mapping[str, str]) -> None:
        """Start it.

        Raises:
            OSError: It can't be started; the directory is not there, or the environment too large.
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
        """Wait for its end, at most so long; whether it ended."""
        try:
            descriptor = os.pidfd_open(self._process.pid)
        except (AttributeError, OSError):  # not this system, or it is gone already
            try:
                self._process.wait(seconds)
            except subprocess.TimeoutExpired:
                return False
            return True
        try:
            select.select([descriptor], [], [], max(seconds, 0))
        finally:
            os.close(descriptor)
        return self._process.poll() is not None

    def end(self, grace: float = 2.0) -> None:
        """End it and its group: asked first, after *grace* seconds by force."""
        self._signal(signal.SIGTERM)
        give_up = time.monotonic() + grace
        while not self.wait(max(give_up - time.monotonic(), 0)) and time.monotonic() < give_up:
            pass
        self._signal(signal.SIGKILL)
        self._process.wait()
        self._close()

    def finish(self, end: bool = False) -> Finished:
        """After its end, or with *end* at once: what came out. What it left running in its group ends with it."""
        if end:
            self._signal(signal.SIGTERM)
            self.wait(2.0)
        self._signal(signal.SIGKILL)
        finished = Finished(self._process.wait(), _tail(self._output), _tail(self._errors))
        self._close()
        return finished

    def _signal(self, number: int) -> None:
        try:
            os.killpg(self._process.pid, number)
        except (ProcessLookupError, PermissionError):  # nobody is left, or only one that is ending
            return

    def _close(self) -> None:
        self._output.close()
        self._errors.close()


def run(script: str, directory: str, environment: Mapping[str, str], what: str, seconds: float = PATIENCE) -> Finished:
    """Run a command to its end, at most so many *seconds*; if we are interrupted, it ends too."""
    try:
        command = ShellCommand(script, directory, environment)
    except OSError as error:
        raise errors.TaskFailed(f"can't run {what}: {error.strerror}", f"Does {directory} exist?") from None
    try:
        ended = command.wait(seconds)
        done = command.finish(end=not ended)
        return done if ended else Finished(TIMEOUT, done.output, f"{done.errors}ended after {seconds:g} seconds\n")
    except BaseException:
        command.end()
        raise


def fitting(text: str, limit: int = KEPT) -> str:
    """The text; of a longer one the end, under a line that says how much is left out."""
    data = text.encode()
    return text if len(data) <= limit else _end_of(data[-limit:], len(data))


def _tail(file: IO[bytes]) -> str:
    size = file.seek(0, os.SEEK_END)
    file.seek(max(size - KEPT, 0))
    data = file.read(KEPT)
    # Bytes that are no UTF-8 become three each.
    return fitting(data.decode(errors="replace"), KEPT) if size <= KEPT else _end_of(data, size)


def _end_of(data: bytes, size: int) -> str:
    kept = data.decode(errors="replace").encode()[-KEPT:].decode(errors="ignore")
    return f"[{size} bytes of text; all but the last {len(kept.encode())} are left out]\n{kept}"
