"""Exchange: imports tasks from trackers and other tools, and exports whole teams."""

from teams_cli.extensions import Extension

EXTENSION = Extension(commands={"import": "commands", "export": "commands", "schema": "schemas"})
