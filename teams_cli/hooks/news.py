"""The slow part of `teams hook`: when there may be news for the agent, or its heartbeat is due."""

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
from teams_cli.clients.contract import COMMON, Dialect
from teams_cli.clients.seats import GONE, IDLE, PERMISSION, TERMINAL_STATE, WORKING, permission_for, state_said
from teams_cli.hooks import quiet, replies
from teams_cli.hooks.replies import Recall
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

    from teams_cli.hooks.entry import Standpoint
    from teams_cli.records.types import TerminalState


PATIENCE = 2.0
"""The seconds that a client waits for a store that does not answer, before it goes on."""


def opened(standpoint: Standpoint, environ: Mapping[str, str], patience: float = PATIENCE) -> tuple[Store, Caller]:
    """Open the store of the hook, and return it with the agent as the caller. Wait *patience* seconds for a server."""
    store = opening.open_store(standpoint.root, standpoint.store or FILES, patience, environ.get("TEAMS_HOST", ""))
    token = standpoint.token or environment.look_up("token", None, environ)[0]
    return store, Caller(standpoint.agent, token=token, config=config.load(store.root, environ))


def say(document: dict[str, Any]) -> None:
    """Print the answer. A failure is raised here, and not once more at exit."""
    try:
        sys.stdout.write(json.dumps(document) + "\n")
        sys.stdout.flush()
    finally:
        streams.finish()


def tell(client: str, given: bytes, standpoint: Standpoint, environ: Mapping[str, str], holds: bool) -> None:
    """Answer the hook on standard output. An agent that is no member gets no answer.

    The end of a turn is held while an agent works for the caller, but not where a person sits in front of the client:
    that agent is woken later.
    """
    event = json.loads(given) if given.strip() else {}
    team, agent = standpoint.team, standpoint.agent
    store, caller = opened(standpoint, environ)
    try:
        permission.require(store, team, caller, "read-messages")
    except (errors.NotAllowed, errors.TeamNotFound, errors.Conflict):
        return
    dialect = known.get(client).dialect or COMMON
    is_subagent = bool(event.get("agent_id"))
    if dialect.moment(event) == "stop" and not (standpoint.has_terminal or is_subagent):
        seconds = _seconds_held(holds, event)
        replies.hold(store, team, caller, sessions.find(store, team, agent), seconds)
    with Seen(f"{store.root}/teams/{team}/inboxes/{agent}.seen") as seen:
        goes_on = _say(store, standpoint, caller, dialect, event, seen)
        _note_session(store, standpoint, client, event)
        _beat(store, team, caller, seen)
        number, has_more = replies.unread(store, team, agent)
        seen.number = -1 if has_more else number
        if standpoint.has_terminal and not is_subagent:
            state = _report(store, standpoint, event, goes_on, environ)
            seen.number = -1 if state == PERMISSION else seen.number  # what comes next is news


def _seconds_held(holds: bool, event: Mapping[str, Any]) -> float:
    """Return for how many seconds the end of a turn is held: long if the client *holds* on for its hook."""
    if holds:
        return replies.LONG_HOLD
    if event.get("attends"):  # an older plugin of OpenCode would freeze the client meanwhile
        return 0.0
    return replies.SHORT_HOLD


def _note_session(store: Store, standpoint: Standpoint, client: str, event: dict[str, Any]) -> None:
    """Note the session of a client in no terminal once it has content, so that copies of it can answer questions."""
    is_in_turn = (known.get(client).dialect or COMMON).moment(event) in ("prompt", "tools")
    if not is_in_turn or standpoint.has_terminal or event.get("agent_id"):
        return
    directory = str(event.get("cwd") or os.getcwd())
    with suppress(errors.TeamsError):
        sessions.note_told(
            store, standpoint.team, standpoint.agent, client, str(event.get("session_id") or ""), directory
        )


def _report(
    store: Store, standpoint: Standpoint, event: dict[str, Any], goes_on: bool, environ: Mapping[str, str]
) -> TerminalState | None:
    """Note what the event says about the client in its terminal. A refused stop is not noted."""
    state = WORKING if goes_on else state_said(event)
    terminal = terminals.find(store, standpoint.team, standpoint.agent)
    if not state or terminal is None:
        return None
    if terminal.has_ended and state != GONE:  # this is the next client, which has to join
        return None
    name = event.get("hook_event_name")
    source = str(event.get("source")) if name == TERMINAL_STATE else f"hook {name}"
    if name != TERMINAL_STATE:
        bindings.note_state(store.root, standpoint.team, standpoint.agent, state)
    if state == GONE:
        sitting.stand_up(store, standpoint.team, standpoint.agent, source)
    else:
        wish = permission_for(event) if state == PERMISSION else None
        session_id = str(event.get("session_id") or "")
        now = terminals.note_report(store, standpoint.team, standpoint.agent, state, source, session_id, wish)
        if now.session_id != terminal.session_id:  # some clients begin their session after they have joined
            sitting.note_session(store, standpoint.team, now)
    if state in (IDLE, GONE):
        background.start_for_terminals(store, standpoint.team, environ)
    return state


def _say(
    store: Store, standpoint: Standpoint, caller: Caller, dialect: Dialect, event: dict[str, Any], seen: Seen
) -> bool:
    """Print the answer, and mark its messages as read after that: shown twice is better than never. Return whether the
    end of a turn was refused.
    """
    stop = dialect.moment(event) == "stop"
    if stop and not event.get("stop_hook_active"):
        seen.blocks = 0
    recall = None if event.get("attends") else seen.recall  # such a client has it with every call of its model
    seated = standpoint.has_terminal
    reply = replies.answer(store, standpoint.team, caller, dialect, event, seen.blocks, seated, recall)
    if reply is None:
        return False
    say(reply.document)
    seen.blocks += stop
    inboxes.mark_read(store, standpoint.team, caller.name, reply.shown, turn=0)
    return stop


def _beat(store: Store, team: str, caller: Caller, seen: Seen) -> None:
    """Renew the leases of the caller's tasks, unless that was done a moment ago."""
    if not (0 <= time.time() - seen.beat < quiet.BEAT or caller.is_human):
        try:
            claims.heartbeat(store, team, caller)
        except errors.TeamsError:  # it may not, or a claim ended at this very moment
            return
        # Where leases are short the file is older than it is, so that who looks at its age alone comes back in time.
        seen.beat = time.time() - (quiet.BEAT - replies.beat(store, team))


class Seen:
    """The file with the number up to which no message is unread, the number of stops refused in a row, and the news
    that were shown.

    While it is open, other hooks of the same agent wait, so that only one of them shows a message.
    """

    def __init__(self, path: str) -> None:
        self.path = path

    def __enter__(self) -> Seen:
        os.makedirs(os.path.dirname(self.path), 0o700, exist_ok=True)
        self.file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        fcntl.flock(self.file, fcntl.LOCK_EX)
        words = os.read(self.file, 128).split()
        is_valid = len(words) in (2, 4) and all(word.isdigit() for word in words[1:])
        self.number, self.blocks = -1, int(words[1]) if is_valid else 0
        self.recall = Recall(int(words[2]) - 1, int(words[3])) if is_valid and len(words) == 4 else Recall()
        self.beat = os.fstat(self.file).st_mtime if is_valid else 0.0
        return self

    def __exit__(self, *failure: object) -> None:
        if failure == (None, None, None):
            os.ftruncate(self.file, 0)
            words = (self.number, self.blocks, self.recall.position + 1, self.recall.at)
            os.pwrite(self.file, b"%d %d %d %d\n" % words, 0)
            os.utime(self.file, (self.beat, self.beat))
        os.close(self.file)
