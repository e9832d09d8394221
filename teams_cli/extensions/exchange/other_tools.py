"""Reads the tasks of other tools from their files: beads, task-master and Backlog.md."""

from __future__ import annotations

import os
import re

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
from teams_cli.workflows import files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

# beads: a line of JSON for each issue, as `bd export` writes it and `.beads/issues.jsonl` has it.

_BEADS_PLACES = (".beads/issues.jsonl", "issues.jsonl", ".beads/beads.jsonl")
_BEADS_PRIORITIES = {"0": "high", "1": "high", "3": "low", "4": "low"}
_BEADS_STATUSES = {"open": "pending", "blocked": "pending", "closed": "completed"}
_NO_WORK = {"message", "event", "gate", "agent", "role", "rig", "convoy", "molecule", "slot"}
"""Types of issues that beads keeps for its own purposes."""
_BLOCKING = ("blocks", "waits-for")
_BEADS_NO_PLACE = {
    "assignee": "assignee",
    "estimated_minutes": "estimate",
    "due_at": "due date",
    "defer_until": "deferral",
    "metadata": "metadata",
    "spec_id": "spec id",
}


def read_beads(path: str) -> list[Item]:
    """Return the issues of beads; *path* is its file or a repository.

    Raises:
        InvalidValue: The file can't be read, or has a line that is not an issue.
    """
    file = file_in(path, *_BEADS_PLACES)
    issues = []
    for number, line in enumerate(content_of(file).splitlines(), 1):
        if not line.strip():
            continue
        row = parsed(line, f"line {number} of {file}")
        if not isinstance(row, dict):
            raise errors.InvalidValue(f"line {number} of {file} is not an object", "Give what `bd export` writes.")
        if row.get("_type", "issue") == "issue" and row.get("status") != "tombstone":
            if not row.get("id"):
                raise errors.InvalidValue(f"line {number} of {file} has no id", "Give what `bd export` writes.")
            issues.append(_issue(row))
    return issues


def _issue(row: dict[str, Any]) -> Item:
    key, status = words_of(row["id"]), words_of(row.get("status")) or "open"
    kind = words_of(row.get("issue_type"))
    related = [(words_of(each.get("depends_on_id")), _type_of(each)) for each in objects(row.get("dependencies"))]
    left = [f"relation {kind}" for _, kind in related if kind not in (*_BLOCKING, "parent-child")]
    left += [name for name_there, name in _BEADS_NO_PLACE.items() if row.get(name_there) not in (None, "", {})]
    if status not in _BEADS_STATUSES:
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
        priority=_BEADS_PRIORITIES.get(words_of(row.get("priority")), "normal"),
        status=_BEADS_STATUSES.get(status, "pending"),
        why=words_of(row.get("close_reason")) or None,
        waits_for=[other for other, kind in related if kind in _BLOCKING],
        parent=next((other for other, kind in related if kind == "parent-child"), None),
        labels=listed(row.get("labels")),
        remarks=[_beads_remark(key, each) for each in objects(row.get("comments"))],
        author=words_of(row.get("created_by")) or None,
        left=left,
    )
    if row.get("is_template") or row.get("pinned") or status == "pinned" or kind in _NO_WORK:
        item.status = ""
        item.left = [f"no task: {'template' if row.get('is_template') else kind if kind in _NO_WORK else 'pinned'}"]
    return item


def _type_of(dependency: dict[str, Any]) -> str:
    return words_of(dependency.get("type") or dependency.get("dep_type")) or "blocks"


def _beads_remark(key: str, comment: dict[str, Any]) -> Remark:
    heading = f"{words_of(comment.get('author')) or '?'}, {words_of(comment.get('created_at'))[:10]}: "
    text = words_of(comment.get("text") or comment.get("body"))
    return Remark(f"{key}-{words_of(comment.get('id'))}", heading + text)


# task-master: one JSON file with a list of tasks for each tag; tasks have subtasks.

