"""What runs are told of this process: its environment, directory and Python."""

from __future__ import annotations

import os
import sys

from teams_cli.errors import InvalidValue
from teams_cli.surroundings import Surroundings


def of_this_process() -> Surroundings:
    """Where and by what this process runs.

    Raises:
        InvalidValue: The current directory was removed.
    """
    try:
        directory = os.getcwd()
    except OSError:
        raise InvalidValue("the current directory is gone", "Change to one that exists.") from None
    return Surroundings(os.environ, directory, sys.executable)
