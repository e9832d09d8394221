"""Waits that go on while something else is done."""

from __future__ import annotations

import json
from typing import Any

from tests.support.cli import Cli


def begin(cli: Cli, agent: str, *words: str) -> Any:
    """A wait that goes on while something else is done."""
    return cli.start(*(words or ("wait", "--timeout", "60")), "--json", agent=agent)


def ended(process: Any, status: int = 0) -> Any:
    """What it said in the end."""
    out, err = process.communicate(timeout=120)
    assert process.returncode == status, (out, err)
    return json.loads(err if status else out)
