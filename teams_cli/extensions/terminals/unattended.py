"""Unattended clients: those that run where nobody has to sit, in detached terminals or windows of tmux; ending them."""

from __future__ import annotations

from teams_cli import errors
from teams_cli.agents.seats import sitting
from teams_cli.extensions.terminals import detached, opening
from teams_cli.store.contract import Store
from teams_cli.store.files import disk
from teams_cli.teams import teams

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


def agents_of(store: Store, team: str, environ: Mapping[str, str]) -> list[str]:
    """The agents of the team whose clients run so on this machine.

    Raises:
        StorageFailed: The machine can't say.
    """
    try:
        shown, hidden = opening.agents_of(team, environ), detached.agents_of(store, team)
    except OSError as error:
        raise disk.failed("look for the detached clients of", team, error) from error
    known = teams.get(store, team) if shown else None
    return sorted({*hidden, *(name for name in shown if known and known.find(name))})


def end_all(store: Store, team: str, environ: Mapping[str, str]) -> list[str]:
    """End those of a team at which nobody looks; the agents whose clients are left."""
    return [agent for agent in agents_of(store, team, environ) if not _end(store, team, agent, environ, False)]


def end(store: Store, team: str, agent: str, environ: Mapping[str, str]) -> bool:
    """End the agent's, even if somebody looks; False if it has none here.

    Raises:
        Conflict: It did not end in time.
    """
    if agent not in agents_of(store, team, environ):
        return False
    if not _end(store, team, agent, environ, True):
        raise errors.Conflict(f"the client of {agent} did not end", f"See: teams attach {agent}")
    return True


def _end(store: Store, team: str, agent: str, environ: Mapping[str, str], watched: bool) -> bool:
    """End one, and note that it is gone; one that is *watched* only if that is said. Whether it ended."""
    if detached.is_there(store, team, agent):
        ended = detached.hang_up(store, team, agent, watched)
    else:
        ended = opening.close(team, agent, environ, watched)
    if ended:
        sitting.stand_up(store, team, agent, "its terminal was closed")
    return ended
