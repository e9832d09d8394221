"""The HTTP API and the board: a server for programs and people on this machine, over the operations of the commands."""

from teams_cli.extensions import Extension

EXTENSION = Extension(commands={"serve": "commands"})
