"""`python -m teams_cli` is `teams`."""

from teams_cli.cli.main import main

if __name__ == "__main__":
    main()
