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
from teams_cli.records.records import shown
from teams_cli.runs.runs import RUN
from teams_cli.store.contract import Store
from teams_cli.store.documents import dumps
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

    Span = dict[str, Any]


_LEFT_OUT = ("humanTokenHash", "tokenHash", "checksum")
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
        """Return all records of a kind, in the order of their numbers or names. Secrets are left out, and so are keys
        that only the program needs.
        """
        if kind is TEAM:
            return [_public(self.store.get(self.name, TEAM, self.name)[0].to_json())]
        if kind is MESSAGE:
            messages = self.store.read(self.name, MESSAGE, None, 0, self.problems)
            return [_public(message.to_json()) for message in messages]
        return [_public(document) for document in self.store.documents(self.name, kind, self.problems)]


def _public(document: dict[str, Any]) -> dict[str, Any]:
    """Return a record without its own secrets and those of its `members`."""
    public = {key: value for key, value in shown(document).items() if key not in _LEFT_OUT}
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
    if value is None:
        return ""
    text = " ".join(map(str, value)) if isinstance(value, list) else str(value)
    return "\\n".join(text.splitlines())


def as_markdown(team: Team) -> Iterator[str]:
    """Yield the lines of a document with the tasks and their notes, the plans, the pages and the messages. All texts of
    members are quoted.
    """
    (team_record,) = team.all_of(TEAM)
    yield from (f"# {team.name}", "", *_quoted(team_record.get("description")))
    for member in team_record["members"]:
        state = ", left" if "leftAt" in member else ""
        yield f"* {member['agentId']}: {member['role']}{state}"
    yield from ("", "## Tasks", "")
    for task in team.all_of(TASK):
        yield from (f"### {task['id']}: {' '.join(task['title'].split())}", "")
        yield from (f"* {key}: {_cell(task[key])}" for key in _FACTS if task.get(key))
        yield from ("", *_quoted(task.get("description")))
        if task.get("result"):
            yield from ("Result:", "", *_quoted(task["result"]))
        for note in task.get("notes", ()):
            line = f"* {note['at']} {note['what']} by {note['by']}"
            text = note.get("added") or note.get("reason") or ", ".join(note.get("changed", ()))
            yield f"{line}: {' '.join(text.split())}" if text else line
        yield ""
    sections: tuple[tuple[str, Kind[Any], tuple[str, ...], str], ...] = (
        ("Plans", PLAN, ("id", "from", "task", "status"), "plan"),
        ("Pages", PAGE, ("key", "author", "updatedAt"), "text"),
        ("Messages", MESSAGE, ("id", "from", "to", "timestamp", "replyTo"), "message"),
    )
    for section, kind, keys_in_heading, key_of_text in sections:
        yield from (f"## {section}", "")
        for row in team.all_of(kind):
            heading = " ".join(str(row[key]) for key in keys_in_heading if key in row)
            yield from (f"### {heading}", "", *_quoted(row.get(key_of_text)))


def _quoted(text: str | None) -> list[str]:
    """Return the lines of *text* as a quotation, and a blank line; an empty list if there is no text. Quoted lines
    can't become headings of the document.
    """
    return [*(f"> {line}" for line in text.splitlines()), ""] if text else []


CONVENTIONS = "0.1.0"
"""The version of the semantic conventions for GenAI that define the names of the attributes."""
# The numbers that OTLP has for a kind of span, and for the statuses.
_INTERNAL = 1
_OK, _ERROR = 1, 2


def as_otlp(team: Team) -> Iterator[str]:
    """Yield one line of JSON for a collector of OpenTelemetry. It has a span for each run, task, turn and landing that
    has ended, and a span for the team, which contains all others.
    """
    (team_record,) = team.all_of(TEAM)
    # A task that was cancelled before anybody claimed it has no beginning.
    tasks = {task["id"]: task for task in team.all_of(TASK) if "completedAt" in task and "claimedAt" in task}
    spans = []
    for run in team.all_of(RUN):
        if "endedAt" in run:
            attributes = {"gen_ai.operation.name": "invoke_workflow", "gen_ai.agent.name": run["workflow"]}
            began, ended = _nanoseconds(run["startedAt"]), _nanoseconds(run["endedAt"])
            name, has_failed = f"invoke_workflow {run['workflow']}", run["status"] == "failed"
            spans.append(_span(team, run["id"], name, began, ended, attributes, has_failed))
    for task in tasks.values():  # each span lasts from the last claim to the end of the task
        attributes = {f"teams.task.{key}": task.get(key) for key in ("id", "title", "status", "owner", "claim")}
        began, ended = _nanoseconds(task["claimedAt"]), _nanoseconds(task["completedAt"])
        spans.append(_span(team, task["id"], task["id"], began, ended, attributes, task["status"] == "failed"))
    spans += [*_turns(team, tasks), *_landings(team, tasks)]
    began = _nanoseconds(team_record["createdAt"])
    ended = max([began, *(int(span["endTimeUnixNano"]) for span in spans)])
    root = _span(team, "team", f"team {team.name}", began, ended, {})
    trace = _digest(32, team.name, team_record["createdAt"])
    for span in spans:  # those without a task are children of the team's span
        span.setdefault("parentSpanId", root["spanId"])
    resource = {"service.name": "teams", "teams.team.name": team.name, "teams.gen_ai.conventions": CONVENTIONS}
    scope = {"scope": {"name": "teams"}, "spans": [{"traceId": trace, **span} for span in (root, *spans)]}
    resource_spans = {"resource": {"attributes": _attributes(resource)}, "scopeSpans": [scope]}
    yield dumps({"resourceSpans": [resource_spans]})


