"""A shell in place of a client, for work that needs no model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from teams_cli.clients.contract import Client


class Shell(Client):
    """A shell in place of a client. The prompt is a shell command, and its standard output is the answer."""

    profile: Mapping[str, Any] = {
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


CLIENT = Shell()
