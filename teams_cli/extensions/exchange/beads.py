"""beads: a line of JSON for each issue, as `bd export` writes it and `.beads/issues.jsonl` has it."""

from __future__ import annotations

from teams_cli import errors
from teams_cli.extensions.exchange.items import (
    Item,
    Remark,
    content_of,
    file_in,
    listed,
    objects,
    parsed,
    sections,
    words_of,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_PLACES = (".beads/issues.jsonl", "issues.jsonl", ".beads/beads.jsonl")
_PRIORITIES = {0: "high", 1: "high", 3: "low", 4: "low"}
_STATUSES = {"open": "pending", "blocked": "pending", "closed": "completed"}
_NO_WORK = {"message", "event", "gate", "agent", "role", "rig", "convoy", "molecule", "slot"}
"""Types of issues by which beads itself is run."""
_BLOCKING = ("blocks", "waits-for")
_NO_PLACE = {
    "assignee": "assignee",
    "estimated_minutes": "estimate",
    "due_at": "due date",
    "defer_until": "deferral",
    "metadata": "metadata",
    "spec_id": "spec id",
}


def read(path: str) -> list[Item]:
    """The issues in a file, or in the repository of that directory.

    Raises:
        InvalidValue: It can't be read, or has a line that is no issue.
    """
    file = file_in(path, *_PLACES)
    found = []
    for number, line in enumerate(content_of(file).splitlines(), 1):
        if not line.strip():
            continue
        row = parsed(line, f"line {number} of {file}")
        if not isinstance(row, dict):
            raise errors.InvalidValue(f"line {number} of {file} is not an object", "Give what `bd export` writes.")
        if row.get("_type", "issue") == "issue" and row.get("status") != "tombstone":
            if not row.get("id"):
                raise errors.InvalidValue(f"line {number} of {file} has no id", "Give what `bd export` writes.")
            found.append(_item(row))
    return found


def _item(row: dict[str, Any]) -> Item:
    key, status = words_of(row["id"]), words_of(row.get("status")) or "open"
    kind = words_of(row.get("issue_type"))
    related = [(words_of(each.get("depends_on_id")), _type_of(each)) for each in objects(row.get("dependencies"))]
    left = [f"relation {kind}" for _, kind in related if kind not in (*_BLOCKING, "parent-child")]
    left += [name for name_there, name in _NO_PLACE.items() if row.get(name_there) not in (None, "", {})]
    if status not in _STATUSES:
        left.append(f"status {status}: pending here")
    item = Item(
        key,
        words_of(row.get("title")),
        description=sections(
            description=words_of(row.get("description")),
            Design=words_of(row.get("design")),
            Acceptance_criteria=words_of(row.get("acceptance_criteria")),
            Notes=words_of(row.get("notes")),
            See=words_of(row.get("external_ref")),
        ),
        priority=_PRIORITIES.get(row.get("priority", 2), "normal"),
        status=_STATUSES.get(status, "pending"),
        why=words_of(row.get("close_reason")) or None,
        waits_for=[other for other, kind in related if kind in _BLOCKING],
        parent=next((other for other, kind in related if kind == "parent-child"), None),
        labels=listed(row.get("labels")),
        remarks=[_remark(key, each) for each in objects(row.get("comments"))],
        author=words_of(row.get("created_by")) or None,
        left=left,
    )
    if row.get("is_template") or row.get("pinned") or status == "pinned" or kind in _NO_WORK:
        item.status = ""
        item.left = [f"no task: {'template' if row.get('is_template') else kind if kind in _NO_WORK else 'pinned'}"]
    return item


def _type_of(dependency: dict[str, Any]) -> str:
    return words_of(dependency.get("type") or dependency.get("dep_type")) or "blocks"


def _remark(key: str, comment: dict[str, Any]) -> Remark:
    said = f"{words_of(comment.get('author')) or '?'}, {words_of(comment.get('created_at'))[:10]}: "
    return Remark(f"{key}-{words_of(comment.get('id'))}", said + words_of(comment.get("text") or comment.get("body")))
