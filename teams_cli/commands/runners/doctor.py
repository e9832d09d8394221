"""Looking for what is wrong, with teams or with a client."""

from __future__ import annotations

import os

from teams_cli import environment, extensions
from teams_cli.clients import known
from teams_cli.commands.answers import Outcome
from teams_cli.commands.call import Call
from teams_cli.doctor import clients, teams

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def examine(call: Call, fix: bool, only: str | None, client: str | None, turn: bool, wake: bool) -> Any:
    """What was found, and whether it is bad."""
    if client:
        found = list(clients.examine(client, call.store.root, call.config, call.environ, os.getcwd(), turn))
        wake = wake or (not turn and known.get(client).seat is not None)
        if wake and found[0]["level"] == "good":
            see_it_wake = extensions.needed("see mail wake a client", "this examination", "terminals")
            found.append(see_it_wake(client, call.config, call.environ, os.getcwd()))
    else:
        for team in call.store.teams():
            if only in (None, "", team):
                call.settle(team)
        beneath = environment.opencode_directory(call.store.root, call.environ)
        found = teams.examine(call.store, call.config, fix, only or "", beneath, call.environ)
        found += clients.roots_apart(call.store.root, call.environ)
    bad = any(finding["level"] == "problem" for finding in found)
    document = {"root": call.store.root, "store": call.store.address, "healthy": not bad, "findings": found}
    return Outcome(document, 1 if bad else 0)
