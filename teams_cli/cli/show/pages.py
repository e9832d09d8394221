"""Pages in words."""

from __future__ import annotations

from teams_cli import text
from teams_cli.cli.show import age, ago
from teams_cli.cli.tables import Table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Parts = list[str | Table]

_UNTOLD = 5


def changed(page: dict[str, Any]) -> Parts:
    if "text" not in page:
        return [f"{page['key']}: removed"]
    return [f"{page['key']}: version {page['version']}", *untold(page)]


def agreed(page: dict[str, Any]) -> Parts:
    """Show an agreement, with who has confirmed it."""
    named = text.listed([page["author"], *page.get("agreed", ())])
    return [f"{page['key']}: version {page['version']}, agreed to by {named}", *text.quoted(page["text"])]


def untold(document: dict[str, Any]) -> Parts:
    """The first of the pages that came along because nobody told of them yet, each with how to read it."""
    found = document.get("pages", [])
    more = [f"{len(found) - _UNTOLD} more pages: teams shared"] if len(found) > _UNTOLD else []
    return [*map(_untold, found[:_UNTOLD]), *more]


def _untold(page: dict[str, Any]) -> str:
    said = f"page {page['key']} (version {page['version']} by {page['author']}): {page['line']}"
    return f"{said}: teams shared {page['key']}"


def whole(page: dict[str, Any]) -> Parts:
    head = f"{page['key']}: version {page['version']} by {page['author']}, {ago(page['updatedAt'])}"
    return [head, *text.quoted(page["text"])]


def listed(found: list[dict[str, Any]]) -> Parts:
    rows = [[page["key"], str(page["version"]), page["author"], age(page["updatedAt"]), page["line"]] for page in found]
    return [Table(["page", "version", "by", "age", "begins"], rows, "no pages")]
