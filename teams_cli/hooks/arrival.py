"""Turn clients in terminals, and the subagents inside a client, into members when hooks report them.

When a client starts, its hook records how the client can be woken. A subagent is a member as long as it runs: hooks of
the client report its id, its start and its end. An agent that a subagent started keeps the subagent from ending, or is
handed over to the agent of the client.
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
from teams_cli.clients.contract import COMMON, Seat
from teams_cli.clock import seconds_since
from teams_cli.hooks import news, replies
from teams_cli.hooks.replies import ClientEvent, Reply
from teams_cli.membership import joining
from teams_cli.messages import inboxes, messages, reading
from teams_cli.questions import answering
from teams_cli.store import opening
from teams_cli.store.contract import Store, update
from teams_cli.store.files.engine import FILES
from teams_cli.tasks import claims
from teams_cli.teams import config, permission, presence, teams
from teams_cli.teams.permission import Caller

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from teams_cli.hooks.entry import Standpoint


STARTS, CALLS, ENDS = "SubagentStart", "PreToolUse", "SubagentStop"
_LONGEST_ANSWER = 60_000
"""Maximum number of characters of a subagent's last answer that are sent to its parent."""


def tell_child(
    client: str, raw_event: bytes, standpoint: Standpoint, environ: Mapping[str, str], holds: bool = False
) -> None:
    """Answer the hook if a subagent of the client called it. When the subagent is about to end, the hook may delay its
    end by some seconds. *holds* says that the client waits longer for this hook, so that the delay may be a quarter of
    an hour.
    """
    document = json.loads(raw_event)
    child_id = str(document.get("agent_id") or "")
    if not child_id:
        return
    store, parent = news.open_store(standpoint, environ)
    event = ClientEvent(store, standpoint.team, parent, known.get(client).dialect or COMMON, document)
    insider = Insider(store.root, standpoint.team, standpoint.agent, child_id)
    try:
        permission.require(store, standpoint.team, parent, "read-messages")
        reply = _answer_child(event, insider, replies.LONG_HOLD if holds else replies.SHORT_HOLD)
    except errors.TeamsError:  # the client goes on as without us
        return
    if reply:
        news.say(reply.document)
        if reply.shown and (caller := news.member_of(insider, parent)):
            inboxes.mark_read(store, standpoint.team, caller.name, reply.shown, turn=0)


def _answer_child(event: ClientEvent, insider: Insider, seconds: float) -> Reply | None:
    """Return the answer for a subagent; None if there is nothing to say. The subagent joins the team when it starts,
    and leaves the team when it ends. The hook delays the end by at most *seconds*.

    The caller of the *event* is the agent of the client, which is the parent of the subagent. *insider* is the record
    of the subagent.
    """
    store, team, parent = event.store, event.team, event.caller
    name = event.document.get("hook_event_name")
    as_of_member = {key: value for key, value in event.document.items() if key != "agent_id"}
    caller = news.member_of(insider, parent)
    if name == STARTS:
        if caller is None:  # it gets the next free alias
            kind = str(event.document.get("agent_type") or "")
            specialty = kind if kind.isprintable() and 0 < len(kind) <= 60 else None
            member, token = joining.join(store, team, None, specialty=specialty, child_of=parent.name)
            insider.keep(member.agent_id, token)
            caller = Caller(member.agent_id, token=token, config=parent.config)
        return Reply(event.dialect.context(as_of_member, _introduction(store, team, caller, parent)), set())
    if caller is None:
        return None
    if name == CALLS:
        insider.note_call(str(event.document.get("tool_use_id") or ""))
        return None
    last_seen = presence.load(store, team, caller.name).last_seen
    if not last_seen or seconds_since(last_seen, store.now()) >= replies.beat(store, team):
        with suppress(errors.TeamsError):  # a claim ended at this very moment
            claims.heartbeat(store, team, caller)
    event_of_child = event._replace(caller=caller, document=as_of_member)
    if name != ENDS:
        if event_of_child.moment == "stop":  # the end of the client's turn, not that of the subagent
            return None
        return replies.answer(event_of_child)
    if event.document.get("can_go_on") is not False and (reply := _end_refusal(event_of_child, seconds)):
        return reply
    _end_child(store, team, caller, parent, str(event.document.get("last_assistant_message") or ""))
    insider.forget()
    return None


