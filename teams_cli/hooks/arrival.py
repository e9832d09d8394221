"""Members that hooks make: a client in a terminal, and the subagents inside a client.

When a client begins, its hook notes how it can be woken. A subagent is a member as long as it lives: the client's hooks
report its id, its begin and its end. An agent that it started holds it back from its end, or goes to its parent.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress

from teams_cli import environment, errors
from teams_cli.agents import attention, ending
from teams_cli.agents.seats import bindings, sitting, terminals
from teams_cli.agents.seats.bindings import Binding
from teams_cli.agents.seats.insiders import Insider
from teams_cli.agents.seats.sitting import Arrival
from teams_cli.agents.sessions import SESSION
from teams_cli.clients import known, permissions, seats
from teams_cli.clients.contract import COMMON, Dialect
from teams_cli.clients.seats import Seat
from teams_cli.clock import seconds_since
from teams_cli.hooks import news, replies
from teams_cli.hooks.replies import Reply
from teams_cli.membership import joining
from teams_cli.messages import inboxes, messages, reading
from teams_cli.questions import answering
from teams_cli.store import opening
from teams_cli.store.contract import Store
from teams_cli.store.files.engine import FILES
from teams_cli.store.retrying import update
from teams_cli.tasks import claims
from teams_cli.teams import config, permission, presence, teams
from teams_cli.teams.permission import Caller

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from teams_cli.hooks.entry import Standpoint


STARTS, CALLS, ENDS = "SubagentStart", "PreToolUse", "SubagentStop"
_LONGEST = 60_000
"""The characters of a subagent's last text that the message to its parent has."""


def tell_child(
    client: str, given: bytes, standpoint: Standpoint, environ: Mapping[str, str], holds: bool = False
) -> None:
    """Answer the hook if a subagent called it. Its end is held for a quarter of an hour if the client *holds* on for
    the hook, else for some seconds.
    """
    event = json.loads(given)
    child = str(event.get("agent_id") or "")
    if not child:
        return
    store, parent = news.opened(standpoint, environ)
    dialect = known.get(client).dialect or COMMON
    insider = Insider(store.root, standpoint.team, standpoint.agent, child)
    try:
        permission.require(store, standpoint.team, parent, "read-messages")
        seconds = replies.LONG_HOLD if holds else replies.SHORT_HOLD
        reply = _answer_child(store, standpoint.team, parent, dialect, event, insider, seconds)
    except errors.TeamsError:  # the client goes on as without us
        return
    if reply:
        news.say(reply.document)
        if reply.shown and (caller := _caller_of(insider, parent)):
            inboxes.mark_read(store, standpoint.team, caller.name, reply.shown, turn=0)


def _answer_child(
    store: Store,
    team: str,
    parent: Caller,
    dialect: Dialect,
    event: dict[str, Any],
    insider: Insider,
    seconds: float,
) -> Reply | None:
    name = event.get("hook_event_name")
    own = {key: value for key, value in event.items() if key != "agent_id"}
    caller = _caller_of(insider, parent)
    if name == STARTS:
        caller = caller or _join_child(store, team, parent, str(event.get("agent_type") or ""), insider)
        return Reply(dialect.context(own, _introduction(store, team, caller, parent)), set())
    if caller is None:
        return None
    if name == CALLS:
        insider.note_call(str(event.get("tool_use_id") or ""))
        return None
    seen = presence.load(store, team, caller.name).last_seen
    if not seen or seconds_since(seen, store.now()) >= replies.beat(store, team):
        with suppress(errors.TeamsError):  # a claim ended at this very moment
            claims.heartbeat(store, team, caller)
    if name != ENDS:
        return None if dialect.moment(own) == "stop" else replies.answer(store, team, caller, dialect, own, 0)
    if event.get("can_go_on") is not False and (reply := _kept_on(store, team, caller, dialect, event, seconds)):
        return reply
    _end_child(store, team, caller, parent, str(event.get("last_assistant_message") or ""))
    insider.forget()
    return None


