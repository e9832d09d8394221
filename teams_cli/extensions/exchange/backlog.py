"""Backlog.md: a Markdown file with front matter for each task."""

from __future__ import annotations

import os
import re

from teams_cli import errors
from teams_cli.extensions.exchange.items import Item, Remark, content_of, listed, words_of
from teams_cli.workflows import files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

_TOPS = ("backlog", ".backlog", ".")
_FOLDERS = {"tasks": "", "completed": "completed", "drafts": "no task: draft", "archive/tasks": "no task: archived"}
_PRIORITIES = {"high": "high", "low": "low"}
_PENDING = ("to do", "todo", "")
_DONE = "done"
_NO_PLACE = {"due_date": "due date", "assignee": "assignee", "modified_files": "modified files", "reporter": "reporter"}
_COMMENT = re.compile(r"^author: *(?P<author>.*)\ncreated: *(?P<at>.*)\n---\n(?P<said>.*?)\n---$", re.M | re.S)
_HIDDEN = re.compile(r"^<!-- .* -->\n?", re.M)


def read(path: str) -> list[Item]:
    """The tasks in a file, or in the repository of that directory; a subtask is a task that its parent waits for.

    Raises:
        InvalidValue: They can't be read, or are none.
    """
    if not os.path.isdir(path):
        return [_item(path, "", _DONE, {})]
    top = next((os.path.join(path, top) for top in _TOPS if os.path.isdir(os.path.join(path, top, "tasks"))), None)
    if top is None:
        raise errors.InvalidValue(f"{path} has no backlog/tasks", "Name the repository, or its directory of tasks.")
    done = _last_status(top)
    milestones = {
        words_of(said.get("id")): words_of(said.get("title"))
        for file in _files(os.path.join(top, "milestones"))
        for said in [_front(file, content_of(file))]
    }
    return [
        _item(file, state, done, milestones)
        for folder, state in _FOLDERS.items()
        for file in _files(os.path.join(top, folder))
    ]


def _files(folder: str) -> Iterator[str]:
    if os.path.isdir(folder):
        names = sorted(name for name in os.listdir(folder) if name.endswith(".md") and name.lower() != "readme.md")
        yield from (os.path.join(folder, name) for name in names)


def _last_status(top: str) -> str:
    """The status that ends a task: the last of those that the project has."""
    for name in ("config.yml", "../backlog.config.yml"):
        file = os.path.join(top, name)
        if os.path.exists(file):
            said = files.parsed(content_of(file), file, "Correct it.")
            statuses = listed(said.get("statuses")) if isinstance(said, dict) else []
            return statuses[-1].lower() if statuses else _DONE
    return _DONE


def _front(file: str, content: str) -> dict[str, Any]:
    hint = "Name a task of Backlog.md: Markdown that begins with front matter."
    front = files.front_matter(content)
    said = files.parsed(front, file, hint) if front else None
    if not isinstance(said, dict) or not said.get("id"):
        raise errors.InvalidValue(f"{file} has no front matter with an id", hint)
    return said


def _item(file: str, state: str, done: str, milestones: dict[str, str]) -> Item:
    content = content_of(file)
    said = _front(file, content)
    key, status = words_of(said["id"]).upper(), words_of(said.get("status"))
    parts = _sections(content)
    comments = parts.pop("Comments", "")
    summary = parts.pop("Final Summary", "") or None
    priority = words_of(said.get("priority")).lower()
    left = [name for there, name in _NO_PLACE.items() if said.get(there)]
    is_done = state == "completed" or status.lower() in (done, _DONE)
    if not is_done and status.lower() not in _PENDING:
        left.append(f"status {status}: pending here")
    if priority not in ("", "medium", *_PRIORITIES):
        left.append(f"priority {priority}: normal here")
    description = parts.pop("Description", "")
    more = {
        **parts,
        "Milestone": milestones.get(words_of(said.get("milestone")), words_of(said.get("milestone"))),
        "References": "\n".join(listed(said.get("references")) + listed(said.get("documentation"))),
    }
    item = Item(
        key,
        words_of(said.get("title")),
        description="\n\n".join([description, *(f"## {name}\n{each}" for name, each in more.items() if each)]).strip(),
        priority=_PRIORITIES.get(priority, "normal"),
        status="completed" if is_done else "pending",
        why=summary,
        waits_for=[each.upper() for each in listed(said.get("dependencies"))],
        parent=words_of(said.get("parent_task_id")).upper() or None,
        labels=listed(said.get("labels")),
        remarks=[_remark(key, number, each) for number, each in enumerate(_COMMENT.finditer(comments), 1)],
        left=left,
    )
    if state.startswith("no task"):
        item.status, item.left = "", [state]
    return item


def _sections(content: str) -> dict[str, str]:
    """The texts below the headings of second order, without the marks by which the tool finds them again."""
    body = content.split(f"\n{files.FENCE}\n", 1)[-1]
    found: dict[str, str] = {}
    heading = "Description"
    fenced = False
    for line in _HIDDEN.sub("", body).splitlines():
        fenced ^= line.startswith("```")
        if line.startswith("## ") and not fenced:
            heading = line.removeprefix("## ").strip()
        else:
            found[heading] = f"{found[heading]}\n{line}" if heading in found else line
    return {name: said.strip("\n") for name, said in found.items() if said.strip()}


def _remark(key: str, number: int, comment: re.Match[str]) -> Remark:
    return Remark(f"{key}-{number}", f"{comment['author']}, {comment['at'][:10]}: {comment['said'].strip()}")