_MASTER_PLACES = (".taskmaster/tasks/tasks.json", "tasks/tasks.json", "tasks.json")
_MASTER_PRIORITIES = {"critical": "high", "high": "high", "low": "low"}
_MASTER_STATUSES = {
    "pending": "pending",
    "blocked": "pending",
    "done": "completed",
    "completed": "completed",
    "cancelled": "cancelled",
}


def read_task_master(path: str) -> list[Item]:
    """Return the tasks of task-master; *path* is its file or a repository. A task waits for its subtasks.

    Raises:
        InvalidValue: The file can't be read, or has no list of tasks.
    """
    file = file_in(path, *_MASTER_PLACES)
    document = parsed(content_of(file), file)
    if isinstance(document, dict) and isinstance(document.get("tasks"), list):
        document = {"master": document}  # as versions before tags wrote it
    tags = document.items() if isinstance(document, dict) else ()
    lists = [(tag, each["tasks"]) for tag, each in tags if isinstance(each, dict) and "tasks" in each]
    if not lists:
        raise errors.InvalidValue(f"{file} has no list of tasks", "Name the tasks.json of task-master.")
    return [item for tag, tasks in lists for row in objects(tasks) for item in _items(tag, row)]


def _items(tag: str, row: dict[str, Any]) -> list[Item]:
    task = _task(tag, row, f"{tag}:{words_of(row.get('id'))}", None)
    return [
        task,
        *(_task(tag, each, f"{task.key}.{words_of(each.get('id'))}", task) for each in objects(row.get("subtasks"))),
    ]


def _task(tag: str, row: dict[str, Any], key: str, parent: Item | None) -> Item:
    status = words_of(row.get("status")) or "pending"
    left = [] if status in _MASTER_STATUSES else [f"status {status}: pending here"]
    return Item(
        key,
        words_of(row.get("title")),
        description=sections(
            description=words_of(row.get("description")),
            Details=words_of(row.get("details")),
            Test_strategy=words_of(row.get("testStrategy")),
        ),
        priority=parent.priority if parent else _MASTER_PRIORITIES.get(words_of(row.get("priority")), "normal"),
        status=_MASTER_STATUSES.get(status, "pending"),
        waits_for=[
            f"{parent.key}.{word}" if parent and "." not in word else f"{tag}:{word}"  # a number alone is a sibling
            for word in listed(row.get("dependencies"))
        ],
        parent=parent.key if parent else None,
        left=left,
    )


# Backlog.md: a Markdown file with front matter for each task.

_TOPS = ("backlog", ".backlog", ".")
_FOLDERS = {"tasks": "", "completed": "completed", "drafts": "no task: draft", "archive/tasks": "no task: archived"}
_BACKLOG_PRIORITIES = {"high": "high", "low": "low"}
_PENDING = ("to do", "todo", "")
_DONE = "done"
_BACKLOG_NO_PLACE = {
    "due_date": "due date",
    "assignee": "assignee",
    "modified_files": "modified files",
    "reporter": "reporter",
}
_COMMENT = re.compile(r"^author: *(?P<author>.*)\ncreated: *(?P<at>.*)\n---\n(?P<text>.*?)\n---$", re.M | re.S)
_HIDDEN = re.compile(r"^<!-- .* -->\n?", re.M)


def read_backlog(path: str) -> list[Item]:
    """Return the tasks of Backlog.md; *path* is a task's file or a repository. A task waits for its subtasks.

    Raises:
        InvalidValue: A file can't be read, or is not a task.
    """
    if not os.path.isdir(path):
        return [_backlog_task(path, "", _DONE, {})]
    top = next((os.path.join(path, top) for top in _TOPS if os.path.isdir(os.path.join(path, top, "tasks"))), None)
    if top is None:
        raise errors.InvalidValue(f"{path} has no backlog/tasks", "Name the repository, or its directory of tasks.")
    done = _last_status(top)
    milestones = {
        words_of(front.get("id")): words_of(front.get("title"))
        for file in _files(os.path.join(top, "milestones"))
        for front in [_front(file, content_of(file))]
    }
    return [
        _backlog_task(file, state, done, milestones)
        for folder, state in _FOLDERS.items()
        for file in _files(os.path.join(top, folder))
    ]