def _introduction(store: Store, team: str, child: Caller, parent: Caller) -> str:
    """Return a text that introduces a subagent to the team, and tells the subagent how to name itself in commands."""
    about_team = attention.introduction(store, team, child.name, child.config)
    token = f"TEAMS_TOKEN={child.token} " if child.token else ""
    return (
        f"{about_team}\nYou work for {parent.name}. Name yourself in every command: {token}teams … --as {child.name}. "
        f"Without that you act as {parent.name}. The tools of the server `team` know who you are. Your last answer is "
        f"given to {parent.name} automatically."
    )


def _end_child(store: Store, team: str, child: Caller, parent: Caller, last_answer: str) -> None:
    """Hand the last answer, the agents and the unread outputs of an ended subagent over to *parent*, and remove the
    subagent from the team.
    """
    last_answer = last_answer.strip()[:_LONGEST_ANSWER]
    if last_answer and teams.get(store, team).member(child.name):
        uid = f"{child.name}~output-1"
        sent = messages.notify(store, team, parent.name, last_answer, uid, "output", child.name, wake=False)
        # The parent has the answer from the client as well, and need not read it.
        reading.mark_handled(store, team, parent.name, {sent.number})
    for started in ending.children(store, team, child.name):
        update(store, team, SESSION, started.agent, lambda session: session.having(caller=parent.name))
    mailbox = inboxes.Mailbox(store, team, child.name)
    for output in mailbox.messages(mailbox.unread(True)):
        if output.type == "output":
            uid = f"{child.name}~left-{output.number}"
            messages.notify(store, team, parent.name, output.message, uid, "output", output.from_)
    joining.leave(store, team, child)


def _end_refusal(event: ClientEvent, seconds: float) -> Reply | None:
    """Return the answer that keeps the subagent, the caller of the *event*, from ending; None if it may end. The
    subagent may not end while it has unread mail, or while agents that it started are still working. If such agents are
    working, first wait at most *seconds* for their output.
    """
    store, team, caller = event.store, event.team, event.caller
    with news.SeenFile(f"{store.root}/teams/{team}/inboxes/{caller.name}.seen") as seen_file:
        is_refused_before = bool(event.document.get("stop_hook_active"))
        if not is_refused_before:
            seen_file.stops_refused = 0
        if seen_file.stops_refused >= replies.MAX_STOPS_REFUSED:  # then it may end all the same
            return None
        at_work = replies.agents_at_work(store, team, caller.name, None)
        if at_work:
            replies.hold(store, team, caller, None, seconds)
            at_work = replies.agents_at_work(store, team, caller.name, None)
        elif is_refused_before and not seen_file.stops_refused:  # another program's hook did, so we add nothing
            return None
        letters, shown = replies.mail(store, team, caller.name, replies.MAX_TEXT, with_quiet=False)
        if not (at_work or letters):
            return None
        seen_file.stops_refused += 1
        return Reply(event.dialect.refusal("\n\n".join([*at_work, *letters])), shown)


_VARIABLES_FOR_PROGRAM = ("HOME", "PATH", "CODEX_HOME", "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME", "TMPDIR", "LANG")
"""The variables of a client that its program gets when we run it to wake the client."""


def seat(client: str, standpoint: Standpoint, raw_event: bytes, environ: Mapping[str, str]) -> Standpoint:
    """Make the client that runs this hook a member if a person sits in front of it. Return the standpoint of the
    member, or *standpoint* if the client does not become a member. If the client has a daemon and its own environment
    names a team, the returned standpoint has that team.

    If nobody sits in front of the client but its environment names an agent, record that the client's process is this
    agent, so that clients started by this process are not taken for the agent, although they have the same environment.
    """
    event = json.loads(raw_event)
    client_seat = known.get(client).seat
    if client_seat is None:
        return standpoint
    session_id = str(event.get("session_id") or "")
    pid = terminals.pid_of_client(client_seat, session_id)
    state = seats.state_in(event)
    is_subagent = bool(event.get("agent_id"))  # it is no client of its own
    if not pid or not state or is_subagent:
        return standpoint
    named_agent = Binding(standpoint.team, standpoint.agent, standpoint.token)
    if client_seat.is_headless(terminals.words_of(pid)):
        if named_agent.agent:
            bindings.bind_without_person(standpoint.root, named_agent, pid)
        return standpoint
    client_environ, thread = environ, ""
    if client_seat.daemon:  # it runs this hook in its own environment, for every terminal
        client_environ, thread = terminals.variables_of(pid), session_id
        if team_of_client := environment.look_up("team", None, client_environ)[0]:
            standpoint = standpoint.acting_for(Binding(team_of_client, standpoint.agent, standpoint.token))
    store = opening.open_store(standpoint.root, standpoint.store or FILES, host=environ.get("TEAMS_HOST", ""))
    if not sitting.may_sit(store, standpoint.team):
        return standpoint
    arrival = Arrival(
        client,
        pid,
        session_id,
        str(event.get("cwd") or os.getcwd()),
        caller=_named_caller(standpoint, client_environ, config.load(store.root, environ)),
        thread=thread,
        tty=terminals.terminal_of(pid),
        way=client_seat.ways[0] if client_seat.ways else "",
        source=f"hook {event.get('hook_event_name')}",
        state=state,
        secrets=_secrets(client_seat, pid, environ),
    )
    if member := sitting.sit_down(store, standpoint.team, arrival):
        return standpoint.acting_for(member)
    if named_agent.agent:  # `teams` started this client, and the process that runs its turns wakes it
        bindings.bind_without_person(store.root, named_agent, pid)
    return standpoint


