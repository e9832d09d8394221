"""The entry point: `teams`, or `python -m teams_cli`. Hook calls from clients are handled first, before most modules
are imported.
"""

import gc
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

INTERRUPTED = 130
"""The exit status of a command that SIGINT ended, as in shells."""
_GARBAGE_THRESHOLD = 100_000
"""The number of new objects after which Python looks for garbage. Most commands make fewer objects; services set a
lower number.
"""


def main() -> "NoReturn":
    """Run the command in `sys.argv` and exit with its status."""
    if sys.platform == "win32":
        sys.exit("teams: Windows is not supported\n  Use WSL, with the files inside it.")
    gc.set_threshold(_GARBAGE_THRESHOLD)
    try:
        _leave(_run())
    except KeyboardInterrupt:
        sys.stderr.write("\nteams: interrupted\n")
        _leave(INTERRUPTED)


def _run() -> int:
    """Run the command, or answer a hook with as few imports as possible. Return the exit status."""
    if sys.argv[1:2] == ["hook"] and not {"--help", "-h"}.intersection(sys.argv):
        from teams_cli.hooks import entry

        return entry.main(sys.argv[2:])
    from teams_cli.cli.main import main as run

    return run()


def _leave(status: int) -> "NoReturn":
    """Exit with *status*, without Python's own clean-up of all modules, which would take half as long as a bare Python
    runs from start to end.

    Exit in the usual way if threads, `atexit` functions, a profiler or a debugger have to notice the exit.
    """
    if {"atexit", "threading"} & sys.modules.keys() or sys.getprofile() or sys.gettrace() or sys.flags.inspect:
        sys.exit(status)
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except (AttributeError, OSError, ValueError):  # a stream is closed, or the disk full: Python says so as it exits
        sys.exit(status)
    os._exit(status)


if __name__ == "__main__":
    main()
