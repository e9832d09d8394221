"""Resources: a team, its tasks, the caller's inbox and the results of agents, each under a URI; and subscriptions."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections import Counter
from contextlib import suppress
from threading import Thread
from urllib.parse import unquote, urlsplit

import anyio
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ResourceUpdated, ToolsListChanged
from mcp.shared.exceptions import MCPError
from mcp_types import Resource, ResourceTemplate
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from teams_cli import commands, errors
from teams_cli.bugs import report
from teams_cli.commands.call import Call
from teams_cli.extensions.mcp import results
from teams_cli.extensions.mcp.identity import Identity
from teams_cli.serving import requests
from teams_cli.serving.watching import Requester
from teams_cli.store.contract import Store
from teams_cli.teams.teams import TEAM

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from mcp.server import ServerRequestContext
    from mcp.server.session import ServerSession
    from mcp_types import SubscriptionsListenRequestParams, SubscriptionsListenResult

    from teams_cli.teams.config import Config


SCHEME = "teams"
JSON = "application/json"
TEMPLATES = [
    ResourceTemplate(name=name, uri_template=f"{SCHEME}://{path}", description=description, mime_type=JSON)
    for name, path, description in (
        ("team", "{team}", "A team: its leader, its members, its settings."),
        ("tasks", "{team}/tasks", "All tasks of a team, each with what blocks it."),
        ("task", "{team}/tasks/{id}", "One task: status, owner, result, what happened to it."),
        ("inbox", "{team}/inbox", "Your unhandled messages; this does not mark them as read."),
        ("agent", "{team}/agents/{name}", "One agent: what it announced, and its results."),
    )
]


def listed(identity: Identity) -> list[Resource]:
    """Return the resources that the client can read."""
    team = identity.team
    if not team:
        return []
    paths = [("", f"team {team}"), ("/tasks", f"tasks of {team}")]
    if identity.agent:
        paths.append(("/inbox", f"inbox of {identity.agent}"))
    return [Resource(name=name, uri=f"{SCHEME}://{team}{path}", mime_type=JSON) for path, name in paths]


def text(call: Call, uri: str) -> str:
    """Return the resource at *uri* as JSON.

    Raises:
        NotFound: The URI names no resource.
        TeamsError: The resource can't be read.
    """
    name, arguments, team = _request(uri)
    names = {other.lower(): other for other in call.store.teams()}
    if team.lower() not in names:  # clients may write the host of a URI in lower case
        raise errors.NotFound(f"there is no team {team!r}", f"Teams: {', '.join(sorted(names.values())[:20])}.")
    if name == "read-messages" and call.caller is None:
        hint = "Start the server with TEAMS_AGENT_ID, or call join_team."
        raise errors.NoIdentity("an inbox belongs to an agent", hint)
    call.said_team = names[team.lower()]
    document = requests.answer(call, name, arguments)
    return json.dumps(results.resource(document, commands.get(name).gist), indent=1)


def _request(uri: str) -> tuple[str, dict[str, Any], str]:
    """Return the command that answers for a URI, the arguments of the command, and the team."""
    try:
        parts = urlsplit(uri)
    except ValueError:
        raise errors.NotFound(f"{uri[:200]!r} is not a valid URI", "List them: resources/list.") from None
    path = [unquote(part) for part in parts.path.split("/") if part]
    if parts.scheme != SCHEME or not parts.netloc:
        path = ["?"]
    match path:
        case []:
            return "show-team", {}, parts.netloc
        case ["tasks"]:
            return "get-tasks", {}, parts.netloc
        case ["tasks", task]:
            return "show-task", {"task": task}, parts.netloc
        case ["inbox"]:
            return "read-messages", {"peek": True}, parts.netloc
        case ["agents", name]:
            return "recall", {"agent": name, "output": True}, parts.netloc
    templates = ", ".join(template.uri_template for template in TEMPLATES)
    raise errors.NotFound(f"there is nothing under {uri[:200]!r}", f"Known: {templates}.")


_TOOLS = frozenset({TEAM.name})
"""The topics of changes that can change the offered tools, which depend on the caller's role and the team's roles."""
_LOOK_AGAIN = 1.0
_FLOCK = 0.005
"""Seconds to wait after a change, because changes come in groups and one look is enough for a group."""


class Subscriptions:
    """Keeps the resources that the client subscribed to, and the tools, as the client last saw them.

    Clients of the newer protocol listen on a stream of their own; clients of the older one get notifications.
    """

    def __init__(self, store: Store, identity: Identity, offered: Callable[[], list[str]]) -> None:
        self._store = store
        self._identity = identity
        self._offered = offered
        self._ends = False
        self._bus = InMemorySubscriptionBus()
        self._listen = ListenHandler(self._bus)
        self._wanted: Counter[str] = Counter()
        self._told: dict[str, str] = {}
        self._tools: list[str] | None = None
        self._session: ServerSession | None = None

    def start(self) -> None:
        """Begin to watch, in a thread that runs until `end` is called."""
        Thread(target=self._look_out, args=(asyncio.get_running_loop(),), daemon=True).start()

    def end(self) -> None:
        """Stop watching."""
        self._ends = True

    def remember(self, session: ServerSession, tools: list[str]) -> None:
        """Note the tools that the client was shown."""
        self._session, self._tools = session, tools

    async def subscribe(self, session: ServerSession, uri: str) -> None:
        """Notify the client of changes of the resource from now on."""
        self._session = session
        await self._want([uri])

    def unsubscribe(self, uri: str) -> None:
        """Stop notifying the client of the resource."""
        del self._wanted[uri]
        self._told.pop(uri, None)

    async def _want(self, uris: list[str]) -> None:
        """Watch these resources. Their present content counts as seen."""
        self._wanted.update(uris)
        for uri in uris:
            self._told.setdefault(uri, await asyncio.to_thread(self._text, uri))

    async def listen(
        self, ctx: ServerRequestContext[Any], params: SubscriptionsListenRequestParams
    ) -> SubscriptionsListenResult:
        """Serve the stream of a client of the newer protocol until the client ends it."""
        uris = list(params.notifications.resource_subscriptions or ())
        await self._want(uris)
        try:
            return await self._listen(ctx, params)
        finally:
            self._wanted.subtract(uris)

    def _look_out(self, loop: asyncio.AbstractEventLoop) -> None:
        """Watch the caller's team, and after a change of team the new one, until `end` is called."""
        reported = False
        while not (self._ends or loop.is_closed()):
            try:
                self._watch_one(loop, self._identity.team)
            except Exception as error:
                if not (reported or loop.is_closed()):
                    failure = report(error, ["mcp", "changes"])
                    print(f"teams: {failure.message}\n  {failure.hint}", file=sys.stderr)
                    reported = True
                time.sleep(_LOOK_AGAIN)

    def _watch_one(self, loop: asyncio.AbstractEventLoop, team: str) -> None:
        """Watch the team until the client is in another team or needs other topics. Without subscriptions, only changes
        that may affect the tools wake this watch.
        """
        if not team:
            return time.sleep(_LOOK_AGAIN)
        topics = self._topics()
        watch = self._store.watch(team, topics)
        try:
            rules = self._rules()
            self._look(loop)
            while not self._ends and (self._identity.team, self._topics()) == (team, topics):
                happened = watch.wait(_LOOK_AGAIN)
                if happened:
                    time.sleep(_FLOCK)
                before, rules = rules, self._rules()
                if happened or rules != before:
                    self._look(loop)
        finally:
            watch.close()

    def _topics(self) -> frozenset[str] | None:
        return None if any(count > 0 for count in list(self._wanted.values())) else _TOOLS

    def _rules(self) -> Config | None:
        """Return the user's configuration, or None while it can't be read."""
        try:
            return self._identity.rules()
        except errors.TeamsError:
            return None

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        for uri in list(self._wanted):  # the loop adds to them meanwhile
            text = self._text(uri) if self._wanted[uri] > 0 else None
            if text is not None and self._told.setdefault(uri, text) != text:
                self._told[uri] = text
                asyncio.run_coroutine_threadsafe(self._tell(ResourceUpdated(uri)), loop)
        self.look_at_tools(loop)

    def look_at_tools(self, loop: asyncio.AbstractEventLoop) -> None:
        """Notify the client if the offered tools have changed."""
        if self._tools is not None and (now := self._offered()) != self._tools:
            self._tools = now
            asyncio.run_coroutine_threadsafe(self._tell(ToolsListChanged()), loop)

    def _text(self, uri: str) -> str:
        try:
            return text(self._identity.call(Requester()), uri)
        except errors.TeamsError as error:
            return f"{error.code}: {error.message}"

    async def _tell(self, event: ResourceUpdated | ToolsListChanged) -> None:
        await self._bus.publish(event)
        session = self._session
        if session is None or session.protocol_version in MODERN_PROTOCOL_VERSIONS:
            return
        with suppress(MCPError, anyio.ClosedResourceError, anyio.BrokenResourceError):
            if isinstance(event, ResourceUpdated):
                await session.send_resource_updated(event.uri)
            else:
                await session.send_tool_list_changed()
