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
    objects,
    parsed,
    sections,
    text_of,
    texts_of,
)
from teams_cli.workflows import files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# beads: a line of JSON for each issue, as `bd export` writes it and `.beads/issues.jsonl` has it.

_BEADS_PLACES = (".beads/issues.jsonl", "issues.jsonl", ".beads/beads.jsonl")
_BEADS_PRIORITIES = {"0": "high", "1": "high", "3": "low", "4": "low"}
_BEADS_STATUSES = {"open": "pending", "blocked": "pending", "closed": "completed"}
_NO_WORK = {"message", "event", "gate", "agent", "role", "rig", "convoy", "molecule", "slot"}
"""Types of issues that beads keeps for its own purposes; no tasks are created from them."""
_NO_TASK = "no task: "
"""The prefix of the entry in `left_out` that says why no task is created from an item."""
_BLOCKING = ("blocks", "waits-for")
_BEADS_LEFT_OUT = {
    "assignee": "assignee",
    "estimated_minutes": "estimate",
    "due_at": "due date",
    "defer_until": "deferral",
    "metadata": "metadata",
    "spec_id": "spec id",
}


def read_beads(path: str) -> list[Item]:
    """Return the issues of beads. *path* is the file of beads, or a repository that has the file.

    Raises:
        InvalidValue: The file can't be read, or has a line that is not an issue.
    """
    file = file_in(path, *_BEADS_PLACES)
    issues = []
    for number, line in enumerate(content_of(file).split("\n"), 1):  # a text may have other line breaks
        if not line.strip():
            continue
        where = f"line {number} of {file}"
        row = parsed(line, where)
        if not isinstance(row, dict):
            raise errors.InvalidValue(f"{where} is not an object", "Give what `bd export` writes.")
        if row.get("_type", "issue") == "issue" and row.get("status") != "tombstone":
            if not row.get("id"):
                raise errors.InvalidValue(f"{where} has no id", "Give what `bd export` writes.")
            issues.append(_beads_item(row))
    return issues


def _beads_item(row: dict[str, Any]) -> Item:
    """Return the item for an issue. If no task should result, it has no status, and its `left_out` says why."""
    key, status = text_of(row["id"]), text_of(row.get("status")) or "open"
    relations = []
    for dependency in objects(row.get("dependencies")):
        relation = text_of(dependency.get("type") or dependency.get("dep_type")) or "blocks"
        relations.append((text_of(dependency.get("depends_on_id")), relation))
    remarks = []
    for number, comment in enumerate(objects(row.get("comments")), 1):
        heading = f"{text_of(comment.get('author')) or '?'}, {text_of(comment.get('created_at'))[:10]}: "
        text = text_of(comment.get("text") or comment.get("body"))
        remarks.append(Remark(f"{key}-{text_of(comment.get('id')) or number}", heading + text))
    left_out = [f"relation {relation}" for _, relation in relations if relation not in (*_BLOCKING, "parent-child")]
    left_out += [name for key_in_row, name in _BEADS_LEFT_OUT.items() if row.get(key_in_row) not in (None, "", {})]
    if status not in _BEADS_STATUSES:
        left_out.append(f"status {status}: pending here")
    item = Item(
        key,
        text_of(row.get("title")),
        description=sections(
            description=text_of(row.get("description")),
            Design=text_of(row.get("design")),
            Acceptance_criteria=text_of(row.get("acceptance_criteria")),
            Notes=text_of(row.get("notes")),
            See=text_of(row.get("external_ref")),
        ),
        priority=_BEADS_PRIORITIES.get(text_of(row.get("priority")), "normal"),
        status=_BEADS_STATUSES.get(status, "pending"),
        why=text_of(row.get("close_reason")) or None,
        waits_for=[other for other, relation in relations if relation in _BLOCKING],
        parent=next((other for other, relation in relations if relation == "parent-child"), None),
        labels=texts_of(row.get("labels")),
        remarks=remarks,
        author=text_of(row.get("created_by")) or None,
        left_out=left_out,
    )
    issue_type = text_of(row.get("issue_type"))
    if row.get("is_template"):
        item.status, item.left_out = "", [f"{_NO_TASK}template"]
    elif issue_type in _NO_WORK:
        item.status, item.left_out = "", [f"{_NO_TASK}{issue_type}"]
    elif row.get("pinned") or status == "pinned":
        item.status, item.left_out = "", [f"{_NO_TASK}pinned"]
    return item


