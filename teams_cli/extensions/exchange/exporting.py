"""Exports of a whole team: its records as JSON, its texts as Markdown, its tasks as CSV, its work as spans."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from hashlib import sha256

from teams_cli import errors, kinds
from teams_cli.agents.budgets import USAGE
from teams_cli.agents.sessions import SESSION
from teams_cli.clock import parse_rfc3339
from teams_cli.messages.messages import MESSAGE
from teams_cli.records.json_text import dumps
from teams_cli.records.records import shown
from teams_cli.runs.runs import RUN
from teams_cli.store.contract import Store
from teams_cli.tasks.landings import LANDING
from teams_cli.tasks.plans import PLAN
from teams_cli.tasks.tasks import TASK
from teams_cli.teams.pages import PAGE
from teams_cli.teams.teams import TEAM

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from teams_cli.store.contract import Kind


_SECRET = ("humanTokenHash", "tokenHash", "checksum")
_COLUMNS = (
    *("id", "title", "status", "priority", "owner", "assignee", "blockedBy", "require"),
    *("createdBy", "createdAt", "claimedAt", "completedAt", "description", "result"),
)
_FACTS = ("status", "priority", "owner", "assignee", "blockedBy", "createdAt", "completedAt", "landing")


@dataclass
class Team:
    """A team to export. Damaged records are left out, and their errors are added to *problems*."""

    store: Store
    name: str
    problems: list[errors.TeamsError]

    def all_of(self, kind: Kind[Any]) -> list[dict[str, Any]]:
        """Return all records of a kind, by number or name, without secrets and without keys that only the program
        needs.
        """
        if kind is TEAM:
            return [_public(self.store.get(self.name, TEAM, self.name)[0].to_json())]
        if kind is MESSAGE:
            messages = self.store.read(self.name, MESSAGE, None, 0, self.problems)
            return [_public(message.to_json()) for message in messages]
        return [_public(document) for document in self.store.documents(self.name, kind, self.problems)]


def _public(document: dict[str, Any]) -> dict[str, Any]:
    public = {key: value for key, value in shown(document).items() if key not in _SECRET}
    if isinstance(members := public.get("members"), list):
        public["members"] = [_public(dict(member)) for member in members]
    return public


def as_lines(team: Team) -> Iterator[str]:
    """Yield every record and every entry of the history as a line of JSON with its `kind`."""
    for kind in kinds.ALL:
        for document in team.all_of(kind):
            yield dumps({"kind": kind.name, **document})
    for _, entry in team.store.history(team.name):
        yield dumps({"kind": "history", **entry})


def as_table(team: Team) -> Iterator[str]:
    """Yield a line of headings, and each task as a line of CSV. Lists are separated by spaces. A line break is written
    as `\\n`, so that the text of a task can't begin a line.
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(_COLUMNS)
    for task in team.all_of(TASK):
        writer.writerow([_cell(task.get(key)) for key in _COLUMNS])
    yield from out.getvalue().splitlines()


def _cell(value: Any) -> str:
    cell = " ".join(map(str, value)) if isinstance(value, list) else "" if value is None else str(value)
    return "\\n".join(cell.splitlines())


def as_markdown(team: Team) -> Iterator[str]:
    """Yield the lines of a document with the tasks and their notes, the plans, the pages and the messages. Their texts
    are quoted.
    """
    (record,) = team.all_of(TEAM)
    yield from (f"# {team.name}", "", *_quoted(record.get("description")))
    for member in record["members"]:
        yield f"* {member['agentId']}: {member['role']}{', left' if 'leftAt' in member else ''}"
    yield from ("", "## Tasks", "")
    for task in team.all_of(TASK):
        yield from (f"### {task['id']}: {_line(task['title'])}", "")
        yield from (f"* {key}: {_cell(task[key])}" for key in _FACTS if task.get(key))
        yield from ("", *_quoted(task.get("description")))
        if task.get("result"):
            yield from ("Result:", "", *_quoted(task["result"]))
        for note in task.get("notes", ()):
            more = note.get("added") or note.get("reason") or ", ".join(note.get("changed", ()))
            yield f"* {note['at']} {note['what']} by {note['by']}{f': {_line(more)}' if more else ''}"
        yield ""
    parts: tuple[tuple[str, Kind[Any], tuple[str, ...], str], ...] = (
        ("Plans", PLAN, ("id", "from", "task", "status"), "plan"),
        ("Pages", PAGE, ("key", "author", "updatedAt"), "text"),
        ("Messages", MESSAGE, ("id", "from", "to", "timestamp", "replyTo"), "message"),
    )
    for heading, kind, keys, text in parts:
        yield from (f"## {heading}", "")
        for row in team.all_of(kind):
            yield from (f"### {' '.join(str(row[key]) for key in keys if key in row)}", "", *_quoted(row.get(text)))


