"""Interrupting a client in a terminal, where it knows a way: what it does is ended, and its mail is the next turn."""

from __future__ import annotations

from teams_cli import errors
from teams_cli.agents.seats import channels, sitting, wakings
from teams_cli.agents.seats.terminals import Terminal
from teams_cli.clients import known
from teams_cli.clients.seats import PERMISSION
from teams_cli.messages import inboxes
from teams_cli.store.contract import Store
from teams_cli.teams import history


def way_to(store: Store, team: str, terminal: Terminal, state: str) -> str:
    """The way to interrupt the client.

    Raises:
        WrongState: It can't be interrupted, or asks its person for a permission; says why.
    """
    seat = known.get(terminal.client).seat
    hint = f"Send it a message: teams send-message {terminal.agent} …; it is shown at its next tool call, or when idle."
    if seat is None or not seat.stops:
        raise errors.WrongState(f"{terminal.agent} can't be interrupted: {terminal.client} does not support it", hint)
    if terminal.host not in ("", store.host):
        raise errors.WrongState(f"{terminal.agent} can be interrupted only on its machine, {terminal.host}", hint)
    if state == PERMISSION:
        raise errors.WrongState(f"{terminal.agent} can't be interrupted: it waits for a permission", hint)
    way = channels.way_to_stop(store.root, team, terminal, sitting.secrets_of(store, team, terminal.agent))
    if not way:
        raise errors.WrongState(f"{terminal.agent} can't be interrupted: its client has no listener", hint)
    return way


def stop_for_mail(store: Store, team: str, terminal: Terminal, way: str) -> None:
    """Have the client end what it does and take a turn for its mail; noted as a waking, so that none follows."""
    wakings.note_waking(store, team, terminal, inboxes.unread(store, team, terminal.agent), [])
    secrets = sitting.secrets_of(store, team, terminal.agent)
    wakings.note_heard(store, team, terminal, channels.stop(way, store.root, team, terminal, secrets))
    history.note(store, team, terminal.agent, "terminal interrupted", way=way)
