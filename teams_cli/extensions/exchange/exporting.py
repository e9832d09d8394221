"""Writing a whole team out: every record as JSON, what people read as Markdown, the tasks as a table."""

from __future__ import annotations

import csv
import io

from teams_cli import errors, kinds
from teams_cli.messages.messages import MESSAGE
from teams_cli.records.json_text import dumps
from teams_cli.records.records import shown
from teams_cli.store.contract import Store
from teams_cli.tasks.plans import PLAN
from teams_cli.tasks.tasks import TASK
from teams_cli.teams.pages import PAGE
from teams_cli.teams.teams import TEAM

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    from teams_cli.store.contract import Kind

_SECRET = ("humanTokenHash", "tokenHash", "checksum")
_COLUMNS = (
    *("id", "title", "status", "priority", "owner", "assignee", "blockedBy", "require"),
    *("createdBy", "createdAt", "claimedAt", "completedAt", "description", "result"),
)
_FACTS = ("status", "priority", "owner", "assignee", "blockedBy", "createdAt", "completedAt", "landing")


class Team:
    """A team that is written out; damaged records are added to *problems*, and left out."""

    def __init__(self, store: Store, name: str, problems: list[errors.TeamsError]) -> None:
        self.store = store
        self.name = name
        self.problems = problems

    def all_of(self, kind: Kind[Any]) -> list[dict[str, Any]]:
        """All records of a kind, by number or name, without secrets and what is only for the program."""
        if kind is TEAM:
            return [_told(self.store.get(self.name, TEAM, self.name)[0].to_json())]
        if kind is MESSAGE:
            return [_told(one.to_json()) for one in self.store.read(self.name, MESSAGE, None, 0, self.problems)]
        return [_told(one) for one in self.store.documents(self.name, kind, self.problems)]

    def history(self) -> Iterator[dict[str, Any]]:
        """What changed, oldest first."""
        return (entry for _, entry in self.store.history(self.name))


def _told(document: dict[str, Any]) -> dict[str, Any]:
    known = {key: value for key, value in shown(document).items() if key not in _SECRET}
    if isinstance(members := known.get("members"), list):
        known["members"] = [_told(dict(member)) for member in members]
    return known


def as_lines(team: Team) -> Iterator[str]:
    """Every record and every entry of the history: a line of JSON each, with its `kind`."""
    for kind in kinds.ALL:
        for document in team.all_of(kind):
            yield dumps({"kind": kind.name, **document})
    for entry in team.history():
        yield dumps({"kind": "history", **entry})


def as_table(team: Team) -> Iterator[str]:
    """The tasks as CSV, with a line of headings: a line each, so that none begins with what somebody wrote. Lists are
    separated by spaces, and line breaks written as `\\n`.
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(_COLUMNS)
    for task in team.all_of(TASK):
        writer.writerow([_cell(task.get(key)) for key in _COLUMNS])
    yield from out.getvalue().splitlines()


def _cell(value: Any) -> str:
    said = " ".join(map(str, value)) if isinstance(value, list) else "" if value is None else str(value)
    return "\\n".join(said.splitlines())


def as_markdown(team: Team) -> Iterator[str]:
    """Tasks with their texts and notes, plans, pages and messages, below headings; every text is quoted."""
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
    parts: tuple[tuple[str, Iterable[dict[str, Any]], tuple[str, ...], str], ...] = (
        ("Plans", team.all_of(PLAN), ("id", "from", "task", "status"), "plan"),
        ("Pages", team.all_of(PAGE), ("key", "author", "updatedAt"), "text"),
        ("Messages", team.all_of(MESSAGE), ("id", "from", "to", "timestamp", "replyTo"), "message"),
    )
    for heading, found, keys, said in parts:
        yield from (f"## {heading}", "")
        for one in found:
            yield from (f"### {' '.join(str(one[key]) for key in keys if key in one)}", "", *_quoted(one.get(said)))


def _quoted(said: str | None) -> list[str]:
    """A text behind marks of a quotation, so that no heading in it is one of the document; and a blank line."""
    return [*(f"> {line}" for line in said.splitlines()), ""] if said else []


def _line(said: str) -> str:
    return " ".join(said.split())


def _as_otlp(team: Team) -> Iterator[str]:
    from teams_cli.extensions.exchange import traces

    return traces.as_otlp(team)


FORMATS = {"jsonl": as_lines, "csv": as_table, "markdown": as_markdown, "otlp": _as_otlp}
