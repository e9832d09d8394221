"""The command with which clients call our hooks, and how it is known again in their settings."""

from __future__ import annotations

import os

WAIT = "--wait"
"""What makes a hook of a client in a terminal one that waits beside it for mail."""
ASK = "--ask"
"""What makes a hook one that asks the person whether a tool may be used."""
_PACKAGE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def program(python: str, *words: str) -> list[str]:
    """The words that run one of our commands, in the fastest way: `-m` and most console scripts take half as long
    again.
    """
    return [*of_module(python, "teams_cli.__main__"), *words]


def of_module(python: str, module: str) -> list[str]:
    """The words that run `main` of one of our modules.

    `-P` keeps the directory that the client works in from being imported from.
    """
    installed = os.path.basename(_PACKAGE) in ("site-packages", "dist-packages")
    where = "" if installed else f"import sys; sys.path.append({_PACKAGE!r}); "
    return [python, "-P", "-c", f"{where}from {module} import main; main()"]


def command(python: str, client: str) -> str:
    """The shell command that answers the client's hooks."""
    import shlex  # and with it `re`: most that know of these settings write none

    return shlex.join(program(python, "hook", client))


def is_ours(shell_command: object) -> bool:
    """Whether that is a command that we put there, now or in an earlier version."""
    if not isinstance(shell_command, str):
        return False
    words = shell_command.removesuffix(f" {WAIT}").split()
    ours = words[0].rpartition("/")[2] == "teams" if words else False
    return len(words) >= 3 and words[-2] == "hook" and words[-1].isalnum() and (ours or "teams_cli" in shell_command)
