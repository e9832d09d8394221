"""The entry point: `teams`, or `python -m teams_cli`. Hooks of clients are answered before anything is imported."""

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn


def main() -> "NoReturn":
    """Run the command in `sys.argv` and exit with its status."""
    if sys.argv[1:2] == ["hook"] and not {"--help", "-h"}.intersection(sys.argv):
        from teams_cli.hooks import entry

        status = entry.main(sys.argv[2:])
        sys.exit(status)
    from teams_cli.cli.main import main as run

    run()


if __name__ == "__main__":
    main()
