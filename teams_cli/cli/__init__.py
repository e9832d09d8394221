"""The command line: takes words, and prints text or JSON. The work itself is done by `teams_cli.commands`."""
