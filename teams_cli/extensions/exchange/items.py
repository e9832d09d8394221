"""Items: what a tracker or another tool calls an issue or a task, as all of them are read before they become tasks."""

from __future__ import annotations

import json
import os
from datetime import date

from teams_cli import errors, text
from teams_cli.store.files import disk

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

_MOST = 64 * 1024 * 1024
_LONGEST_TITLE = 440
"""Characters: a mark may stand before them."""
_LONGEST_AUTHOR = 255
_CUT = "\n(cut here: it is too long for a task)"


class Remark:
    """A comment on an item; its *key* is the same in every import."""

    def __init__(self, key: str, said: str) -> None:
        self.key = key
        self.said = said


class Item:
    """One item, with the title and the description that its task gets. *waits_for* and *parent* are keys of others,
    which may be missing. One that is *foreign* was written by anybody who can reach the tracker: its texts are marked,
    with that word. *left* says in a few words what a task has no place for. One without a *status* becomes no task.
    """

    def __init__(
        self,
        key: str,
        title: str,
        *,
        description: str = "",
        priority: str = "normal",
        status: str = "pending",
        why: str | None = None,
        waits_for: Iterable[str] = (),
        parent: str | None = None,
        labels: Sequence[str] = (),
        remarks: Sequence[Remark] = (),
        url: str | None = None,
        author: str | None = None,
        foreign: str = "",
        left: Iterable[str] = (),
    ) -> None:
        self.key = key
        self.title = title
        self.priority = priority
        self.status = status
        self.why = why
        self.waits_for = list(dict.fromkeys(waits_for))
        self.parent = parent
        self.labels = labels
        self.remarks = remarks
        self.url = url
        self.author = author
        self.foreign = foreign
        self.left = list(left)
        line = text.clipped_line(title, _LONGEST_TITLE) or "(no title)"
        self.task_title = f"[foreign {foreign}] {line}" if foreign else line
        self.task_description = self._described(description) or None

    def _described(self, said: str) -> str:
        """The description that its task gets; of a foreign one each line is quoted, below a warning."""
        said = said.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "\ufffd").strip("\n")
        if self.labels:
            said = f"{said}\n\nLabels: {', '.join(self.labels)}".strip("\n")
        if self.foreign:
            by = f", by {text.clipped_line(self.author, _LONGEST_AUTHOR)}" if self.author else ""
            said = "\n".join(
                [f"{text.FOREIGN} From {self.url or self.key}{by}:", *text.quoted(said or "(no text)", "> ")]
            )
        if len(said.encode()) <= text.MAX_MESSAGE:
            return said
        self.left.append("the end of a long description")
        return said.encode()[: text.MAX_MESSAGE - len(_CUT)].decode(errors="ignore") + _CUT


def sections(**parts: str | None) -> str:
    """The texts that are there, each below its heading; the first stands alone."""
    given = [(name.replace("_", " "), said.strip("\n")) for name, said in parts.items() if said and said.strip()]
    return "\n\n".join(f"## {name}\n{said}" if name != "description" else said for name, said in given)


def file_in(path: str, *places: str) -> str:
    """The path, or the first of the *places* below it that is there, where it is a directory.

    Raises:
        InvalidValue: There is neither.
    """
    if not os.path.isdir(path):
        return path
    for place in places:
        if os.path.exists(os.path.join(path, place)):
            return os.path.join(path, place)
    raise errors.InvalidValue(f"{path} has no {' and no '.join(places)}", "Name the file, or the repository's top.")


def content_of(path: str) -> str:
    """The text of a file.

    Raises:
        InvalidValue: It can't be read, is larger than 64 MiB, or no UTF-8.
    """
    try:
        data = disk.read_named(path, _MOST + 1)
        if len(data) > _MOST:
            raise errors.InvalidValue(f"{path} has more than {_MOST} bytes", "Split it.")
        return data.decode("utf-8-sig")
    except OSError as error:
        raise errors.InvalidValue(f"can't read {path}: {error.strerror}", "Give a file that you may read.") from None
    except UnicodeDecodeError:
        raise errors.InvalidValue(f"{path} is not UTF-8", "Save it as UTF-8.") from None


def parsed(content: str, where: str) -> Any:
    """Parse JSON.

    Raises:
        InvalidValue: It is none.
    """
    try:
        return json.loads(text.whole_characters(content.encode()))
    except (ValueError, RecursionError) as error:
        raise errors.InvalidValue(f"{where} is not JSON: {error}", "Export it again.") from None


def words_of(value: Any) -> str:
    """A text of a file of another tool; anything else than a text is written as JSON, except a date of YAML."""
    if value is None:
        return ""
    if isinstance(value, str | date):
        return str(value)
    return json.dumps(value, ensure_ascii=False, default=str)


def objects(value: Any) -> list[dict[str, Any]]:
    """The objects of a list; what is none is passed over."""
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def listed(value: Any) -> list[str]:
    """The texts of a list; a single one is a list of itself."""
    return [words_of(each) for each in (value if isinstance(value, list) else [value] if value else [])]
