"""Items: a common form for the issues of trackers and the tasks of other tools, before they become tasks of a team."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from datetime import date

from teams_cli import errors, text
from teams_cli.workflows import files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

_LARGEST_FILE = 64 * 1024 * 1024
_LONGEST_TITLE = 440
"""The maximum number of characters of an item's title in a task's title, without the mark of a foreign item."""
_LONGEST_AUTHOR = 255
_CUT = "\n(cut here: it is too long for a task)"


@dataclass
class Remark:
    """A comment on an item. Its *key* is the same in every import, so that the comment is imported only once."""

    key: str
    text: str


@dataclass
class Item:
    """An issue of a tracker or a task of another tool, with the title and the description that our task gets.

    If *status* is "", no task is created from the item. *waits_for* and *parent* are keys of other items, which may be
    missing. *why* is the reason why the item was closed. If anybody may have written the item, *foreign* is what the
    mark in the task's title shows, such as the issue's number; otherwise it is "". *left_out* names the parts of the
    item for which a task has no field.
    """

    key: str
    title: str
    description: str = ""
    priority: str = "normal"
    status: str = "pending"
    why: str | None = None
    waits_for: Sequence[str] = ()
    parent: str | None = None
    labels: Sequence[str] = ()
    remarks: Sequence[Remark] = ()
    url: str | None = None
    author: str | None = None
    foreign: str = ""
    left_out: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.waits_for = list(dict.fromkeys(self.waits_for))
        line = text.clipped_line(self.title, _LONGEST_TITLE) or "(no title)"
        self.task_title = f"[foreign {self.foreign}] {line}" if self.foreign else line
        self.task_description = self._described(self.description) or None

    def _described(self, description: str) -> str:
        """Return the task's description with labels. If the item is foreign, all of it is quoted below a warning."""
        described = description.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "\ufffd").strip("\n")
        if self.labels:
            described = f"{described}\n\nLabels: {', '.join(self.labels)}".strip("\n")
        if self.foreign:
            by = f", by {text.clipped_line(self.author, _LONGEST_AUTHOR)}" if self.author else ""
            warning = f"{text.FOREIGN} From {self.url or self.key}{by}:"
            described = "\n".join([warning, *text.quoted(described or "(no text)", "> ")])
        if len(described.encode()) <= text.MAX_MESSAGE:
            return described
        self.left_out.append("the end of a long description")
        return described.encode()[: text.MAX_MESSAGE - len(_CUT)].decode(errors="ignore") + _CUT


def sections(**parts: str | None) -> str:
    """Join texts into one, without the blank ones. Each text except `description` gets its name as a heading."""
    with_headings = []
    for name, part in parts.items():
        if part and part.strip():
            heading = "" if name == "description" else f"## {name.replace('_', ' ')}\n"
            with_headings.append(heading + part.strip("\n"))
    return "\n\n".join(with_headings)


def file_in(path: str, *places: str) -> str:
    """Return *path* unless it is a directory. For a directory, return the path of the first of *places* that exists in
    it.

    Raises:
        InvalidValue: The directory has none of these files.
    """
    if not os.path.isdir(path):
        return path
    for place in places:
        if os.path.exists(os.path.join(path, place)):
            return os.path.join(path, place)
    raise errors.InvalidValue(f"{path} has no {' and no '.join(places)}", "Name the file, or the repository's top.")


def content_of(path: str) -> str:
    """Return the text of a file.

    Raises:
        InvalidValue: The file can't be read, is larger than 64 MiB, or is not UTF-8.
    """
    return files.content_of(path, _LARGEST_FILE).removeprefix("\ufeff")


def parsed(content: str, where: str) -> Any:
    """Return the value of a JSON text. Errors name *where* the text comes from.

    Raises:
        InvalidValue: The text is not JSON.
    """
    try:
        return json.loads(text.whole_characters(content.encode()))
    except (ValueError, RecursionError) as error:
        raise errors.InvalidValue(f"{where} is not JSON: {error}", "Export it again.") from None


def text_of(value: Any) -> str:
    """Return a value from another tool as text. Texts and dates stay as they are, None becomes "", and any other value
    becomes JSON.
    """
    if value is None:
        return ""
    if isinstance(value, str | date):
        return str(value)
    return json.dumps(value, ensure_ascii=False, default=str)


def objects(value: Any) -> list[dict[str, Any]]:
    """Return the objects in the list *value*; an empty list if *value* is not a list."""
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def texts_of(value: Any) -> list[str]:
    """Return the values of a list as strings. If *value* is a single value, return a list with its string; if *value*
    is empty, return an empty list.
    """
    if isinstance(value, list):
        return [text_of(each) for each in value]
    return [text_of(value)] if value else []