# task-master: one JSON file with a list of tasks for each tag; tasks have subtasks.

_TASK_MASTER_PLACES = (".taskmaster/tasks/tasks.json", "tasks/tasks.json", "tasks.json")
_TASK_MASTER_PRIORITIES = {"critical": "high", "high": "high", "low": "low"}
_TASK_MASTER_STATUSES = {
    "pending": "pending",
    "blocked": "pending",
    "done": "completed",
    "completed": "completed",
    "cancelled": "cancelled",
}


def read_task_master(path: str) -> list[Item]:
    """Return the tasks of task-master. *path* is the file of task-master, or a repository that has the file. A task
    waits for its subtasks.

    Raises:
        InvalidValue: The file can't be read, or has no list of tasks.
    """
    file = file_in(path, *_TASK_MASTER_PLACES)
    document = parsed(content_of(file), file)
    if isinstance(document, dict) and isinstance(document.get("tasks"), list):
        document = {"master": document}  # as versions before tags wrote it
    by_tag = document.items() if isinstance(document, dict) else ()
    lists = [(tag, part["tasks"]) for tag, part in by_tag if isinstance(part, dict) and "tasks" in part]
    if not lists:
        raise errors.InvalidValue(f"{file} has no list of tasks", "Name the tasks.json of task-master.")
    items = []
    for tag, tasks in lists:
        for row in objects(tasks):
            task = _task_master_item(tag, row, f"{tag}:{text_of(row.get('id'))}", None)
            items.append(task)
            for subtask in objects(row.get("subtasks")):
                items.append(_task_master_item(tag, subtask, f"{task.key}.{text_of(subtask.get('id'))}", task))
    return items


def _task_master_item(tag: str, row: dict[str, Any], key: str, parent: Item | None) -> Item:
    """Return the item for the task *row* or, if *parent* is given, for a subtask of this task."""
    status = text_of(row.get("status")) or "pending"
    priority = _TASK_MASTER_PRIORITIES.get(text_of(row.get("priority")), "normal")
    blockers = []
    for number in texts_of(row.get("dependencies")):
        is_sibling = parent and "." not in number  # subtasks of one parent call each other by numbers without a dot
        blockers.append(f"{parent.key}.{number}" if parent and is_sibling else f"{tag}:{number}")
    return Item(
        key,
        text_of(row.get("title")),
        description=sections(
            description=text_of(row.get("description")),
            Details=text_of(row.get("details")),
            Test_strategy=text_of(row.get("testStrategy")),
        ),
        priority=parent.priority if parent else priority,
        status=_TASK_MASTER_STATUSES.get(status, "pending"),
        waits_for=blockers,
        parent=parent.key if parent else None,
        left_out=[] if status in _TASK_MASTER_STATUSES else [f"status {status}: pending here"],
    )


# Backlog.md: a Markdown file with front matter for each task.

_DIRECTORIES = ("backlog", ".backlog", ".")
_FOLDERS = {"tasks": "", "completed": "completed", "drafts": f"{_NO_TASK}draft", "archive/tasks": f"{_NO_TASK}archived"}
"""The state of the tasks in each folder: "" if the files give it, `completed`, or the reason to leave them out."""
_BACKLOG_PRIORITIES = {"high": "high", "low": "low"}
_PENDING = ("to do", "todo", "")
_DONE = "done"
_BACKLOG_LEFT_OUT = ("due_date", "assignee", "modified_files", "reporter")
_COMMENT = re.compile(r"^author: *(?P<author>.*)\ncreated: *(?P<at>.*)\n---\n(?P<text>.*?)\n---$", re.M | re.S)
_HIDDEN = re.compile(r"^<!-- .*? -->\n?", re.M)
_END_OF_FRONT_MATTER = re.compile(rf"\n{files.FENCE}[ \t]*(?:\n|\Z)")


def read_backlog(path: str) -> list[Item]:
    """Return the tasks of Backlog.md. *path* is the file of one task, or a repository with all of them. A task waits
    for its subtasks.

    Raises:
        InvalidValue: A file can't be read, or is not a task.
    """
    if not os.path.isdir(path):  # the statuses and milestones of its project are not looked up
        return [_backlog_item(path, "", _DONE, {})]
    directories = [os.path.join(path, name) for name in _DIRECTORIES]
    directory = next((each for each in directories if os.path.isdir(os.path.join(each, "tasks"))), None)
    if directory is None:
        raise errors.InvalidValue(f"{path} has no backlog/tasks", "Name the repository, or its directory of tasks.")
    done = _last_status(directory)
    milestones = {}
    for file in _markdown_files(os.path.join(directory, "milestones")):
        front = _front_matter(file, content_of(file))
        milestones[text_of(front.get("id"))] = text_of(front.get("title"))
    return [
        _backlog_item(file, state, done, milestones)
        for folder, state in _FOLDERS.items()
        for file in _markdown_files(os.path.join(directory, folder))
    ]


