"""Pages in words."""

from __future__ import annotations

from teams_cli.cli.show.ages import ago
from teams_cli.cli.tables import Table
from teams_cli.records.annotations import Any

TYPE_CHECKING = False
if TYPE_CHECKING:
    Parts = list[str | Table]


def changed(page: dict[str, Any]) -> Parts:
    if "text" not in page:
        return [f"{page['key']}: taken away"]
    return [f"{page['key']}: version {page['version']}"]


def whole(page: dict[str, Any]) -> Parts:
    return [f"{page['key']}: version {page['version']} by {page['author']}, {ago(page['updatedAt'])}", page["text"]]


def listed(found: list[dict[str, Any]]) -> Parts:
    rows = [
        [page["key"], str(page["version"]), page["author"], ago(page["updatedAt"]).removesuffix(" ago"), page["line"]]
        for page in found
    ]
    return [Table(["page", "version", "by", "age", "begins"], rows, "no pages")]
