"""Reporting a bug: the traceback goes to a log, whose path is shown."""

from __future__ import annotations

import os
import tempfile
import traceback

from teams_cli import __version__, errors


def directory_is_gone() -> bool:
    """Return whether the current directory was removed. An error that follows from its removal is no bug."""
    try:
        os.getcwd()
    except OSError:
        return True
    return False


def report(error: Exception, words: list[str]) -> errors.TeamsError:
    """Write the traceback of *error* to a log, and return the error to show to the user. Of *words*, the command line,
    the log has only the name of the command, because the other words may be private.
    """
    try:
        descriptor, path = tempfile.mkstemp(prefix="teams-bug-", suffix=".log")
        with os.fdopen(descriptor, "w", encoding="utf-8", errors="backslashreplace") as log:
            log.write(f"teams {__version__}\ncommand: {words[:1]}\n\n")
            log.write("".join(traceback.format_exception(error)))
        hint = f"The details are in {path}; please report them."
    except OSError as failure:
        hint = f"Please report it; its details could not be written: {failure.strerror}."
    if isinstance(error, ImportError):  # modules are loaded when they are needed, which may be after a long wait
        hint = f"If teams was updated while the command ran, repeat the command. Else: {hint}"
    return errors.TeamsError(f"a bug: {type(error).__name__}: {error}", hint)