def _introduction(store: Store, team: str, child: Caller, parent: Caller) -> str:
    """Return what a new subagent is shown of the team, and how it names itself in commands."""
    about_team = attention.introduction(store, team, child.name, child.config)
    token = f"TEAMS_TOKEN={child.token} " if child.token else ""
    return (
        f"{about_team}\nYou work for {parent.name}. Name yourself in every command: {token}teams … --as {child.name}. "
        f"Without that you act as {parent.name}. The tools of the server `team` know who you are. Your last answer is "
        f"given to {parent.name} automatically."
    )


def _end_child(store: Store, team: str, child: Caller, parent: Caller, last_answer: str) -> None:
    """Give the last answer and the agents of an ended subagent to its parent, and have it leave the team."""
    last_answer = last_answer.strip()[:_LONGEST]
    if last_answer and teams.get(store, team).member(child.name):
        uid = f"{child.name}~output-1"
        sent = messages.notify(store, team, parent.name, last_answer, uid, "output", child.name, wake=False)
        # The parent has the answer from the client as well, and need not read it.
        reading.settle(store, team, parent.name, {sent.number})
    _leave_to(store, team, child.name, parent.name)
    joining.leave(store, team, child)


def _kept_on(
    store: Store, team: str, caller: Caller, dialect: Dialect, event: dict[str, Any], seconds: float
) -> Reply | None:
    """Return what keeps the subagent from ending: an agent that it started is at work, or it has unread mail."""
    with news.Seen(f"{store.root}/teams/{team}/inboxes/{caller.name}.seen") as seen:
        is_again = bool(event.get("stop_hook_active"))
        seen.blocks = seen.blocks if is_again else 0
        if seen.blocks >= replies.MAX_BLOCKS:
            return None
        at_work = replies.at_work(store, team, caller.name, None)
        if at_work:
            replies.hold(store, team, caller, None, seconds)
            at_work = replies.at_work(store, team, caller.name, None)
        elif is_again and not seen.blocks:  # it was told before, and ends
            return None
        letters, shown = replies.mail(store, team, caller.name, replies.MAX_TEXT, quiet=False)
        if not (at_work or letters):
            return None
        seen.blocks += 1
        return Reply(dialect.refusal("\n\n".join([*at_work, *letters])), shown)


def _leave_to(store: Store, team: str, agent: str, parent: str) -> None:
    """Give the parent the agents that the subagent started and that still work, and their outputs that are unread."""
    for child in ending.children(store, team, agent):
        update(store, team, SESSION, child.agent, lambda session: session.having(caller=parent))
    mailbox = inboxes.Mailbox(store, team, agent)
    for output in mailbox.messages(mailbox.unread(True)):
        if output.type == "output":
            uid = f"{agent}~left-{output.number}"
            messages.notify(store, team, parent, output.message, uid, "output", output.from_)


def _caller_of(insider: Insider, parent: Caller) -> Caller | None:
    """Return the member that the subagent is; None before its begin and after its end."""
    kept = insider.read()
    return Caller(kept[0], token=kept[1], config=parent.config) if kept else None


def _join_child(store: Store, team: str, parent: Caller, kind: str, insider: Insider) -> Caller:
    """Make the subagent a member under the next alias, as a child of its client's agent."""
    specialty = kind if kind.isprintable() and 0 < len(kind) <= 60 else None
    member, token = joining.join(store, team, None, specialty=specialty, child_of=parent.name)
    insider.keep(member.agent_id, token)
    return Caller(member.agent_id, token=token, config=parent.config)


_OF_ITS_COMMANDS = ("HOME", "PATH", "CODEX_HOME", "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME", "TMPDIR", "LANG")