def _files(folder: str) -> Iterator[str]:
    if os.path.isdir(folder):
        names = sorted(name for name in os.listdir(folder) if name.endswith(".md") and name.lower() != "readme.md")
        yield from (os.path.join(folder, name) for name in names)


def _last_status(top: str) -> str:
    """Return the status of done tasks in the project, which is the last one in its configuration."""
    for name in ("config.yml", "../backlog.config.yml"):
        file = os.path.join(top, name)
        if os.path.exists(file):
            config = files.parsed(content_of(file), file, "Correct it.")
            statuses = listed(config.get("statuses")) if isinstance(config, dict) else []
            return statuses[-1].lower() if statuses else _DONE
    return _DONE


def _front(file: str, content: str) -> dict[str, Any]:
    hint = "Name a task of Backlog.md: Markdown that begins with front matter."
    text = files.front_matter(content)
    front = files.parsed(text, file, hint) if text else None
    if not isinstance(front, dict) or not front.get("id"):
        raise errors.InvalidValue(f"{file} has no front matter with an id", hint)
    return front


def _backlog_task(file: str, state: str, done: str, milestones: dict[str, str]) -> Item:
    content = content_of(file)
    front = _front(file, content)
    key, status = words_of(front["id"]).upper(), words_of(front.get("status"))
    parts = _sections(content)
    comments = parts.pop("Comments", "")
    summary = parts.pop("Final Summary", "") or None
    priority = words_of(front.get("priority")).lower()
    left = [key.replace("_", " ") for key in _BACKLOG_NO_PLACE if front.get(key)]
    is_done = state == "completed" or status.lower() in (done, _DONE)
    if not is_done and status.lower() not in _PENDING:
        left.append(f"status {status}: pending here")
    if priority not in ("", "medium", *_BACKLOG_PRIORITIES):
        left.append(f"priority {priority}: normal here")
    description = parts.pop("Description", "")
    more = {
        **parts,
        "Milestone": milestones.get(words_of(front.get("milestone")), words_of(front.get("milestone"))),
        "References": "\n".join(listed(front.get("references")) + listed(front.get("documentation"))),
    }
    item = Item(
        key,
        words_of(front.get("title")),
        description="\n\n".join([description, *(f"## {name}\n{each}" for name, each in more.items() if each)]).strip(),
        priority=_BACKLOG_PRIORITIES.get(priority, "normal"),
        status="completed" if is_done else "pending",
        why=summary,
        waits_for=[each.upper() for each in listed(front.get("dependencies"))],
        parent=words_of(front.get("parent_task_id")).upper() or None,
        labels=listed(front.get("labels")),
        remarks=[_backlog_remark(key, number, each) for number, each in enumerate(_COMMENT.finditer(comments), 1)],
        left=left,
    )
    if state.startswith("no task"):
        item.status, item.left = "", [state]
    return item


def _sections(content: str) -> dict[str, str]:
    """Return the texts below the second-order headings, by heading, without the tool's hidden marks."""
    body = content.split(f"\n{files.FENCE}\n", 1)[-1]
    sections: dict[str, str] = {}
    heading = "Description"
    fenced = False
    for line in _HIDDEN.sub("", body).splitlines():
        fenced ^= line.startswith("```")
        if line.startswith("## ") and not fenced:
            heading = line.removeprefix("## ").strip()
        else:
            sections[heading] = f"{sections[heading]}\n{line}" if heading in sections else line
    return {name: text.strip("\n") for name, text in sections.items() if text.strip()}


def _backlog_remark(key: str, number: int, comment: re.Match[str]) -> Remark:
    return Remark(f"{key}-{number}", f"{comment['author']}, {comment['at'][:10]}: {comment['text'].strip()}")
