"""A shell instead of a client: for what needs no model."""

from __future__ import annotations

from teams_cli.clients.contract import Client

_PROFILE = {
    "name": "shell",
    "description": "The prompt is a shell command; its standard output is the answer.",
    "start": ["sh", "-c", "{prompt}"],
    "resume": ["sh", "-c", "{prompt}"],
    "input": "messages",
    "sessionId": {"from": "preset"},
    "output": {"from": "stdout"},
    "failed": {"status": True},
    "interrupt": [["INT", 2], ["TERM", 3], ["KILL", 2]],
}


class Shell(Client):
    """The prompt is a shell command; its standard output is the answer."""

    profile = _PROFILE


CLIENT = Shell()
