"""Calls of hooks, as clients make them."""

from __future__ import annotations

import json
from typing import Any

from tests.support.cli import Cli


def hook(cli: Cli, event: str, client: str = "claude", agent: str = "bob", **more: Any) -> Any:
    """What a hook of bob's answers, or None; the hook must succeed. Names in capitals are variables."""
    environ = {name: more.pop(name) for name in list(more) if name.isupper()}
    given = json.dumps({"session_id": "s", "hook_event_name": event, **more}).encode()
    answer = cli("hook", client, agent=agent, stdin=given, **environ)
    assert (answer.status, answer.stderr) == (0, ""), answer
    return json.loads(answer.stdout) if answer.stdout else None


def context(answer: Any) -> str:
    return str(answer["hookSpecificOutput"]["additionalContext"])