def _quoted(text: str | None) -> list[str]:
    """Return the lines of a text as a quotation and a blank line. As a quotation, the text adds no headings to the
    document. Return an empty list for no text.
    """
    return [*(f"> {line}" for line in text.splitlines()), ""] if text else []


def _line(text: str) -> str:
    return " ".join(text.split())


CONVENTIONS = "0.1.0"
"""The version of the semantic conventions for GenAI that define the names of the attributes."""
_INTERNAL = 1
_OK, _ERROR = 1, 2


def as_otlp(team: Team) -> Iterator[str]:
    """Yield one line of JSON for a collector, with all spans that have ended."""
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


FORMATS = {"jsonl": as_lines, "csv": as_table, "markdown": as_markdown, "otlp": as_otlp}


def _runs(team: Team) -> Iterator[dict[str, Any]]:
    for run in team.all_of(RUN):
        if "endedAt" in run:
            named = {"gen_ai.operation.name": "invoke_workflow", "gen_ai.agent.name": run["workflow"]}
            times = _nanoseconds(run["startedAt"]), _nanoseconds(run["endedAt"])
            yield _span(team, run["id"], f"invoke_workflow {run['workflow']}", *times, named, run["status"] == "failed")


def _tasks(team: Team) -> Iterator[dict[str, Any]]:
    """Yield a span for each task that has ended, from its last claim to its end."""
    for task in _ended(team).values():
        named = {f"teams.task.{key}": task.get(key) for key in ("id", "title", "status", "owner", "claim")}
        times = _nanoseconds(task["claimedAt"]), _nanoseconds(task["completedAt"])
        yield _span(team, task["id"], task["id"], *times, named, task["status"] == "failed")


def _ended(team: Team) -> dict[str, dict[str, Any]]:
    """Return the claimed tasks that have ended, by id."""
    return {task["id"]: task for task in team.all_of(TASK) if "completedAt" in task and "claimedAt" in task}


def _turns(team: Team) -> Iterator[dict[str, Any]]:
    """Yield a span for each turn of an agent. If the turn was for a single task, the span is a child of the task's."""
    tasks = _ended(team)
    sessions = {session["agent"]: session for session in team.all_of(SESSION)}
    for usage in team.all_of(USAGE):
        agent = usage["agent"]
        session = sessions.get(agent, {})
        for turn in usage.get("turns", ()):
            tokens = turn.get("tokens") or []
            read, cached, written = (
                sum(row.get(key, 0) for row in tokens) if tokens else None for key in ("input", "cached", "output")
            )
            named = {
                "gen_ai.operation.name": "invoke_agent",
                "gen_ai.agent.name": agent,
                "gen_ai.conversation.id": session.get("sessionId"),
                "gen_ai.request.model": next(filter(None, (row.get("model") for row in tokens)), session.get("model")),
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


def _attributes(values: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {"key": key, "value": {"intValue": str(value)} if isinstance(value, int) else {"stringValue": value}}
        for key, value in values.items()
        if value is not None
    ]


def _span_id(team: Team, key: str) -> str:
    return _id(16, team.name, key)


def _id(digits: int, *parts: str) -> str:
    return sha256("\0".join(parts).encode()).hexdigest()[:digits]


def _nanoseconds(time: str) -> int:
    return int(parse_rfc3339(time).timestamp() * 1_000_000) * 1000
