"""Installation in words."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def change(done: dict[str, Any]) -> list[str]:
    if "commands" in done:
        said = "would run" if done["planned"] else "ran" if done["changed"] else "not needed"
        lines = [f"{said}: {command}" for command in done["commands"]]
        return [*lines, f"next: {done['next']}"] if "next" in done else lines
    if not done["diff"]:
        return [f"{file['path']}: nothing to change" for file in done["files"]]
    asked = done.get("asked", False)
    lines = [line for file in done["files"] for line in _file(file, asked)]
    return [*lines, f"next: {done['next']}"] if "next" in done else lines


def _file(file: dict[str, Any], asked: bool) -> list[str]:
    """What became of the file, with how, unless that was shown when it was asked about."""
    lines: list[str] = [] if asked else file["diff"].splitlines()
    if asked and not file["changed"]:
        lines.append(f"{file['path']}: left as it is")
    if file["changed"]:
        lines.append(f"{file['path']}: changed" + (f"; before: {file['backup']}" if file["backup"] else ""))
    return lines


def serving(server: dict[str, Any]) -> list[str]:
    return [f"{server['url']}/#token={server['token']}"]


def hooked(said: Any) -> list[str]:
    return [str(said)]
