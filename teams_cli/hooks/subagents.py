"""Agents inside a client: those that it starts for parts of its work are members too, for as long as they live.

Their client's hooks say when one begins and ends, and by what id it goes there; which member that is, is kept in a file
of this machine.
"""

from __future__ import annotations

import json
import os

from teams_cli import errors
from teams_cli.agents import waking
from teams_cli.clients import known
from teams_cli.clients.contract import COMMON, Dialect
from teams_cli.hooks import news, waiting
from teams_cli.hooks.waiting import Reply
from teams_cli.membership import joining, leaving
from teams_cli.messages import inboxes, messages, reading
from teams_cli.store.contract import Store
from teams_cli.store.files import disk
from teams_cli.teams import permission, presence, teams
from teams_cli.teams.permission import Caller

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from teams_cli.hooks.entry import Standpoint

STARTS, ENDS = "SubagentStart", "SubagentStop"
_BEAT = 30.0
_LONGEST = 60_000
"""Characters of what one said last that its parent's message holds."""


def tell(client: str, given: bytes, standpoint: Standpoint, environ: Mapping[str, str]) -> None:
    """Answer the hook, if an agent inside the client called it."""
    event = json.loads(given)
    child = str(event.get("agent_id") or "")
    if not child:
        return
    store, parent = news.opened(standpoint, environ)
    dialect = known.get(client).dialect or COMMON
    place = _ChildPlace(store.root, standpoint.team, standpoint.agent, child)
    try:
        permission.require(store, standpoint.team, parent, "read-messages")
        reply = _answer(store, standpoint.team, parent, dialect, event, place)
    except errors.TeamsError:  # the client goes on as without us
        return
    if reply:
        news.say(reply.document)
        if reply.shown and (caller := place.caller(parent)):
            inboxes.mark_read(store, standpoint.team, caller.name, reply.shown, turn=0)


def caller_of(store: Store, team: str, parent: Caller, child: str) -> Caller | None:
    """The member that the agent of that id inside the parent's client is; None before it began, and after it ended."""
    return _ChildPlace(store.root, team, parent.name, child).caller(parent)


def _answer(
    store: Store, team: str, parent: Caller, dialect: Dialect, event: dict[str, Any], place: _ChildPlace
) -> Reply | None:
    name = event.get("hook_event_name")
    own = {key: value for key, value in event.items() if key != "agent_id"}
    caller = place.caller(parent)
    if name == STARTS:
        caller = caller or _join(store, team, parent, str(event.get("agent_type") or ""), place)
        return Reply(dialect.context(own, _introduction(store, team, caller, parent)), set())
    if caller is None:
        return None
    presence.saw(store, team, caller.name, every=_BEAT)
    if name != ENDS:
        return None if dialect.moment(own) == "stop" else waiting.answer(store, team, caller, dialect, own, 0)
    if not event.get("stop_hook_active") and event.get("can_go_on") is not False:
        mail, shown = waiting.mail(store, team, caller.name, waiting.MAX_TEXT, quiet=False)
        if mail:
            return Reply(dialect.refusal("\n\n".join(mail)), shown)
    _leave(store, team, parent, caller, event, place)
    return None


def _join(store: Store, team: str, parent: Caller, kind: str, place: _ChildPlace) -> Caller:
    """Make it a member under the next alias, as a child of its client's agent."""
    specialty = kind if kind.isprintable() and 0 < len(kind) <= 60 else None
    member, token = joining.join(store, team, None, specialty=specialty, child_of=parent.name)
    place.keep(member.agent_id, token)
    return Caller(member.agent_id, token=token, config=parent.config)


def _introduction(store: Store, team: str, caller: Caller, parent: Caller) -> str:
    told = waking.introduction(store, team, caller.name, caller.config)
    token = f"TEAMS_TOKEN={caller.token} " if caller.token else ""
    return (
        f"{told}\nYou work for {parent.name}. Say who you are in every command: {token}teams … --as {caller.name}; "
        f"without that, and by the tools of the server `team`, you speak as {parent.name}. Your last answer goes to "
        f"{parent.name} by itself."
    )


def _leave(store: Store, team: str, parent: Caller, caller: Caller, event: dict[str, Any], place: _ChildPlace) -> None:
    """Pipe what it said last to its parent, who has it from the client as well and need not read it; it leaves then."""
    said = str(event.get("last_assistant_message") or "").strip()[:_LONGEST]
    if said and teams.get(store, team).member(caller.name):
        uid = f"{caller.name}~output-1"
        sent = messages.notify(store, team, parent.name, said, uid, "output", caller.name, wake=False)
        reading.settle(store, team, parent.name, {sent.number})
    leaving.leave(store, team, caller)
    place.forget()


class _ChildPlace:
    """Where it is kept on this machine which member an agent inside a client is."""

    def __init__(self, root: str, team: str, parent: str, child: str) -> None:
        self.root = root
        self.path = f"{root}/subagents/{team}/{parent}.{child.encode().hex()[:150]}.json"

    def caller(self, parent: Caller) -> Caller | None:
        """The member; None before it began, and after it ended."""
        try:
            kept = json.loads(disk.read_file(self.path))
        except FileNotFoundError:
            return None
        return Caller(kept["agent"], token=kept["token"], config=parent.config)

    def keep(self, agent: str, token: str) -> None:
        """Note who it is."""
        os.makedirs(os.path.dirname(self.path), 0o700, exist_ok=True)
        data = json.dumps({"agent": agent, "token": token}).encode()
        disk.commit(disk.write_temp(f"{self.root}/tmp", data), self.path)

    def forget(self) -> None:
        """Forget who it is."""
        disk.discard(self.path)
