"""A client in a terminal begins: its hook makes it a member, and notes how it can be woken."""

from __future__ import annotations

import json
import os

from teams_cli import environment, errors
from teams_cli.agents import waking
from teams_cli.agents.seats import bindings, sitting, terminals
from teams_cli.agents.seats.bindings import Binding
from teams_cli.agents.seats.sitting import Arrival
from teams_cli.clients import known, permissions, seats
from teams_cli.clients import known as clients
from teams_cli.clients.contract import COMMON
from teams_cli.clients.seats import Seat
from teams_cli.hooks import news, subagents
from teams_cli.questions import answering
from teams_cli.store import opening
from teams_cli.store.files.engine import FILES
from teams_cli.teams import config, permission
from teams_cli.teams.permission import Caller

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from teams_cli.hooks.entry import Standpoint


_OF_ITS_COMMANDS = ("HOME", "PATH", "CODEX_HOME", "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME", "TMPDIR", "LANG")


def seat(client: str, standpoint: Standpoint, given: bytes, environ: Mapping[str, str]) -> None:
    """Seat the client that runs this hook in the team, unless it is nobody's terminal; *standpoint* then says who.

    A client that is told who it is has its process noted in any case: clients that it runs are not that agent.
    """
    event = json.loads(given)
    known = clients.get(client).seat
    if known is None:
        return
    session_id = str(event.get("session_id") or "")
    pid = terminals.process(known, session_id)
    state = seats.state_said(event)
    if not pid or not state or event.get("agent_id"):
        return
    own = Binding(standpoint.team, standpoint.agent, standpoint.token)
    if known.is_headless(terminals.words_of(pid)):
        if own.agent:
            bindings.bind_alone(standpoint.root, own, pid)
        return
    said = terminals.variables_of(pid) if known.daemon else environ
    if known.daemon:
        standpoint.team = environment.look_up("team", None, said)[0] or standpoint.team
    store = opening.open_store(standpoint.root, standpoint.store or FILES, host=environ.get("TEAMS_HOST", ""))
    if not sitting.may_sit(store, standpoint.team):
        return
    arrival = Arrival(
        client,
        pid,
        session_id,
        str(event.get("cwd") or os.getcwd()),
        caller=_caller(standpoint, said, config.load(store.root, environ)),
        thread=session_id if known.daemon else "",
        tty=terminals.terminal_of(pid),
        way=known.ways[0] if known.ways else "",
        source=f"hook {event.get('hook_event_name')}",
        state=state,
        secrets=_secrets(known, pid, environ),
    )
    binding = sitting.sit_down(store, standpoint.team, arrival)
    if binding:
        standpoint.agent, standpoint.token = binding.agent, binding.token
    elif own.agent:  # its keeper has it
        bindings.bind_alone(store.root, own, pid)


def _caller(standpoint: Standpoint, environ: Mapping[str, str], user: config.Config) -> Caller | None:
    """Who the client is told to be by its own environment; None if nobody told it."""
    name = environment.look_up("agent", None, environ)[0] or standpoint.agent
    if not name:
        return None
    token = standpoint.token or environment.look_up("token", None, environ)[0]
    display, kind = (environment.look_up(what, None, environ)[0] for what in ("display", "type"))
    return Caller(name, display=display, type=kind, token=token, config=user)


def _secrets(known: Seat, pid: int, environ: Mapping[str, str]) -> dict[str, Any]:
    """How the client is reached: its program and in what environment that is run, its socket and the token of that."""
    found: dict[str, Any] = {"program": terminals.program_of(pid)}
    found["environ"] = {key: environ[key] for key in _OF_ITS_COMMANDS if key in environ}
    if (own := known.socket) and environ.get(own.address):
        found["socket"], found["socketToken"] = environ[own.address], environ.get(own.token, "")
    if known.serves and (server := _server(terminals.words_of(pid))):
        found["server"] = [*server, environ.get(known.serves, "")]
    return found


def _server(words: list[str]) -> tuple[str, int] | None:
    """Where the client listens for others, if its command line says so."""
    said = dict(zip(words, [*words[1:], ""], strict=True)) | dict(word.split("=", 1) for word in words if "=" in word)
    port = said.get("--port", "")
    return (said.get("--hostname") or "127.0.0.1", int(port)) if port.isdecimal() and int(port) else None


def tell(given: bytes, standpoint: Standpoint, environ: Mapping[str, str]) -> None:
    """Print the synthetic result of a `broadcast` tool, unless there is nothing in it, or the agent is no member."""
    child = str(json.loads(given).get("agent_id") or "")
    store, parent = news.opened(standpoint, environ)
    caller = subagents.caller_of(store, standpoint.team, parent, child) if child else parent
    if caller is None:
        return
    try:
        permission.require(store, standpoint.team, caller, "read-messages")
        payload = waking.glance(store, standpoint.team, caller)
    except errors.TeamsError:  # the client goes on as without us
        return
    if payload:
        news.say(payload)


_PATIENCE = 10.0


def ask(client: str, given: bytes, standpoint: Standpoint, environ: Mapping[str, str]) -> int:
    """Print what keeps the client from using the tool, if the person does not let it; the exit status.

    When nobody can be asked, that is what the client is told: the tool is not used.
    """
    event = json.loads(given)
    tool, input = str(event["tool_name"]), event.get("tool_input")
    if permissions.is_ours(tool, input):
        return 0
    if not standpoint.has_team:
        raise errors.NotAllowed("no team is set, so nobody can be asked", "Set TEAMS_TEAM and TEAMS_AGENT_ID.")
    store, caller = news.opened(standpoint, environ, _PATIENCE)
    why = answering.ask_for_tool(store, standpoint.team, caller, tool, permissions.as_text(input))
    if why:
        news.say((known.get(client).dialect or COMMON).denial(event, why))
    return 0
