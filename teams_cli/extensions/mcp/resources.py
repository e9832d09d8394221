"""Resources: a team, its tasks, the caller's inbox and the results of agents, each under a URI. Clients can subscribe
to resources.
"""

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
    command, arguments, team = _request(uri)
    teams = {name.lower(): name for name in call.store.teams()}  # clients may write the host of a URI in lower case
    if team.lower() not in teams:
        raise errors.NotFound(f"there is no team {team!r}", f"Teams: {', '.join(sorted(teams.values())[:20])}.")
    if command == "read-messages" and call.caller is None:
        hint = "Start the server with TEAMS_AGENT_ID, or call join_team."
        raise errors.NoIdentity("an inbox belongs to an agent", hint)
    call.given_team = teams[team.lower()]
    document = requests.answer(call, command, arguments)
    return json.dumps(results.resource(document, commands.get(command).gist), indent=1)


def _request(uri: str) -> tuple[str, dict[str, Any], str]:
    """Return the command that reads the resource at *uri*, the arguments of the command, and the team."""
    try:
        parts = urlsplit(uri)
    except ValueError:
        raise errors.NotFound(f"{uri[:200]!r} is not a valid URI", "List them: resources/list.") from None
    is_ours = parts.scheme == SCHEME and bool(parts.netloc)
    path = [unquote(part) for part in parts.path.split("/") if part]
    match path if is_ours else None:  # None matches no case
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


_TOPICS_OF_TOOLS = frozenset({TEAM.name})
"""The topics of changes that can change the offered tools, which depend on the caller's role and the team's roles."""
_CHECK_SECONDS = 1.0
"""Seconds between two checks of the caller's team and the user's configuration."""
_GROUP_SECONDS = 0.005
"""Seconds to wait after a change, because changes come in groups, and one check is enough for a group."""


class Subscriptions:
    """Notifies the client when a resource to which it subscribed has changed, or when the list of tools has changed.
    *offered* returns the names of the tools that are offered to the client now.

    Clients of the newer protocol listen on a stream of their own. Clients of the older protocol get notifications.
    """

    def __init__(self, store: Store, identity: Identity, offered: Callable[[], list[str]]) -> None:
        self._store = store
        self._identity = identity
        self._offered = offered
        self._is_over = False
        self._bus = InMemorySubscriptionBus()
        self._listen = ListenHandler(self._bus)
        self._subscriptions: Counter[str] = Counter()
        """The number of subscriptions to each resource."""
        self._contents: dict[str, str] = {}
        """Each resource as the client last knew it."""
        self._tools: list[str] | None = None
        """The names of the tools as the client last knew them; None before it asked for them."""
        self._session: ServerSession | None = None

    def start(self) -> None:
        """Begin to watch for changes, in a thread that runs until `end` is called."""
        Thread(target=self._watch, args=(asyncio.get_running_loop(),), daemon=True).start()

    def end(self) -> None:
        self._is_over = True

    def remember(self, session: ServerSession, tools: list[str]) -> None:
        """Note the *tools* that the client was shown, and its *session*, to notify it when its tools change."""
        self._session, self._tools = session, tools

    async def subscribe(self, session: ServerSession, uris: list[str]) -> None:
        """Notify the client from now on when one of the resources *uris* changes. It gets no notification of their
        present content.
        """
        self._session = session
        self._subscriptions.update(uris)
        for uri in uris:
            self._contents.setdefault(uri, await asyncio.to_thread(self._text, uri))

    def unsubscribe(self, uri: str) -> None:
        del self._subscriptions[uri]
        self._contents.pop(uri, None)

    async def listen(
        self, ctx: ServerRequestContext[Any], params: SubscriptionsListenRequestParams
    ) -> SubscriptionsListenResult:
        """Serve the stream of a client of the newer protocol until the client ends it."""
        uris = list(params.notifications.resource_subscriptions or ())
        await self.subscribe(ctx.session, uris)
        try:
            return await self._listen(ctx, params)
        finally:
            self._subscriptions.subtract(uris)

    def _watch(self, loop: asyncio.AbstractEventLoop) -> None:
        """Watch the caller's team, whichever it is at the time, until `end` is called."""
        is_reported = False
        while not (self._is_over or loop.is_closed()):
            try:
                self._watch_team(loop, self._identity.team)
            except Exception as error:
                if not (is_reported or loop.is_closed()):  # only the first failure is reported
                    failure = errors.report_bug(error, ["mcp", "changes"])
                    print(f"teams: {failure.message}\n  {failure.hint}", file=sys.stderr)
                    is_reported = True
                time.sleep(_CHECK_SECONDS)

    def _watch_team(self, loop: asyncio.AbstractEventLoop, team: str) -> None:
        """Notify the client of changes, until the caller is in another team, or until other topics must be watched."""
        if not team:
            time.sleep(_CHECK_SECONDS)
            return
        topics = self._topics()
        watch = self._store.watch(team, topics)
        try:
            config = self._config()
            self._notify_of_changes(loop)
            while not self._is_over and (self._identity.team, self._topics()) == (team, topics):
                has_changed = watch.wait(_CHECK_SECONDS)
                if has_changed:
                    time.sleep(_GROUP_SECONDS)
                earlier_config, config = config, self._config()
                if has_changed or config != earlier_config:
                    self._notify_of_changes(loop)
        finally:
            watch.close()

    def _topics(self) -> frozenset[str] | None:
        """Return the topics to watch; None stands for all. Without subscriptions, only the tools may have changed."""
        is_subscribed = any(count > 0 for count in list(self._subscriptions.values()))
        return None if is_subscribed else _TOPICS_OF_TOOLS

    def _config(self) -> Config | None:
        try:
            return self._identity.load_config()
        except errors.TeamsError:
            return None

    def _notify_of_changes(self, loop: asyncio.AbstractEventLoop) -> None:
        """Read all resources with subscriptions, and notify the client of those that changed, and of changed tools."""
        for uri in list(self._subscriptions):  # a copy, because the event loop may add some meanwhile
            if self._subscriptions[uri] <= 0:
                continue
            content = self._text(uri)
            if self._contents.setdefault(uri, content) != content:
                self._contents[uri] = content
                asyncio.run_coroutine_threadsafe(self._notify(ResourceUpdated(uri)), loop)
        self.notify_of_tools(loop)

    def notify_of_tools(self, loop: asyncio.AbstractEventLoop) -> None:
        """Notify the client if the offered tools have changed."""
        if self._tools is None:  # the client has not asked for them yet
            return
        offered = self._offered()
        if offered != self._tools:
            self._tools = offered
            asyncio.run_coroutine_threadsafe(self._notify(ToolsListChanged()), loop)

    def _text(self, uri: str) -> str:
        try:
            return text(self._identity.call(Requester()), uri)
        except errors.TeamsError as error:  # so that the client is notified when the resource can be read again
            return f"{error.code}: {error.message}"

    async def _notify(self, event: ResourceUpdated | ToolsListChanged) -> None:
        await self._bus.publish(event)  # for the streams of clients of the newer protocol
        session = self._session
        if session is None or session.protocol_version in MODERN_PROTOCOL_VERSIONS:
            return
        with suppress(MCPError, anyio.ClosedResourceError, anyio.BrokenResourceError):  # the client has left
            if isinstance(event, ResourceUpdated):
                await session.send_resource_updated(event.uri)
            else:
                await session.send_tool_list_changed()
