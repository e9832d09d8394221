"""History, health and settings in words."""

from __future__ import annotations

from teams_cli.cli.show import moment
from teams_cli.cli.tables import Table
from teams_cli.teams import history

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Parts = list[str | Table]


def _entry(entry: dict[str, Any]) -> str:
    return f"{moment(str(entry.get('at')))}  {history.line(entry)}"


def changes(found: Any) -> Parts:
    return [_entry(found)] if isinstance(found, dict) else [_entry(entry) for entry in found]


def hits(found: list[dict[str, Any]]) -> Parts:
    """Each hit with where it is; of a task also what it is called."""
    rows = [[hit["in"], hit["id"], hit["from"] or "-", moment(hit["at"]), _told(hit)] for hit in found]
    return [Table(["in", "id", "from", "at", "text"], rows)] if rows else ["nothing was found"]


def _told(hit: dict[str, Any]) -> str:
    title = hit.get("title")
    return hit["text"] if hit["in"] == "tasks" or not title else f"{hit['text']} ({title})"


def doctor(found: dict[str, Any]) -> Parts:
    if not found["findings"]:
        return [f"{found['root']}: healthy"]
    lines = []
    for item, following in zip(found["findings"], [*found["findings"][1:], {}], strict=True):
        lines.append(f"{item['level']}: {item['where']}: {item['what']}")
        if (remedy := _remedy(item)) and remedy != _remedy(following):
            lines.append(f"  {remedy}")
    return [*lines]


def _remedy(finding: dict[str, Any]) -> str:
    """What is to be done, said once behind all findings that have it in common."""
    return "" if finding.get("level") in (None, "fixed") else str(finding["remedy"] or "")


def settings(found: dict[str, Any]) -> Parts:
    call = [[what, str(said["value"] or "-"), said["source"], ""] for what, said in found["call"].items()]
    rows = [[row["key"], str(row["value"]), row["source"], row["help"]] for row in found["settings"]]
    return [Table(["setting", "value", "from", "what it is"], call + rows)]


def set_to(done: dict[str, Any]) -> Parts:
    return [f"{done['key']}: {done['value']} ({done.get('for') or done['source']})"]


def version(found: dict[str, Any]) -> Parts:
    return [f"teams {found['version']} on Python {found['python']}; the teams are in {found['store']}"]
