"""Evidence in words."""

from __future__ import annotations

from teams_cli import text
from teams_cli.cli.show import age, ago
from teams_cli.cli.tables import Table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Parts = list[str | Table]


def listed(found: list[dict[str, Any]]) -> Parts:
    rows = [[one["id"], one["name"], str(one["size"]), one["by"], age(one["at"]), one["sha256"]] for one in found]
    return [Table(["attachment", "file", "bytes", "by", "age", "sha256"], rows, "no attachments")]


def whole(one: dict[str, Any]) -> Parts:
    head = f"{one['id']} {one['name']}: {one['size']} bytes, attached to {one['task']} by {one['by']} {ago(one['at'])}"
    if "text" not in one:
        return [head, f"not text: teams get-evidence {one['task']} {one['id']} --out FILE"]
    rest = f"[cut; the whole: teams get-evidence {one['task']} {one['id']} --out FILE]"
    return [head, *text.bounded(text.quoted(one["text"]), text.MOST_LETTER, rest)]


def written(one: dict[str, Any]) -> Parts:
    return [f"{one['path']}: {one['size']} bytes, sha256 {one['sha256']}"]