def _named_caller(standpoint: Standpoint, environ: Mapping[str, str], user_config: config.Config) -> Caller | None:
    """Return as a caller the agent named in the environment or, if there is none, in the standpoint; None if neither
    names one.
    """
    name = environment.look_up("agent", None, environ)[0] or standpoint.agent
    if not name:
        return None
    token = standpoint.token or environment.look_up("token", None, environ)[0]
    display, kind = (environment.look_up(what, None, environ)[0] for what in ("display", "type"))
    return Caller(name, display=display, type=kind, token=token, config=user_config)


def _secrets(client_seat: Seat, pid: int, environ: Mapping[str, str]) -> dict[str, Any]:
    """Return what is needed to wake the client: its program, some variables of its environment and, if the client has
    them, its socket with a token and its server with a password.
    """
    secrets: dict[str, Any] = {"program": terminals.program_of(pid)}
    secrets["environ"] = {key: environ[key] for key in _VARIABLES_FOR_PROGRAM if key in environ}
    socket = client_seat.socket
    if socket and environ.get(socket.address_variable):
        secrets["socket"] = environ[socket.address_variable]
        secrets["socketToken"] = environ.get(socket.token_variable, "")
    if client_seat.password_variable:
        words = terminals.words_of(pid)
        options = dict(zip(words, [*words[1:], ""], strict=True))  # as if each word were an option before its value
        options |= dict(word.split("=", 1) for word in words if "=" in word)
        port = options.get("--port", "")
        if port.isdecimal() and int(port):  # with port 0, the client chooses a port that nobody else knows
            host, password = options.get("--hostname") or "127.0.0.1", environ.get(client_seat.password_variable, "")
            secrets["server"] = [host, int(port), password]
    return secrets


def tell(raw_event: bytes, standpoint: Standpoint, environ: Mapping[str, str]) -> None:
    """Print the agent's teammates and messages as if they were the result of a tool named `broadcast`. Print nothing if
    there are no teammates and no messages, or if the agent is not a member.
    """
    child_id = str(json.loads(raw_event).get("agent_id") or "")
    store, caller = news.open_store(standpoint, environ)
    if child_id:
        child = news.member_of(Insider(store.root, standpoint.team, caller.name, child_id), caller)
        if child is None:
            return
        caller = child
    try:
        permission.require(store, standpoint.team, caller, "read-messages")
        payload = attention.glance(store, standpoint.team, caller)
    except errors.TeamsError:  # the client goes on as without us
        return
    if payload:
        news.say(payload)


_PATIENCE = 10.0
"""Seconds that a question to the person waits for a store that does not answer."""


def ask(client: str, raw_event: bytes, standpoint: Standpoint, environ: Mapping[str, str]) -> int:
    """Ask the person whether the client may use a tool, and return the exit status. If the tool may not be used, print
    the reason.

    If nobody can be asked, an error is raised, and the tool is not used.
    """
    event = json.loads(raw_event)
    tool, tool_input = str(event["tool_name"]), event.get("tool_input")
    if permissions.is_ours(tool, tool_input):
        return 0
    if not standpoint.has_team:
        raise errors.NotAllowed("no team is set, so nobody can be asked", "Set TEAMS_TEAM and TEAMS_AGENT_ID.")
    store, caller = news.open_store(standpoint, environ, _PATIENCE)
    why_not = answering.ask_for_tool(store, standpoint.team, caller, tool, permissions.as_text(tool_input))
    if why_not:
        news.say((known.get(client).dialect or COMMON).denial(event, why_not))
    return 0
