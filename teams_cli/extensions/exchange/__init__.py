"""Exchange: tasks of trackers and other tools in, everything of a team out. One way each; nothing is kept in step."""

from teams_cli.extensions import Extension

EXTENSION = Extension(commands={"import": "commands", "export": "commands", "schema": "schemas"})
