"""Traces of a team: OpenTelemetry spans of its runs, tasks, turns and landings, as a line of OTLP in JSON.

The names of what concerns agents are those of OpenTelemetry's semantic conventions for GenAI, version 0.1.0, which are
in development; whatever has none there begins with `teams.`.
"""

from __future__ import annotations

from hashlib import sha256

from teams_cli.agents.sessions import SESSION
from teams_cli.agents.usage import USAGE
from teams_cli.clock import parse_rfc3339
from teams_cli.records.json_text import dumps
from teams_cli.runs.runs import RUN
from teams_cli.tasks.landings import LANDING
from teams_cli.tasks.tasks import TASK
from teams_cli.teams.teams import TEAM

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from teams_cli.extensions.exchange.exporting import Team

CONVENTIONS = "0.1.0"
"""The version of the semantic conventions for GenAI that the names are from."""
_INTERNAL = 1
_OK, _ERROR = 1, 2


def as_otlp(team: Team) -> Iterator[str]:
    """All spans that have ended, as one line: what a collector reads from a file."""
    (record,) = team.all_of(TEAM)
    spans = [*_runs(team), *_tasks(team), *_turns(team), *_landings(team)]
    begun = _nanoseconds(record["createdAt"])
    ended = max([begun, *(int(span["endTimeUnixNano"]) for span in spans)])
    root = _span(team, "team", f"team {team.name}", begun, ended, {})
    trace = _id(32, team.name, record["createdAt"])
    for span in spans:
        span.setdefault("parentSpanId", root["spanId"])
    resource = {"service.name": "teams", "teams.team.name": team.name, "teams.gen_ai.conventions": CONVENTIONS}
    scope = {"scope": {"name": "teams"}, "spans": [{"traceId": trace, **span} for span in (root, *spans)]}
    yield dumps({"resourceSpans": [{"resource": {"attributes": _attributes(resource)}, "scopeSpans": [scope]}]})


def _runs(team: Team) -> Iterator[dict[str, Any]]:
    for run in team.all_of(RUN):
        if "endedAt" in run:
            named = {"gen_ai.operation.name": "invoke_workflow", "gen_ai.agent.name": run["workflow"]}
            times = _nanoseconds(run["startedAt"]), _nanoseconds(run["endedAt"])
            yield _span(team, run["id"], f"invoke_workflow {run['workflow']}", *times, named, run["status"] == "failed")


def _tasks(team: Team) -> Iterator[dict[str, Any]]:
    """A task from its last claim to its end."""
    for task in _ended(team).values():
        named = {f"teams.task.{key}": task.get(key) for key in ("id", "title", "status", "owner", "claim")}
        times = _nanoseconds(task["claimedAt"]), _nanoseconds(task["completedAt"])
        yield _span(team, task["id"], task["id"], *times, named, task["status"] == "failed")


def _ended(team: Team) -> dict[str, dict[str, Any]]:
    """The tasks that somebody had and that have ended, by their ids."""
    return {task["id"]: task for task in team.all_of(TASK) if "completedAt" in task and "claimedAt" in task}


def _turns(team: Team) -> Iterator[dict[str, Any]]:
    """The turns of agents; one that was for a single task is below that."""
    tasks = _ended(team)
    sessions = {session["agent"]: session for session in team.all_of(SESSION)}
    for usage in team.all_of(USAGE):
        agent = usage["agent"]
        session = sessions.get(agent, {})
        for turn in usage.get("turns", ()):
            tokens = turn.get("tokens") or []
            read, cached, written = (
                sum(one.get(key, 0) for one in tokens) if tokens else None for key in ("input", "cached", "output")
            )
            named = {
                "gen_ai.operation.name": "invoke_agent",
                "gen_ai.agent.name": agent,
                "gen_ai.conversation.id": session.get("sessionId"),
                "gen_ai.request.model": next(filter(None, (one.get("model") for one in tokens)), session.get("model")),
                "gen_ai.usage.input_tokens": read,
                "gen_ai.usage.cache_read.input_tokens": cached,
                "gen_ai.usage.output_tokens": written,
                "teams.turn": turn["turn"],
                "teams.harness": session.get("harness"),
            }
            ended = _nanoseconds(turn["at"])
            begun = ended - int(turn["seconds"] * 1e9)
            key = f"{agent} {turn['run']} {turn['turn']} {turn['at']}"
            span = _span(team, key, f"invoke_agent {agent}", begun, ended, named)
            if len(turn.get("tasks", ())) == 1 and turn["tasks"][0] in tasks:
                span["parentSpanId"] = _span_id(team, turn["tasks"][0])
            yield span


def _landings(team: Team) -> Iterator[dict[str, Any]]:
    tasks = _ended(team)
    for landing in team.all_of(LANDING):
        if "endedAt" in landing:
            named = {f"teams.landing.{key}": landing.get(key) for key in ("id", "state", "task", "onto", "head", "url")}
            times = _nanoseconds(landing["createdAt"]), _nanoseconds(landing["endedAt"])
            span = _span(team, landing["id"], landing["id"], *times, named, landing["state"] != "landed")
            if landing["task"] in tasks:
                span["parentSpanId"] = _span_id(team, landing["task"])
            yield span


def _span(
    team: Team, key: str, name: str, begun: int, ended: int, attributes: dict[str, Any], failed: bool = False
) -> dict[str, Any]:
    return {
        "spanId": _span_id(team, key),
        "name": name,
        "kind": _INTERNAL,
        "startTimeUnixNano": str(begun),
        "endTimeUnixNano": str(max(begun, ended)),
        "attributes": _attributes(attributes),
        "status": {"code": _ERROR if failed else _OK},
    }


def _attributes(said: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {"key": key, "value": {"intValue": str(value)} if isinstance(value, int) else {"stringValue": value}}
        for key, value in said.items()
        if value is not None
    ]


def _span_id(team: Team, key: str) -> str:
    return _id(16, team.name, key)


def _id(digits: int, *parts: str) -> str:
    return sha256("\0".join(parts).encode()).hexdigest()[:digits]


def _nanoseconds(time: str) -> int:
    return int(parse_rfc3339(time).timestamp() * 1_000_000) * 1000