def seat(client: str, standpoint: Standpoint, given: bytes, environ: Mapping[str, str]) -> None:
    """Make the client that runs this hook a member, unless it runs in nobody's terminal. *standpoint* then names the
    member.

    The process of a client whose environment names the agent is always noted, because clients that it runs are other
    agents.
    """
    event = json.loads(given)
    own_seat = known.get(client).seat
    if own_seat is None:
        return
    session_id = str(event.get("session_id") or "")
    pid = terminals.pid_of_client(own_seat, session_id)
    state = seats.state_said(event)
    if not pid or not state or event.get("agent_id"):
        return
    own = Binding(standpoint.team, standpoint.agent, standpoint.token)
    if own_seat.is_headless(terminals.words_of(pid)):
        if own.agent:
            bindings.bind_without_person(standpoint.root, own, pid)
        return
    own_environ = terminals.variables_of(pid) if own_seat.daemon else environ
    if own_seat.daemon:
        standpoint.team = environment.look_up("team", None, own_environ)[0] or standpoint.team
    store = opening.open_store(standpoint.root, standpoint.store or FILES, host=environ.get("TEAMS_HOST", ""))
    if not sitting.may_sit(store, standpoint.team):
        return
    arrival = Arrival(
        client,
        pid,
        session_id,
        str(event.get("cwd") or os.getcwd()),
        caller=_caller(standpoint, own_environ, config.load(store.root, environ)),
        thread=session_id if own_seat.daemon else "",
        tty=terminals.terminal_of(pid),
        way=own_seat.ways[0] if own_seat.ways else "",
        source=f"hook {event.get('hook_event_name')}",
        state=state,
        secrets=_secrets(own_seat, pid, environ),
    )
    binding = sitting.sit_down(store, standpoint.team, arrival)
    if binding:
        standpoint.agent, standpoint.token = binding.agent, binding.token
    elif own.agent:  # its keeper has it
        bindings.bind_without_person(store.root, own, pid)


def _caller(standpoint: Standpoint, environ: Mapping[str, str], user: config.Config) -> Caller | None:
    """Return the agent that the client's own environment names; None without one."""
    name = environment.look_up("agent", None, environ)[0] or standpoint.agent
    if not name:
        return None
    token = standpoint.token or environment.look_up("token", None, environ)[0]
    display, kind = (environment.look_up(what, None, environ)[0] for what in ("display", "type"))
    return Caller(name, display=display, type=kind, token=token, config=user)


def _secrets(known: Seat, pid: int, environ: Mapping[str, str]) -> dict[str, Any]:
    """Return how the client is reached: its program with its environment, its socket, and the token of the socket."""
    secrets: dict[str, Any] = {"program": terminals.program_of(pid)}
    secrets["environ"] = {key: environ[key] for key in _OF_ITS_COMMANDS if key in environ}
    if (own := known.socket) and environ.get(own.address):
        secrets["socket"], secrets["socketToken"] = environ[own.address], environ.get(own.token, "")
    if known.serves and (server := _server(terminals.words_of(pid))):
        secrets["server"] = [*server, environ.get(known.serves, "")]
    return secrets


def _server(words: list[str]) -> tuple[str, int] | None:
    options = dict(zip(words, [*words[1:], ""], strict=True)) | dict(
        word.split("=", 1) for word in words if "=" in word
    )
    port = options.get("--port", "")
    return (options.get("--hostname") or "127.0.0.1", int(port)) if port.isdecimal() and int(port) else None


def tell(given: bytes, standpoint: Standpoint, environ: Mapping[str, str]) -> None:
    """Print the synthetic result of a `broadcast` tool, unless it is empty or the agent is no member."""
    child = str(json.loads(given).get("agent_id") or "")
    store, parent = news.opened(standpoint, environ)
    insider = Insider(store.root, standpoint.team, parent.name, child)
    caller = _caller_of(insider, parent) if child else parent
    if caller is None:
        return
    try:
        permission.require(store, standpoint.team, caller, "read-messages")
        payload = attention.glance(store, standpoint.team, caller)
    except errors.TeamsError:  # the client goes on as without us
        return
    if payload:
        news.say(payload)


_PATIENCE = 10.0


def ask(client: str, given: bytes, standpoint: Standpoint, environ: Mapping[str, str]) -> int:
    """Ask the person whether the client may use the tool, print the reason if not, and return the exit status.

    If nobody can be asked, the reason says so, and the tool is not used.
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
