"""The slow part of `teams hook`. It runs when there may be news for the agent, or when the heartbeat of the agent is
due.
"""

from __future__ import annotations

import fcntl
import json
import os
import sys
import time
from contextlib import suppress

from teams_cli import environment, errors, streams
from teams_cli.agents import background, sessions
from teams_cli.agents.seats import bindings, sitting, terminals
from teams_cli.clients import known
from teams_cli.clients.contract import COMMON
from teams_cli.clients.seats import GONE, IDLE, PERMISSION, TERMINAL_STATE, WORKING, permission_for, state_in
from teams_cli.hooks import quiet, replies
from teams_cli.hooks.replies import ClientEvent, Recall
from teams_cli.messages import inboxes
from teams_cli.store import opening
from teams_cli.store.contract import Store
from teams_cli.store.files.engine import FILES
from teams_cli.tasks import claims
from teams_cli.teams import config, permission
from teams_cli.teams.permission import Caller

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from teams_cli.agents.seats.insiders import Insider
    from teams_cli.hooks.entry import Standpoint
    from teams_cli.records.types import TerminalState
    from teams_cli.teams.teams import Team


_SOME_UNREAD = -1
"""The number in a `SeenFile` if a message may be unread, or if the next hook has something to do for another reason."""
PATIENCE = 2.0
"""Seconds that a client waits for a store that does not answer before the client goes on."""


def open_store(standpoint: Standpoint, environ: Mapping[str, str], patience: float = PATIENCE) -> tuple[Store, Caller]:
    """Open the store for the hook. Return the store, and the hook's agent as the caller. *patience* is the maximum
    number of seconds that a database may take to answer.
    """
    store = opening.open_store(standpoint.root, standpoint.store or FILES, patience, environ.get("TEAMS_HOST", ""))
    token = standpoint.token or environment.look_up("token", None, environ)[0]
    return store, Caller(standpoint.agent, token=token, config=config.load(store.root, environ))


def say(document: dict[str, Any]) -> None:
    """Print the answer. If printing fails, the error is raised here, and not reported again when the program exits."""
    try:
        sys.stdout.write(json.dumps(document) + "\n")
        sys.stdout.flush()
    finally:
        streams.finish()


def team_of_member(store: Store, standpoint: Standpoint, caller: Caller) -> Team | None:
    """Return the team of the hook. Return None if the hook must give no answer, because the caller is not a member of
    this team or may not read messages.
    """
    try:
        return permission.require(store, standpoint.team, caller, "read-messages").team
    except (errors.NotAllowed, errors.TeamNotFound, errors.Conflict):
        return None


def member_of(insider: Insider, parent: Caller) -> Caller | None:
    """Return the subagent *insider* of the agent *parent* as a caller, with its own name in the team. Return None if
    the subagent has not started or has ended.
    """
    name_and_token = insider.read()
    if name_and_token is None:
        return None
    return Caller(name_and_token[0], token=name_and_token[1], config=parent.config)


def tell(client: str, raw_event: bytes, standpoint: Standpoint, environ: Mapping[str, str], holds: bool) -> None:
    """Answer the hook on standard output. There is no answer if the agent is not a member.

    At the end of a turn, first wait for a while if agents that this agent started are still working. If a person sits
    in front of the client, do not wait, because such a client can be woken later.
    """
    document = json.loads(raw_event) if raw_event.strip() else {}
    team, agent = standpoint.team, standpoint.agent
    store, caller = open_store(standpoint, environ)
    if team_of_member(store, standpoint, caller) is None:
        return
    event = ClientEvent(store, team, caller, known.get(client).dialect or COMMON, document)
    is_subagent = bool(document.get("agent_id"))
    if event.moment == "stop" and not (standpoint.has_terminal or is_subagent):
        seconds = replies.LONG_HOLD if holds else replies.SHORT_HOLD
        if document.get("attends") and not holds:  # an older plugin of OpenCode, which would freeze the client
            seconds = 0.0
        replies.hold(store, team, caller, sessions.find(store, team, agent), seconds)
    with SeenFile(f"{store.root}/teams/{team}/inboxes/{agent}.seen") as seen_file:
        goes_on = _print_reply(event, standpoint.has_terminal, seen_file)
        _note_session(event, standpoint, client)
        _renew_leases(store, team, caller, seen_file)
        last_number, has_unread = replies.unread(store, team, agent)
        seen_file.number = _SOME_UNREAD if has_unread else last_number
        if standpoint.has_terminal and not is_subagent:
            state = _note_state(store, standpoint, document, goes_on, environ)
            if state == PERMISSION:
                seen_file.number = _SOME_UNREAD  # the next event ends this state, so the next hook must not be quiet


