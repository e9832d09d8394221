"""Clients that run where nobody has to sit; the extension `terminals` has them."""

from __future__ import annotations

from teams_cli import extensions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from teams_cli.store.contract import Store


def agents_of(store: Store, team: str, environ: Mapping[str, str]) -> list[str]:
    """The agents of the team whose clients run so on this machine.

    Raises:
        StorageFailed: The machine can't say.
    """
    look = extensions.provided("agents of unattended clients")
    return list(look(store, team, environ)) if look else []


def end_all(store: Store, team: str, environ: Mapping[str, str]) -> list[str]:
    """End those of a team at which nobody looks; the agents whose clients are left."""
    end_them = extensions.provided("end unattended clients")
    return list(end_them(store, team, environ)) if end_them else []


def end(store: Store, team: str, agent: str, environ: Mapping[str, str]) -> bool:
    """End the agent's, even if somebody looks; False if it has none here.

    Raises:
        Conflict: It did not end in time.
    """
    end_it = extensions.provided("end an unattended client")
    return bool(end_it and end_it(store, team, agent, environ))
