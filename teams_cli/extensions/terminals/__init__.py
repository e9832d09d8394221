"""Terminals: clients that `teams open` starts in this terminal, in a window of tmux, or in the background."""

from teams_cli.extensions import Extension

EXTENSION = Extension(
    commands={"open": "commands", "attach": "commands"},
    provides={
        "agents of unattended clients": "commands:agents_of",
        "end unattended clients": "commands:end_all",
        "end an unattended client": "commands:end",
        "see mail wake a client": "wakes:examine",
    },
)
