"""Every change of a team, with its actor, as it is noted; derived, never the truth. `chronicle` reads it."""

from __future__ import annotations

from teams_cli import errors
from teams_cli.store.contract import Store
from teams_cli.teams import teams

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def note(store: Store, team: str, actor: str, what: str, **details: Any) -> None:
    """Note a change after it was made, which stands if this fails. *what* is the operation in the past tense."""
    said = {key: value for key, value in details.items() if value not in (None, "", [])}
    try:
        store.journal(team, {"at": teams.now(store), "actor": actor, "what": what, **said})
    except errors.TeamsError:  # the time is that of a server, which went away
        return
