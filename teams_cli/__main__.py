"""The entry point: `teams`, or `python -m teams_cli`. Hooks of clients are answered before anything is imported."""

import gc
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

INTERRUPTED = 130
"""The exit status of a command that SIGINT ended, as in shells."""
_MANY = 100_000
"""The number of objects after which garbage is looked for. Most commands make fewer; services look earlier."""


def main() -> "NoReturn":
    """Run the command in `sys.argv` and exit with its status."""
    if sys.platform == "win32":
        sys.exit("teams: Windows is not supported\n  Use WSL, with the files inside it.")
    gc.set_threshold(_MANY)
    try:
        _leave(_run())
    except KeyboardInterrupt:
        sys.stderr.write("\nteams: interrupted\n")
        _leave(INTERRUPTED)


def _run() -> int:
    if sys.argv[1:2] == ["hook"] and not {"--help", "-h"}.intersection(sys.argv):
        from teams_cli.hooks import entry

        return entry.main(sys.argv[2:])
    from teams_cli.cli.main import main as run

    return run()


def _leave(status: int) -> "NoReturn":
    """Exit without tearing all modules down, which takes half as long as bare Python takes to start and end.

    Exit in the usual way if something waits for the end: threads, functions of `atexit`, a profiler, a debugger.
    """
    if {"atexit", "threading"} & sys.modules.keys() or sys.getprofile() or sys.gettrace() or sys.flags.inspect:
        sys.exit(status)
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except (AttributeError, OSError, ValueError):  # closed, or a full disk: Python says so
        sys.exit(status)
    os._exit(status)


if __name__ == "__main__":
    main()
