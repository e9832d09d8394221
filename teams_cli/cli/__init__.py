"""The command line: words in, text or JSON out; all that it does is done by `teams_cli.commands`."""
