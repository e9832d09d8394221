"""The common part of hooks that have something to do: the store, the caller, and the answer."""

from __future__ import annotations

import json
import sys

from teams_cli import environment, streams
from teams_cli.store import opening
from teams_cli.store.contract import Store
from teams_cli.store.files.engine import FILES
from teams_cli.teams import config
from teams_cli.teams.caller import Caller

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from teams_cli.hooks.entry import Standpoint

PATIENCE = 2.0
"""Seconds that a client waits for a store out of reach: it goes on as without us then."""


def opened(standpoint: Standpoint, environ: Mapping[str, str], patience: float = PATIENCE) -> tuple[Store, Caller]:
    """The store that the hook is for, waiting so many seconds for its server, and the agent as who it calls."""
    store = opening.open_store(standpoint.root, standpoint.store or FILES, patience, environ.get("TEAMS_HOST", ""))
    token = standpoint.token or environment.look_up("token", None, environ)[0]
    return store, Caller(standpoint.agent, token=token, config=config.load(store.root, environ))


def say(document: dict[str, Any]) -> None:
    """Print the answer. What can't be brought out is an error here, and none once more at the end."""
    try:
        sys.stdout.write(json.dumps(document) + "\n")
        sys.stdout.flush()
    finally:
        streams.finish()