def _markdown_files(folder: str) -> list[str]:
    names = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
    return [os.path.join(folder, name) for name in names if name.endswith(".md") and name.lower() != "readme.md"]


def _last_status(directory: str) -> str:
    """Return the status of done tasks, in lower case: the last one in the project's configuration, or else `done`."""
    for name in ("config.yml", "../backlog.config.yml"):
        file = os.path.join(directory, name)
        if os.path.exists(file):
            config = files.parsed(content_of(file), file, "Correct it.")
            statuses = texts_of(config.get("statuses")) if isinstance(config, dict) else []
            return statuses[-1].lower() if statuses else _DONE
    return _DONE


def _front_matter(file: str, content: str) -> dict[str, Any]:
    """Return the values in the front matter of a file. The front matter must have an id."""
    hint = "Name a task of Backlog.md: Markdown that begins with front matter."
    text = files.front_matter(content)
    front = files.parsed(text, file, hint) if text else None
    if not isinstance(front, dict) or not front.get("id"):
        raise errors.InvalidValue(f"{file} has no front matter with an id", hint)
    return front


def _backlog_item(file: str, state: str, done: str, milestones: dict[str, str]) -> Item:
    """Return the item for the file of a task. *state* is the state that `_FOLDERS` has for the file's folder. *done* is
    the project's word for the status of done tasks, and *milestones* has the names of milestones by id.
    """
    content = content_of(file).replace("\r\n", "\n")
    front = _front_matter(file, content)
    key, status = text_of(front["id"]).upper(), text_of(front.get("status"))
    priority = text_of(front.get("priority")).lower()
    is_done = state == "completed" or status.lower() in (done, _DONE)
    left_out = [name.replace("_", " ") for name in _BACKLOG_LEFT_OUT if front.get(name)]
    if not is_done and status.lower() not in _PENDING:
        left_out.append(f"status {status}: pending here")
    if priority not in ("", "medium", *_BACKLOG_PRIORITIES):
        left_out.append(f"priority {priority}: normal here")
    parts = _sections(content)
    remarks = [
        Remark(f"{key}-{number}", f"{comment['author']}, {comment['at'][:10]}: {comment['text'].strip()}")
        for number, comment in enumerate(_COMMENT.finditer(parts.pop("Comments", "")), 1)
    ]
    summary = parts.pop("Final Summary", "") or None
    description = [parts.pop("Description", "")]
    milestone = text_of(front.get("milestone"))
    references = texts_of(front.get("references")) + texts_of(front.get("documentation"))
    parts |= {"Milestone": milestones.get(milestone, milestone), "References": "\n".join(references)}
    description += [f"## {name}\n{part}" for name, part in parts.items() if part]
    item = Item(
        key,
        text_of(front.get("title")),
        description="\n\n".join(description).strip(),
        priority=_BACKLOG_PRIORITIES.get(priority, "normal"),
        status="completed" if is_done else "pending",
        why=summary,
        waits_for=[each.upper() for each in texts_of(front.get("dependencies"))],
        parent=text_of(front.get("parent_task_id")).upper() or None,
        labels=texts_of(front.get("labels")),
        remarks=remarks,
        left_out=left_out,
    )
    if state.startswith(_NO_TASK):
        item.status, item.left_out = "", [state]
    return item


def _sections(content: str) -> dict[str, str]:
    """Return the texts below the headings `## NAME`. The text before the first heading is called `Description`."""
    body = _END_OF_FRONT_MATTER.split(content, 1)[-1]
    sections: dict[str, list[str]] = {}
    heading = "Description"
    is_in_code = False
    for line in _HIDDEN.sub("", body).split("\n"):
        if line.startswith("```"):
            is_in_code = not is_in_code
        if line.startswith("## ") and not is_in_code:
            heading = line.removeprefix("## ").strip()
        else:
            sections.setdefault(heading, []).append(line)
    texts = {name: "\n".join(lines).strip("\n") for name, lines in sections.items()}
    return {name: text for name, text in texts.items() if text.strip()}
