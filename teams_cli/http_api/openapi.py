"""The description of the API, derived from the declarations of the commands."""

from __future__ import annotations

from functools import cache

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


@cache
def document() -> dict[str, Any]:
    """The OpenAPI document."""
    return {}
