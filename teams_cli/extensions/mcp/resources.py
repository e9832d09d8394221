"""Resources: the team, its tasks, one's inbox and what came of its agents, each under a URI of its own."""

from __future__ import annotations

import json
from urllib.parse import unquote, urlsplit

from mcp_types import Resource, ResourceTemplate

from teams_cli import commands, errors
from teams_cli.commands.call import Call
from teams_cli.extensions.mcp import results
from teams_cli.serving import requests

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from teams_cli.extensions.mcp.identity import Identity

SCHEME = "teams"
JSON = "application/json"
TEMPLATES = [
    ResourceTemplate(name=name, uri_template=f"{SCHEME}://{path}", description=description, mime_type=JSON)
    for name, path, description in (
        ("team", "{team}", "A team: its leader, its members, its settings."),
        ("tasks", "{team}/tasks", "All tasks of a team, each with what blocks it."),
        ("task", "{team}/tasks/{id}", "One task: status, owner, result, what happened to it."),
        ("inbox", "{team}/inbox", "Your unhandled messages; looking marks nothing as read."),
        ("agent", "{team}/agents/{name}", "What one agent said that it works on, and what came out of it."),
    )
]


def listed(identity: Identity) -> list[Resource]:
    """What there is for the caller to look at."""
    team = identity.team
    if not team:
        return []
    found = [("", f"team {team}"), ("/tasks", f"tasks of {team}")]
    if identity.agent:
        found.append(("/inbox", f"inbox of {identity.agent}"))
    return [Resource(name=name, uri=f"{SCHEME}://{team}{path}", mime_type=JSON) for path, name in found]


def text(call: Call, uri: str) -> str:
    """The resource as JSON.

    Raises:
        NotFound: There is none under that URI.
        TeamsError: It can't be read.
    """
    name, arguments, team = _request(uri)
    known = {other.lower(): other for other in call.store.teams()}
    if team.lower() not in known:  # clients may write the host of a URI in lower case
        raise errors.NotFound(f"there is no team {team!r}", f"Teams: {', '.join(sorted(known.values())[:20])}.")
    if name == "read-messages" and call.caller is None:
        raise errors.NoIdentity(
            "an inbox belongs to an agent", "Start the server with TEAMS_AGENT_ID, or call join_team."
        )
    call.said_team = known[team.lower()]
    document = requests.answer(call, name, arguments)
    return json.dumps(results.resource(document, commands.get(name).gist), indent=1)


def _request(uri: str) -> tuple[str, dict[str, Any], str]:
    """What answers for the URI: a command, its values, and the team."""
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
    known = ", ".join(template.uri_template for template in TEMPLATES)
    raise errors.NotFound(f"there is nothing under {uri[:200]!r}", f"Known: {known}.")
