"""What was installed, in words."""

from __future__ import annotations

from teams_cli.records.annotations import Any


def change(done: dict[str, Any]) -> list[str]:
    if not done["diff"]:
        return [f"{file['path']}: nothing to change" for file in done["files"]]
    return [line for file in done["files"] for line in _file(file)]


def _file(file: dict[str, Any]) -> list[str]:
    lines: list[str] = file["diff"].splitlines()
    if file["changed"]:
        lines.append(f"{file['path']}: changed" + (f"; before: {file['backup']}" if file["backup"] else ""))
    return lines


def serving(server: dict[str, Any]) -> list[str]:
    return [f"{server['url']}/#token={server['token']}"]


def hooked(said: Any) -> list[str]:
    return [str(said)]