FORMATS = {"jsonl": as_lines, "csv": as_table, "markdown": as_markdown, "otlp": as_otlp}


def _turns(team: Team, tasks: dict[str, dict[str, Any]]) -> Iterator[Span]:
    """Yield a span for each turn of an agent, as a child of a task's span if the turn was about only one task."""
    sessions = {session["agent"]: session for session in team.all_of(SESSION)}
    for usage in team.all_of(USAGE):
        agent = usage["agent"]
        for turn in usage.get("turns", ()):
            ended = _nanoseconds(turn["at"])
            began = ended - int(turn["seconds"] * 1e9)
            key = f"{agent} {turn['run']} {turn['turn']} {turn['at']}"
            attributes = _attributes_of_turn(agent, turn, sessions.get(agent, {}))
            span = _span(team, key, f"invoke_agent {agent}", began, ended, attributes)
            tasks_of_turn = turn.get("tasks", ())
            if len(tasks_of_turn) == 1 and tasks_of_turn[0] in tasks:
                span["parentSpanId"] = _span_id(team, tasks_of_turn[0])
            yield span


def _attributes_of_turn(agent: str, turn: dict[str, Any], session: dict[str, Any]) -> dict[str, Any]:
    """Return the attributes of a turn's span. The numbers of tokens are None if the client did not report them."""
    tokens_by_model = turn.get("tokens") or []
    tokens: dict[str, int | None] = dict.fromkeys(("input", "cached", "output"))
    if tokens_by_model:
        tokens = {key: sum(row.get(key, 0) for row in tokens_by_model) for key in tokens}
    models = [row["model"] for row in tokens_by_model if row.get("model")]
    return {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": agent,
        "gen_ai.conversation.id": session.get("sessionId"),
        "gen_ai.request.model": models[0] if models else session.get("model"),
        "gen_ai.usage.input_tokens": tokens["input"],
        "gen_ai.usage.cache_read.input_tokens": tokens["cached"],
        "gen_ai.usage.output_tokens": tokens["output"],
        "teams.turn": turn["turn"],
        "teams.harness": session.get("harness"),
    }


def _landings(team: Team, tasks: dict[str, dict[str, Any]]) -> Iterator[Span]:
    """Yield a span for each landing that has ended, as a child of the span of its task, if there is one."""
    for landing in team.all_of(LANDING):
        if "endedAt" in landing:
            keys = ("id", "state", "task", "onto", "head", "url")
            attributes = {f"teams.landing.{key}": landing.get(key) for key in keys}
            began, ended = _nanoseconds(landing["createdAt"]), _nanoseconds(landing["endedAt"])
            has_failed = landing["state"] != "landed"
            span = _span(team, landing["id"], landing["id"], began, ended, attributes, has_failed)
            if landing["task"] in tasks:
                span["parentSpanId"] = _span_id(team, landing["task"])
            yield span


def _span(
    team: Team, key: str, name: str, began: int, ended: int, attributes: dict[str, Any], has_failed: bool = False
) -> Span:
    return {
        "spanId": _span_id(team, key),
        "name": name,
        "kind": _INTERNAL,
        "startTimeUnixNano": str(began),
        "endTimeUnixNano": str(max(began, ended)),  # the clock may have been set back
        "attributes": _attributes(attributes),
        "status": {"code": _ERROR if has_failed else _OK},
    }


def _attributes(values: dict[str, Any]) -> list[dict[str, Any]]:
    """Return *values* in the form of OTLP, which writes an integer as text. Values that are None are left out."""
    rows = []
    for key, value in values.items():
        if value is not None:
            typed_value = {"intValue": str(value)} if isinstance(value, int) else {"stringValue": value}
            rows.append({"key": key, "value": typed_value})
    return rows


def _span_id(team: Team, key: str) -> str:
    return _digest(16, team.name, key)


def _digest(digits: int, *parts: str) -> str:
    return sha256("\0".join(parts).encode()).hexdigest()[:digits]


def _nanoseconds(time: str) -> int:
    return int(parse_rfc3339(time).timestamp() * 1_000_000) * 1000
