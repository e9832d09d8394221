"""Seats: clients that people sit in front of, as members of a team; the states of these clients, and how they are
woken.
"""

import os


def terminals_directory(root: str) -> str:
    """Return the directory with data about the terminals of this machine. It exists once a client in a terminal has
    joined.
    """
    return f"{root}/terminals"


def is_seated(root: str, team: str) -> bool:
    """Whether a client of the team ever sat in a terminal of this machine."""
    return os.path.isdir(f"{terminals_directory(root)}/teams/{team}")
