"""Landing: finished branches join the branch of the team one at a time, checked on the tip that they really join."""

from teams_cli.extensions import Extension

EXTENSION = Extension()
