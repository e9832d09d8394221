"""Installed hooks in words."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def _change(done: dict[str, Any]) -> list[str]:
    lines: list[str] = done["diff"].splitlines()
    if not lines:
        return [f"{done['path']}: nothing to change"]
    if done["changed"]:
        lines.append(f"{done['path']}: changed" + (f"; before: {done['backup']}" if done["backup"] else ""))
    return lines


def _serving(server: dict[str, Any]) -> list[str]:
    return [f"{server['url']}/#token={server['token']}"]


SHOW = {"serve": _serving, "hook": lambda said: [str(said)], "install": _change, "uninstall": _change}
