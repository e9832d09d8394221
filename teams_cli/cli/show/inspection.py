"""History, health and settings in words."""

from __future__ import annotations

from teams_cli import history
from teams_cli.cli.output import Table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Parts = list[str | Table]


def _entry(entry: dict[str, Any]) -> str:
    return f"{entry.get('at')}  {history.line(entry)}"


def _history(found: Any) -> Parts:
    return [_entry(found)] if isinstance(found, dict) else [_entry(entry) for entry in found]


def _doctor(found: dict[str, Any]) -> Parts:
    if not found["findings"]:
        return [f"{found['root']}: healthy"]
    lines = []
    for item in found["findings"]:
        lines.append(f"{item['level']}: {item['where']}: {item['what']}")
        if item["remedy"] and item["level"] != "fixed":
            lines.append(f"  {item['remedy']}")
    return [*lines]


def _settings(found: dict[str, Any]) -> Parts:
    call = [[what, str(said["value"] or "-"), said["source"], ""] for what, said in found["call"].items()]
    rows = [[row["key"], str(row["value"]), row["source"], row["help"]] for row in found["settings"]]
    return [Table(["setting", "value", "from", "what it is"], call + rows)]


SHOW = {
    "history": _history,
    "doctor": _doctor,
    "set": lambda done: [f"{done['key']}: {done['value']} ({done['source']})"],
    "settings": _settings,
    "version": lambda found: [f"teams {found['version']} on Python {found['python']}"],
}
