"""Interrupting a client in a terminal, where it knows a way: what it does is ended, and its mail is the next turn."""

from __future__ import annotations

from teams_cli.agents.terminals import bindings, doorbells, wakings
from teams_cli.agents.terminals.terminals import Terminal
from teams_cli.clients import known
from teams_cli.errors import WrongState
from teams_cli.messages import inboxes
from teams_cli.store.contract import Store
from teams_cli.teams import history


def refuse_deaf(store: Store, team: str, terminal: Terminal) -> None:
    """Refuse to interrupt a client that knows no way to be, or that is not within reach.

    Raises:
        WrongState: It can't be interrupted; says why.
    """
    seat = known.get(terminal.client).seat
    hint = f"Write to it: teams send-message {terminal.agent} …; it hears at its next tool call, or when it is idle."
    if seat is None or not seat.stops:
        raise WrongState(f"{terminal.agent} can't be interrupted: {terminal.client} knows no way for that", hint)
    if terminal.host not in ("", store.host):
        raise WrongState(f"{terminal.agent} can be interrupted on its machine alone, {terminal.host}", hint)
    if not doorbells.is_heard(_bell(store, team, terminal)):
        raise WrongState(f"{terminal.agent} can't be interrupted: nothing waits beside its client", hint)


def stop_for_mail(store: Store, team: str, terminal: Terminal) -> None:
    """Have the client end what it does and take a turn for its mail; noted as a waking, so that none follows."""
    wakings.note_waking(store, team, terminal, inboxes.unread(store, team, terminal.agent), [])
    heard = doorbells.ring(_bell(store, team, terminal), doorbells.STOP)
    wakings.note_heard(store, team, terminal, heard)
    history.note(store, team, terminal.agent, "terminal interrupted")


def _bell(store: Store, team: str, terminal: Terminal) -> str:
    return bindings.kept(store.root, team, terminal.agent, "bell")
