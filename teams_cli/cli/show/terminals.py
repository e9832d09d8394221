"""Terminals in words."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def here(found: dict[str, Any]) -> list[str]:
    return [f"{found['directory']}: {found['team'] or 'belongs to no team'}"]


def opened(found: dict[str, Any]) -> list[str]:
    return [f"{found['agent']}: opened"]