def _note_session(event: ClientEvent, standpoint: Standpoint, client: str) -> None:
    """After the first prompt of a client without a terminal, record its session, so that copies of the session can
    answer questions.
    """
    document = event.document
    if event.moment not in ("prompt", "tools") or standpoint.has_terminal or document.get("agent_id"):
        return
    directory = str(document.get("cwd") or os.getcwd())
    session_id = str(document.get("session_id") or "")
    with suppress(errors.TeamsError):  # the next event reports the session again
        sessions.note_reported(event.store, event.team, standpoint.agent, client, session_id, directory)


def _note_state(
    store: Store, standpoint: Standpoint, event: dict[str, Any], goes_on: bool, environ: Mapping[str, str]
) -> TerminalState | None:
    """Record and return the state of the client in its terminal, as the *event* reports it. If the client *goes_on*,
    because the end of its turn was refused, the state is "working". Return None if no state is recorded.
    """
    team, agent = standpoint.team, standpoint.agent
    state = WORKING if goes_on else state_in(event)
    terminal = terminals.find(store, team, agent)
    if not state or terminal is None:
        return None
    if terminal.has_ended and state != GONE:  # this is the next client, which has to join
        return None
    name = event.get("hook_event_name")
    if name == TERMINAL_STATE:  # our wrapper or plugin reports it, and names itself
        source = str(event.get("source"))
    else:
        source = f"hook {name}"
        bindings.note_state(store.root, team, agent, state)
    if state == GONE:
        sitting.stand_up(store, team, agent, source)
    else:
        waits_for = permission_for(event) if state == PERMISSION else None
        session_id = str(event.get("session_id") or "")
        noted = terminals.note_report(store, team, agent, state, source, session_id, waits_for)
        if noted.session_id != terminal.session_id:  # some clients begin their session after they have joined
            sitting.note_session(store, team, noted)
    if state in (IDLE, GONE):
        background.start_for_terminals(store, team, environ)
    return state


def _print_reply(event: ClientEvent, seated: bool, seen_file: SeenFile) -> bool:
    """Print the answer to the event, if there is one. Then mark its messages as read. Because this comes last, no
    message is lost if printing fails. Return whether the answer refuses the end of the turn.
    """
    is_stop = event.moment == "stop"
    if is_stop and not event.document.get("stop_hook_active"):
        seen_file.stops_refused = 0
    # `recall` makes the answer repeat open mail and changes. A client whose event has `attends` needs no such reminder,
    # because it shows all news to its model with every call.
    recall = None if event.document.get("attends") else seen_file.recall
    reply = replies.answer(event, seen_file.stops_refused, seated, recall)
    if reply is None:
        return False
    say(reply.document)
    if is_stop:
        seen_file.stops_refused += 1
    inboxes.mark_read(event.store, event.team, event.caller.name, reply.shown, turn=0)
    return is_stop


def _renew_leases(store: Store, team: str, caller: Caller, seen_file: SeenFile) -> None:
    """Renew the claims on the caller's tasks, unless they were renewed a moment ago."""
    if caller.is_human or 0 <= time.time() - seen_file.beat < quiet.BEAT:
        return
    try:
        claims.heartbeat(store, team, caller)
    except errors.TeamsError:  # the caller may not claim tasks, or a claim ended at this very moment
        return
    # Hooks renew again when the file is `BEAT` seconds old. Where leases are short, the file is made to look older.
    seen_file.beat = time.time() - (quiet.BEAT - replies.beat(store, team))


class SeenFile:
    """The file that records what hooks have shown to an agent.

    All messages up to *number* have been read; -1 says that the next hook has to ask the store. *stops_refused* counts
    how often in a row the end of a turn was refused. *recall* records which news has been shown. *beat* is the time of
    the last heartbeat, in seconds since 1970; it is also the modification time of the file.

    While a hook has the file open, other hooks of this agent wait, so that only one of the hooks shows a message.
    """

    def __init__(self, path: str) -> None:
        self.path = path

    def __enter__(self) -> SeenFile:
        os.makedirs(os.path.dirname(self.path), 0o700, exist_ok=True)
        self.file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        fcntl.flock(self.file, fcntl.LOCK_EX)
        words = os.read(self.file, 128).split()  # four numbers, as written below; earlier versions wrote two
        is_valid = len(words) in (2, 4) and all(word.isdigit() for word in words[1:])
        self.number = _SOME_UNREAD  # the number in the file is for `quiet` only
        self.stops_refused = int(words[1]) if is_valid else 0
        self.recall = Recall()
        if is_valid and len(words) == 4:
            self.recall = Recall(int(words[2]) - 1, int(words[3]))
        self.beat = os.fstat(self.file).st_mtime if is_valid else 0.0
        return self

    def __exit__(self, *failure: object) -> None:
        if failure == (None, None, None):  # else the file stays as it was, and the next hook tries again
            os.ftruncate(self.file, 0)
            # The position is -1 at first; the file has only digits behind its first word.
            words = (self.number, self.stops_refused, self.recall.position + 1, self.recall.mail_shown_at)
            os.pwrite(self.file, b"%d %d %d %d\n" % words, 0)
            os.utime(self.file, (self.beat, self.beat))
        os.close(self.file)
